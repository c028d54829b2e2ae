"""The Bernstein mechanism: noisy values on a lattice, joined by Bernstein polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Self

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.stats import binom

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.basis import FunctionBasis
from dpfda.central.function_mechanism import FunctionMechanism, Task, additive, noise_law
from dpfda.central.quadrature import Grid
from dpfda.central.records import exact_mean
from dpfda.central.release import Release
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source


@dataclass(frozen=True, kw_only=True)
class Bernstein(FunctionMechanism, name="bernstein"):
    """Alda & Rubinstein (2017): add Laplace noise to the mean at (K+1)^d lattice points.

    Privacy:
        ε-DP. The bound it needs is on the largest |X(t)|, not on the norm (C23): every value is
        clipped to the task's bound, and Δ₁ = 2τ_∞(K+1)^d/n.

    Attributes:
        order: K.

    Example:
        >>> Bernstein(order=10).order
        10
    """

    bounds_largest: ClassVar[bool] = True

    order: int = 20

    def __post_init__(self) -> None:
        _validate.whole("order", self.order)

    def functions(self, grid: Grid) -> FunctionBasis:
        """Bernstein polynomials (products of them) on the grid."""
        parts = [
            binom.pmf(
                np.arange(self.order + 1)[:, None],
                self.order,
                (axis - axis[0]) / (axis[-1] - axis[0]),
            )
            for axis in grid
        ]
        table = reduce(np.kron, parts)
        return FunctionBasis(grid, table, np.ones(table.shape[0]))

    def summary(self, records: FloatArray, grid: Grid, task: Task) -> FloatArray:
        """Mean of the clipped curves at the lattice points."""
        lattice = [np.linspace(axis[0], axis[-1], self.order + 1) for axis in grid]
        shape = tuple(axis.size for axis in grid)
        table = np.moveaxis(records.reshape(-1, *shape), 0, -1)
        mesh = np.stack([m.ravel() for m in np.meshgrid(*lattice, indexing="ij")], axis=1)
        rows = RegularGridInterpolator(grid, table)(mesh).T
        return exact_mean(rows, bound=task.bound)

    def mechanism(self, grid: Grid, task: Task) -> Mechanism:
        """Equal Laplace noise on every lattice value."""
        size = (self.order + 1) ** len(grid)
        return additive(task, sensitivity=task.radius * size, axes=np.ones(size))

    def release(self, records: FloatArray, grid: Grid, task: Task, source: Source) -> Release:
        """Noisy lattice values as Bernstein coefficients."""
        self.check(task)
        mechanism = self.mechanism(grid, task)
        basis = self.functions(grid)
        noisy = mechanism.randomize(self.summary(records, grid, task)[None, :], source)[0]
        return Release(
            summary="mean",
            coefficients=noisy,
            noisy=noisy,
            noise=(noise_law(mechanism),),
            basis=basis,
            centre=np.zeros(basis.weights.size),
            guarantee=task.guarantee.drawn_from(source),
            sensitivity=task.radius * basis.size,
            parameters={"mechanism": self.name, "order": self.order},
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """A short lattice."""
        return [cls(order=4)]
