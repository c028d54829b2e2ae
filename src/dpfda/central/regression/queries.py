"""Queries about rows and targets: integer sums plus noise.

The question at the heart of every least-squares method: Σ xy and Σ xxᵀ.

How many rows lie outside their public ranges, asked before a regression.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.regression.problem import (
    BLOCK,
    MOST_FEATURES,
    MOST_ROWS,
    ONE,
    SQUARE,
    Bounds,
    Problem,
    joint_l1,
    joint_l2,
    with_constant,
)
from dpfda.curves.matrices import svec_weights, unfold
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.ellipsoid_laplace import l1_noise, l2_noise
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import flag, number, part, whole
from dpfda.protocol.query import AdditiveQuery, Answer, DatasetQuery, Records, finite, in_rows

_ROWS = 256  # of a block, at least


@dataclass(frozen=True, kw_only=True, eq=False)
class RowQuery(DatasetQuery):
    """A query of rows (n, D) and targets (n,) that may spend a share of a budget.

    Gaussian noise where the budget has a δ, for a sensitivity `l2`; otherwise Laplace noise, for
    `l1`. A query that states one of them only is refused with the other kind of budget.

    Attributes:
        cost: what it may spend.
    """

    cost: Cost = part(lambda: Cost)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism  # refuses a budget that it cannot keep, before anybody is asked

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Width of the rows."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of the answer."""

    @property
    def l2(self) -> float:
        """Euclidean sensitivity to replacing one row."""
        raise InvalidParameter("delta", f"0 for {self.name}", self.cost.delta)

    @property
    def l1(self) -> float:
        """Sensitivity in the sum of absolutes."""
        raise InvalidParameter("delta", f"above 0 for {self.name}", self.cost.delta)

    @cached_property
    def mechanism(self) -> Additive:
        """The same noise on every number."""
        axes = np.ones(self.size)
        if self.cost.pure:
            return l1_noise(self.cost, sensitivity=self.l1, axes=axes)
        return l2_noise(self.cost, sensitivity=self.l2, axes=axes)

    @property
    def columns(self) -> tuple[int, ...]:
        """Rows and targets."""
        return (self.dimension, 0)

    def count(self, n: int, *, part: bool = False) -> None:
        """Refuse more rows than 64-bit sums have room for, in however many chunks they come."""
        if n > MOST_ROWS:
            raise InvalidData("X", f"a table of at most {MOST_ROWS} rows")
        super().count(n, part=part)

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes, and of finite numbers."""
        return tuple(map(finite, self.shaped(records)))

    def shaped(self, records: Records) -> Records:
        """Rows and targets; other shapes are refused: they are public.

        A third column, which marks rows outside their ranges, is for `OutsideCount` alone.
        """
        shapes = tuple(column.shape for column in records)
        n = shapes[0][0] if shapes and shapes[0] else 0
        if n > MOST_ROWS:
            raise InvalidData("X", f"a table of at most {MOST_ROWS} rows")
        if shapes[:2] != ((n, self.dimension), (n,)) or shapes[2:] not in ((), ((n,),)):
            raise ProtocolError(f"{self.name} needs rows of {self.dimension} numbers and a target")
        return records[:2]


@dataclass(frozen=True, kw_only=True, eq=False)
class ProblemQuery(RowQuery):
    """A query that is about a problem's loss and balls.

    Attributes:
        problem: which.
    """

    problem: Problem = part(lambda: Problem)

    @property
    def dimension(self) -> int:
        """D."""
        return self.problem.dimension

    @property
    def size(self) -> int:
        """One number for each coefficient."""
        return self.problem.size


@dataclass(frozen=True, kw_only=True, eq=False)
class RowSums(RowQuery, AdditiveQuery):
    """A weighted sum over all rows, exact in whole numbers until noise is added."""

    @property
    @abstractmethod
    def weights(self) -> FloatArray:
        """The factor of each exact integer sum; sensitivities apply to the scaled sums."""

    @property
    def size(self) -> int:
        """One for each weight."""
        return len(self.weights)

    @property
    def largest(self) -> int:
        """The product of two numbers of the unit ball, in grid steps."""
        return int(ONE) ** 2

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes; `sums` makes their numbers finite."""
        return self.shaped(records)

    def sums(self, records: Records) -> IntArray:
        """Exact sums over the rows, in blocks that fit a processor's cache.

        The pass then costs little more than reading, also where it looks for NaN.
        """
        rows, targets = records
        total = np.zeros(self.size, dtype=np.int64)
        step = max(_ROWS, BLOCK // self.dimension)
        for start in range(0, len(rows), step):
            block = in_rows((rows, targets), slice(start, start + step))
            total += self.block(tuple(map(finite, block))).astype(np.int64)
        return total

    def statistic(self, totals: IntArray) -> FloatArray:
        """The weighted sum."""
        return np.asarray(totals * self.weights)


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy means, in units of the clipping radii.

    Attributes:
        linear: mean of xy.
        quadratic: mean of xxᵀ.
        linear_sigma: standard deviation of the noise on `linear`.
        quadratic_sigma: of the noise on the diagonal of `quadratic`.
        quadratic_variance: of the noise on all its entries, (p, p).
    """

    linear: FloatArray
    quadratic: FloatArray
    linear_sigma: float
    quadratic_sigma: float
    quadratic_variance: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentQuery(RowSums, name="regression_moments"):
    """Σ (w1 xy, w2 svec xxᵀ), x and y clipped to given balls and measured in their radii.

    Privacy:
        One vector of Euclidean sensitivity `joint_l2(w1, w2)` (C7).

    Attributes:
        bounds: the balls.
        linear_weight, quadratic_weight: w1, w2.
        constant: append a constant feature, so that the line has an intercept: the row becomes
            (x, 1)/√2, which stays in the unit ball.
        weighted: shorten a target as its row is shortened, so that a row far out counts less and
            slopes are those of unshortened rows; otherwise the row alone is shortened.
    """

    bounds: Bounds = part(lambda: Bounds)
    linear_weight: float = number(least=1e-6, most=1e6, default=1.0)
    quadratic_weight: float = number(least=1e-6, most=1e6, default=1.0)
    constant: bool = flag(default=False)
    weighted: bool = flag(default=False)

    @property
    def dimension(self) -> int:
        """D."""
        return self.bounds.dimension

    @property
    def coefficients(self) -> int:
        """Length of x, the constant included."""
        return self.dimension + self.constant

    @property
    def triangle(self) -> FloatArray:
        """Weights of the entries of the upper triangle: those of `svec`."""
        return svec_weights(self.coefficients)

    @cached_property
    def weights(self) -> FloatArray:
        """Grid steps to weighted units."""
        return self.moment_weights

    @property
    def moment_weights(self) -> FloatArray:
        """Weights of the linear and quadratic sums."""
        linear = np.full(self.coefficients, self.linear_weight)
        return SQUARE * np.concatenate([linear, self.quadratic_weight * self.triangle])

    @property
    def l2(self) -> float:
        """`joint_l2`."""
        return joint_l2(self.linear_weight, self.quadratic_weight)

    def block(self, records: Records) -> FloatArray:
        """Exact sums, by one matrix product each."""
        x, targets = self.bounds.rows(records[0]), self.bounds.targets(records[1])
        if self.weighted:
            targets = np.trunc(targets * self.bounds.kept(records[0]))
        if self.constant:
            x = with_constant(x)
        triangle = (x.T @ x)[np.triu_indices(self.coefficients)]
        return np.concatenate([targets @ x, triangle])

    def read(self, answer: Answer) -> NoisyMoments:
        """Noisy means with their noise levels."""
        mean, noise = answer.values / answer.n, answer.sigma / answer.n
        size = self.coefficients
        weights = self.moment_weights[size:] / SQUARE
        return NoisyMoments(
            linear=mean[:size] / self.linear_weight,
            quadratic=unfold(mean[size:] / weights, size),
            linear_sigma=noise / self.linear_weight,
            quadratic_sigma=noise / self.quadratic_weight,
            quadratic_variance=unfold((noise / weights) ** 2, size),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """Both sides of the free ride of the linear part, with a constant and without."""
        whole = Cost(epsilon=1.0, delta=0.05)
        far = Bounds(center=np.array([0.3, -0.2, 0.1]), radius=2.0, target_center=0.5)
        plain = Bounds(center=np.zeros(2))
        return [
            cls(cost=whole.part(0.8), bounds=plain),
            cls(cost=whole, bounds=far, linear_weight=2.0, quadratic_weight=1.4),
            cls(cost=whole, bounds=plain, linear_weight=2.0, constant=True),
            cls(cost=whole, bounds=far, weighted=True),
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class AbsoluteMomentQuery(MomentQuery, name="regression_absolute_moments"):
    """Σ (w1 xy, w2 xxᵀ), measured by the sum of absolutes over all D² entries: for pure ε.

    Privacy:
        `joint_l1(w1, w2)`; an entry off the diagonal stands for two of the matrix.
    """

    # The two norms of `joint_l1` are not at their worst for the same rows: searches find .76 for
    # one feature, .97 for two.
    attained: ClassVar[float | None] = 0.7

    @property
    def triangle(self) -> FloatArray:
        """1 on the diagonal, 2 off it."""
        return svec_weights(self.coefficients) ** 2

    @property
    def l2(self) -> float:
        """None."""
        return super(MomentQuery, self).l2

    @property
    def l1(self) -> float:
        """`joint_l1`."""
        return joint_l1(self.linear_weight, self.quadratic_weight, dimension=self.coefficients)

    @classmethod
    def examples(cls) -> list[Self]:
        """One dimension and two."""
        whole = Cost(epsilon=1.0)
        return [
            cls(cost=whole.part(0.75), bounds=Bounds(center=np.zeros(1))),
            cls(cost=whole, bounds=Bounds(center=np.zeros(2), radius=3.0), linear_weight=2.0),
        ]


OUTSIDE = (
    "more than a few people lie outside feature_ranges or target_range: these are probably too "
    "small, and what is outside was moved to the nearest end, which bends the result"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class OutsideCount(RowQuery, AdditiveQuery, name="regression_outside"):
    """How many records are marked, in their third column, as outside their ranges.

    Whoever reads a table moves rows and targets into their ranges, and marks records of which
    something was outside. No query sees numbers beyond their ranges.

    Privacy:
        A neighbor moves the count by 1.

    Attributes:
        features: width of the rows.
    """

    features: int = whole(least=1, most=MOST_FEATURES)

    l1, l2, size, largest = 1.0, 1.0, 1, 1

    @property
    def dimension(self) -> int:
        """Width of the rows."""
        return self.features

    @property
    def columns(self) -> tuple[int, ...]:
        """Rows, targets and marks."""
        return (self.features, 0, 0)

    def fitting(self, records: Records) -> Records:
        """The marks of records of the right shapes."""
        self.shaped(records)
        if len(records) != 3:
            raise ProtocolError(f"{self.name} needs a flag for every row")
        return (records[2] > 0,)

    def block(self, records: Records) -> IntArray:
        """The count."""
        return np.array([np.count_nonzero(records[0])])

    def statistic(self, totals: IntArray) -> FloatArray:
        """The statistic as a float."""
        return totals.astype(np.float64)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure, and a part of a Gaussian budget."""
        costs = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.01)
        return [cls(cost=cost, features=2) for cost in costs]
