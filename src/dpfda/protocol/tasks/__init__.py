"""The task types, one file each, found by name: ``Task.named("stump")``."""

from dpfda._registry import discover

discover(__name__, list(__path__))
