"""Queries about points: counts in each cell of a public box, and means near a place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.queries import MOST_RECORDS, as_floats, independent_noise, units
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import array, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Records, Sums

Box = tuple[tuple[float, float], ...]
_MOST_WORK = 1 << 17  # numbers in memory at once while cells are compared; they fit into a cache
_LEAST_FEATURE = 1e-200  # smaller features are rounded to 0
_LEAST_SIDE = 1e-50  # shortest side of a box: functions on it and their squares are normal floats
_LEAST_WIDTH = 1e-90  # smallest distance of features in noise axes: lattice steps are normal floats


@dataclass(frozen=True, eq=False)
class Cells:
    """A public box divided into `along`^d cells; a point is described by its cell alone.

    Attributes:
        low: lower end of the box along each variable; points outside are moved to the border.
        high: upper end.
        along: number of cells along each variable.
        nearest: whether each cell contains the points nearest to one grid point, where the grid
            includes the ends of the box; otherwise the cells are equal parts of the box.
        most: largest number of cells.
    """

    low: FloatArray
    high: FloatArray
    along: int
    nearest: bool = True
    most: int = 1 << 14

    def __post_init__(self) -> None:
        if not np.all(self.high - self.low >= _LEAST_SIDE):
            raise InvalidParameter("low", f"at least {_LEAST_SIDE:g} below high", self.low.tolist())
        if self.size > self.most:
            raise InvalidParameter("along", f"{self.most} cells at most", self.along)

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns of a record: one point, with one number for each variable."""
        return (len(self.low),)

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self.along ** len(self.low))

    def places(self, points: FloatArray) -> IntArray:
        """The row-major number of each point's cell."""
        inside = np.clip(points[:, : len(self.low)], self.low, self.high)
        shares = (inside - self.low) / (self.high - self.low)
        index = np.rint(shares * (self.along - 1)) if self.nearest else shares * self.along
        along = np.clip(index.astype(np.int64), 0, self.along - 1)
        return np.asarray(np.ravel_multi_index(tuple(along.T), (self.along,) * len(self.low)))

    def counts(self, records: Records) -> IntArray:
        """Number of points in each cell."""
        return np.bincount(self.places(records[0]), minlength=self.size)

    def counts_inside(self, records: Records) -> IntArray:
        """Number of points in each cell, followed by the number of points outside the box."""
        points = records[0][:, : len(self.low)]
        inside = np.all((points >= self.low) & (points <= self.high), axis=1)
        places = np.where(inside, self.places(points), self.size)
        return np.bincount(places, minlength=self.size + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCounts(AdditiveQuery, name="cell_counts"):
    """The number of points in each of the equal cells of a box, and the number outside the box.

    Privacy:
        Each point is in exactly one of these counts. Replacing a point decreases one count by 1 and
        increases another by 1: the sensitivity is exactly 2 in ℓ1 and √2 in ℓ2.

    Attributes:
        low: lower end of the box along each variable.
        high: upper end.
        along: number of cells along each variable.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    low: FloatArray = vector("variables", least=-1e50, most=1e50)
    high: FloatArray = vector("variables", least=-1e50, most=1e50)
    along: int = whole(least=2, most=1 << 14)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.cells  # refuses too many

    @cached_property
    def cells(self) -> Cells:
        """Equal parts of the box."""
        return Cells(self.low, self.high, self.along, nearest=False)

    @cached_property
    def mechanism(self) -> Additive:
        """The same noise on each count."""
        sensitivity = 2.0 if self.cost.pure else math.sqrt(2)
        axes = np.ones(self.cells.size + 1)
        return independent_noise(self.cost, sensitivity=sensitivity, axes=axes)

    @property
    def summed(self) -> Sums:
        """The counts."""
        cells = self.cells
        return Sums(cells.columns, cells.size + 1, 1, cells.counts_inside, as_floats)

    @classmethod
    def examples(cls) -> list[Self]:
        """Queries in one and in two dimensions."""
        pure, gaussian = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        two = np.zeros(2)
        return [
            cls(cost=pure, n=4, low=np.zeros(1), high=np.ones(1), along=4),
            cls(cost=gaussian, n=4, low=two - 1, high=two + 1, along=2),
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestMean(AdditiveQuery, name="nearest_mean"):
    """Mean of public features of the grid points that are nearest to the private points.

    Privacy:
        A point contributes only the features of its grid point, so the sensitivity is known
        exactly: the largest distance between the features of two grid points, over n (C13).
        Features are first rounded to multiples of a public unit, so that their sum over any number
        of records is exact.

    Attributes:
        low: lower end of the box along each variable.
        high: upper end.
        along: number of grid points along each variable.
        features: k_j at every grid point, ends of the box included, (cells, J).
        axes: shape of the noise.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    low: FloatArray = vector("variables", least=-1e50, most=1e50)
    high: FloatArray = vector("variables", least=-1e50, most=1e50)
    along: int = whole(least=2, most=1 << 14)
    features: FloatArray = array("real", "cells", "features", least=-1e50, most=1e50)
    axes: FloatArray = vector("features", least=1e-30, most=1e50)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.features) != self.cells.size or self.widest < _LEAST_WIDTH:
            rule = f"{self.cells.size} rows of which two differ by {_LEAST_WIDTH:g} axes at least"
            raise InvalidParameter("features", rule, self.features.shape)

    @cached_property
    def cells(self) -> Cells:
        """One cell around each grid point."""
        return Cells(self.low, self.high, self.along)

    @cached_property
    def feature_units(self) -> FloatArray:
        """The unit of each feature: its largest absolute value (at least 1e-200) over `units`."""
        tallest = np.maximum(np.abs(self.features).max(axis=0), _LEAST_FEATURE)
        return np.asarray(tallest / units(self.n))

    @cached_property
    def whole_features(self) -> IntArray:
        """Features as whole numbers of units."""
        return np.rint(self.features / self.feature_units).astype(np.int64)

    @cached_property
    def widest(self) -> float:
        """Largest distance between the features of two grid points, in the norm of the noise."""
        features = self.whole_features * self.feature_units
        return cell_sensitivity(features, self.axes, gaussian=not self.cost.pure)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise along the axes, with a margin for the rounding of `widest`."""
        sensitivity = self.widest / self.n * (1 + 1e-12)
        return independent_noise(self.cost, sensitivity=sensitivity, axes=self.axes)

    @property
    def summed(self) -> Sums:
        """Counts of grid points, multiplied by their features."""

        def features(totals: IntArray) -> FloatArray:
            return np.asarray((totals @ self.whole_features) * (self.feature_units / self.n))

        return Sums(self.cells.columns, self.cells.size, 1, self.cells.counts, features)

    @classmethod
    def examples(cls) -> list[Self]:
        """Three places on a line, two features."""
        costs = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        return [
            cls(
                cost=cost,
                n=4,
                low=np.zeros(1),
                high=np.ones(1),
                along=3,
                features=np.array([[0.0, 1.0], [0.5, 0.2], [2.1, -1.3]]),
                axes=np.array([1.0, 0.5]),
            )
            for cost in costs
        ]


def cell_sensitivity(features: FloatArray, axes: FloatArray, *, gaussian: bool = False) -> float:
    """The exact max over pairs of cells of Σ_j |k_j(x) - k_j(x')|/a_j (C13); ℓ2 if `gaussian`.

    Examples:
        >>> cell_sensitivity(np.eye(3), np.ones(3))
        2.0
    """
    scaled = features / axes
    # Scaled by a power of two, which is exact, so that no square under- or overflows.
    _, exponent = math.frexp(float(np.abs(scaled).max()))
    scaled = np.ldexp(scaled, -exponent)
    step = max(1, _MOST_WORK // scaled.size)
    largest = 0.0
    for start in range(0, len(scaled), step):
        gaps = np.abs(scaled[start : start + step, None, :] - scaled[None, start:, :])
        size = np.sqrt((gaps**2).sum(axis=2)) if gaussian else gaps.sum(axis=2)
        largest = max(largest, float(size.max()))
    return math.ldexp(largest, exponent)
