"""Mechanisms, one family in each file, found by name: ``Mechanism.named("piecewise")``."""

from dpfda._registry import discover
from dpfda.mechanisms.base import Mechanism

discover(__name__, list(__path__))

__all__ = ["Mechanism"]
