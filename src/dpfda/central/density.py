"""A probability density: the conversation, and the default mechanism, a noisy histogram.

The method is described in docs/methods/densities.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.central.cell_queries import Box, CellCounts, NearestMean
from dpfda.central.conversation import BoxConversation, more_than_a_few
from dpfda.central.functions import FunctionBasis
from dpfda.central.release import Release
from dpfda.central.shrinkage import monotone_shrinkage, stands_out
from dpfda.curves.bases import CosineBasis
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import check_fields, whole
from dpfda.protocol.query import Records

_OUTSIDE = (
    "more than a few points, {share:.0%} ± {noise:.0%}, lie outside feature_ranges, which are "
    "probably too small: the density is that of the other points"
)


@dataclass(frozen=True, kw_only=True)
class DensityMechanism(Registered, family="density mechanism"):
    """Base of the mechanisms that release the density of points in a public box."""

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def query(self, density: DensityRelease, cost: Cost) -> CellCounts | NearestMean:
        """The one query about n points in a box, at this cost."""

    @abstractmethod
    def questions(self, density: DensityRelease) -> Questions[Release]:
        """Ask the query, and compute the release."""

    def doubts(self, release: Release) -> tuple[str, ...]:
        """Warnings about the box that follow from the release itself."""
        return ()

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few instances for checks and audits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DensityRelease(BoxConversation, name="density"):
    """The queries that a density of n points is computed from.

    Attributes:
        mechanism: the mechanism, which determines the query.
    """

    summary: ClassVar[str] = "density"

    mechanism: DensityMechanism

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """The budget with less noise."""
        return min(pure, gaussian, key=self._noise)

    def _noise(self, cost: Cost) -> float:
        return float(self.mechanism.query(self, cost).mechanism.law.variance.sum())

    def doubts(self, release: Release) -> tuple[str, ...]:
        """The warnings of the mechanism about its bounds."""
        return self.mechanism.doubts(release)

    def questions(self) -> Questions[Release]:
        """The queries of the mechanism."""
        return self.mechanism.questions(self)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """Data sets that differ in one point, at opposite corners of the box."""
        here, there = self.anywhere(n), self.anywhere(n)
        here[0], there[0] = self.place["low"], self.place["high"]
        return (here,), (there,)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Every mechanism, in one variable."""
        return [
            cls(
                epsilon=epsilon,
                delta=delta,
                n=n,
                box=((0.0, 1.0),),
                mechanism=mechanism,
                either=True,
            )
            for member in DensityMechanism.members().values()
            for mechanism in member.examples()
        ]


_CLEAR = 2.0  # noise deviations beyond which a difference counts as clear
RESOLVED = 32
"""Number of cells of one variable that shows a shape in a range up to ten times too wide; also the
number of parts of a range that readers can distinguish."""
_FILLED = 0.1  # smallest share of a range that the points are assumed to fill
_DISTINCT = 4.0  # deviations of noise by which the counts of such points should exceed 0
_IN_ONE_CELL = (
    "most points lie in one of {size} cells along a variable, and how they lie inside is not "
    "known: allow a larger epsilon, ask more people or give narrower feature_ranges"
)
_ONE_CELL = 0.8  # share of all points in one cell that causes a warning
_FINE = {1: 257, 2: 65}  # number of grid points along each axis of the released density


@dataclass(frozen=True, kw_only=True)
class HistogramDensity(DensityMechanism, name="histogram"):
    """Noisy counts on a public grid, turned into cosine coefficients and shrunk.

    The points outside the box are counted as well; this does not increase the sensitivity. If more
    than a few points are outside, the density is that of the points inside, and a warning says so.

    Privacy:
        ε-DP: replacing a point decreases one count by 1 and increases another by 1, so the ℓ1
        sensitivity is exactly 2. If δ > 0 and Gaussian noise is smaller, the noise is Gaussian with
        ℓ2 sensitivity √2. Everything after the counts is post-processing.

    Attributes:
        size: number of cells along each axis; by default a power of two near 0.7 √(nε), in two
            variables near √(nε/8), where noise and sampling error of a coefficient are about equal.
            Ranges are often too wide. One variable therefore has at least 32 cells if n and ε are
            so large that the counts of points in a tenth of the range exceed four deviations of the
            noise.

    Examples:
        >>> [HistogramDensity().cells_along(strength, 1) for strength in (4.0, 100.0, 20_000.0)]
        [4, 32, 128]
    """

    size: int | None = whole(least=2, optional=True, default=None)

    def cells_along(self, strength: float, variables: int) -> int:
        """`size` if it is given, otherwise the default for nε = `strength`."""
        if self.size is not None:
            return self.size
        wanted, most = math.sqrt(strength / 8), 6
        if variables == 1:
            # The noise of a count with pure ε is 2√2/ε; a tenth of m cells contains n points.
            distinct = strength / (2 * math.sqrt(2) * _DISTINCT * _FILLED)
            wanted, most = max(0.7 * math.sqrt(strength), min(RESOLVED, distinct)), 10
        return int(2 ** min(most, max(2, round(math.log2(max(wanted, 1.0))))))

    def query(self, density: DensityRelease, cost: Cost) -> CellCounts:
        """Counts of points in cells."""
        along = self.cells_along(density.strength, len(density.box))
        return CellCounts(**density.place, cost=cost, along=along)

    def questions(self, density: DensityRelease) -> Questions[Release]:
        """Noisy counts, cosine transform, shrinkage."""
        n, box = density.n, density.box
        size = self.cells_along(density.strength, len(box))
        query = self.query(density, density.whole)
        answer = yield query
        basis, mixing = _cosines(box, size)
        counts, outside = answer.values[:-1], float(answer.values[-1])
        noise_of_count = math.sqrt(float(answer.noise.variance[-1]))
        inside = float(n)
        if outside > _CLEAR * noise_of_count:
            inside = max(n - outside, noise_of_count)
        noise = replace(answer.noise, mixing=np.pad(mixing, ((0, 1), (0, 0))) / inside)
        coefficients = counts @ mixing / inside
        # The integral of a density is 1, so the first coefficient is known.
        known = coefficients.copy()
        known[0] = basis.project(np.full(basis.weights.size, 1 / basis.weights.sum()))[0]
        shrunk = known.copy()
        variance = noise.variance[1:] + 1 / (inside * basis.weights.sum())
        factors = monotone_shrinkage(known[1:], variance)
        shrunk[1:] *= factors if stands_out(known[1:], variance) else 0.0
        release = density.conclude(
            basis,
            coefficients,
            noise,
            shrunk=shrunk,
            sensitivity=query.mechanism.sensitivity,
            mechanism=self.name,
            cells=size,
        )
        warnings = _unresolved(counts / inside, noise_of_count / inside, size)
        if more_than_a_few(outside, n, answer.noise):
            share, doubt = min(outside / n, 1.0), noise_of_count / n
            warnings = (_OUTSIDE.format(share=share, noise=doubt), *warnings)
        return replace(release, warnings=warnings)

    @classmethod
    def examples(cls) -> list[Self]:
        """Four cells."""
        return [cls(size=4)]


def _unresolved(shares: FloatArray, noise: float, size: int) -> tuple[str, ...]:
    """Warnings if most points are in one cell, because their positions inside it are unknown.

    Args:
        shares: noisy shares of the points in each cell.
        noise: standard deviation of the noise of a share.
        size: number of cells along each variable.
    """
    table = shares.reshape((size,) * max(1, round(math.log(len(shares), size))))
    doubt = _CLEAR * noise * math.sqrt(len(shares) / size)  # for a sum over the other variables
    for axis in range(table.ndim):
        along = np.moveaxis(table, axis, 0).reshape(size, -1).sum(axis=1)
        if along.max() - doubt > _ONE_CELL:
            return (_IN_ONE_CELL.format(size=size),)
    return ()


def _cosines(box: Box, size: int) -> tuple[FunctionBasis, FloatArray]:
    """Cosines on a fine grid, by increasing frequency, and their values at the cell midpoints."""
    fine = tuple(np.linspace(*side, _FINE[len(box)]) for side in box)
    share = (np.arange(size) + 0.5) / size  # relative positions of the cell midpoints along a side
    middles = [low + (high - low) * share for low, high in box]
    waves = [CosineBasis(n_basis=size, domain_range=side) for side in box]
    speeds = np.meshgrid(*[np.arange(size)] * len(box), indexing="ij")
    order = np.argsort(sum(speed.ravel() ** 2 for speed in speeds), kind="stable")
    tables: list[list[Any]] = [
        [wave.evaluate(t).T for wave, t in zip(waves, places, strict=True)]
        for places in (fine, middles)
    ]
    functions, mixing = (reduce(np.kron, table)[order] for table in tables)
    return FunctionBasis(fine, functions, np.ones(len(order))), mixing.T
