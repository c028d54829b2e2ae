"""Sample paths of the Independent Component Laplace Process (003) and its Gaussian companion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.functions import FunctionBasis
from dpfda.noise import Source, discrete_gaussian, discrete_laplace

_STEPS = 1 << 20
"""Number of lattice steps in one scale of a coefficient."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Process:
    """Z = Σ_j √λ_j Z_j φ_j with independent Z_j: Laplace of scale 1, or standard normal.

    The paths illustrate the noise of a release. A release does not use this class: it draws its own
    noise on a lattice determined by its sensitivity (`mechanism="iclp_qr"` of `PrivateMean`).

    Attributes:
        basis: eigenpairs of a kernel on a grid.
        law: distribution of the coefficients.

    Examples:
        >>> from dpfda.central.functions import Matern, as_grid, eigenpairs
        >>> from dpfda.noise import SimulationSource
        >>> process = Process(basis=eigenpairs(Matern(), as_grid(np.linspace(0, 1, 50))))
        >>> process.paths(100, SimulationSource(0)).shape
        (100, 50)
    """

    basis: FunctionBasis
    law: Literal["laplace", "gaussian"] = "laplace"

    def paths(self, size: int, source: Source) -> FloatArray:
        """Draw `size` paths on the grid; the coefficients come from the exact lattice samplers."""
        size = _validate.whole("size", size)
        count = size * self.basis.size
        if self.law == "laplace":
            integers = discrete_laplace(count, scale=_STEPS, source=source)
        else:
            integers = discrete_gaussian(count, sigma=_STEPS, source=source)
        return np.asarray((integers.reshape(size, -1) / _STEPS) @ self.scaled)

    @cached_property
    def scaled(self) -> FloatArray:
        """√λ_j φ_j on the grid."""
        return np.asarray(np.sqrt(self.basis.eigenvalues)[:, None] * self.basis.functions)

    @property
    def total_variance(self) -> float:
        """E‖Z‖²: the trace of the kernel, or twice the trace for Laplace coefficients."""
        factor = 2.0 if self.law == "laplace" else 1.0
        return factor * math.fsum(self.basis.eigenvalues)
