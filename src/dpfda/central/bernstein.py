"""The Bernstein mechanism: noisy values on a lattice, joined by Bernstein polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Self

import numpy as np
from scipy.stats import binom

from dpfda._validate import FloatArray
from dpfda.central.conversation import far_apart
from dpfda.central.functions import FunctionBasis, between
from dpfda.central.looks import Body, MeanLook
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.quadrature import Grid
from dpfda.central.release import Release
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import number, whole
from dpfda.protocol.query import Records


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxMean(MeanLook, name="box_mean"):
    """Mean of J numbers, each clipped to [-τ, τ].

    Privacy:
        Each moves by at most 2τ/n, all together by 2τJ/n in ℓ1.
    """

    independent: ClassVar[bool] = True

    bound: float = number(least=1e-40, most=1e40)
    values: int = whole(most=1 << 24)

    @property
    def columns(self) -> tuple[int, ...]:
        """The numbers."""
        return (self.values,)

    @property
    def body(self) -> Body:
        """2τJ wide in ℓ1."""
        return Body(self.bound, 2 * self.bound * self.values, np.ones(self.values))

    def vectors(self, records: Records) -> FloatArray:
        """The numbers, clipped as they are summed."""
        return np.asarray(records[0][:, : self.values])

    @classmethod
    def examples(cls) -> list[Self]:
        """One number and three."""
        return [cls(cost=Cost(epsilon=1.0), n=4, bound=2.0, values=values) for values in (1, 3)]


@dataclass(frozen=True, kw_only=True)
class Bernstein(FunctionMechanism, name="bernstein"):
    """Alda & Rubinstein (2017): add Laplace noise to the mean at (K+1)^d lattice points.

    Privacy:
        ε-DP. The bound it needs is on the largest |X(t)|, not on the norm (C23): every value is
        clipped to the bound, and Δ₁ = 2τ_∞(K+1)^d/n.

    Attributes:
        order: K.

    Examples:
        >>> Bernstein(order=10).order
        10
    """

    bounds_largest: ClassVar[bool] = True

    order: int = whole(default=20)

    def basis(self, grid: Grid) -> FunctionBasis:
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

    def rows(self, records: FloatArray, mean: MeanRelease) -> FloatArray:
        """Values at the lattice points."""
        lattice = [np.linspace(axis[0], axis[-1], self.order + 1) for axis in mean.grid]
        return between(mean.grid, records, lattice)

    def look(self, mean: MeanRelease) -> BoxMean:
        """The one question."""
        size = (self.order + 1) ** len(mean.grid)
        return BoxMean(unit=mean.unit, cost=mean.whole, n=mean.n, bound=mean.bound, values=size)

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """Noisy lattice values as Bernstein coefficients."""
        look, basis = self.look(mean), self.basis(mean.grid)
        return mean.one_look(look, basis, mechanism=self.name, order=self.order)

    def neighbors(self, mean: MeanRelease) -> tuple[Records, Records]:
        """Opposite corners of the box."""
        size = (self.order + 1) ** len(mean.grid)
        return far_apart(mean.n, np.ones(size), mean.bound * size**0.5)

    @classmethod
    def examples(cls) -> list[Self]:
        """A short lattice."""
        return [cls(order=4)]
