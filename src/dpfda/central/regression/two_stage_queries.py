"""Queries of the two-stage regression, and the division of its budget between them.

The first query estimates the center and the spread of the rows; each step of Newton's method
queries one more noisy sum. `BudgetPlan` divides the budget such that the expected error is least.
It uses public numbers only: rows, features and budget. Its prior is in units of the public bounds.
The means of rows and of targets are roughly uniform; rows and targets fill the whole range, a third
of it or a tenth; and half of the variance of the targets is explained by the rows. With very few
rows, the plan favors the mean target over the slopes.
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

_LEVEL = 0.18  # prior variance of a mean: uniform over three quarters of its range
TARGET_WEIGHT = 0.5  # default weight of the mean target relative to the mean row
_SHARES = tuple(Fraction(k, 20) for k in (4, 8, 12, 16, 19))
"""Candidate budget shares of the first query."""
_WEIGHTS = (TARGET_WEIGHT, 1.0, 2.0, 4.0, 8.0)
_FILLINGS = (1.0, 1 / 3, 1 / 10)  # shares of the range that rows may fill
_SCATTER = 0.35  # distance of a row from the mean, if rows fill their ball
_TARGET_SCATTER = 1 / 3  # standard deviation of targets that fill their range
_SIGNAL = 0.5  # share of the variance of the targets that a line explains
_CLIPPED = 0.1  # share of the explained variance that clipping of rows loses without noise
_LEAST_SPREAD = 0.01  # smallest mean squared distance, because a radius of 0 would clip everything
NEARLY = 1.1
"""Errors up to this multiple of the least one count as equal, because the prior is rough; the
default for many rows is then preferred."""


@dataclass(frozen=True, kw_only=True)
class BudgetPlan:
    """The division of the budget between two queries, and the weight of targets in the first.

    Attributes:
        cost: the budget, pure or Gaussian.
        share: budget share of the first query.
        target_weight: weight of the mean target relative to the mean row.
        error: expected squared error of predictions, over the squared half-range of the targets.

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
        """The default plan, unless another has a clearly smaller expected error.

        Args:
            cost: the budget.
            usual: default share of the first query.
            rows: number of rows.
            features: number of features.
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
    # Means are shrunk to the public center according to their noise.
    off = _LEVEL * target_noise / (_LEVEL + target_noise)
    each = _LEVEL / features
    away = features * each * row_noise / (each + row_noise)
    found = []
    for fills, target_fills in product(_FILLINGS, _FILLINGS):
        scatter, variance = (_SCATTER * fills) ** 2, (_TARGET_SCATTER * target_fills) ** 2
        # The released mean squares have noise, which matters if it is larger than they are.
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
_FEW = 400.0  # nμ/√D below which noise, and above which clipping, causes most of the error
_TARGET_RADIUS = 2.5  # in standard deviations


@dataclass(frozen=True)
class Location:
    """Public estimates of center and spread.

    Attributes:
        bounds: bounds to which the second stage clips rows and targets.
        spread: noisy estimate of the mean squared distance of rows from the center; may be
            negative.
        target_variance: noisy estimate of the variance of the targets.
        center_noise: standard deviation of the error of each coordinate of the center of the rows.
        target_noise: standard deviation of the error of the center of the targets.
        most_target_variance: `target_variance` plus two deviations of its noise, at most the
            variance that the public range allows.
    """

    bounds: Bounds
    spread: float
    target_variance: float
    center_noise: float = 0.0
    target_noise: float = 0.0
    most_target_variance: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class LocationQuery(AdditiveQuery, name="regression_location"):
    """Σ (z, 1.6|z|², kv, 1.6kv²), where z and v are the row and the target in their public balls.

    Privacy:
        The Euclidean sensitivity is 2√(1 + k²): (z, 1.6|z|²) changes by at most 2, as z alone does,
        and k(v, 1.6v²) by at most 2k. The ℓ1 sensitivity follows from `location_l1`.

    Attributes:
        problem: link and public bounds.
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
        """Euclidean sensitivity; the two parts have separate coordinates."""
        return 2 * math.hypot(1.0, self.target_weight)

    @cached_property
    def weights(self) -> FloatArray:
        """Factors from grid steps to weighted units."""
        line, square = 1 / ONE, LOCATION_WEIGHT * SQUARE
        ends = [square, self.target_weight * line, self.target_weight * square]
        return np.concatenate([np.full(self.dimension, line), ends])

    @property
    def l1(self) -> float:
        """ℓ1 sensitivity, the sum of both parts."""
        return location_l1(self.dimension) + self.target_weight * location_l1(1)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise of equal scale on every number."""
        return row_noise(self.name, self.cost, len(self.weights), l1=self.l1, l2=self.l2)

    @property
    def summed(self) -> Sums:
        """Sums of rows, targets and their squares."""
        return weighted_sums(self._block, self.weights, dimension=self.dimension)

    def _block(self, records: Records) -> FloatArray:
        """Exact sums of z, |z|², v, v²."""
        bounds = self.problem.bounds
        z, v = bounds.rows(records[0]), bounds.targets(records[1])
        return np.concatenate([np.ones(len(z)) @ z, [np.vdot(z, z), v.sum(), v @ v]])

    @classmethod
    def examples(cls) -> list[Self]:
        """Gaussian and Laplace noise, in one and two dimensions, with two weights of targets."""
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
        """Center and spread from the noisy sums (post-processing)."""
        problem, bounds, dimension = self.problem, self.problem.bounds, self.dimension
        mean, noise = answer.values / answer.n, answer.sigma / answer.n
        z = mean[:dimension]
        square = float(np.clip(mean[dimension] / LOCATION_WEIGHT, 0.0, 1.0))
        # The mean is shrunk to the public center by its own noise, which matters for few rows only.
        target_noise = noise / self.target_weight
        v, left = level(float(mean[-2]) / self.target_weight, target_noise**2)
        v, unsure = min(max(v, -1.0), 1.0), math.sqrt(left)
        v_square = float(np.clip(mean[-1] / (self.target_weight * LOCATION_WEIGHT), 0.0, 1.0))
        if problem.fit_intercept:
            shift, kept = shrink_to_mean(z, noise)
            # The error of the shrunk deviations, and that of their average, which is not shrunk.
            vague = noise * math.sqrt(kept + (1 - kept) / dimension)
        else:  # lines through 0, where the center is known
            shift, kept, v, vague, unsure = np.zeros(dimension), 0.0, 0.0, 0.0, 0.0
        # E|z - c|², corrected for the noise that z and c share
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
        """The noise that the default weight of targets would give."""
        usual = replace(self, target_weight=TARGET_WEIGHT)
        ratio = usual.l1 / self.l1 if self.cost.pure else usual.l2 / self.l2
        return answer.sigma * ratio


def radius_factor(n: int, noise: float, dimension: int) -> float:
    """The clipping radius of the second stage in root-mean-square distances; less noise, larger."""
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
        The Euclidean sensitivity is √8, as for (r x, r), because p(1 - p) is small if residuals are
        large (`NEWTON_L2` has the proof). Steep lines with wrong predictions attain it.

    Attributes:
        bounds: the ball of the rows; the bounds of the targets are not used.
        theta, offset: the line, for unit-ball rows.
    """

    l2 = NEWTON_L2

    cost: Cost = part(lambda: Cost)
    bounds: Bounds = part(lambda: Bounds)
    theta: FloatArray = vector("features")
    offset: float = number()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism  # rejects a budget without δ
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
        """Factors from grid steps to weighted units."""
        ends = [1 / ONE, _CURVATURE_WEIGHT * SQUARE]
        return np.concatenate([np.full(self.dimension, SQUARE), ends])

    @cached_property
    def mechanism(self) -> Additive:
        """Gaussian noise."""
        return row_noise(self.name, self.cost, len(self.weights), l2=self.l2)

    @property
    def summed(self) -> Sums:
        """Sums of residuals times rows, of residuals and of curvatures."""
        return weighted_sums(self._block, self.weights, dimension=self.dimension)

    def _block(self, records: Records) -> FloatArray:
        """Exact sums, with residuals and curvatures truncated to their grids."""
        x = self.bounds.rows(records[0])
        likely = expit(np.einsum("ij,j->i", x, self.theta / ONE) + self.offset)  # row by row
        residual = np.trunc((likely - (records[1] > 0.5)) * ONE)
        curvature = np.trunc(likely * (1 - likely) * ONE**2)
        return np.concatenate([residual @ x, [residual.sum(), curvature.sum()]])

    @classmethod
    def examples(cls) -> list[Self]:
        """Steep lines, which attain the sensitivity."""
        whole = Cost(epsilon=1.0, delta=0.05)
        far = Bounds(center=np.array([0.3, -0.2, 0.1]), radius=2.0)
        line = Bounds(center=np.zeros(1))
        return [
            cls(cost=whole.part(0.25), bounds=line, theta=np.array([4e3]), offset=-3980.0),
            cls(cost=whole, bounds=far, theta=np.array([300.0, -200.0, 100.0]), offset=-2.0),
        ]

    def read(self, answer: Answer) -> Slope:
        """The noisy means of an answer."""
        mean = answer.values / answer.n
        return Slope(
            gradient=mean[:-2],
            balance=float(mean[-2]),
            curvature=float(np.clip(mean[-1] / _CURVATURE_WEIGHT, 0.02, 0.25)),
            sigma=answer.sigma / answer.n,
        )
