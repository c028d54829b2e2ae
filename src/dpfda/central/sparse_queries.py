"""Queries about sparse curves: few points per person, weighted by the density of their times.

A person with points (t_j, y_j) is a row of 2T numbers on a public grid of T points: the share of
the points near each grid point, and the share multiplied by the values (`sparse_rows`). A point
between two grid points is divided between them, as in linear interpolation. For a public curve c,

    z = mean_j (y_j - c(t_j)) φ(t_j)/f(t_j)

has expectation ∫(μ - c)φ, where f is the density of the times, so that no curve has to be
interpolated. An error in f affects only the difference between μ and c.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.functions import as_grid, spline_basis
from dpfda.central.queries import (
    MOST_RECORDS,
    Residuals,
    Surroundings,
    ball_mean,
    radius_count,
    radius_scores,
)
from dpfda.curves.matrices import row_product
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.ellipsoid_laplace import l2_noise
from dpfda.mechanisms.exponential import Exponential
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import Declared, array, number, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Records, Sums

MOST_POINTS = 2048
"""Largest number of grid points, because each data holder computes the functions on the grid."""
_LEAST_GAP = 1e-7  # smallest distance between grid points; closer ones are numerically equal


@dataclass(frozen=True, kw_only=True, eq=False)
class SparsePoints(Declared):
    """The public parameters of z: a curve c, a grid and a density of times.

    Attributes:
        center: coefficients of c.
        grid: T points from 0 to 1, the domain.
        density: f at these points; 1 for the uniform density.
    """

    center: FloatArray = vector("coefficients")
    grid: FloatArray = vector("points", least=0.0, most=1.0)
    density: FloatArray = vector("points", least=1e-30, most=1e30)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not max(2, len(self.center)) <= len(self.grid) <= MOST_POINTS:
            rule = f"as many points as coefficients, at least, and {MOST_POINTS} at most"
            raise InvalidParameter("grid", rule, len(self.grid))
        if self.grid[0] != 0 or self.grid[-1] != 1 or np.diff(self.grid).min() < _LEAST_GAP:
            rule = f"points from 0 to 1, each {_LEAST_GAP:g} at least above the last"
            raise InvalidParameter("grid", rule, "others")

    def require(self, axes: FloatArray) -> None:
        """Reject axes whose number differs from the number of coefficients."""
        if len(axes) != len(self.center):
            rule = f"of length {len(self.center)}, as the center of the points"
            raise InvalidParameter("axes", rule, f"length {len(axes)}")

    @cached_property
    def functions(self) -> FloatArray:
        """φ on the grid, (J, T)."""
        return spline_basis(as_grid(self.grid), size=len(self.center)).functions

    @cached_property
    def weighted(self) -> FloatArray:
        """φ/f, (T, J)."""
        return np.ascontiguousarray((self.functions / self.density).T)

    @property
    def residuals(self) -> Residuals:
        """z of each person, from a row of shares and values."""
        return Residuals((2 * len(self.grid),), self._residuals)

    @property
    def times(self) -> Residuals:
        """mean_j φ(t_j)/f(t_j) of each person, minus the center."""
        return Residuals((2 * len(self.grid),), self._times)

    def _residuals(self, records: Records) -> FloatArray:
        (rows,), points = records, len(self.grid)
        curve = self.center @ self.functions
        rest = rows[:, points : 2 * points] - rows[:, :points] * curve
        return row_product(np.ascontiguousarray(rest), self.weighted)

    def _times(self, records: Records) -> FloatArray:
        shares = np.ascontiguousarray(records[0][:, : len(self.grid)])
        return np.asarray(row_product(shares, self.weighted) - self.center)


class SparsePlace(Surroundings):
    """The records, the axes and the parameters of z in a query about sparse curves."""

    points: SparsePoints


def example_points(center: FloatArray) -> SparsePoints:
    """Four points, not equally likely, for the examples of queries."""
    grid, density = np.array([0.0, 0.3, 0.6, 1.0]), np.array([1.0, 1.5, 0.8, 0.6])
    return SparsePoints(center=center, grid=grid, density=density)


_PLACE: SparsePlace = {
    "unit": "person",
    "n": 5,
    "axes": np.arange(1.0, 3.0) ** -0.5,
    "points": example_points(np.array([0.2, -0.1])),
}
_COSTS = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05).part(0.5)


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseMean(AdditiveQuery, name="sparse_mean"):
    """Mean of z, clipped to ‖z/a‖₂ ≤ R.

    Privacy:
        As for `BallMean`, because z is clipped for any points of a person.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    points: SparsePoints = part(lambda: SparsePoints)
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-100)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.points.require(self.axes)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise for the sensitivity 2R/n, along the axes of the ball."""
        return l2_noise(self.cost, sensitivity=2 * self.radius / self.n, axes=self.axes)

    @property
    def summed(self) -> Sums:
        """Sums of clipped z."""
        residuals = self.points.residuals
        return ball_mean(residuals, n=self.n, radius=self.radius, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure and Gaussian."""
        return [cls(cost=cost, **_PLACE, radius=0.8) for cost in _COSTS]


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseTimes(AdditiveQuery, name="sparse_times"):
    """Mean of mean_j φ(t_j)/f(t_j) minus a public vector, which is its expectation if f is correct.

    Privacy:
        As for `BallMean`.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    points: SparsePoints = part(lambda: SparsePoints)
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-100)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.points.require(self.axes)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise for the sensitivity 2R/n, along the axes of the ball."""
        return l2_noise(self.cost, sensitivity=2 * self.radius / self.n, axes=self.axes)

    @property
    def summed(self) -> Sums:
        """Sums of clipped residuals of the times."""
        return ball_mean(self.points.times, n=self.n, radius=self.radius, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure and Gaussian."""
        return [cls(cost=cost, **_PLACE, radius=1.2) for cost in _COSTS]


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseRadiusChoice(AdditiveQuery, name="sparse_radius_choice"):
    """The public radius that contains about `target` of the z, by the exponential mechanism.

    Privacy:
        As for `RadiusChoice`.
    """

    linear: ClassVar[bool] = False

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    points: SparsePoints = part(lambda: SparsePoints)
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radii: FloatArray = vector("radii", least=1e-100)
    target: int = whole(least=0)
    prior: IntArray = array("whole", "radii", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.points.require(self.axes)

    @cached_property
    def mechanism(self) -> Exponential:
        """The exponential mechanism with prior weights."""
        return Exponential(epsilon=self.cost.epsilon_spent, prior=tuple(map(int, self.prior)))

    @property
    def summed(self) -> Sums:
        """Scores of the radii, from the number of people with z within each."""
        residuals = self.points.residuals
        return radius_scores(residuals, radii=self.radii, target=self.target, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Four radii with a steep prior."""
        radii, prior = np.array([4.0, 2.0, 1.0, 0.5]), np.array([1, 2, 4, 8])
        return [cls(cost=_COSTS[0], **_PLACE, target=4, radii=radii, prior=prior)]


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseRadiusCount(AdditiveQuery, name="sparse_radius_count"):
    """The number of z within a public radius.

    Privacy:
        As for `RadiusCount`.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    points: SparsePoints = part(lambda: SparsePoints)
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-100)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.points.require(self.axes)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise on one count."""
        return l2_noise(self.cost, sensitivity=1.0, axes=np.ones(1))

    @property
    def summed(self) -> Sums:
        """The number of people with z within the radius."""
        return radius_count(self.points.residuals, radius=self.radius, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Pure and Gaussian."""
        return [cls(cost=cost, **_PLACE, radius=1.0) for cost in _COSTS]


def sparse_rows(points: FloatArray, values: FloatArray, grid: FloatArray) -> FloatArray:
    """Convert points (T,) or (n, m) and values (n, m), NaN if missing, to rows (n, 2T).

    Examples:
        >>> points, values = np.array([[0.25, 1.0]]), np.array([[4.0, 2.0]])
        >>> sparse_rows(points, values, np.linspace(0, 1, 3)).tolist()
        [[0.25, 0.25, 0.5, 1.0, 1.0, 1.0]]
    """
    seen, size = ~np.isnan(values), len(grid)
    times = np.where(seen, np.broadcast_to(points, values.shape), grid[0])
    left = np.clip(np.searchsorted(grid, times, side="right") - 1, 0, size - 2)
    right_share = np.clip((times - grid[left]) / (grid[left + 1] - grid[left]), 0.0, 1.0)
    counted = seen / np.maximum(seen.sum(axis=1, keepdims=True), 1)
    first = (
        left + 2 * size * np.arange(len(values))[:, None]
    )  # index of the left grid point's share
    rows = np.zeros(2 * size * len(values))
    for place, share in ((first, 1 - right_share), (first + 1, right_share)):
        np.add.at(rows, place, counted * share)
        np.add.at(rows, place + size, counted * share * np.where(seen, values, 0.0))
    return rows.reshape(len(values), -1)
