"""What a curator of points is asked: how many lie in each cell of a public box, or near a place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.looks import CountedLook
from dpfda.errors import InvalidParameter
from dpfda.privacy.cost import Cost
from dpfda.protocol.fields import array, vector, whole
from dpfda.protocol.query import Records

Box = tuple[tuple[float, float], ...]
_MOST_WORK = 1 << 24  # numbers held at once while pairs of cells are compared


@dataclass(frozen=True, kw_only=True, eq=False)
class CellLook(CountedLook):
    """Points in a public box, each told by one of `along`^d numbered cells alone.

    Attributes:
        low, high: ends of the box along each variable; points outside are moved to its border.
        along: cells along each variable.
    """

    independent: ClassVar[bool] = True
    nearest: ClassVar[bool] = True
    """Whether cells are around grid points, ends of the box included; equal parts otherwise."""
    most_cells: ClassVar[int] = 1 << 14

    low: FloatArray = vector("variables", least=-1e50, most=1e50)
    high: FloatArray = vector("variables", least=-1e50, most=1e50)
    along: int = whole(least=2, most=1 << 14)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.all(self.low < self.high):
            raise InvalidParameter("low", "below high", self.low.tolist())
        if self.cells > self.most_cells:
            raise InvalidParameter("along", f"{self.most_cells} cells at most", self.along)

    @property
    def columns(self) -> tuple[int, ...]:
        """Points."""
        return (len(self.low),)

    @property
    def cells(self) -> int:
        """How many cells."""
        return int(self.along ** len(self.low))

    @property
    def size(self) -> int:
        """A count for each cell."""
        return self.cells

    def places(self, points: FloatArray) -> IntArray:
        """The row-major number of each point's cell."""
        inside = np.clip(points[:, : len(self.low)], self.low, self.high)
        shares = (inside - self.low) / (self.high - self.low)
        index = np.rint(shares * (self.along - 1)) if self.nearest else shares * self.along
        along = np.clip(index.astype(np.int64), 0, self.along - 1)
        return np.asarray(np.ravel_multi_index(tuple(along.T), (self.along,) * len(self.low)))

    def block(self, records: Records) -> IntArray:
        """Counts."""
        return np.bincount(self.places(records[0]), minlength=self.cells)


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCounts(CellLook, name="cell_counts"):
    """How many points lie in each of the equal cells of a box.

    Privacy:
        Replacing a point moves one count down and one up: exactly 2 in ℓ1, √2 in ℓ2.
    """

    nearest: ClassVar[bool] = False

    @property
    def sensitivity(self) -> float:
        """In the norm of the noise."""
        return 2.0 if self.cost.pure else math.sqrt(2)

    def statistic(self, totals: IntArray) -> FloatArray:
        """The counts."""
        return totals.astype(np.float64)

    @classmethod
    def examples(cls) -> list[Self]:
        """On a line and in the plane."""
        pure, gaussian = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=0.05)
        two = np.zeros(2)
        return [
            cls(cost=pure, n=4, low=np.zeros(1), high=np.ones(1), along=4),
            cls(cost=gaussian, n=4, low=two - 1, high=two + 1, along=2),
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestMean(CellLook, name="nearest_mean"):
    """Mean of public features of the grid point that is nearest to each point.

    Privacy:
        Points are told by their grid point alone, so that what one can change is known exactly: the
        largest distance between the features of two grid points, over n (C13).

    Attributes:
        features: k_j at every grid point, ends of the box included, (cells, J).
        axes: shape of the noise.
    """

    features: FloatArray = array("real", "cells", "features", least=-1e50, most=1e50)
    axes: FloatArray = vector("features", least=1e-100, most=1e50)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.features) != self.cells or self.widest == 0:
            raise InvalidParameter(
                "features", f"{self.cells} rows, not all alike", self.features.shape
            )

    @cached_property
    def widest(self) -> float:
        """Between two grid points, in the norm of the noise."""
        return cell_sensitivity(self.features, self.axes, gaussian=not self.cost.pure)

    @property
    def sensitivity(self) -> float:
        """Of the mean; with room for the rounding of its sum, far below a lattice step."""
        return self.widest / self.n * (1 + 1e-12)

    @property
    def noise_axes(self) -> FloatArray:
        """As given."""
        return self.axes

    def statistic(self, totals: IntArray) -> FloatArray:
        """Counts times features."""
        return np.asarray((totals @ self.features) / self.n)

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
                features=np.array([[0.0, 1.0], [0.5, 0.2], [2.0, -1.0]]),
                axes=np.array([1.0, 0.5]),
            )
            for cost in costs
        ]


def cell_sensitivity(features: FloatArray, axes: FloatArray, *, gaussian: bool = False) -> float:
    """max over pairs of cells of Σ_j |k_j(x) - k_j(x')|/a_j, exactly (C13); ℓ2 for Gaussian noise.

    Examples:
        >>> cell_sensitivity(np.eye(3), np.ones(3))
        2.0
    """
    scaled = features / axes
    step = max(1, _MOST_WORK // scaled.size)
    largest = 0.0
    for start in range(0, len(scaled), step):
        gaps = np.abs(scaled[start : start + step, None, :] - scaled[None, :, :])
        size = np.sqrt((gaps**2).sum(axis=2)) if gaussian else gaps.sum(axis=2)
        largest = max(largest, float(size.max()))
    return largest
