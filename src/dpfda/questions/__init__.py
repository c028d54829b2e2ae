"""Question and moment studies: the classifiers people will use."""

from dpfda._registry import discover

discover(__name__, list(__path__))
