"""Kernel density releases of 003 (§4.3 with C13): ICLP-QR, FRL and Bernstein on a kernel estimate.

Points are rounded to the cells of a public grid. The sensitivity is then computed exactly, by
comparing all pairs of cells, instead of using the bound of Theorem 8.

The Bernstein mechanism releases noisy values on a lattice and smooths them with Bernstein
polynomials.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.cell_queries import Box, NearestMean
from dpfda.central.conversation import far_apart, too_small
from dpfda.central.density import DensityMechanism, DensityRelease
from dpfda.central.functions import (
    FunctionBasis,
    Grid,
    Kernel,
    Matern,
    SquaredExponential,
    between,
    eigenpairs,
)
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.queries import MOST_RECORDS, independent_noise, vector_mean
from dpfda.central.release import Release
from dpfda.mechanisms.additive import Additive
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import choice, flag, number, part, whole
from dpfda.protocol.query import AdditiveQuery, Records, Sums


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxMean(AdditiveQuery, name="box_mean"):
    """Mean of J numbers, each clipped to [-τ, τ].

    Privacy:
        Replacing a record changes each mean by at most 2τ/n, and all J together by 2τJ/n in ℓ1.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    bound: float = number(least=1e-40, most=1e40)
    values: int = whole(most=1 << 24)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise of equal scale on each number, for the ℓ1 sensitivity of all."""
        axes, sensitivity = np.ones(self.values), 2 * self.bound * self.values / self.n
        return independent_noise(self.cost, sensitivity=sensitivity, axes=axes)

    @property
    def summed(self) -> Sums:
        """Sums of the numbers; `vector_mean` clips them."""

        def numbers(records: Records) -> FloatArray:
            return np.asarray(records[0][:, : self.values])

        axes = np.ones(self.values)
        return vector_mean((self.values,), numbers, n=self.n, reach=self.bound, axes=axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """One number, and three numbers."""
        return [cls(cost=Cost(epsilon=1.0), n=4, bound=2.0, values=values) for values in (1, 3)]


@dataclass(frozen=True, kw_only=True)
class Bernstein(FunctionMechanism, name="bernstein"):
    """Add Laplace noise to the mean at (K+1)^d lattice points (Alda & Rubinstein 2017).

    Privacy:
        ε-DP. The bound is on the largest |X(t)|, not on the norm (C23): every value is clipped to
        the bound, and Δ₁ = 2τ_∞(K+1)^d/n.

    Attributes:
        order: K.

    Examples:
        >>> Bernstein(order=10).order
        10
    """

    bounds_largest: ClassVar[bool] = True

    order: int = whole(default=20)

    def basis(self, grid: Grid) -> FunctionBasis:
        """Bernstein polynomials, or their products, on the grid."""
        from scipy.stats import binom  # slow to import

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

    def query(self, mean: MeanRelease) -> BoxMean:
        """The only query."""
        size = (self.order + 1) ** len(mean.grid)
        return BoxMean(unit=mean.unit, cost=mean.whole, n=mean.n, bound=mean.bound, values=size)

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """Noisy lattice values as Bernstein coefficients."""
        query, basis = self.query(mean), self.basis(mean.grid)
        return mean.one_query(query, basis, mechanism=self.name, order=self.order)

    def neighbors(self, mean: MeanRelease) -> tuple[Records, Records]:
        """Data sets that differ in one row, at opposite corners of the box."""
        size = (self.order + 1) ** len(mean.grid)
        return far_apart(mean.n, np.ones(size), mean.bound * size**0.5)

    @classmethod
    def examples(cls) -> list[Self]:
        """A lattice of five points."""
        return [cls(order=4)]


_CELLS = {1: 256, 2: 24}  # number of cells along each variable


_RIM = 50  # an end of the range is its outer fiftieth
_PILED = 0.2  # share of the points at one end of the range that causes a warning
_MOSTLY_PILED = 0.5  # share at one end that shows that nearly all points are outside the range
_BLURRED = 0.5  # no warning is given if the noise of the density is larger
_AT_AN_END = (
    "many points lie at an end of feature_ranges: points beyond an end are moved there, so if "
    "there are any, the range is too small and the density is wrong"
)


@dataclass(frozen=True, kw_only=True)
class KernelDensity(DensityMechanism, name="kernel"):
    """A kernel density estimate, f̂ = mean of K^η_h(x_i, ·), with noise from the same kernel.

    Privacy:
        ε-DP with Δ = (1/n) max over cells x, x' of Σ_j |k_j(x) - k_j(x')|/a_j. The axes a_j are
        √λ_j for ``iclp_qr``; they are 1 on the first M coefficients for ``frl`` and on the lattice
        values for ``bernstein``.

    Attributes:
        kind: the mechanism.
        eta: η; the estimate uses the noise kernel to the power η.
        bandwidth: h in units of the box's side; 0.2 n^{-1/(4+d)} by default (privacy-safe
            selection).
        components: M of FRL, or K of Bernstein.
        rough: use the exponential kernel (the paper's choice in two variables).

    Examples:
        >>> round(KernelDensity(kind="iclp_qr").bandwidth_for(1024, 1), 4)
        0.05
    """

    kind: str = choice("iclp_qr", "frl", "bernstein", default="iclp_qr")
    eta: float = number(above=0.0, default=1.25)
    bandwidth: float | None = number(above=0.0, optional=True, default=None)
    components: int = whole(default=12)
    rough: bool = flag(default=False)

    def bandwidth_for(self, n: int, variables: int) -> float:
        """`bandwidth` if it is given, otherwise the default h."""
        if self.bandwidth is not None:
            return self.bandwidth
        return float(0.2 * n ** (-1 / (4 + variables)))

    def query(self, density: DensityRelease, cost: Cost) -> NearestMean:
        """The mean of the kernel coefficients of the points."""
        basis, features, axes = self.layout(density.box, density.n)
        along = basis.grid[0].size
        return NearestMean(**density.place, cost=cost, along=along, features=features, axes=axes)

    def questions(self, density: DensityRelease) -> Questions[Release]:
        """Noisy kernel estimate."""
        query = self.query(density, density.whole)
        return density.one_query(
            query,
            self.layout(density.box, density.n)[0],
            mechanism=self.kind,
            eta=self.eta,
            bandwidth=self.bandwidth_for(density.n, len(density.box)),
            components=len(query.axes),
        )

    def doubts(self, release: Release) -> tuple[str, ...]:
        """Warnings if much mass is at the border, where points outside the box are moved to."""
        noise = float(
            np.sqrt(release.variance_along(release.basis.functions) @ release.basis.weights)
        )
        mass = (release.values() * release.basis.weights.reshape(release.values().shape)).clip(0)
        mass = mass / max(float(mass.sum()), 1e-12)
        for axis in range(mass.ndim):
            along = np.moveaxis(mass, axis, 0).reshape(len(mass), -1).sum(axis=1)
            rim = max(1, len(along) // _RIM)
            piled = max(along[:rim].sum(), along[-rim:].sum())
            if noise < _BLURRED and piled > _PILED:
                outside = too_small("the ends of feature_ranges", "points")
                return (outside if piled > _MOSTLY_PILED else _AT_AN_END,)
        return ()

    def layout(
        self, box: Box, n: int, *, whole: bool = False
    ) -> tuple[FunctionBasis, FloatArray, FloatArray]:
        """Basis, the coefficients that a point in each cell contributes (cells, J), and axes."""
        size = _CELLS[len(box)]
        grid = tuple(np.linspace(*side, size) for side in box)
        h = self.bandwidth_for(n, len(box))
        # K^η has bandwidth about h if K has length h/√η (exactly h for Gaussian kernels).
        kernel: Kernel = (
            Matern(nu=0.5, length=h) if self.rough else SquaredExponential(length=h / self.eta**0.5)
        )
        pairs = eigenpairs(kernel, grid)
        power = pairs.eigenvalues**self.eta
        middle = pairs.functions[:, pairs.weights.size // 2 + (size // 2 if len(box) == 2 else 0)]
        mass = float((power * middle * (pairs.functions @ pairs.weights)).sum())
        features = (pairs.functions * power[:, None] / mass).T
        if self.kind == "iclp_qr" or whole:
            return pairs, features, np.sqrt(pairs.eigenvalues)
        if self.kind == "frl":
            few = pairs.first(self.components)
            return few, features[:, : few.size], np.ones(few.size)
        return _bernstein(pairs, features, self.components)

    @classmethod
    def examples(cls) -> list[Self]:
        """The three kinds."""
        return [cls(kind=kind, components=4) for kind in ("iclp_qr", "frl", "bernstein")]


def _bernstein(
    pairs: FunctionBasis, features: FloatArray, order: int
) -> tuple[FunctionBasis, FloatArray, FloatArray]:
    lattice = tuple(np.linspace(axis[0], axis[-1], order + 1) for axis in pairs.grid)
    values = features @ pairs.at(lattice if len(lattice) > 1 else lattice[0])
    basis = Bernstein(order=order).basis(pairs.grid)
    return basis, values, np.ones(basis.size)
