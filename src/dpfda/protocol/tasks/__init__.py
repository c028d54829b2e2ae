"""The task types, found by name: ``Task.named("stump")``. Questions and vectors have a file each."""

from dpfda._registry import discover

discover(__name__, list(__path__))
