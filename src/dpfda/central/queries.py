"""Queries to a curator of curves: means, products and counts of coefficients in a public ball.

All are sums of integers: a sum of floats depends on every record's rounding errors, a sum of
integers changes by one record's difference alone (C20).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Self, TypedDict

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.records import clip_rows
from dpfda.curves.matrices import Triangle
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.ellipsoid_laplace import l1_noise, l2_noise
from dpfda.mechanisms.exponential import Exponential
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import array, number, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Records

MOST_RECORDS = 1 << 27
_FINEST, _LARGEST_SUM = 40, 62  # bits: of a record's bound, and of the sum of all, which has fewer


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedQuery(AdditiveQuery):
    """A query whose noise depends on how many records are asked.

    It says how far a replaced record moves its statistic (`sensitivity`) along which axes
    (`noise_axes`), in ‖h/a‖₂; where noise is `independent`, in Σ|h_j|/a_j for pure ε.

    Attributes:
        cost: what it may spend.
        n: how many records.
    """

    independent: ClassVar[bool] = False

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)

    @property
    def announced(self) -> int:
        """n."""
        return self.n

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Sensitivity of the statistic, in the norm of the noise."""

    @property
    def noise_axes(self) -> FloatArray:
        """Shape of the noise."""
        return np.ones(self.size)

    @cached_property
    def noise(self) -> Additive:
        """Calibrated to sensitivity and axes."""
        make = l1_noise if self.independent and self.cost.pure else l2_noise
        return make(self.cost, sensitivity=self.sensitivity, axes=self.noise_axes)

    @property
    def mechanism(self) -> Mechanism:
        """Noise is all."""
        return self.noise


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanQuery(CountedQuery):
    """Mean of one vector a record, each from a public body, summed in `units` of its reach."""

    @property
    @abstractmethod
    def body(self) -> Body:
        """The set of possible vectors."""

    @abstractmethod
    def vectors(self, records: Records) -> FloatArray:
        """One row a record, over the axes."""

    @property
    def size(self) -> int:
        """The number of axes."""
        return len(self.body.axes)

    @property
    def noise_axes(self) -> FloatArray:
        """The axes of the body."""
        return self.body.axes

    @property
    def sensitivity(self) -> float:
        """The width of the body over n."""
        return self.body.width / self.n

    @property
    def largest(self) -> int:
        """One bound, in units."""
        return units(self.n)

    def block(self, records: Records) -> IntArray:
        """Vectors in whole units."""
        return integer_sums(self.vectors(records), self.body.reach, units(self.n))

    def statistic(self, totals: IntArray) -> FloatArray:
        """The mean."""
        return mean_of(totals, self.body.reach, self.n) * self.noise_axes


class Body(NamedTuple):
    """The set of scaled vectors: entries at most `reach`, distances at most `width`."""

    reach: float
    width: float
    axes: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class BallQuery(CountedQuery):
    """Residuals of the first J coefficients about a public center, measured along public axes."""

    center: FloatArray = vector("coefficients")
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)

    @property
    def columns(self) -> tuple[int, ...]:
        """Coefficients."""
        return (len(self.center),)

    def residuals(self, rows: FloatArray) -> FloatArray:
        """The first J coefficients minus the center."""
        return np.asarray(rows[:, : len(self.center)] - self.center)

    def clipped(self, rows: FloatArray, radius: float) -> FloatArray:
        """Residuals over their axes, each clipped to the radius."""
        return clip_rows(self.residuals(rows), radius, axes=self.axes) / self.axes

    def distances(self, rows: FloatArray) -> FloatArray:
        """‖residual/a‖₂ of each record; infinite where a square is beyond all floats."""
        with np.errstate(over="ignore"):
            return np.asarray(np.sqrt(((self.residuals(rows) / self.axes) ** 2).sum(axis=1)))


@dataclass(frozen=True, kw_only=True, eq=False)
class BallMean(BallQuery, MeanQuery, name="ball_mean"):
    """Mean residual, each clipped to ‖u/a‖₂ ≤ R.

    Privacy:
        Two points of the ball are at most 2R apart in its norm; the mean moves by 2R/n.
    """

    radius: float = number(least=1e-100)

    @property
    def body(self) -> Body:
        """The ball."""
        return Body(self.radius, 2 * self.radius, self.axes)

    def vectors(self, records: Records) -> FloatArray:
        """Clipped residuals."""
        return self.clipped(records[0], self.radius)

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
class BallProducts(BallQuery, MeanQuery, name="ball_products"):
    """Mean of uuᵀ over residuals u clipped to ‖u/a‖₂ ≤ R: the triangle j ≤ k, as a vector.

    Privacy:
        Two products differ by at most √2 R² in the Frobenius norm with axes a_j a_k (C23).
    """

    block_rows: ClassVar[int] = 1 << 12  # J² numbers a record are held at once

    radius: float = number(least=1e-50, most=1e50)

    @cached_property
    def triangle(self) -> Triangle:
        """The order of the entries."""
        return Triangle(self.axes)

    @property
    def body(self) -> Body:
        """√2 R² is more than any entry (R²), and the width."""
        width = math.sqrt(2) * self.radius**2
        return Body(width, width, self.triangle.axes)

    def vectors(self, records: Records) -> FloatArray:
        """Products."""
        return self.triangle.squares(self.clipped(records[0], self.radius))

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure and Gaussian."""
        pure, gaussian = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        center, axes = np.array([0.3, -0.2, 0.1]), np.arange(1.0, 4.0) ** -0.5
        return [
            cls(cost=pure.part(0.65), n=5, center=center, axes=axes, radius=0.7),
            cls(cost=gaussian, n=5, center=center, axes=axes, radius=2.0),
        ]


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


class Place(TypedDict):
    """The records of a query and its coordinates: unit, n, center and axes."""

    unit: str
    n: int
    center: FloatArray
    axes: FloatArray


_PLACE: Place = {"unit": "person", "n": 5, "center": np.zeros(2), "axes": np.ones(2)}


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusChoice(BallQuery, name="radius_choice"):
    """Which of some public radii leaves about `target` records inside: an exponential mechanism.

    Privacy:
        A record moves each count, and so each score |count - target|, by at most 1.
    """

    linear: ClassVar[bool] = False
    sensitivity = 1.0

    radii: FloatArray = vector("radii", least=1e-100)
    target: int = whole(least=0)
    prior: IntArray = array("whole", "radii", least=1)

    @cached_property
    def mechanism(self) -> Mechanism:
        """A choice with prior odds."""
        return Exponential(epsilon=self.cost.epsilon_spent, prior=tuple(map(int, self.prior)))

    @property
    def size(self) -> int:
        """One count a radius."""
        return len(self.radii)

    @property
    def largest(self) -> int:
        """A record counts once."""
        return 1

    def block(self, records: Records) -> IntArray:
        """How many records lie within each radius; the largest holds those beyond it too.

        All of them are clipped to it: where it held nobody, all radii would be as good.
        """
        ordered = np.sort(np.minimum(self.distances(records[0]), self.radii.max()))
        return np.asarray(np.searchsorted(ordered, self.radii, side="right"))

    def statistic(self, totals: IntArray) -> FloatArray:
        """Scores, low is good."""
        return np.abs(totals - self.target).astype(np.float64)

    @classmethod
    def examples(cls) -> list[Self]:
        """Four radii, a steep prior."""
        radii, prior = np.array([4.0, 2.0, 1.0, 0.5]), np.array([1, 2, 4, 8])
        return [cls(cost=Cost(epsilon=1.0), **_PLACE, target=4, radii=radii, prior=prior)]


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusCount(BallQuery, name="radius_count"):
    """How many records lie within a public radius.

    Privacy:
        A neighbor moves the count by 1.
    """

    sensitivity, size, largest = 1.0, 1, 1

    radius: float = number(least=1e-100)

    def block(self, records: Records) -> IntArray:
        """The count."""
        return np.array([np.sum(self.distances(records[0]) <= self.radius)])

    def statistic(self, totals: IntArray) -> FloatArray:
        """The statistic as a float."""
        return totals.astype(np.float64)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure, and a hundredth of a Gaussian budget."""
        shares = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.01)
        return [cls(cost=cost, **_PLACE, radius=1.0) for cost in shares]
