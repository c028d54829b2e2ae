"""Functional summaries by a trusted curator: means, covariances, densities, regressions."""

from dpfda._registry import discover
from dpfda.central.covariance import PrivateCovariance
from dpfda.central.density import PrivateDensity
from dpfda.central.function_on_scalar import PrivateFunctionOnScalar
from dpfda.central.kernel_machine import PrivateKernelMachine
from dpfda.central.mean import FunctionMechanism
from dpfda.central.release import Release

discover(__name__, list(__path__))  # mechanisms, kernels and losses register by name

__all__ = [
    "FunctionMechanism",
    "PrivateCovariance",
    "PrivateDensity",
    "PrivateFunctionOnScalar",
    "PrivateKernelMachine",
    "Release",
]
