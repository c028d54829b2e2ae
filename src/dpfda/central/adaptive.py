"""The adaptive release of a mean: one query, or two with a radius about the first between them.

`MeanPlan` chooses between them by the least expected error. Everything it reads is public: how many
curves, what may be spent, how many coefficients there are. Its prior, in units of the public bound:
the level of the curves is anywhere; curves turn once, a few times or often; they fill all of their
range, a third of it or a tenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from scipy.stats import norm

from dpfda._validate import FloatArray
from dpfda.central.ball_search import BallSearch
from dpfda.central.conversation import far_apart
from dpfda.central.functions import FunctionBasis, Grid, norm_bound, spline_basis
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.queries import BallMean
from dpfda.central.release import Release
from dpfda.central.shrinkage import Layout, clipped_away, posterior
from dpfda.noise.law import NoiseLaw, padded
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Records

_LEVEL = 0.18  # squared: of a level that is uniform over three quarters of the range
_WAVES = 0.2  # squared: all waves of a mean curve that fills its range
_TURNS = (1, 3, 10)  # how many waves are as strong as the first
_FALL = 4.0  # the squares of the others fall like j^-4
_FILLINGS = (1.0, 1 / 3, 1 / 10)  # how much of a range curves may fill
_FILLED, _STRONG = np.array(list(product(_FILLINGS, _TURNS))).T[..., None]  # each with each
_SCATTER = 0.35  # how far a curve that fills its range lies from the mean, along tilted axes
_FIRST, _SEARCH = (0.1, 0.2, 0.3), (0.05, 0.1, 0.15, 0.2, 0.3)  # shares that are tried
_LOST = 0.05
"""Probability of a misled search from which a plan is not taken, however small its expected error:
a radius that is far too small makes a flat curve in a thin band, and nothing in the release shows
it. Where no share that is tried makes the search so sure, the largest one is compared."""
_NEARLY = 1.2  # of the least error: as good for all purposes
TILT = 0.5  # a_j = j^-tilt: the shape of the clipping region
_TOLD = 0.5  # of the bound: noise that hides how much is left out
FOLDED = 8  # coefficients for each sum of further ones


@dataclass(frozen=True, kw_only=True)
class MeanPlan:
    """One query of the whole ball, or a first one, a radius about it and a second one.

    Attributes:
        cost: what may be spent: pure, or Gaussian.
        size: coefficients that are released.
        first: share of the first of two queries; 0 where there is one query.
        search: share of the search for a radius.
        coarse: coefficients of the first query.
        error: expected squared error, in units of the squared bound.

    Examples:
        >>> few = MeanPlan.of((Cost(epsilon=1.0),), n=20, most=60)
        >>> many = MeanPlan.of((Cost(epsilon=1.0),), n=2000, most=60)
        >>> few.first, many.first > 0, few.size < many.size
        (0.0, True, True)
    """

    cost: Cost
    size: int
    first: float = 0.0
    search: float = 0.0
    coarse: int = 0
    error: float

    @property
    def folds(self) -> int:
        """Sums of further coefficients that are asked for besides."""
        return self.size // FOLDED if self.first else 0

    def rest(self, n: int) -> bool:
        """Whether the norm of all other coefficients is asked for: if its noise is small enough."""
        return bool(self.first) or noise_in_ball(self.cost, n, self.size + 1) < _TOLD**2

    @classmethod
    def of(cls, costs: tuple[Cost, ...], *, n: int, most: int, single: bool = True) -> MeanPlan:
        """The best for any of the costs.

        Args:
            costs: which may be spent, each by itself.
            n: curves.
            most: coefficients there are.
            single: whether one query may be all; without a public bound it may not.
        """
        return _best(costs, n, most, single)

    @classmethod
    def of_rows(cls, costs: tuple[Cost, ...], *, n: int, most: int, rows: int) -> MeanPlan:
        """The best of one query about several functions together, such as a coefficient each.

        Args:
            costs: which may be spent, each by itself.
            n: curves.
            most: coefficients there are.
            rows: functions.
        """
        tried = [plan for cost in costs for plan in _one_query(cost, n, most, rows)]
        return _fewest(tried)


@lru_cache(maxsize=256)
def _best(costs: tuple[Cost, ...], n: int, most: int, single: bool) -> MeanPlan:
    tried: list[MeanPlan] = []
    for cost in costs:
        tried += _one_query(cost, n, most) if single else []
        tried += _two_queries(cost, n, most)
    return _fewest(tried)


def _fewest(tried: list[MeanPlan]) -> MeanPlan:
    """The fewest coefficients with which the expected error is nearly the least.

    More of them would hardly lower the error and widen bands.
    """
    least = min(plan.error for plan in tried)
    good = [plan for plan in tried if plan.error <= _NEARLY * least]
    return min(good, key=lambda plan: (plan.size, plan.error))


def _one_query(cost: Cost, n: int, most: int, rows: int = 1) -> list[MeanPlan]:
    prior, plans = _prior(most), []
    for size in _sizes(most):
        if rows > 1:  # covariates and a constant: a person moves √2 times as much
            noise = 2 * noise_in_ball(cost, n, rows * size)
        else:
            noise = noise_in_ball(cost, n, size + (size < most))
        error = _error(prior[:, :size], noise) + prior[:, size:].sum(axis=1)
        plans.append(MeanPlan(cost=cost, size=size, error=float(error.mean())))
    return plans


def _two_queries(cost: Cost, n: int, most: int) -> list[MeanPlan]:
    prior, index = _prior(most), np.arange(1, most + 1)
    plans = []
    searches = [(search, lost_search(cost.part(search), n)) for search in _SEARCH]
    safe = [(search, lost) for search, lost in searches if lost <= _LOST]
    for first, (search, lost), coarse in product(_FIRST, safe or searches[-1:], _sizes(most)):
        before = noise_in_ball(cost.part(first), n, coarse)
        after = prior.copy()
        after[:, :coarse] = 1 / (1 / prior[:, :coarse] + 1 / before)
        last = cost.part(1 - first - search)
        for size in (size for size in _sizes(most) if size >= coarse):
            radius2 = (_SCATTER * _FILLED) ** 2 + (after * index)[:, :size].sum(1, keepdims=True)
            dimensions = size + (size // FOLDED + 1) * (size < most)
            noise = radius2 * noise_in_ball(last, n, dimensions) / index[:size]
            error = _error(after[:, :size], noise) + prior[:, size:].sum(axis=1)
            error = (1 - lost) * error + lost * after.sum(axis=1)
            plan = MeanPlan(
                cost=cost,
                size=size,
                first=first,
                search=search,
                coarse=coarse,
                error=float(error.mean()),
            )
            plans.append(plan)
    return plans


def _prior(most: int) -> FloatArray:
    """Squares of coefficients, (hypotheses, most)."""
    shape = np.maximum(np.arange(1, most) / _STRONG, 1.0) ** -_FALL
    waves = _WAVES * _FILLED**2 * shape / shape.sum(axis=1, keepdims=True)
    return np.hstack([np.full((len(_FILLED), 1), _LEVEL), waves])


def _sizes(most: int) -> list[int]:
    """Numbers of coefficients that are tried."""
    powers = (1 << k for k in range(most.bit_length()))
    return sorted({1, most, *(size for size in powers if size < most)})


def noise_in_ball(cost: Cost, n: int, size: int) -> float:
    """Variance of the noise on each of so many coefficients, of vectors in a ball of radius 1."""
    if cost.pure:
        return (size + 1) * (2 / (n * cost.epsilon_spent)) ** 2
    return (2 / (n * cost.mu)) ** 2


def lost_search(search: Cost, n: int) -> float:
    """Probability that a search for a radius is misled, so that the first query is all there is."""
    if search.pure:
        return math.exp(-n * search.epsilon_spent / 15)
    return float(min(1.0, 12 * norm.sf(0.5 * n * search.mu / math.sqrt(6))))


def _error(prior: FloatArray, noise: FloatArray | float) -> FloatArray:
    """Expected squared error of shrunk coefficients under each hypothesis."""
    return np.asarray((prior * noise / (prior + noise)).sum(axis=1))


DOUBTED = 0.3
"""A mean whose expected squared error is more than that part of the public center's is doubted."""
FINER = (
    "curves have a good part of their shape in waves that are too fine to be released here: the "
    "curve leaves them out"
)


@dataclass(frozen=True, kw_only=True)
class Adaptive(FunctionMechanism, name="adaptive"):
    """A few private queries of the same curves; the default for means.

    The plan of least expected error is taken (`MeanPlan`): one query of all of ‖X‖ ≤ τ, or

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
        """One spline for each point."""
        return spline_basis(grid, size=math.prod(axis.size for axis in grid))

    def plan(self, mean: MeanRelease) -> MeanPlan:
        """The best for pure ε or, where a δ is given, the better of both noises."""
        known = math.isfinite(mean.bound)
        both = Cost(epsilon=mean.epsilon, delta=mean.delta).part(mean.share)
        pure = Cost(epsilon=mean.epsilon).part(mean.share)
        costs = (pure, both) if mean.either and known and not both.pure else (both,)
        size = self.basis(mean.grid).size
        return MeanPlan.of(costs, n=mean.n, most=size, single=known)

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
        return self._ask_twice(mean) if self.plan(mean).first else self._ask_once(mean)

    def _ask_once(self, mean: MeanRelease) -> Questions[Release]:
        layout = self.layout(mean)
        answer = yield mean.whole_ball(mean.whole, layout.width)
        return concluded(
            mean, layout, answer.values, (answer.noise,), stages=1, radius=mean.bound, clipped=0.0
        )

    def _ask_twice(self, mean: MeanRelease) -> Questions[Release]:
        layout, plan = self.layout(mean), self.plan(mean)
        scouting = BallSearch(
            axes=layout.axes(TILT),
            first=plan.first,
            search=plan.search,
            coarse=plan.coarse,
            some=0.0,
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
    """The posterior mean, the size of what it leaves out, and warnings.

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
        unseen=np.hypot(finer.peaks, clipped) / unit,
        sensitivity=2 * radius / mean.n,
        warnings=(*warnings, *((FINER,) * fine)),
        doubt=doubt,
        **{"mechanism": "adaptive", "components": size, "stages": stages, **more},
        radius=radius / unit,
    )
