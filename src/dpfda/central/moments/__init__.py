"""A joint release of the means, sizes and covariances of groups of curves, and its uses."""

from dpfda._registry import discover

discover(__name__, list(__path__))  # queries and conversations register by name
