"""The adaptive release of a mean: one query, or two with a radius about the first between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.conversation import far_apart
from dpfda.central.functions import FunctionBasis, Grid, norm_bound, spline_basis
from dpfda.central.left_out import Layout, clipped_away
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.plan import TILT, Plan
from dpfda.central.queries import BallMean
from dpfda.central.release import Release
from dpfda.central.scouting import Scouting
from dpfda.central.shrinkage import posterior
from dpfda.noise.law import NoiseLaw, padded
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Records

DOUBTED = 0.3
"""A mean whose expected squared error is more than that part of the public center's is doubted."""
FINER = (
    "curves have a good part of their shape in waves that are too fine to be released here: the "
    "curve leaves them out"
)


@dataclass(frozen=True, kw_only=True)
class Adaptive(FunctionMechanism, name="adaptive"):
    """A few private queries of the same curves; the default for means.

    The plan of least expected error is taken (`Plan`): one query of all of ‖X‖ ≤ τ, or

    1. a coarse mean from all of ‖X‖ ≤ τ, shrunk into a center c,
    2. a radius R that holds most curves around c, by the exponential mechanism,
    3. the mean of the curves' differences from c, clipped at R: noise falls from τ to R.

    For free: queries are combined by inverse variance, and the mean under one belief is what is
    released (`posterior`). How much of the curves lies beyond the released coefficients is one more
    number of the last query (`Layout`).

    Privacy:
        ε-DP by adaptive composition: the budgets of all queries add up to ε. (ε, δ): shares of μ²
        add up to that of one Gaussian mechanism, or all is pure ε where that has less noise.
        Every choice is a function of n, ε, δ, the grid and earlier releases.

    Examples:
        >>> Adaptive().name
        'adaptive'
    """

    takes_delta: ClassVar[bool] = True
    finds_bound: ClassVar[bool] = True

    def basis(self, grid: Grid) -> FunctionBasis:
        """As many splines as there are points."""
        return spline_basis(grid, size=math.prod(axis.size for axis in grid))

    def plan(self, mean: MeanRelease) -> Plan:
        """The best for pure ε or, where a δ is given, the better of both noises."""
        known = math.isfinite(mean.bound)
        both = Cost(epsilon=mean.epsilon, delta=mean.delta).part(mean.share)
        pure = Cost(epsilon=mean.epsilon).part(mean.share)
        costs = (pure, both) if mean.either and known and not both.pure else (both,)
        size = self.basis(mean.grid).size
        return Plan.of(costs, n=mean.n, most=size, single=known)

    def budget(self, mean: MeanRelease) -> Cost:
        """Pure ε where that has less noise."""
        return self.plan(mean).cost

    def layout(self, mean: MeanRelease) -> Layout:
        """Coefficients that are asked for, and what says how much is left out."""
        plan, basis = self.plan(mean), self.basis(mean.grid)
        return Layout(basis=basis, size=plan.size, folds=plan.folds, rest=plan.rest(mean.n))

    def rows(self, records: FloatArray, mean: MeanRelease) -> FloatArray:
        """Coefficients, and how much is left out."""
        return self.layout(mean).rows(records)

    def at_the_bound(self, mean: MeanRelease, release: Release) -> tuple[str, ...]:
        """Only where the curves beyond the bound were not counted, which tells more (`beyond`)."""
        return super().at_the_bound(mean, release) if release.parameters["stages"] == 1 else ()

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """One query, or two and a search between them."""
        return self._two_looks(mean) if self.plan(mean).first else self._one_look(mean)

    def _one_look(self, mean: MeanRelease) -> Questions[Release]:
        layout = self.layout(mean)
        answer = yield mean.whole_ball(mean.whole, layout.width)
        return concluded(
            mean, layout, answer.values, (answer.noise,), stages=1, radius=mean.bound, clipped=0.0
        )

    def _two_looks(self, mean: MeanRelease) -> Questions[Release]:
        layout, plan = self.layout(mean), self.plan(mean)
        scouting = Scouting(
            axes=layout.axes(TILT),
            first=plan.first,
            search=plan.search,
            coarse=plan.coarse,
            some=False,
        )
        found = yield from scouting.questions(mean)
        second = yield BallMean(cost=found.left, **found.place, radius=found.radius)
        fine = found.place["center"] + second.values
        noisy, laws = combined((fine, second.noise), found.coarse)
        return concluded(
            mean,
            layout,
            noisy,
            laws,
            stages=2,
            radius=found.radius,
            clipped=clipped_away(found.radius, found.outside, mean.n),
            warnings=found.warnings,
        )

    def neighbors(self, mean: MeanRelease) -> tuple[Records, Records]:
        """One curve at either end of the ball."""
        return far_apart(mean.n, np.ones(self.layout(mean).width), mean.reach)

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


def concluded(
    mean: MeanRelease,
    layout: Layout,
    noisy: FloatArray,
    laws: tuple[NoiseLaw, ...],
    *,
    stages: int,
    radius: float,
    clipped: float,
    warnings: tuple[str, ...] = (),
    **more: Any,
) -> Release:
    """The mean under one belief, with what is left out of it, and what is to be said of it.

    Args:
        mean: the conversation.
        layout: of the noisy numbers.
        noisy: coefficients and what says how much is left out.
        laws: of their noise.
        stages: queries of means.
        radius: of the last one.
        clipped: norm of what clipping may have taken off the mean.
        warnings: what was found out before.
        more: of the release.
    """
    size, unit = layout.size, norm_bound(1.0, mean.grid)  # the norm that bounds are given in
    variance = np.asarray(sum(law.variance for law in laws))
    reach = mean.bound if math.isfinite(mean.bound) else radius
    believed = posterior(noisy[:size], variance[:size], reach)
    finer = layout.left_out(noisy, variance, reach)
    error = float(believed.variance.sum()) + finer.likely**2
    doubt = error / (error + float(believed.mean @ believed.mean))
    fine = doubt > DOUBTED and finer.least**2 > error / 2
    return mean.conclude(
        layout.basis.first(size),
        noisy[:size],
        *(law.first(size) for law in laws),
        shrunk=believed.mean,
        unseen=math.hypot(finer.most, clipped) / unit,
        sensitivity=2 * radius / mean.n,
        warnings=(*warnings, *((FINER,) * fine)),
        doubt=doubt,
        **{"mechanism": "adaptive", "components": size, "stages": stages, **more},
        radius=radius / unit,
    )
