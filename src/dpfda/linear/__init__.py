"""Local linear studies: location, spread, correlations, then a classifier in a few looks."""

from dpfda._registry import discover

discover(__name__, list(__path__))
