"""Queries of the two-stage regression, and how it divides its budget between them.

The first query asks where rows lie and how far they spread; Newton's method asks for one more noisy
sum a step. `BudgetPlan` divides the budget by the least expected error. It reads public numbers
alone: rows, features and budget. Its prior, in units of the public bounds: the means of rows and of
targets are anywhere, both fill all of their range, a third of it or a tenth, and half of the
variance of targets depends on the rows. Where no slope can be learned from so few rows, the mean
target still can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import Self

import numpy as np
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.central.regression.problem import (
    LOCATION_WEIGHT,
    NEWTON_L2,
    ONE,
    SQUARE,
    Bounds,
    Problem,
    joint_l1,
    joint_l2,
    location_l1,
)
from dpfda.central.regression.queries import row_noise, rows_and_targets, weighted_sums
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.noise.law import level
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import number, part, vector
from dpfda.protocol.query import AdditiveQuery, Answer, Records, Sums

_LEVEL = 0.18  # squared: of a mean that is uniform over three quarters of its range
TARGET_WEIGHT = 0.5  # of the mean target beside the mean row, the default
_SHARES = tuple(
    Fraction(k, 20) for k in (4, 8, 12, 16, 19)
)  # of the first question, that are tried
_WEIGHTS = (TARGET_WEIGHT, 1.0, 2.0, 4.0, 8.0)
_FILLINGS = (1.0, 1 / 3, 1 / 10)  # how much of a range rows may fill
_SCATTER = 0.35  # how far a row that fills its ball lies from the mean
_TARGET_SCATTER = 1 / 3  # of targets that fill their range
_SIGNAL = 0.5  # of their variance that a line explains
_CLIPPED = 0.1  # of what a line explains: lost where rows are shortened, whatever the noise
_LEAST_SPREAD = 0.01  # of mean squared distances: a radius of zero would clip everything
NEARLY = 1.1
"""Of the least error: what is usual for many rows is then preferred, since the belief is rough."""


@dataclass(frozen=True, kw_only=True)
class BudgetPlan:
    """The budget of the first of two questions, and the share that concerns targets.

    Attributes:
        cost: what may be spent: pure, or Gaussian.
        share: of the first question.
        target_weight: of the mean target beside the mean row.
        error: expected squared error of predictions, over the square of the targets' half range.

    Examples:
        >>> cost, usual = Cost(epsilon=1.0), Fraction(1, 4)
        >>> few = BudgetPlan.of(cost, usual=usual, rows=40, features=8)
        >>> many = BudgetPlan.of(cost, usual=usual, rows=10**5, features=8)
        >>> few.share > usual, many.share == usual, few.target_weight > many.target_weight
        (True, True, True)
    """

    cost: Cost
    share: Fraction
    target_weight: float = TARGET_WEIGHT
    error: float

    @classmethod
    def of(cls, cost: Cost, *, usual: Fraction, rows: int, features: int) -> BudgetPlan:
        """The usual one, unless another is expected to be clearly better.

        Args:
            cost: what may be spent.
            usual: share of the first question for many rows.
            rows: how many.
            features: how many.
        """
        return _best(cost, usual, rows, features)


@lru_cache(maxsize=256)
def _best(cost: Cost, usual: Fraction, rows: int, features: int) -> BudgetPlan:
    def plan(share: Fraction, weight: float) -> BudgetPlan:
        error = _error(cost, share, weight, rows, features)
        return BudgetPlan(cost=cost, share=share, target_weight=weight, error=error)

    tried = [plan(*one) for one in product((usual, *_SHARES), _WEIGHTS)]
    best = min(tried, key=lambda plan: plan.error)
    return tried[0] if tried[0].error <= NEARLY * best.error else best


def _error(cost: Cost, share: Fraction, weight: float, rows: int, features: int) -> float:
    """Expected squared error, averaged over the prior."""
    first, second = cost.part(share), cost.part(1 - share)
    row_noise = _location_noise(first, weight, rows, features)
    target_noise = row_noise / weight**2
    moment_noise = _moment_noise(second, rows, features)
    # Means are shrunk to the public middle by their noise.
    off = _LEVEL * target_noise / (_LEVEL + target_noise)
    each = _LEVEL / features
    away = features * each * row_noise / (each + row_noise)
    found = []
    for fills, target_fills in product(_FILLINGS, _FILLINGS):
        scatter, variance = (_SCATTER * fills) ** 2, (_TARGET_SCATTER * target_fills) ** 2
        # Squares are released with noise: it counts where it is larger than what they are of.
        ball = max(math.hypot(scatter + away, math.sqrt(row_noise)), _LEAST_SPREAD)
        targets = min(math.hypot(variance + off, math.sqrt(target_noise)), 1.0)
        signal = _SIGNAL * variance / features  # along each direction
        spread = scatter / ball / np.arange(1, features + 1)
        spread *= scatter / ball / spread.sum()
        known = spread * signal / targets
        left = signal * moment_noise / (known + moment_noise)
        always = variance * (features + 1) / rows + _CLIPPED * _SIGNAL * variance
        found.append(off + float(left.sum()) + always)
    return float(np.mean(found))


def _location_noise(cost: Cost, weight: float, rows: int, features: int) -> float:
    """Variance of the noise on the mean of rows in the unit ball."""
    if cost.pure:
        reach = location_l1(features) + weight * location_l1(1)
        return 2 * (reach / (rows * cost.epsilon_spent)) ** 2
    return 4 * (1 + weight**2) / (rows * cost.mu) ** 2


def _moment_noise(cost: Cost, rows: int, features: int) -> float:
    """Variance of the noise on mean products of rows and targets in their balls."""
    if cost.pure:
        return 2 * (joint_l1(1.0, 1.0, dimension=features) / (rows * cost.epsilon_spent)) ** 2
    return (joint_l2(1.0, 1.0) / (rows * cost.mu)) ** 2


_LEAST_TARGET_SPREAD = 0.003
_RADIUS = (0.7, 2.5)  # clipping radius in root-mean-square distances: few rows, many rows
_FEW = 400.0  # nμ/√D: below, noise is what hurts; above, clipping is
_TARGET_RADIUS = 2.5  # in standard deviations


@dataclass(frozen=True)
class Location:
    """Public estimates of center and spread.

    Attributes:
        bounds: where the second stage clips rows and targets.
        spread: noisy estimate of the mean squared distance of rows from the center; may be below 0.
        target_variance: the same of targets.
        center_noise: of the noise on a number of the center, in the units of rows.
        target_noise: of the noise on the center of targets.
        most_target_variance: two deviations of its noise above `target_variance`, as far as the
            public range allows.
    """

    bounds: Bounds
    spread: float
    target_variance: float
    center_noise: float = 0.0
    target_noise: float = 0.0
    most_target_variance: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class LocationQuery(AdditiveQuery, name="regression_location"):
    """Σ (z, 1.6|z|², kv, 1.6kv²) with z, v the row and target in their public balls.

    Privacy:
        Euclidean sensitivity 2√(1 + k²): (z, 1.6|z|²) moves by at most 2, the squared norm rides
        free, and k(v, 1.6v²) by at most 2k. Sum of absolutes: `location_l1`.

    Attributes:
        problem: which.
        target_weight: k.
    """

    cost: Cost = part(lambda: Cost)
    problem: Problem = part(lambda: Problem)
    target_weight: float = number(least=1e-3, most=1e3, default=TARGET_WEIGHT)

    @property
    def dimension(self) -> int:
        """D."""
        return self.problem.dimension

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes."""
        return rows_and_targets(self.name, self.dimension, records)

    @property
    def l2(self) -> float:
        """The two parts are perpendicular."""
        return 2 * math.hypot(1.0, self.target_weight)

    @cached_property
    def weights(self) -> FloatArray:
        """Grid steps to weighted units."""
        line, square = 1 / ONE, LOCATION_WEIGHT * SQUARE
        ends = [square, self.target_weight * line, self.target_weight * square]
        return np.concatenate([np.full(self.dimension, line), ends])

    @property
    def l1(self) -> float:
        """The two parts add up."""
        return location_l1(self.dimension) + self.target_weight * location_l1(1)

    @cached_property
    def mechanism(self) -> Additive:
        """The same noise on every number."""
        return row_noise(self.name, self.cost, len(self.weights), l1=self.l1, l2=self.l2)

    @property
    def summed(self) -> Sums:
        """Rows, targets and their squares."""
        return weighted_sums(self._block, self.weights, dimension=self.dimension)

    def _block(self, records: Records) -> FloatArray:
        """Exact sums of z, |z|², v, v²."""
        bounds = self.problem.bounds
        z, v = bounds.rows(records[0]), bounds.targets(records[1])
        return np.concatenate([np.ones(len(z)) @ z, [np.vdot(z, z), v.sum(), v @ v]])

    @classmethod
    def examples(cls) -> list[Self]:
        """Gaussian and Laplace, in one dimension and in two, rows or targets first."""
        far = Bounds(center=np.array([0.3, -0.2]), radius=2.0, target_center=0.5)
        line = Problem(link="linear", bounds=Bounds(center=np.zeros(1)))
        space = Problem(link="logistic", bounds=far)
        gaussian, pure = Cost(epsilon=1.0, delta=0.05), Cost(epsilon=1.0)
        costs = (gaussian.part(0.2), pure.part(0.25))
        problems = ((line, TARGET_WEIGHT), (space, TARGET_WEIGHT), (space, 8.0))
        return [
            cls(cost=cost, problem=problem, target_weight=weight)
            for cost in costs
            for problem, weight in problems
        ]

    def means(self, answer: Answer) -> tuple[FloatArray, float, float]:
        """Mean row and mean target in units of their bounds, and the noise on them."""
        mean, noise = answer.values / answer.n, answer.sigma / answer.n
        larger = max(noise, noise / self.target_weight)
        return mean[: self.dimension], float(mean[-2] / self.target_weight), larger

    def read(self, answer: Answer) -> Location:
        """Center and spread from the noisy sums (free post-processing)."""
        problem, bounds, dimension = self.problem, self.problem.bounds, self.dimension
        mean, noise = answer.values / answer.n, answer.sigma / answer.n
        z = mean[:dimension]
        square = float(np.clip(mean[dimension] / LOCATION_WEIGHT, 0.0, 1.0))
        # The mean is shrunk to the public center by its own noise: this matters for few rows only.
        target_noise = noise / self.target_weight
        v, left = level(float(mean[-2]) / self.target_weight, target_noise**2)
        v, unsure = min(max(v, -1.0), 1.0), math.sqrt(left)
        v_square = float(np.clip(mean[-1] / (self.target_weight * LOCATION_WEIGHT), 0.0, 1.0))
        if problem.fit_intercept:
            shift, kept = shrink_to_mean(z, noise)
            # Of what was shrunk, that part; of the average of all, which stays, its own noise.
            vague = noise * math.sqrt(kept + (1 - kept) / dimension)
        else:  # lines through 0, where the center is known
            shift, kept, v, vague, unsure = np.zeros(dimension), 0.0, 0.0, 0.0, 0.0
        # E|z - c|², with the noise that z and c share taken out of their product
        shared = float(z @ shift) - kept * dimension * noise**2
        spread = square - 2 * shared + float(shift @ shift)
        furthest = 1 + float(np.linalg.norm(shift))  # no row of the public ball is further from c
        reach = math.sqrt(min(max(spread, _LEAST_SPREAD), furthest**2))
        variance = max(v_square - v * v, _LEAST_TARGET_SPREAD)
        doubt = 2 * target_noise / LOCATION_WEIGHT
        target_radius = min(_TARGET_RADIUS * math.sqrt(variance), 1 + abs(v))
        clipped = Bounds(
            center=bounds.center + bounds.radius * shift,
            radius=radius_factor(answer.n, self._usual_noise(answer), dimension)
            * reach
            * bounds.radius,
            target_center=bounds.target_center + bounds.target_radius * v,
            target_radius=target_radius * bounds.target_radius,
        )
        return Location(
            bounds=clipped,
            spread=spread * bounds.radius**2,
            target_variance=variance * bounds.target_radius**2,
            center_noise=vague * bounds.radius,
            target_noise=unsure * bounds.target_radius,
            most_target_variance=min(variance + doubt, 1.0) * bounds.target_radius**2,
        )

    def _usual_noise(self, answer: Answer) -> float:
        """The noise that the usual weight of targets would give."""
        usual = replace(self, target_weight=TARGET_WEIGHT)
        ratio = usual.l1 / self.l1 if self.cost.pure else usual.l2 / self.l2
        return answer.sigma * ratio


def radius_factor(n: int, noise: float, dimension: int) -> float:
    """How many root-mean-square distances the second stage keeps: more, the less noise there is."""
    clarity = math.sqrt(5.0) * n / (noise * math.sqrt(0.2 * dimension))
    low, high = _RADIUS
    return float(min(max(low * (clarity / _FEW) ** (1 / 3), low), high))


def shrink_to_mean(noisy: FloatArray, noise: float) -> tuple[FloatArray, float]:
    """A noisy vector shrunk to its average by its signal-to-noise ratio, inside the unit ball."""
    average = float(noisy.mean())
    signal = max(float(noisy.var()) - noise**2, 0.0)
    kept = signal / (signal + noise**2)
    shrunk = average + (noisy - average) * kept
    return np.asarray(shrunk / max(1.0, float(np.linalg.norm(shrunk)))), kept


_CURVATURE_WEIGHT = 2.0


@dataclass(frozen=True)
class Slope:
    """Noisy means of the logistic loss at a public line.

    Attributes:
        gradient: mean of (p - y) x.
        balance: mean of p - y.
        curvature: mean of p(1 - p).
        sigma: standard deviation of the noise on gradient and balance.
    """

    gradient: FloatArray
    balance: float
    curvature: float
    sigma: float


@dataclass(frozen=True, kw_only=True, eq=False)
class NewtonQuery(AdditiveQuery, name="regression_newton"):
    """Σ (r x, r, 2p(1-p)) with r = p - y at a public line, x in the unit ball.

    Privacy:
        Euclidean sensitivity √8, that of (r x, r): where residuals are long, p(1 - p) is short
        (`NEWTON_L2` has the proof). Reached by lines so steep that they are certain, and wrong.

    Attributes:
        bounds: the ball of the rows; those of targets play no role.
        theta, offset: the line, on unit-ball rows.
    """

    l2 = NEWTON_L2

    cost: Cost = part(lambda: Cost)
    bounds: Bounds = part(lambda: Bounds)
    theta: FloatArray = vector("features")
    offset: float = number()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism  # refuses a budget without δ
        if len(self.theta) != self.dimension:
            raise InvalidParameter("theta", f"of length {self.dimension}", len(self.theta))

    @property
    def dimension(self) -> int:
        """D."""
        return self.bounds.dimension

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes."""
        return rows_and_targets(self.name, self.dimension, records)

    @cached_property
    def weights(self) -> FloatArray:
        """Grid steps to weighted units."""
        ends = [1 / ONE, _CURVATURE_WEIGHT * SQUARE]
        return np.concatenate([np.full(self.dimension, SQUARE), ends])

    @cached_property
    def mechanism(self) -> Additive:
        """Gaussian noise."""
        return row_noise(self.name, self.cost, len(self.weights), l2=self.l2)

    @property
    def summed(self) -> Sums:
        """Residuals times rows, residuals, curvatures."""
        return weighted_sums(self._block, self.weights, dimension=self.dimension)

    def _block(self, records: Records) -> FloatArray:
        """Exact sums; residual and curvature are cut to their grids."""
        x = self.bounds.rows(records[0])
        likely = expit(np.einsum("ij,j->i", x, self.theta / ONE) + self.offset)  # row by row
        residual = np.trunc((likely - (records[1] > 0.5)) * ONE)
        curvature = np.trunc(likely * (1 - likely) * ONE**2)
        return np.concatenate([residual @ x, [residual.sum(), curvature.sum()]])

    @classmethod
    def examples(cls) -> list[Self]:
        """Steep lines, where the sensitivity is reached."""
        whole = Cost(epsilon=1.0, delta=0.05)
        far = Bounds(center=np.array([0.3, -0.2, 0.1]), radius=2.0)
        line = Bounds(center=np.zeros(1))
        return [
            cls(cost=whole.part(0.25), bounds=line, theta=np.array([4e3]), offset=-3980.0),
            cls(cost=whole, bounds=far, theta=np.array([300.0, -200.0, 100.0]), offset=-2.0),
        ]

    def read(self, answer: Answer) -> Slope:
        """Answer means."""
        mean = answer.values / answer.n
        return Slope(
            gradient=mean[:-2],
            balance=float(mean[-2]),
            curvature=float(np.clip(mean[-1] / _CURVATURE_WEIGHT, 0.02, 0.25)),
            sigma=answer.sigma / answer.n,
        )
