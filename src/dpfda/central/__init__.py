"""Functional summaries by a trusted curator: means, covariances, densities, regressions."""

from dpfda._registry import discover
from dpfda.central.function_mechanism import FunctionMechanism
from dpfda.central.mean import PrivateMean
from dpfda.central.release import Release

discover(__name__, list(__path__))  # function mechanisms and kernels register by name

__all__ = ["FunctionMechanism", "PrivateMean", "Release"]
