"""Curves that a curator holds: one joint release of means, sizes and covariances, and its uses."""

from dpfda._registry import discover

discover(__name__, list(__path__))  # queries and conversations register by name
