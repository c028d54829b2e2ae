"""Random bits and exact noise. This package never reads data."""

from dpfda.noise.discrete import discrete_gaussian, discrete_laplace
from dpfda.noise.source import RandomState, SecureSource, SimulationSource, Source, source_for

__all__ = [
    "RandomState",
    "SecureSource",
    "SimulationSource",
    "Source",
    "discrete_gaussian",
    "discrete_laplace",
    "source_for",
]
