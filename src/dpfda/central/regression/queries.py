"""Queries about rows and targets: integer sums plus noise.

The question at the heart of every least-squares method: Σ xy and Σ xxᵀ.

How many rows lie outside their public ranges, asked before a regression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.queries import as_floats
from dpfda.central.regression.problem import (
    BLOCK,
    MOST_FEATURES,
    MOST_ROWS,
    ONE,
    SQUARE,
    Bounds,
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
from dpfda.protocol.query import AdditiveQuery, Answer, Records, Sums, finite, in_rows

_ROWS = 256  # of a block, at least
_WITH_WEIGHTS = 4  # columns: rows, targets, marks of rows outside their ranges, weights


def row_noise(
    name: str, cost: Cost, size: int, *, l1: float | None = None, l2: float | None = None
) -> Additive:
    """The same noise on every number; a query without this kind of noise is refused.

    Args:
        name: of the query.
        cost: what it may spend.
        size: how many numbers.
        l1: sensitivity to replacing one row in the sum of absolutes, for Laplace noise.
        l2: Euclidean sensitivity, for Gaussian noise, where the budget has a δ.
    """
    if cost.pure:
        if l1 is None:
            raise InvalidParameter("delta", f"above 0 for {name}", cost.delta)
        return l1_noise(cost, sensitivity=l1, axes=np.ones(size))
    if l2 is None:
        raise InvalidParameter("delta", f"0 for {name}", cost.delta)
    return l2_noise(cost, sensitivity=l2, axes=np.ones(size))


def rows_and_targets(name: str, dimension: int, records: Records, *, most: int = 3) -> Records:
    """Rows and targets; other shapes are refused: they are public.

    A third column, which marks rows outside their ranges, is for `OutsideCount` alone, and weights
    of rows, the last of `most` columns, for `WeightedMomentQuery`.
    """
    shapes = tuple(column.shape for column in records)
    n = shapes[0][0] if shapes and shapes[0] else 0
    if n > MOST_ROWS:
        raise InvalidData("X", f"a table of at most {MOST_ROWS} rows")
    if shapes[:2] != ((n, dimension), (n,)) or set(shapes[2:]) - {(n,)} or len(shapes) > most:
        raise ProtocolError(f"{name} needs rows of {dimension} numbers and a target")
    return records[:2]


def weighted_sums(
    block: Callable[[Records], FloatArray], weights: FloatArray, *, dimension: int
) -> Sums:
    """A weighted sum over all rows, exact in whole numbers until noise is added.

    Args:
        block: exact integer sums over rows and targets of finite numbers.
        weights: the factor of each sum; sensitivities apply to the scaled sums.
        dimension: width of the rows.
    """

    def blocks(records: Records) -> IntArray:
        # In blocks that fit a processor's cache the pass costs little more than reading, also
        # where it looks for NaN.
        total = np.zeros(len(weights), dtype=np.int64)
        step = max(_ROWS, BLOCK // dimension)
        for start in range(0, len(records[0]), step):
            rows = in_rows(records, slice(start, start + step))
            total += block(tuple(map(finite, rows))).astype(np.int64)
        return total

    largest = int(ONE) ** 2  # the product of two numbers of the unit ball, in grid steps
    return Sums(
        (dimension, 0), len(weights), largest, blocks, lambda totals: totals * weights, MOST_ROWS
    )


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

    def per_weight(self) -> NoisyMoments:
        """Means over weights: divided by twice the last entry, the constant's, of (x, 1)/√2.

        The solution of M w = b stays as it is. Where noise hides the mean weight, its standard
        deviation stands for it.
        """
        mean = 2 * max(float(self.quadratic[-1, -1]), self.quadratic_sigma)
        return NoisyMoments(
            linear=self.linear / mean,
            quadratic=self.quadratic / mean,
            linear_sigma=self.linear_sigma / mean,
            quadratic_sigma=self.quadratic_sigma / mean,
            quadratic_variance=self.quadratic_variance / mean**2,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentSums:
    """Σ (w1 xy, w2 xxᵀ), x and y clipped to given balls and measured in their radii.

    Attributes:
        bounds: the balls.
        linear_weight, quadratic_weight: w1, w2.
        constant: append a constant feature, so that the line has an intercept: the row becomes
            (x, 1)/√2, which stays in the unit ball.
        weighted: shorten a target as its row is shortened, so that a row far out counts less and
            slopes are those of unshortened rows; otherwise the row alone is shortened.
        power: an entry off the diagonal, which stands for two of the matrix, counts √2^power.
    """

    bounds: Bounds
    linear_weight: float
    quadratic_weight: float
    constant: bool
    weighted: bool
    power: int = 1

    @property
    def size(self) -> int:
        """Length of x, the constant included."""
        return self.bounds.dimension + self.constant

    @cached_property
    def weights(self) -> FloatArray:
        """Grid steps to weighted units."""
        linear = np.full(self.size, self.linear_weight)
        triangle = svec_weights(self.size) ** self.power
        return SQUARE * np.concatenate([linear, self.quadratic_weight * triangle])

    @property
    def summed(self) -> Sums:
        """The weighted sums."""
        return weighted_sums(self.block, self.weights, dimension=self.bounds.dimension)

    def block(self, records: Records) -> FloatArray:
        """Exact sums, by one matrix product each."""
        return self.sums_of(*self.rows(records))

    def rows(self, records: Records) -> tuple[FloatArray, FloatArray]:
        """Rows in the unit ball and targets in [-1, 1], as whole numbers of 2^-18."""
        x, targets = self.bounds.rows(records[0]), self.bounds.targets(records[1])
        if self.weighted:
            targets = np.trunc(targets * self.bounds.kept(records[0]))
        return with_constant(x) if self.constant else x, targets

    def sums_of(self, x: FloatArray, targets: FloatArray) -> FloatArray:
        """Σ xy and the triangle of Σ xxᵀ of whole numbers."""
        triangle = (x.T @ x)[np.triu_indices(self.size)]
        return np.concatenate([targets @ x, triangle])

    def read(self, answer: Answer) -> NoisyMoments:
        """Noisy means with their noise levels."""
        mean, noise = answer.values / answer.n, answer.sigma / answer.n
        size = self.size
        weights = self.weights[size:] / SQUARE
        return NoisyMoments(
            linear=mean[:size] / self.linear_weight,
            quadratic=unfold(mean[size:] / weights, size),
            linear_sigma=noise / self.linear_weight,
            quadratic_sigma=noise / self.quadratic_weight,
            quadratic_variance=unfold((noise / weights) ** 2, size),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentQuery(AdditiveQuery, name="regression_moments"):
    """Σ (w1 xy, w2 svec xxᵀ), x and y clipped to given balls: `MomentSums`.

    Privacy:
        One vector of Euclidean sensitivity `joint_l2(w1, w2)` (C7). With pure ε the sum of
        absolutes over all D² entries of xxᵀ counts, an entry off the diagonal twice:
        `joint_l1(w1, w2)`.

    Attributes:
        bounds: the balls.
        linear_weight: w1.
        quadratic_weight: w2.
        constant: append a constant feature, so that the line has an intercept.
        weighted: shorten a target as its row is shortened.
    """

    cost: Cost = part(lambda: Cost)
    bounds: Bounds = part(lambda: Bounds)
    linear_weight: float = number(least=1e-6, most=1e6, default=1.0)
    quadratic_weight: float = number(least=1e-6, most=1e6, default=1.0)
    constant: bool = flag(default=False)
    weighted: bool = flag(default=False)

    @property
    def attained(self) -> float | None:  # type: ignore[override]
        """The two norms of `joint_l1` are not at their worst for the same rows.

        Searches find .76 of it for one feature, .97 for two.
        """
        return 0.7 if self.cost.pure else 0.99

    def fitting(self, records: Records) -> Records:
        """Rows and targets of the right shapes."""
        return rows_and_targets(self.name, self.bounds.dimension, records)

    @property
    def l1(self) -> float:
        """`joint_l1`."""
        size = self.moments.size
        return joint_l1(self.linear_weight, self.quadratic_weight, dimension=size)

    @property
    def l2(self) -> float:
        """`joint_l2`."""
        return joint_l2(self.linear_weight, self.quadratic_weight)

    @cached_property
    def mechanism(self) -> Additive:
        """The same noise on every number."""
        return row_noise(self.name, self.cost, self.size, l1=self.l1, l2=self.l2)

    @cached_property
    def moments(self) -> MomentSums:
        """What is summed."""
        return moment_sums(self, power=2 if self.cost.pure else 1)

    @property
    def summed(self) -> Sums:
        """The moments."""
        return self.moments.summed

    @classmethod
    def examples(cls) -> list[Self]:
        """Both sides of the free ride of the linear part, with a constant and without; pure ε."""
        whole, pure = Cost(epsilon=1.0, delta=0.05), Cost(epsilon=1.0)
        far = Bounds(center=np.array([0.3, -0.2, 0.1]), radius=2.0, target_center=0.5)
        plain = Bounds(center=np.zeros(2))
        return [
            cls(cost=whole.part(0.8), bounds=plain),
            cls(cost=whole, bounds=far, linear_weight=2.0, quadratic_weight=1.4),
            cls(cost=whole, bounds=plain, linear_weight=2.0, constant=True),
            cls(cost=whole, bounds=far, weighted=True),
            cls(cost=pure.part(0.75), bounds=Bounds(center=np.zeros(1))),
            cls(cost=pure, bounds=Bounds(center=np.zeros(2), radius=3.0), linear_weight=2.0),
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedMomentQuery(AdditiveQuery, name="regression_weighted_moments"):
    """Σ v (w1 xy, w2 svec xxᵀ): moments of rows with private weights v in [0, 1].

    A record's weight is moved into [0, `weight_bound`] and divided by it: that is v. Its row
    (x, 1)/√2 and its target are multiplied by √v and cut to the grid, towards 0, before products
    are formed.

    Privacy:
        As v ≤ 1, √v times a row of the unit ball lies in the unit ball, and √v times a target of
        [-1, 1] in [-1, 1]. A record of any weight is thus one of the records for which
        `joint_l2(w1, w2)` (C7) bounds how far replacing one of them moves the sums, and weights
        change together with the rest of a record. The bound is the same as without weights: a
        record of weight `weight_bound` is an unweighted one. It is a public number; a largest
        weight that was read off the records would not be.

    Attributes:
        bounds: the balls.
        linear_weight: w1.
        quadratic_weight: w2.
        weight_bound: public bound on the weights of records.
    """

    cost: Cost = part(lambda: Cost)
    bounds: Bounds = part(lambda: Bounds)
    linear_weight: float = number(least=1e-6, most=1e6, default=1.0)
    quadratic_weight: float = number(least=1e-6, most=1e6, default=1.0)
    weight_bound: float = number(least=1e-50, most=1e50)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism  # refuses a budget that it cannot keep, before anybody is asked

    def fitting(self, records: Records) -> Records:
        """Rows, targets and weights of the right shapes."""
        if len(records) < 3:
            raise ProtocolError(f"{self.name} needs a weight for every row")
        rows = rows_and_targets(self.name, self.bounds.dimension, records, most=_WITH_WEIGHTS)
        return (*rows, records[-1])

    @property
    def l2(self) -> float:
        """`joint_l2`."""
        return joint_l2(self.linear_weight, self.quadratic_weight)

    @cached_property
    def mechanism(self) -> Additive:
        """Gaussian noise."""
        return row_noise(self.name, self.cost, self.size, l2=self.l2)

    @cached_property
    def moments(self) -> MomentSums:
        """The sums without weights."""
        own = ("bounds", "linear_weight", "quadratic_weight")
        known = {name: getattr(self, name) for name in own}
        return MomentSums(**known, constant=True, weighted=False)

    def _block(self, records: Records) -> FloatArray:
        x, targets = self.moments.rows(records)
        factors = row_factors(records[2], self.weight_bound)
        return self.moments.sums_of(np.trunc(x * factors[:, None]), np.trunc(targets * factors))

    @property
    def summed(self) -> Sums:
        """The weighted sums."""
        sums = weighted_sums(self._block, self.moments.weights, dimension=self.bounds.dimension)
        return sums._replace(columns=(*sums.columns, 0))

    @classmethod
    def examples(cls) -> list[Self]:
        """Both sides of the free ride of the linear part; small and large bounds."""
        whole = Cost(epsilon=1.0, delta=0.05)
        far = Bounds(center=np.array([0.3, -0.2, 0.1]), radius=2.0, target_center=0.5)
        plain = Bounds(center=np.zeros(2))
        return [
            cls(cost=whole.part(0.8), bounds=plain, weight_bound=1.0),
            cls(cost=whole, bounds=far, linear_weight=2.0, quadratic_weight=1.4, weight_bound=0.1),
            cls(cost=whole, bounds=plain, linear_weight=2.0, weight_bound=50.0),
        ]


def row_factors(weights: FloatArray, bound: float) -> FloatArray:
    """√v, v the share of the public bound that a private weight is: in [0, 1] whatever it is."""
    return np.asarray(np.sqrt(np.clip(weights / bound, 0.0, 1.0)))


def moment_sums(query: Any, *, power: int = 1) -> MomentSums:
    """The sums of a query with the fields of `MomentQuery`."""
    own = ("bounds", "linear_weight", "quadratic_weight", "constant", "weighted")
    return MomentSums(**{name: getattr(query, name) for name in own}, power=power)


OUTSIDE = (
    "more than a few people lie outside feature_ranges or target_range: these are probably too "
    "small, or their categories are spelled differently from those of the data. What is outside "
    "was moved to the nearest end, and an unlisted category counts as none, which bends the result"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class OutsideCount(AdditiveQuery, name="regression_outside"):
    """How many records are marked, in their third column, as outside their ranges.

    Whoever reads a table moves rows and targets into their ranges, and marks records of which
    something was outside. No query sees numbers beyond their ranges.

    Privacy:
        A neighbor moves the count by 1.

    Attributes:
        features: width of the rows.
    """

    l1, l2 = 1.0, 1.0

    cost: Cost = part(lambda: Cost)
    features: int = whole(least=1, most=MOST_FEATURES)

    def fitting(self, records: Records) -> Records:
        """The marks of records of the right shapes."""
        rows_and_targets(self.name, self.features, records, most=_WITH_WEIGHTS)
        if len(records) < 3:
            raise ProtocolError(f"{self.name} needs a flag for every row")
        return (records[2] > 0,)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise on a count."""
        return row_noise(self.name, self.cost, 1, l1=self.l1, l2=self.l2)

    @property
    def summed(self) -> Sums:
        """Marked records."""

        def block(records: Records) -> IntArray:
            return np.array([np.count_nonzero(records[0])])

        return Sums((self.features, 0, 0), 1, 1, block, as_floats, MOST_ROWS)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure, and a part of a Gaussian budget."""
        costs = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.01)
        return [cls(cost=cost, features=2) for cost in costs]
