"""The one question behind this package: means, sizes and second moments of groups, jointly."""

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
        second: w of second moments.
        first_share: with pure ε, the share of the budget (in squares) of means and sizes.
        common: b² of what groups have in common; below 1, the more of what sets them apart.
    """

    second: float
    first_share: float
    common: float = 1.0

    def mixing(self, groups: int) -> tuple[float, float]:
        """The mixing of group sums: a times their differences, b times their mean.

        A person's vector in the mixed sums, a(e_g - 1/G) + b/G, is as long as e_g: 1.
        """
        if groups == 1:
            return 1.0, 1.0
        return math.sqrt((groups - self.common) / (groups - 1)), math.sqrt(self.common)

    @property
    def width(self) -> float:
        """The largest distance of two people's vectors, for residuals in the unit ball.

        In one group, with a = |u|², b = |v|² and c the cosine between them, the squared distance
        a + b - 2c√(ab) + w²(a² + b² - 2abc²) is largest for a = b = 1, at c = -1 or at
        c = -1/(2w²) where that is a cosine. In two groups it is as much (`size`).
        """
        return math.sqrt(self._alike)

    def size(self, groups: int) -> float:
        """κ of the constant that counts a group's members: as much as costs nothing.

        In two groups, whose vectors in the mixed sums have the product m = (b² - a²)/G, two
        people's vectors are 2 + 2|m| + 2κ² + 2w² apart at most, squared.
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
"""The difference of two groups' sums has 1.33 times the noise of one with ``differences``, instead
of twice; that loses where one group has less than a quarter of the other's members."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JointMoments(AdditiveQuery, name="joint_moments"):
    """Mean of (e_g ⊗ (u, κ), w (uuᵀ of the first J coefficients, |rest of u|²)) over people.

    u is a person's residual over R along the axes, clipped to the unit ball, and g their group.
    Second moments are pooled, or `separate` for each group.

    Privacy:
        Replacing a person, curve and group, moves the vector by at most `Weights.width`/n in ℓ2:
        2/n with w² = κ² = ½, exactly what a mean of u alone would cost. So it is where the groups'
        sums are mixed by a public matrix first (`Weights.mixing`). Pure ε: noise in blocks whose
        squared shares of ε add up to 1 (`EllipsoidLaplace`), one event.

    Attributes:
        radius: R.
        groups: how many; with one, nobody is asked for theirs.
        second: J, coefficients whose products are wanted.
        separate: products for each group.
        emphasis: what is to be exact: ``means``, their ``differences``, or ``covariances``.
    """

    block_rows: ClassVar[int] = 1 << 12  # J² numbers a person are held at once

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
        """Noise in blocks is made for any direction: a person cannot move all blocks at once."""
        return 0.75 if self.cost.pure else 0.99

    @property
    def weights(self) -> Weights:
        """The weights of the chosen emphasis."""
        return WEIGHTS[self.emphasis]

    @property
    def blocks(self) -> int:
        """How many tables of products."""
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
        """Noise for the width over n; with pure ε, in blocks."""
        sensitivity = self.weights.width / self.n
        return l2_noise(self.cost, sensitivity=sensitivity, axes=self.noise_axes)

    @cached_property
    def noise_axes(self) -> FloatArray:
        """Axes of the coefficients, and smaller ones for products, by their share of ε."""
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
        """Vectors of people by their coefficients and the number of their group."""
        # In a row's last place is the group's number, where there are several.
        columns = (len(self.center) + (self.groups > 1),)
        return self.summed_of(coefficients(self.center)._replace(columns=columns))

    def summed_of(self, residuals: Residuals) -> Sums:
        """Vectors of people with these residuals: sums of each group, then their mixed means."""

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
        """Joint vectors (..., size) with the groups' sums mixed, or `back` to those of each."""
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
        """One group and two, products pooled and apart, either emphasis; pure and Gaussian."""
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
