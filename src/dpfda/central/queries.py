"""Queries to a curator of curves: means, products and counts of coefficients in a public ball.

All queries are sums of integers. If one record is replaced, a sum of integers changes by exactly
the difference of the two records; in a sum of floats, the rounding errors of all records change
(C20).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Self, TypedDict

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.records import clip_rows
from dpfda.curves.matrices import Triangle
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.ellipsoid_laplace import l1_noise, l2_noise
from dpfda.mechanisms.exponential import Exponential
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import array, number, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Records, Sums

MOST_RECORDS = 1 << 27
_FINEST, _LARGEST_SUM = 40, 62  # largest numbers of bits: of one record, and of the sum of all


@dataclass(frozen=True, kw_only=True, eq=False)
class BallMean(AdditiveQuery, name="ball_mean"):
    """Mean of the residuals u about a public center, clipped to ‖u/a‖₂ ≤ R along public axes a.

    Privacy:
        Two points of the ball are at most 2R apart in its norm, so replacing a record changes the
        mean by at most 2R/n.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    center: FloatArray = vector("coefficients")
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-100)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise for the sensitivity 2R/n, along the axes of the ball."""
        return l2_noise(self.cost, sensitivity=2 * self.radius / self.n, axes=self.axes)

    @property
    def summed(self) -> Sums:
        """Sums of clipped residuals."""
        residuals = coefficients(self.center)
        return ball_mean(residuals, n=self.n, radius=self.radius, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """A ball about 0, and an ellipsoid about another center, with pure and Gaussian noise."""
        pure, gaussian = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        center, axes = np.array([0.3, -0.2, 0.1]), np.arange(1.0, 4.0) ** -0.5
        return [
            cls(cost=pure, n=4, center=np.zeros(2), axes=np.ones(2), radius=1.5),
            cls(cost=pure.part(0.3), n=5, center=center, axes=axes, radius=0.4),
            cls(cost=gaussian.part(0.2), n=5, center=center, axes=axes, radius=2.0),
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class BallProducts(AdditiveQuery, name="ball_products"):
    """Mean of uuᵀ over residuals u clipped to ‖u/a‖₂ ≤ R; the triangle j ≤ k is a vector.

    Privacy:
        Two products differ by at most √2 R² in the Frobenius norm with axes a_j a_k (C23).
    """

    block_rows: ClassVar[int] = (
        1 << 12
    )  # a record has J² products, and those of a block are in memory at once

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    center: FloatArray = vector("coefficients")
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-50, most=1e50)

    @cached_property
    def triangle(self) -> Triangle:
        """The order of the entries."""
        return Triangle(self.axes)

    @property
    def width(self) -> float:
        """√2 R², the largest distance between two products; entries are at most R²."""
        return math.sqrt(2) * self.radius**2

    @cached_property
    def mechanism(self) -> Additive:
        """Noise for the sensitivity √2 R²/n, along the axes of the entries."""
        return l2_noise(self.cost, sensitivity=self.width / self.n, axes=self.triangle.axes)

    @property
    def summed(self) -> Sums:
        """Sums of products of clipped residuals."""
        residuals = coefficients(self.center)

        def products(records: Records) -> FloatArray:
            return self.triangle.squares(clipped(residuals.of(records), self.radius, self.axes))

        return vector_mean(
            residuals.columns, products, n=self.n, reach=self.width, axes=self.triangle.axes
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure and Gaussian."""
        pure, gaussian = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        center, axes = np.array([0.3, -0.2, 0.1]), np.arange(1.0, 4.0) ** -0.5
        return [
            cls(cost=pure.part(0.65), n=5, center=center, axes=axes, radius=0.7),
            cls(cost=gaussian, n=5, center=center, axes=axes, radius=2.0),
        ]


class Surroundings(TypedDict):
    """The records of a query, and the axes along which vectors are measured."""

    unit: str
    n: int
    axes: FloatArray


class Place(Surroundings):
    """The records, the axes and the center that is subtracted from the coefficients."""

    center: FloatArray


_PLACE: Place = {"unit": "person", "n": 5, "center": np.zeros(2), "axes": np.ones(2)}


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusChoice(AdditiveQuery, name="radius_choice"):
    """The public radius that contains about `target` records, chosen by the exponential mechanism.

    Privacy:
        Replacing a record changes each count, and thus each score |count - target|, by at most 1.
    """

    linear: ClassVar[bool] = False

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    center: FloatArray = vector("coefficients")
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radii: FloatArray = vector("radii", least=1e-100)
    target: int = whole(least=0)
    prior: IntArray = array("whole", "radii", least=1)

    @cached_property
    def mechanism(self) -> Exponential:
        """The exponential mechanism with prior weights."""
        return Exponential(epsilon=self.cost.epsilon_spent, prior=tuple(map(int, self.prior)))

    @property
    def summed(self) -> Sums:
        """Scores of the radii, from the number of records within each."""
        residuals = coefficients(self.center)
        return radius_scores(residuals, radii=self.radii, target=self.target, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Four radii with a steep prior."""
        radii, prior = np.array([4.0, 2.0, 1.0, 0.5]), np.array([1, 2, 4, 8])
        return [cls(cost=Cost(epsilon=1.0), **_PLACE, target=4, radii=radii, prior=prior)]


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusCount(AdditiveQuery, name="radius_count"):
    """The number of records within a public radius.

    Privacy:
        Replacing a record changes the count by at most 1.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    center: FloatArray = vector("coefficients")
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-100)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise on one count."""
        return l2_noise(self.cost, sensitivity=1.0, axes=np.ones(1))

    @property
    def summed(self) -> Sums:
        """The number of records within the radius."""
        residuals = coefficients(self.center)
        return radius_count(residuals, radius=self.radius, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure noise, and a hundredth of a Gaussian budget."""
        shares = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.01)
        return [cls(cost=cost, **_PLACE, radius=1.0) for cost in shares]


class Residuals(NamedTuple):
    """A function from records to residuals about a public center, (n, J), and its input columns."""

    columns: tuple[int, ...]
    of: Callable[[Records], FloatArray]


def coefficients(center: FloatArray) -> Residuals:
    """The first J coefficients minus the center."""
    size = len(center)
    return Residuals((size,), lambda records: np.asarray(records[0][:, :size] - center))


def clipped(residuals: FloatArray, radius: float, axes: FloatArray) -> FloatArray:
    """Residuals divided by their axes, each clipped to the radius."""
    return clip_rows(residuals, radius, axes=axes) / axes


def ball_mean(residuals: Residuals, *, n: int, radius: float, axes: FloatArray) -> Sums:
    """The mean of residuals that are clipped to a ball."""

    def vectors(records: Records) -> FloatArray:
        return clipped(residuals.of(records), radius, axes)

    return vector_mean(residuals.columns, vectors, n=n, reach=radius, axes=axes)


def radius_count(residuals: Residuals, *, radius: float, axes: FloatArray) -> Sums:
    """The number of residuals in a ball."""

    def within(records: Records) -> IntArray:
        return np.array([np.sum(_lengths(residuals.of(records), axes) <= radius)])

    return Sums(residuals.columns, 1, 1, within, as_floats)


def radius_scores(
    residuals: Residuals, *, radii: FloatArray, target: int, axes: FloatArray
) -> Sums:
    """Scores |number of residuals within the radius - target| of the radii; low scores are good."""

    def within(records: Records) -> IntArray:
        # Residuals beyond the largest radius count as inside it. Otherwise, if no residual were
        # inside it, all radii would have the same score.
        lengths = np.sort(np.minimum(_lengths(residuals.of(records), axes), radii.max()))
        return np.asarray(np.searchsorted(lengths, radii, side="right"))

    def scores(totals: IntArray) -> FloatArray:
        return as_floats(np.abs(totals - target))

    return Sums(residuals.columns, len(radii), 1, within, scores)


def vector_mean(
    columns: tuple[int, ...],
    vectors: Callable[[Records], FloatArray],
    *,
    n: int,
    reach: float,
    axes: FloatArray,
) -> Sums:
    """The mean of one vector per record.

    Args:
        columns: the columns of a record.
        vectors: the vectors, divided by the axes.
        n: number of records.
        reach: bound on the absolute entries of a vector.
        axes: axes that multiply the mean.
    """
    return Sums(
        columns,
        len(axes),
        units(n),
        lambda records: integer_sums(vectors(records), reach, units(n)),
        lambda totals: mean_of(totals, reach, n) * axes,
    )


def as_floats(totals: IntArray) -> FloatArray:
    """Integer counts as floats."""
    return totals.astype(np.float64)


def independent_noise(cost: Cost, *, sensitivity: float, axes: FloatArray) -> Additive:
    """Independent noise on each number, for changes h with sensitivity S along the axes a.

    S bounds Σ|h_j|/a_j for pure ε and ‖h/a‖₂ for Gaussian noise.
    """
    make = l1_noise if cost.pure else l2_noise
    return make(cost, sensitivity=sensitivity, axes=axes)


def _lengths(residuals: FloatArray, axes: FloatArray) -> FloatArray:
    """‖residual/a‖₂ of each record; infinite if a square overflows."""
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(((residuals / axes) ** 2).sum(axis=1)))


def units(n: int) -> int:
    """The number of units in a record's bound, such that sums of n records stay below 2^62.

    Rounding changes the difference between the means of two neighboring data sets by at most one
    unit over n. A lattice step of Gaussian noise is at least 2^16/μ units below 2^22 records and at
    least 2^11/μ units for 2^27 records; for Laplace noise the numbers are 2^14/ε and 2^9/ε. The
    sensitivity includes two lattice steps for rounding (`additive.ROUNDING_STEPS`).

    Examples:
        >>> units(1000) == units(2**22 - 1) == 2**40, units(2**22) == 2**39, units(2**27) == 2**34
        (True, True, True)
    """
    return 1 << min(_FINEST, _LARGEST_SUM - n.bit_length())


def integer_sums(rows: FloatArray, bound: float, per_bound: int) -> IntArray:
    """Sums of entries in [-bound, bound], each rounded to bound/per_bound first."""
    whole = np.rint(np.clip(rows, -bound, bound) * (per_bound / bound)).astype(np.int64)
    return np.asarray(whole.sum(axis=0))


def mean_of(totals: IntArray, bound: float, n: int) -> FloatArray:
    """The mean of n rows whose integer sums these are."""
    return np.asarray(totals * (bound / (units(n) * n)))
