"""Queries about rows and targets, all integer sums plus noise.

Least-squares methods query the moments Σ xy and Σ xxᵀ. Before a regression, a count shows how many
rows are outside their public ranges.
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

_ROWS = 256  # smallest number of rows of a block
_WITH_WEIGHTS = 4  # columns: rows, targets, marks of rows outside their ranges, weights


def row_noise(
    name: str, cost: Cost, size: int, *, l1: float | None = None, l2: float | None = None
) -> Additive:
    """Noise of equal scale on every number; an error if the query has no noise of this kind.

    Args:
        name: name of the query.
        cost: the budget.
        size: how many numbers.
        l1: ℓ1 sensitivity to replacing one row, for Laplace noise.
        l2: Euclidean sensitivity, for Gaussian noise if the budget has a δ.
    """
    if cost.pure:
        if l1 is None:
            raise InvalidParameter("delta", f"above 0 for {name}", cost.delta)
        return l1_noise(cost, sensitivity=l1, axes=np.ones(size))
    if l2 is None:
        raise InvalidParameter("delta", f"0 for {name}", cost.delta)
    return l2_noise(cost, sensitivity=l2, axes=np.ones(size))


def rows_and_targets(name: str, dimension: int, records: Records, *, most: int = 3) -> Records:
    """Rows and targets; records of other shapes are rejected (shapes are public).

    A third column with marks of rows outside their ranges is only for `OutsideCount`. Weights of
    rows, the last of `most` columns, are only for `WeightedMomentQuery`.
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
    """A weighted sum over all rows, exact in integers until noise is added.

    Args:
        block: exact integer sums over rows and targets of finite numbers.
        weights: the factor of each sum; sensitivities apply to the scaled sums.
        dimension: width of the rows.
    """

    def blocks(records: Records) -> IntArray:
        # Blocks that fit the processor's cache make the pass little slower than reading the rows.
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
        quadratic_sigma: standard deviation of the noise on the diagonal of `quadratic`.
        quadratic_variance: variances of the noise on all entries of `quadratic`, (p, p).
    """

    linear: FloatArray
    quadratic: FloatArray
    linear_sigma: float
    quadratic_sigma: float
    quadratic_variance: FloatArray

    def per_weight(self) -> NoisyMoments:
        """Means divided by the mean weight, which is twice the last diagonal entry for (x, 1)/√2.

        The solution of M w = b does not change. If the mean weight is below the standard deviation
        of its noise, that deviation is used instead.
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
    """Σ (w1 xy, w2 xxᵀ), with x and y clipped to given balls and divided by their radii.

    Attributes:
        bounds: the balls.
        linear_weight, quadratic_weight: w1, w2.
        constant: append a constant feature, so that the line has an intercept. The row becomes
            (x, 1)/√2, which is also in the unit ball.
        weighted: scale each target by the same factor as its clipped row. Distant rows then have
            less weight, and slopes are those of unclipped rows.
        power: entries off the diagonal, which occur twice in the matrix, have weight √2^power.
    """

    bounds: Bounds
    linear_weight: float
    quadratic_weight: float
    constant: bool
    weighted: bool
    power: int = 1

    @property
    def size(self) -> int:
        """Length of x, including the constant."""
        return self.bounds.dimension + self.constant

    @cached_property
    def weights(self) -> FloatArray:
        """Factors from grid steps to weighted units."""
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
    """Σ (w1 xy, w2 svec xxᵀ), with x and y clipped to given balls: `MomentSums`.

    Privacy:
        One vector of Euclidean sensitivity `joint_l2(w1, w2)` (C7). For pure ε, the ℓ1 sensitivity
        is over all D² entries of xxᵀ, so entries off the diagonal count twice: `joint_l1(w1, w2)`.

    Attributes:
        bounds: the balls.
        linear_weight: w1.
        quadratic_weight: w2.
        constant: append a constant feature, so that the line has an intercept.
        weighted: scale each target by the same factor as its row.
    """

    cost: Cost = part(lambda: Cost)
    bounds: Bounds = part(lambda: Bounds)
    linear_weight: float = number(least=1e-6, most=1e6, default=1.0)
    quadratic_weight: float = number(least=1e-6, most=1e6, default=1.0)
    constant: bool = flag(default=False)
    weighted: bool = flag(default=False)

    @property
    def attained(self) -> float | None:  # type: ignore[override]
        """Below 1 for pure ε, because the two norms in `joint_l1` have maxima at different rows.

        Searches attain .76 of `joint_l1` for one feature and .97 for two.
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
        """Noise of equal scale on every number."""
        return row_noise(self.name, self.cost, self.size, l1=self.l1, l2=self.l2)

    @cached_property
    def moments(self) -> MomentSums:
        """The sums of moments."""
        return moment_sums(self, power=2 if self.cost.pure else 1)

    @property
    def summed(self) -> Sums:
        """The moments."""
        return self.moments.summed

    @classmethod
    def examples(cls) -> list[Self]:
        """Small and large weights, with a constant and without, pure and Gaussian."""
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

    v is the weight of a record, clipped to [0, `weight_bound`] and divided by `weight_bound`. The
    row (x, 1)/√2 and the target are multiplied by √v and truncated to the grid before products are
    formed.

    Privacy:
        Because v ≤ 1, √v times a row of the unit ball is in the unit ball, and √v times a target in
        [-1, 1] is in [-1, 1]. The sensitivity `joint_l2(w1, w2)` (C7) therefore also holds for
        weighted records, if a record is replaced together with its weight. It is the same as
        without weights, because a record of weight `weight_bound` is an unweighted one.
        `weight_bound` must be public; the largest weight of the data is not.

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
        _ = self.mechanism  # rejects invalid budgets

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
        """Small and large weights of moments; small and large bounds on the weights of rows."""
        whole = Cost(epsilon=1.0, delta=0.05)
        far = Bounds(center=np.array([0.3, -0.2, 0.1]), radius=2.0, target_center=0.5)
        plain = Bounds(center=np.zeros(2))
        return [
            cls(cost=whole.part(0.8), bounds=plain, weight_bound=1.0),
            cls(cost=whole, bounds=far, linear_weight=2.0, quadratic_weight=1.4, weight_bound=0.1),
            cls(cost=whole, bounds=plain, linear_weight=2.0, weight_bound=50.0),
        ]


def row_factors(weights: FloatArray, bound: float) -> FloatArray:
    """√v, where v is a private weight divided by its public bound and clipped to [0, 1]."""
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
    """The number of records that their third column marks as outside their ranges.

    When a table is read, rows and targets are moved into their ranges, and records with a number
    outside its range are marked. Queries therefore never see numbers outside their ranges.

    Privacy:
        Replacing a record changes the count by at most 1.

    Attributes:
        features: width of the rows.
    """

    l1, l2 = 1.0, 1.0

    cost: Cost = part(lambda: Cost)
    features: int = whole(least=1, most=MOST_FEATURES)

    def fitting(self, records: Records) -> Records:
        """The marks, if the records have the right shapes."""
        rows_and_targets(self.name, self.features, records, most=_WITH_WEIGHTS)
        if len(records) < 3:
            raise ProtocolError(f"{self.name} needs a flag for every row")
        return (records[2] > 0,)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise on one count."""
        return row_noise(self.name, self.cost, 1, l1=self.l1, l2=self.l2)

    @property
    def summed(self) -> Sums:
        """The number of marked records."""

        def block(records: Records) -> IntArray:
            return np.array([np.count_nonzero(records[0])])

        return Sums((self.features, 0, 0), 1, 1, block, as_floats, MOST_ROWS)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure noise, and a part of a Gaussian budget."""
        costs = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.01)
        return [cls(cost=cost, features=2) for cost in costs]
