"""The query of this package: means, sizes and second moments of groups, released jointly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.queries import (
    MOST_RECORDS,
    Residuals,
    clipped,
    coefficients,
    integer_sums,
    mean_of,
    units,
)
from dpfda.curves.matrices import Triangle
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.ellipsoid_laplace import l2_noise, total_cost
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import choice, flag, number, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Records, Sums


class Weights(NamedTuple):
    """Weights of the parts of the joint vector.

    Attributes:
        second: weight w of second moments.
        first_share: with pure ε, the share of the squared budget for means and sizes.
        common: squared weight b² of the mean of all groups; a value below 1 gives more weight to
            the differences between groups.
    """

    second: float
    first_share: float
    common: float = 1.0

    def mixing(self, groups: int) -> tuple[float, float]:
        """The factors (a, b) of the mixing: a multiplies differences of group sums, b their mean.

        The vector of a person in the mixed sums, a(e_g - 1/G) + b/G, has norm 1, like e_g.
        """
        if groups == 1:
            return 1.0, 1.0
        return math.sqrt((groups - self.common) / (groups - 1)), math.sqrt(self.common)

    @property
    def width(self) -> float:
        """The largest distance between the vectors of two people, for residuals in the unit ball.

        For two people in one group, with a = |u|², b = |v|² and the cosine c between u and v, the
        squared distance is a + b - 2c√(ab) + w²(a² + b² - 2abc²). It is largest for a = b = 1 and
        c = -1, or c = -1/(2w²) if this is a cosine. For two groups the maximum is the same by the
        choice of `size`.
        """
        return math.sqrt(self._alike)

    def size(self, groups: int) -> float:
        """The weight κ of the counts of members: the largest one that does not increase `width`.

        For two people in different groups, the group vectors in the mixed sums have the inner
        product m = (b² - a²)/G, and the squared distance is at most 2 + 2|m| + 2κ² + 2w².
        """
        own, common = self.mixing(groups)
        product = abs(common**2 - own**2) / groups
        return math.sqrt(self._alike / 2 - 1 - product - self.second**2)

    @property
    def _alike(self) -> float:
        w2 = self.second**2
        return 4.0 if 2 * w2 <= 1 else 2 + 2 * w2 + 1 / (2 * w2)


WEIGHTS = {
    "means": Weights(math.sqrt(0.5), 0.81),
    "covariances": Weights(1.0, 0.36),
    "differences": Weights(math.sqrt(0.35), 0.81, common=0.5),
}
"""With ``differences``, the noise of the difference of two group sums is 1.33 times that of one
sum, instead of twice. This is a disadvantage if one group has less than a quarter of the members of
the other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JointMoments(AdditiveQuery, name="joint_moments"):
    """Mean of (e_g ⊗ (u, κ), w (uuᵀ of the first J coefficients, |rest of u|²)) over people.

    u is the residual of a person along the axes, divided by R and clipped to the unit ball; g is
    the group of the person. Second moments are pooled, or `separate` for each group.

    Privacy:
        Replacing a person, including the group, changes the vector by at most `Weights.width`/n in
        ℓ2. With w² = κ² = ½ this is 2/n, the same as for the mean of u alone. The bound also holds
        if the sums of the groups are first mixed by a public matrix (`Weights.mixing`). For pure ε,
        the noise is in blocks whose squared shares of ε add up to 1 (`EllipsoidLaplace`); it is one
        event.

    Attributes:
        radius: R.
        groups: number of groups; with one, records have no group.
        second: J, the number of coefficients with products.
        separate: whether each group has its own products.
        emphasis: the most accurate part: ``means``, their ``differences``, or ``covariances``.
    """

    block_rows: ClassVar[int] = 1 << 12  # a record has J² products

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    center: FloatArray = vector("coefficients")
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-50, most=1e50)
    groups: int = whole(most=1 << 10)
    second: int = whole(most=1 << 7)
    separate: bool = flag()
    emphasis: str = choice(*WEIGHTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.second > len(self.center):
            raise InvalidParameter("second", f"{len(self.center)} at most", self.second)

    @property
    def attained(self) -> float | None:  # type: ignore[override]
        """Below 1 for pure ε, because one person cannot change all blocks of noise maximally."""
        return 0.75 if self.cost.pure else 0.99

    @property
    def weights(self) -> Weights:
        """The weights of the chosen emphasis."""
        return WEIGHTS[self.emphasis]

    @property
    def blocks(self) -> int:
        """Number of tables of products."""
        return self.groups if self.separate else 1

    @cached_property
    def triangle(self) -> Triangle:
        """The order of the products."""
        return Triangle(self.axes[: self.second])

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of the table of means and sizes, and of that of products and remainders."""
        firsts = len(self.center) + (self.groups > 1)
        return (self.groups, firsts), (self.blocks, len(self.triangle.axes) + 1)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise for the sensitivity `width`/n; with pure ε it is in blocks."""
        sensitivity = self.weights.width / self.n
        return l2_noise(self.cost, sensitivity=sensitivity, axes=self.noise_axes)

    @cached_property
    def noise_axes(self) -> FloatArray:
        """Axes of the coefficients, and axes of the products, scaled by their share of ε."""
        least = float(self.axes.min()) ** 2
        one = np.append(self.axes, [1.0] * (self.groups > 1))
        two = np.append(self.triangle.axes, least)
        first, second = np.tile(one, self.groups), np.tile(two, self.blocks)
        share = self.weights.first_share
        odds = (1 - share) / share * total_cost(first) / total_cost(second)
        return np.concatenate([first, odds * second])

    @cached_property
    def part_weights(self) -> FloatArray:
        """1 for means, κ for sizes, w for second moments, along the joint vector."""
        one = np.append(
            np.ones(len(self.axes)), [self.weights.size(self.groups)] * (self.groups > 1)
        )
        two = np.full(self.shapes[1], self.weights.second)
        return np.concatenate([np.tile(one, self.groups), two.ravel()])

    @property
    def summed(self) -> Sums:
        """Sums of the vectors of people, from their coefficients and group numbers."""
        # If there are several groups, the last entry of a row is the group number.
        columns = (len(self.center) + (self.groups > 1),)
        return self.summed_of(coefficients(self.center)._replace(columns=columns))

    def summed_of(self, residuals: Residuals) -> Sums:
        """Sums of the vectors of people with these residuals, for each group, and mixed means."""

        def block(records: Records) -> IntArray:
            u = clipped(residuals.of(records), self.radius, self.axes) / self.radius
            group = np.zeros(len(u), dtype=np.int64)
            if self.groups > 1:
                group = np.rint(np.clip(records[0][:, -1], 0, self.groups - 1)).astype(np.int64)
                u = np.hstack([u, np.full((len(u), 1), self.weights.size(self.groups))])
            coefficients = u[:, : len(self.center)]
            rest = (coefficients[:, self.second :] ** 2).sum(axis=1, keepdims=True)
            products = np.hstack([self.triangle.squares(coefficients[:, : self.second]), rest])
            products *= self.weights.second
            members = [group == one for one in range(self.groups)]
            tables = [u[own] for own in members]
            tables += [products[own] for own in members] if self.separate else [products]
            return np.concatenate([integer_sums(table, 1.0, units(self.n)) for table in tables])

        def statistic(totals: IntArray) -> FloatArray:
            return self.mixed(mean_of(totals, 1.0, self.n)) * self.noise_axes

        return Sums(residuals.columns, len(self.noise_axes), units(self.n), block, statistic)

    def mixed(self, vectors: FloatArray, *, back: bool = False) -> FloatArray:
        """Joint vectors (..., size) with mixed group sums; with `back`, undo the mixing."""
        own, common = self.weights.mixing(self.groups)
        if back:
            own, common = 1 / own, 1 / common
        (groups, width), many = self.shapes[0], len(self.center)
        found = np.array(vectors, dtype=np.float64)
        table = found[..., : groups * width].reshape(*found.shape[:-1], groups, width)
        sums = table[..., :many]
        mean = sums.mean(axis=-2, keepdims=True)
        table[..., :many] = own * (sums - mean) + common * mean
        found[..., : groups * width] = table.reshape(*found.shape[:-1], groups * width)
        return found

    @classmethod
    def examples(cls) -> list[Self]:
        """One to three groups, pooled and separate products, each emphasis, pure and Gaussian."""
        pure, gaussian = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        center, axes = np.array([0.3, -0.2, 0.1]), np.arange(1.0, 4.0) ** -0.5
        return [
            cls(
                cost=cost.part(0.75),
                n=5,
                center=center,
                axes=axes,
                radius=0.7,
                groups=groups,
                second=2,
                separate=separate,
                emphasis=emphasis,
            )
            for cost in (pure, gaussian)
            for groups, separate, emphasis in (
                (1, False, "means"),
                (2, True, "means"),
                (2, False, "covariances"),
                (2, True, "differences"),
                (3, True, "differences"),
            )
        ]
