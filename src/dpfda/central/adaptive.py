"""The adaptive release of a mean: one query, or a coarse mean, a radius about it and a finer mean.

`MeanPlan` chooses the plan of least expected error. It uses public values only: the number of
curves, the budget and the number of coefficients. Its prior is in units of the public bound. The
level of the curves is roughly uniform over the range. The mean curve has one, a few or many waves,
and the curves fill the whole range, a third of it or a tenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtr

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

_LEVEL = 0.18  # prior variance of the level: uniform over three quarters of the range
_WAVES = 0.2  # prior variance of all waves together, if the mean curve fills its range
_TURNS = (1, 3, 10)  # numbers of leading waves with the same prior variance
_FALL = 4.0  # the prior variance of the other waves falls like j^-4
_FILLINGS = (1.0, 1 / 3, 1 / 10)  # shares of the range that the curves may fill
_FILLED, _STRONG = np.array(list(product(_FILLINGS, _TURNS))).T[..., None]  # all combinations
_SCATTER = 0.35  # distance of a curve that fills its range from the mean, along tilted axes
_FIRST, _SEARCH = (0.1, 0.2, 0.3), (0.05, 0.1, 0.15, 0.2, 0.3)  # candidate shares of the budget
_LOST = 0.05
"""Largest accepted probability that the radius search fails. A radius that is far too small gives a
flat curve in a narrow band, and nothing in the release shows the failure. Plans above this
probability are therefore excluded, even if their expected error is small. If no candidate share
satisfies the limit, only the largest share is compared."""
_NEARLY = 1.2  # errors up to this multiple of the least one count as equally good
TILT = 0.5  # exponent of the clipping region's axes, a_j = j^-tilt
_LARGEST_REST_NOISE = 0.5
"""Largest noise, as a share of the bound, at which the norm of the omitted part is queried."""
FOLDED = 8  # one sum of further coefficients is queried for each 8 coefficients


@dataclass(frozen=True, kw_only=True)
class MeanPlan:
    """A plan: one query of the whole ball, or a coarse mean, a radius about it and a finer mean.

    Attributes:
        cost: the budget, pure or Gaussian.
        size: number of released coefficients.
        first: budget share of the coarse mean; 0 if there is only one query.
        search: budget share of the search for a radius.
        coarse: number of coefficients of the coarse mean.
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
        """Number of sums of further coefficients that are queried as well."""
        return self.size // FOLDED if self.first else 0

    def rest(self, n: int) -> bool:
        """Whether the norm of all other coefficients is queried: only if its noise is small."""
        noise = noise_in_ball(self.cost, n, self.size + 1)
        return bool(self.first) or noise < _LARGEST_REST_NOISE**2

    @classmethod
    def of(cls, costs: tuple[Cost, ...], *, n: int, most: int, single: bool = True) -> MeanPlan:
        """The plan of nearly least expected error, over all given budgets.

        Args:
            costs: alternative budgets; the plan spends one of them.
            n: number of curves.
            most: number of available coefficients.
            single: whether a plan may consist of one query, which needs a public bound.
        """
        return _best(costs, n, most, single)

    @classmethod
    def of_rows(cls, costs: tuple[Cost, ...], *, n: int, most: int, rows: int) -> MeanPlan:
        """The best plan with one query about several functions, such as regression coefficients.

        Args:
            costs: alternative budgets; the plan spends one of them.
            n: number of curves.
            most: number of available coefficients of each function.
            rows: number of functions.
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
    """The plan with the fewest coefficients among those of nearly least expected error.

    More coefficients would hardly reduce the error, but would widen the bands.
    """
    least = min(plan.error for plan in tried)
    good = [plan for plan in tried if plan.error <= _NEARLY * least]
    return min(good, key=lambda plan: (plan.size, plan.error))


def _one_query(cost: Cost, n: int, most: int, rows: int = 1) -> list[MeanPlan]:
    prior, plans = _prior(most), []
    for size in _sizes(most):
        if rows > 1:  # with covariates and a constant the sensitivity is √2 times as large
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
    """Prior variances of the coefficients, (hypotheses, most)."""
    shape = np.maximum(np.arange(1, most) / _STRONG, 1.0) ** -_FALL
    waves = _WAVES * _FILLED**2 * shape / shape.sum(axis=1, keepdims=True)
    return np.hstack([np.full((len(_FILLED), 1), _LEVEL), waves])


def _sizes(most: int) -> list[int]:
    """Candidate numbers of coefficients."""
    powers = (1 << k for k in range(most.bit_length()))
    return sorted({1, most, *(size for size in powers if size < most)})


def noise_in_ball(cost: Cost, n: int, size: int) -> float:
    """Noise variance of each of `size` mean coefficients, for vectors in a ball of radius 1."""
    if cost.pure:
        return (size + 1) * (2 / (n * cost.epsilon_spent)) ** 2
    return (2 / (n * cost.mu)) ** 2


def lost_search(search: Cost, n: int) -> float:
    """Probability that the search for a radius fails, so that only the first query is useful."""
    if search.pure:
        return math.exp(-n * search.epsilon_spent / 15)
    return float(min(1.0, 12 * ndtr(-0.5 * n * search.mu / math.sqrt(6))))


def _error(prior: FloatArray, noise: FloatArray | float) -> FloatArray:
    """Expected squared error of shrunk coefficients under each hypothesis."""
    return np.asarray((prior * noise / (prior + noise)).sum(axis=1))


DOUBTED = 0.3
"""A mean is doubted if its expected squared error exceeds this share of the public center's."""
FINER = (
    "curves have a good part of their shape in waves that are too fine to be released here: the "
    "curve leaves them out"
)


@dataclass(frozen=True, kw_only=True)
class Adaptive(FunctionMechanism, name="adaptive"):
    """The default mechanism for means: one to three private queries of the same curves.

    `MeanPlan` chooses the plan of least expected error. The plan is one query of the ball ‖X‖ ≤ τ,
    or

    1. a coarse mean over the ball ‖X‖ ≤ τ, shrunk to a center c,
    2. a radius R that contains most curves around c, by the exponential mechanism,
    3. the mean of the differences from c, clipped at R, so that the noise is proportional to R
       instead of τ.

    Post-processing combines the queries by inverse variance and releases the posterior mean
    (`posterior`). The last query also measures how much of the curves lies beyond the released
    coefficients (`Layout`).

    Privacy:
        ε-DP by adaptive composition: the budgets of all queries add up to ε. With δ > 0, the shares
        of μ² add up to that of one Gaussian mechanism; if pure ε has less noise, all queries are
        pure. Every choice is a function of n, ε, δ, the grid and earlier releases.

    Examples:
        >>> Adaptive().name
        'adaptive'
    """

    takes_delta: ClassVar[bool] = True
    finds_bound: ClassVar[bool] = True

    def basis(self, grid: Grid) -> FunctionBasis:
        """Splines, as many as grid points."""
        return spline_basis(grid, size=math.prod(axis.size for axis in grid))

    def plan(self, mean: MeanRelease) -> MeanPlan:
        """The best plan; if δ > 0, pure and Gaussian noise are compared."""
        known = math.isfinite(mean.bound)
        both = Cost(epsilon=mean.epsilon, delta=mean.delta).part(mean.share)
        pure = Cost(epsilon=mean.epsilon).part(mean.share)
        costs = (pure, both) if mean.either and known and not both.pure else (both,)
        size = self.basis(mean.grid).size
        return MeanPlan.of(costs, n=mean.n, most=size, single=known)

    def budget(self, mean: MeanRelease) -> Cost:
        """The budget of the plan: pure ε if that has less noise."""
        return self.plan(mean).cost

    def layout(self, mean: MeanRelease) -> Layout:
        """The queried coefficients, and the numbers that measure what they omit."""
        plan, basis = self.plan(mean), self.basis(mean.grid)
        return Layout(basis=basis, size=plan.size, folds=plan.folds, rest=plan.rest(mean.n))

    def rows(self, records: FloatArray, mean: MeanRelease) -> FloatArray:
        """Coefficients, and the numbers that measure what they omit."""
        return self.layout(mean).rows(records)

    def at_the_bound(self, mean: MeanRelease, release: Release) -> tuple[str, ...]:
        """Warnings if the curves beyond the bound were not counted; a count is more informative."""
        return super().at_the_bound(mean, release) if release.parameters["stages"] == 1 else ()

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """One query, or two with a radius search between them."""
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
        """Data sets that differ in one curve, at opposite ends of the ball."""
        return far_apart(mean.n, np.ones(self.layout(mean).width), mean.reach)

    @classmethod
    def examples(cls) -> list[Self]:
        """The only instance."""
        return [cls()]


def combined(
    fine: tuple[FloatArray, NoiseLaw], coarse: tuple[FloatArray, NoiseLaw]
) -> tuple[FloatArray, tuple[NoiseLaw, ...]]:
    """Combine two noisy means by inverse variance; the coarse one has only the first coefficients.

    The weights are public, so the law of the combined noise is known.
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
    """The release: the posterior mean, the size of the omitted part, and warnings.

    Args:
        mean: the conversation.
        layout: the order of the noisy numbers.
        noisy: coefficients, and the numbers that measure what they omit.
        laws: laws of their noise.
        stages: number of queries of means.
        radius: clipping radius of the last query.
        clipped: norm of the bias that clipping may have caused.
        warnings: warnings from earlier queries.
        more: further parameters of the release.
    """
    size, unit = layout.size, norm_bound(1.0, mean.grid)  # the norm that bounds are given in
    variance = np.asarray(sum(law.variance for law in laws))
    reach = mean.bound if math.isfinite(mean.bound) else radius
    estimate = posterior(noisy[:size], variance[:size], reach)
    finer = layout.left_out(noisy, variance, reach)
    error = float(estimate.variance.sum()) + finer.likely**2
    doubt = error / (error + float(estimate.mean @ estimate.mean))
    fine = doubt > DOUBTED and finer.least**2 > error / 2
    return mean.conclude(
        layout.basis.first(size),
        noisy[:size],
        *(law.first(size) for law in laws),
        shrunk=estimate.mean,
        unseen=np.hypot(finer.peaks, clipped) / unit,
        sensitivity=2 * radius / mean.n,
        warnings=(*warnings, *((FINER,) * fine)),
        doubt=doubt,
        **{"mechanism": "adaptive", "components": size, "stages": stages, **more},
        radius=radius / unit,
    )
