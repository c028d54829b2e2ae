"""Queries to a curator of curves: means, products and counts of coefficients in a public ball.

All are sums of integers: a sum of floats depends on every record's rounding errors, a sum of
integers changes by one record's difference alone (C20).
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
_FINEST, _LARGEST_SUM = 40, 62  # bits: of a record's bound, and of the sum of all, which has fewer


@dataclass(frozen=True, kw_only=True, eq=False)
class BallMean(AdditiveQuery, name="ball_mean"):
    """Mean residual about a public center, each clipped to ‖u/a‖₂ ≤ R along public axes a.

    Privacy:
        Two points of the ball are at most 2R apart in its norm; the mean moves by 2R/n.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    center: FloatArray = vector("coefficients")
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-100)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise for the width of the ball over n, along its axes."""
        return l2_noise(self.cost, sensitivity=2 * self.radius / self.n, axes=self.axes)

    @property
    def summed(self) -> Sums:
        """Clipped residuals."""
        residuals = coefficients(self.center)
        return ball_mean(residuals, n=self.n, radius=self.radius, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """About 0 in a round ball, and about a point in a thin one, pure and Gaussian."""
        pure, gaussian = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        center, axes = np.array([0.3, -0.2, 0.1]), np.arange(1.0, 4.0) ** -0.5
        return [
            cls(cost=pure, n=4, center=np.zeros(2), axes=np.ones(2), radius=1.5),
            cls(cost=pure.part(0.3), n=5, center=center, axes=axes, radius=0.4),
            cls(cost=gaussian.part(0.2), n=5, center=center, axes=axes, radius=2.0),
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class BallProducts(AdditiveQuery, name="ball_products"):
    """Mean of uuᵀ over residuals u clipped to ‖u/a‖₂ ≤ R: the triangle j ≤ k, as a vector.

    Privacy:
        Two products differ by at most √2 R² in the Frobenius norm with axes a_j a_k (C23).
    """

    block_rows: ClassVar[int] = 1 << 12  # J² numbers a record are held at once

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
        """√2 R², the distance of two products; more than any entry of one, R²."""
        return math.sqrt(2) * self.radius**2

    @cached_property
    def mechanism(self) -> Additive:
        """Noise for the width over n, along the axes of the entries."""
        return l2_noise(self.cost, sensitivity=self.width / self.n, axes=self.triangle.axes)

    @property
    def summed(self) -> Sums:
        """Products of clipped residuals."""
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
    """The records of a query, and the axes that vectors are measured along."""

    unit: str
    n: int
    axes: FloatArray


class Place(Surroundings):
    """The same, and the center that coefficients are taken about."""

    center: FloatArray


_PLACE: Place = {"unit": "person", "n": 5, "center": np.zeros(2), "axes": np.ones(2)}


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusChoice(AdditiveQuery, name="radius_choice"):
    """Which of some public radii leaves about `target` records inside: an exponential mechanism.

    Privacy:
        A record moves each count, and so each score |count - target|, by at most 1.
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
        """A choice with prior odds."""
        return Exponential(epsilon=self.cost.epsilon_spent, prior=tuple(map(int, self.prior)))

    @property
    def summed(self) -> Sums:
        """Records within each radius."""
        residuals = coefficients(self.center)
        return radius_scores(residuals, radii=self.radii, target=self.target, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Four radii, a steep prior."""
        radii, prior = np.array([4.0, 2.0, 1.0, 0.5]), np.array([1, 2, 4, 8])
        return [cls(cost=Cost(epsilon=1.0), **_PLACE, target=4, radii=radii, prior=prior)]


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusCount(AdditiveQuery, name="radius_count"):
    """How many records lie within a public radius.

    Privacy:
        A neighbor moves the count by 1.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    center: FloatArray = vector("coefficients")
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-100)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise on a count."""
        return l2_noise(self.cost, sensitivity=1.0, axes=np.ones(1))

    @property
    def summed(self) -> Sums:
        """Records within the radius."""
        residuals = coefficients(self.center)
        return radius_count(residuals, radius=self.radius, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure, and a hundredth of a Gaussian budget."""
        shares = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.01)
        return [cls(cost=cost, **_PLACE, radius=1.0) for cost in shares]


class Residuals(NamedTuple):
    """Numbers of each record about a public center, (n, J), and the columns they are read from."""

    columns: tuple[int, ...]
    of: Callable[[Records], FloatArray]


def coefficients(center: FloatArray) -> Residuals:
    """The first J coefficients minus the center."""
    size = len(center)
    return Residuals((size,), lambda records: np.asarray(records[0][:, :size] - center))


def clipped(residuals: FloatArray, radius: float, axes: FloatArray) -> FloatArray:
    """Residuals over their axes, each clipped to the radius."""
    return clip_rows(residuals, radius, axes=axes) / axes


def ball_mean(residuals: Residuals, *, n: int, radius: float, axes: FloatArray) -> Sums:
    """The mean of residuals that are clipped to a ball."""

    def vectors(records: Records) -> FloatArray:
        return clipped(residuals.of(records), radius, axes)

    return vector_mean(residuals.columns, vectors, n=n, reach=radius, axes=axes)


def radius_count(residuals: Residuals, *, radius: float, axes: FloatArray) -> Sums:
    """How many residuals lie in a ball."""

    def within(records: Records) -> IntArray:
        return np.array([np.sum(_lengths(residuals.of(records), axes) <= radius)])

    return Sums(residuals.columns, 1, 1, within, as_floats)


def radius_scores(
    residuals: Residuals, *, radii: FloatArray, target: int, axes: FloatArray
) -> Sums:
    """How far from a target the number of residuals within each radius is: low is good."""

    def within(records: Records) -> IntArray:
        # The largest radius holds those beyond it too, which are clipped to it: where it held
        # nobody, all radii would be as good.
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
    """The mean of one vector a record, over the axes, with entries of at most `reach`."""
    return Sums(
        columns,
        len(axes),
        units(n),
        lambda records: integer_sums(vectors(records), reach, units(n)),
        lambda totals: mean_of(totals, reach, n) * axes,
    )


def as_floats(totals: IntArray) -> FloatArray:
    """Counts as they are."""
    return totals.astype(np.float64)


def independent_noise(cost: Cost, *, sensitivity: float, axes: FloatArray) -> Additive:
    """Noise of its own on each number: for Σ|h_j|/a_j ≤ S with pure ε, for ‖h/a‖₂ ≤ S with a δ."""
    make = l1_noise if cost.pure else l2_noise
    return make(cost, sensitivity=sensitivity, axes=axes)


def _lengths(residuals: FloatArray, axes: FloatArray) -> FloatArray:
    """‖residual/a‖₂ of each record; infinite where a square is beyond all floats."""
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(((residuals / axes) ** 2).sum(axis=1)))


def units(n: int) -> int:
    """The number of units in a record's bound, such that sums of n records stay below 2^62.

    Rounding two records moves their mean apart by a unit over n at most. A step of the lattice of
    Gaussian noise is 2^16/μ such units or more below 2^22 records and 2^11/μ for 2^27, one of
    Laplace noise 2^14/ε and 2^9/ε: a release is charged for two (`additive.ROUNDING_STEPS`).

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
