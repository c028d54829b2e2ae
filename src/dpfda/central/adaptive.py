"""The adaptive release of a mean: look coarsely, learn how far curves scatter, look again (8.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.conversation import far_apart
from dpfda.central.functions import FunctionBasis, spline_basis
from dpfda.central.looks import BallMean
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.quadrature import Grid, norm_bound
from dpfda.central.release import Release
from dpfda.central.scouting import Scouting
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.noise.law import NoiseLaw, padded
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Records

_TILT = 0.5  # a_j = j^-tilt: the shape of the clipping region
CLIPPING_FROM = 5000  # nε from which skewed curves lose more by clipping than by noise
WIDENED = 1.25  # of the radius then
ONE_LOOK = 200  # nε below which a second look is not worth its budget


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How a budget is shared among the steps: public, from n, ε and the number of functions alone.

    Attributes:
        first: share of the first look.
        radius: share of the search for a radius; the second look gets the rest.
        coarse: coefficients of the first look.
        fine: coefficients of the second look.

    Examples:
        >>> Schedule.of(Cost(epsilon=1.0), n=1000, most=60).fine
        32
    """

    first: float
    radius: float
    coarse: int
    fine: int

    @classmethod
    def of(cls, budget: Cost, *, n: int, most: int) -> Schedule:
        """Rules for pure ε and for (ε, δ)."""
        share = float(budget.share)
        strength = n * budget.epsilon * (share if budget.pure else math.sqrt(share))
        fine = min(most, math.ceil(math.sqrt(strength)))
        if not budget.pure:
            return cls(first=0.2, radius=0.05, coarse=fine, fine=fine)
        radius = min(0.15, max(0.05, 90 / strength))
        return cls(
            first=0.2,
            radius=radius,
            coarse=min(fine, max(2, math.ceil(0.2 * strength / 16))),
            fine=fine,
        )


@dataclass(frozen=True, kw_only=True)
class Adaptive(FunctionMechanism, name="adaptive"):
    """A few private looks at the same curves; the default for means.

    1. A coarse mean from all of ‖X‖ ≤ τ, shrunk into a center c.
    2. A radius R that holds most curves around c, by the exponential mechanism.
    3. The mean of the curves' differences from c, clipped at R: noise falls from τ to R.
    4. For free: both looks combined by inverse variance, then shrunk.

    Privacy:
        ε-DP by adaptive composition: the budgets of all looks add up to ε. (ε, δ) with Gaussian
        noise: shares of μ² add up to that of one Gaussian mechanism. Below nε = 200 a single look.
        Every choice is a function of n, ε, the grid and earlier releases.

    Examples:
        >>> Adaptive().name
        'adaptive'
    """

    takes_delta: ClassVar[bool] = True
    finds_bound: ClassVar[bool] = True

    def basis(self, grid: Grid) -> FunctionBasis:
        """As many splines as there are points."""
        return spline_basis(grid, size=math.prod(axis.size for axis in grid))

    def rows(self, records: FloatArray, grid: Grid) -> FloatArray:
        """Coefficients."""
        return self.basis(grid).project(records)

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """One look for few curves, otherwise two and a search between them."""
        few = mean.strength < ONE_LOOK and math.isfinite(mean.bound)
        return self._one_look(mean) if few else self._two_looks(mean)

    def _one_look(self, mean: MeanRelease) -> Questions[Release]:
        basis = self.basis(mean.grid)
        size = min(basis.size, math.ceil(mean.strength**0.4))
        answer = yield mean.whole_ball(mean.whole, size)
        return _finish(mean, basis, answer.values, (answer.noise,), stages=1, radius=mean.bound)

    def _two_looks(self, mean: MeanRelease) -> Questions[Release]:
        basis = self.basis(mean.grid)
        schedule = Schedule.of(mean.whole, n=mean.n, most=basis.size)
        scouting = Scouting(
            axes=np.arange(1, schedule.fine + 1, dtype=np.float64) ** -_TILT,
            first=schedule.first,
            search=schedule.radius,
            coarse=schedule.coarse,
        )
        found = yield from scouting.questions(mean)
        wide = mean.strength >= CLIPPING_FROM
        radius, told = found.radius * (WIDENED if wide else 1.0), found.warnings
        second = yield BallMean(cost=found.left, **found.place, radius=radius)
        fine = found.place["center"] + second.values
        noisy, laws = combined((fine, second.noise), found.coarse)
        return _finish(mean, basis, noisy, laws, stages=2, radius=radius, warnings=told)

    def neighbors(self, mean: MeanRelease) -> tuple[Records, Records]:
        """One curve at either end of the ball."""
        return far_apart(mean.n, np.ones(self.basis(mean.grid).size), mean.reach)

    @classmethod
    def examples(cls) -> list[Self]:
        """The one there is."""
        return [cls()]


def combined(
    fine: tuple[FloatArray, NoiseLaw], coarse: tuple[FloatArray, NoiseLaw]
) -> tuple[FloatArray, tuple[NoiseLaw, ...]]:
    """Two noisy means by inverse variance; of the coarse one the first coefficients are known.

    The weights are public, so the noise of the sum is known.
    """
    (values, law), (first, first_law) = fine, coarse
    size = values.size
    weight = 1 / (1 + law.variance / padded(first_law.variance, size, fill=math.inf))
    noisy = weight * values + (1 - weight) * padded(first, size)
    return noisy, (law.times(weight), first_law.widened(size).times(1 - weight))


def _finish(
    mean: MeanRelease,
    basis: FunctionBasis,
    noisy: FloatArray,
    laws: tuple[NoiseLaw, ...],
    *,
    stages: int,
    radius: float,
    warnings: tuple[str, ...] = (),
) -> Release:
    variance = np.asarray(sum(law.variance for law in laws))
    return mean.conclude(
        basis.first(noisy.size),
        noisy,
        *laws,
        shrunk=monotone_shrinkage(noisy, variance) * noisy,
        sensitivity=2 * radius / mean.n,
        warnings=warnings,
        mechanism="adaptive",
        components=noisy.size,
        stages=stages,
        radius=radius / norm_bound(1.0, basis.grid),  # in the norm that bounds are given in
    )
