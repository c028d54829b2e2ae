"""The mean of sparse curves from pooled moments of all points, without interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import gammaincinv

from dpfda._validate import FloatArray
from dpfda.central.ball_search import find_radius, left_outside
from dpfda.central.functions import FunctionBasis, Grid, norm_bound, spline_basis, trapezoid
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.moments.joint_answer import JointAnswer
from dpfda.central.moments.moment_query import JointMoments
from dpfda.central.moments.moments_release import UNSURE, too_few
from dpfda.central.queries import MOST_RECORDS
from dpfda.central.release import Release
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.central.sparse_queries import (
    SparseMean,
    SparsePlace,
    SparsePoints,
    SparseRadiusChoice,
    SparseRadiusCount,
    SparseTimes,
    example_points,
)
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.noise.law import NoiseLaw, padded
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import array, flag, number, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Records, Sums

_CHECK, _ESTIMATE, _FIRST = 0.05, 0.15, 0.2  # budget shares: check or estimate of times; center
_LEAST_SEARCH, _MOST_SEARCH = 0.05, 0.15  # limits of the budget share of the search for a radius
_TELLING = 90.0  # n times the ε of the search at which the search is reliable
_TIME_FUNCTIONS = 5  # basis functions of the density of times: level, slope and three waves
_CERTAIN = 2.0  # number of people to leave outside the radius, in deviations of the counts' noise
_ROOM = 3.0  # the radius is multiplied by 1 + this times the share of people outside
_SURE = 0.99  # level of the test of the declared density of times
_FAR = 0.2  # smallest relative distance of densities that causes a warning
_LEAST = 1 / 3  # smallest estimated density, as a share of the declared one
_LEAST_GIVEN = 0.01  # smallest declared density over its mean: larger weights 1/f give only noise

DENSE = "each curve interpolated between its points (few points a curve: try design='sparse')"
"""How dense curves are read. Every release states it, because missing points are private."""
_OTHER_TIMES = (
    "the times of the points are not distributed as declared: the mean may be wrong where it "
    "changes fast; give their density as times=, or times='estimate'"
)
_RARE_TIMES = (
    "part of the domain has few points: the mean may be further off there than its band says; give "
    "the density of the points as times= where it is known"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseMoments(AdditiveQuery, name="sparse_moments"):
    """The joint query of the mean and the second moments of z, for sparse curves.

    Privacy:
        As for `JointMoments` with one group, because z is clipped for any points of a person.

    Attributes:
        radius: R.
        second: J, the number of coefficients with products.
    """

    block_rows: ClassVar[int] = JointMoments.block_rows

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    points: SparsePoints = part(lambda: SparsePoints)
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-50, most=1e50)
    second: int = whole(most=1 << 7)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.points.require(self.axes)
        _ = self.joint  # checks the fields

    @cached_property
    def joint(self) -> JointMoments:
        """The joint query about coefficients, with the same parameters."""
        return JointMoments(
            unit=self.unit,
            cost=self.cost,
            n=self.n,
            center=self.points.center,
            axes=self.axes,
            radius=self.radius,
            groups=1,
            second=self.second,
            separate=False,
            emphasis="means",
        )

    @property
    def attained(self) -> float | None:  # type: ignore[override]
        """`attained` of the joint query."""
        return self.joint.attained

    @property
    def mechanism(self) -> Additive:
        """The mechanism of the joint query."""
        return self.joint.mechanism

    @property
    def summed(self) -> Sums:
        """Sums of the vectors of people, computed from z."""
        return self.joint.summed_of(self.points.residuals)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure and Gaussian."""
        dense = JointMoments.examples()
        points = example_points(np.array([0.3, -0.2, 0.1]))
        return [
            cls(cost=one.cost, n=5, points=points, axes=one.axes, radius=0.7, second=2)
            for one in (dense[0], dense[5])
        ]


class _Sizes(NamedTuple):
    """Numbers of coefficients: in the first query, in the last query, and with covariances."""

    first: int
    fine: int
    second: int

    @classmethod
    def of(cls, strength: float, most: int) -> _Sizes:
        fine = min(most, math.ceil(2 * strength**0.25))
        first = min(fine, math.ceil(strength ** (1 / 6)))
        return cls(first, fine, min(fine, math.ceil(strength**0.25)))


@dataclass(frozen=True, kw_only=True)
class Sparse(FunctionMechanism, name="sparse"):
    """Means of curves with few observed points, `PrivateMean(design="sparse")`.

    A person with any number of points contributes the clipped z = mean_j (y_j - c(t_j))
    φ(t_j)/f(t_j). The first query is coarse, with c = 0; its result is the c of the last query. The
    last query also releases second moments of z, so that bands can cover the mean of the
    population.

    Privacy:
        The budgets of all queries (times, center, radius, moments) add up, as for `Adaptive`.

    Attributes:
        density: f on the grid, up to a factor; empty for uniformly distributed points.
        estimate: whether f is estimated privately instead.

    Examples:
        >>> Sparse().name
        'sparse'
    """

    takes_delta: ClassVar[bool] = True

    density: FloatArray = array("real", "points", least=0.0, default=())
    estimate: bool = flag(default=False)

    def basis(self, mean: MeanRelease) -> FunctionBasis:
        """Splines on [0, 1], as functions on the domain."""
        unit = unit_grid(mean)
        functions = spline_basis(unit, size=unit[0].size).functions / norm_bound(1.0, mean.grid)
        return FunctionBasis(mean.grid, functions, np.ones(len(functions)))

    def rows(self, records: FloatArray, mean: MeanRelease) -> FloatArray:
        """The records unchanged; `sparse_rows` has converted them."""
        return records

    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """Query the density of times, a center, a radius about it, and the moments."""
        basis, budget, length = self.basis(mean), mean.whole, norm_bound(1.0, mean.grid)
        sizes = _Sizes.of(mean.strength, basis.size)
        shares = (_ESTIMATE if self.estimate else _CHECK, _FIRST, _search_share(mean))
        times, first, search = map(budget.part, shares)
        density, doubt, warnings = yield from self._density(mean, times)

        place = self._place(mean, np.zeros(sizes.first), np.ones(sizes.first), density)
        coarse = yield SparseMean(cost=first, **place, radius=_reach(mean, place))
        shrinkage = monotone_shrinkage(coarse.values, coarse.noise.variance)
        center = padded(shrinkage * coarse.values, sizes.fine)
        place = self._place(mean, center, np.ones(sizes.fine), density)
        reach = _reach(mean, place)
        outside = left_outside(search, place, bound=reach, certain=_CERTAIN)
        radius = yield from find_radius(
            search,
            place,
            bound=reach,
            certain=_CERTAIN,
            choice=SparseRadiusChoice,
            count=SparseRadiusCount,
        )
        query = SparseMoments(
            cost=budget.rest(times, first, search),
            **place,
            radius=(1 + _ROOM * outside) * radius,
            second=sizes.second,
        )
        answer = yield query
        found = JointAnswer(query=query.joint, noisy=answer.values)
        noisy = length * (
            query.points.center + found.shift[0] * found.unit
        )  # of functions on the domain
        law = found.law.first(sizes.fine).times(length * found.unit)
        wrong = _wrong_times(query.points, found.shift[0] * found.unit, doubt)
        spread = UNSURE * found.covariance_in() / mean.n + wrong
        sampling = NoiseLaw.normal(length**2 * spread)
        variance = law.variance + sampling.variance
        shrunk = monotone_shrinkage(noisy, variance) * noisy
        wider = min(basis.size, 2 * sizes.fine)
        times_are = "estimated" if self.estimate else "declared"
        return mean.conclude(
            basis.first(wider),
            padded(noisy, wider),
            law.widened(wider),
            shrunk=padded(shrunk, wider),
            sampling=(sampling.widened(wider), _left_out(noisy, variance, wider)),
            sensitivity=length * query.mechanism.sensitivity * query.radius,
            warnings=(*warnings, *too_few(mean)),
            mechanism="sparse",
            components=sizes.fine,
            stages=2,
            radius=query.radius,
            times=times_are,
            reading=(
                f"points of all people pooled, their times having the {times_are} density; waves "
                f"finer than {sizes.fine} smooth functions are left out, and bands hold them only "
                "as far as they go on from the finest released ones"
            ),
        )

    def _density(
        self, mean: MeanRelease, cost: Cost
    ) -> Questions[tuple[FloatArray, FloatArray, tuple[str, ...]]]:
        """f at the grid points of [0, 1]: declared and checked, or estimated.

        Returns f, functions that describe its estimation error (`_wrong_times`), and warnings.
        """
        unit = unit_grid(mean)
        weights = trapezoid(unit)
        declared = self.density if len(self.density) else np.ones(len(weights))
        declared = declared / float(weights @ declared)
        size = min(_TIME_FUNCTIONS, len(weights))
        functions = spline_basis(unit, size=size).functions
        expected = functions @ weights
        place = self._place(mean, expected, np.ones(size), declared)
        radius = float(np.linalg.norm((functions / declared).T - expected, axis=1).max())
        answer = yield SparseTimes(cost=cost, **place, radius=radius)
        variance = answer.noise.variance + radius**2 / (size * mean.n)  # noise and sampling
        if self.estimate:
            kept = monotone_shrinkage(answer.values, variance) * answer.values
            ratio = 1 + kept @ functions  # f/declared
            found = declared * np.maximum(ratio, _LEAST)
            held = np.vstack([np.sqrt(variance)[:, None] * functions, ratio - found / declared])
            warnings = (_RARE_TIMES,) * bool(ratio.min() < _LEAST)
            return found / float(weights @ found), held * declared / found, warnings
        limit = 2 * gammaincinv(size / 2, _SURE)  # a quantile of chi-squared
        beyond = float((answer.values**2 / variance).sum()) > limit
        far = float((answer.values**2 - variance).sum()) > _FAR**2
        return declared, np.zeros((0, len(weights))), (_OTHER_TIMES,) * bool(beyond and far)

    def _place(
        self, mean: MeanRelease, center: FloatArray, axes: FloatArray, density: FloatArray
    ) -> SparsePlace:
        points = SparsePoints(center=center, grid=unit_grid(mean)[0], density=density)
        return {"unit": mean.unit, "n": mean.n, "axes": axes, "points": points}

    def neighbors(self, mean: MeanRelease) -> tuple[Records, Records]:
        """Data sets that differ in one person, at opposite ends of the range at all points."""
        points = mean.grid[0].size
        rows = np.full((mean.n, 2 * points), 1 / points)
        rows[:, points:] = 0.01 * np.random.default_rng(0).normal(size=(mean.n, points)) / points
        other = rows.copy()
        rows[0, points:], other[0, points:] = (
            sign * mean.bound / norm_bound(1.0, mean.grid) / points for sign in (1, -1)
        )
        return (rows,), (other,)

    @classmethod
    def examples(cls) -> list[Self]:
        """Uniform, declared and estimated densities of times."""
        return [cls(), cls(density=np.linspace(1.0, 2.0, 9)), cls(estimate=True)]


def _left_out(noisy: FloatArray, variance: FloatArray, wider: int) -> NoiseLaw:
    """A law for the rougher coefficients that were not queried, so that bands account for them.

    They are assumed to continue from the size of the last third of the released coefficients and to
    decrease as 1/j.
    """
    size = len(noisy)
    last = slice(size - math.ceil(size / 3), size)
    level = math.sqrt(max(0.0, float((noisy**2 - variance)[last].mean())))
    beyond = level * size / np.arange(size + 1.0, wider + 1.0)
    return NoiseLaw(law="gaussian", scales=np.concatenate([np.zeros(size), beyond]))


def _wrong_times(points: SparsePoints, shift: FloatArray, doubt: FloatArray) -> FloatArray:
    """Covariance of the bias ∫ (μ - c) (f̂/f - 1) φ that a wrong density causes in the mean of z.

    Args:
        points: parameters of z; their center is c.
        shift: coefficients of the released μ - c.
        doubt: functions of t (rows); f̂/f - 1 is their sum with standard normal factors.
    """
    weights = trapezoid((points.grid,))
    moved = (points.functions * (shift @ points.functions) * weights) @ doubt.T
    return np.asarray(moved @ moved.T)


def _search_share(mean: MeanRelease) -> float:
    """The budget share of the search; it is larger for a small pure ε, to find the radius."""
    if not mean.whole.pure:
        return _LEAST_SEARCH
    return min(_MOST_SEARCH, max(_LEAST_SEARCH, _TELLING / mean.strength))


def unit_grid(mean: MeanRelease) -> Grid:
    """The grid, mapped to the domain [0, 1]."""
    points = mean.grid[0]
    unit = (points - points[0]) / (points[-1] - points[0])
    unit[-1] = 1.0
    return (np.asarray(unit),)


def _reach(mean: MeanRelease, place: SparsePlace) -> float:
    """‖z‖ of a person with one point at the end of the range, root mean square over times."""
    points = place["points"]
    half = mean.bound / norm_bound(1.0, mean.grid)
    squares = (points.functions**2).sum(axis=0)
    return float(half * math.sqrt(trapezoid((points.grid,)) @ (squares / points.density)))


def declared_density(times: Any, grid: FloatArray, *, shared: bool) -> FloatArray:
    """The density of times on the grid, from `PrivateMean(times=...)`.

    Args:
        times: "uniform", "estimate", numbers at the grid points, or a function of t.
        grid: the grid points.
        shared: whether curves are observed at grid points only; `times` are then frequencies.
    """
    if isinstance(times, str):
        if times not in ("uniform", "estimate"):
            rule = "'uniform', 'estimate', a density at the grid points, or a function of t"
            raise InvalidParameter("times", rule, times)
        times = np.ones(len(grid))
    function: Callable[[FloatArray], Any] | None = times if callable(times) else None
    values = np.asarray(times if function is None else function(grid), dtype=np.float64)
    if values.shape != grid.shape or not np.isfinite(values).all():
        raise InvalidParameter("times", f"{len(grid)} finite numbers", values.shape)
    if shared:  # from probabilities of grid points to a density
        values = values / trapezoid((grid,))
    least = _LEAST_GIVEN * float(trapezoid((grid,)) @ values) / float(grid[-1] - grid[0])
    if not (least > 0 and values.min() >= least):
        rule = f"a density that is never below {_LEAST_GIVEN:g} of its mean"
        raise InvalidParameter("times", rule, "a lower minimum")
    return values
