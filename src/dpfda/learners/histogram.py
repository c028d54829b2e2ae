"""The histogram classifier of Berrett & Butucea (2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from dpfda._validate import whole
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.learners._arrays import Array, as_double, checked, device, namespace, scalar
from dpfda.learners.base import Learner
from dpfda.learners.models import Models, checked_rows, group_means, group_shares, taken

_MOST_CELLS = 1 << 24
"""Beyond this one member alone takes 128 MB and every cell is empty anyway."""


@dataclass(frozen=True, kw_only=True)
class Histogram(Learner, name="histogram"):
    """Cut [−1, 1]^d into m^d cells; a cell's class is the sign of Σ w·y over the rows in it.

    In a study nobody sends their cell in clear: people report the privatised vector
    y·1{x ∈ cell}, the server adds the reports up and calls `from_cell_sums`. Features outside
    [−1, 1] count for the nearest cell. A cell without rows scores 0, so class +1.

    Attributes:
        bins: m, cells along each axis, at least 1.

    Example:
        >>> learner = Histogram(bins=2)
        >>> models = learner.fit([[[-0.5], [-0.2], [0.9]]], [[-1, -1, 1]])
        >>> models.cells
        array([[-2.,  1.]])
        >>> learner.indicators([[0.9]], [1])
        array([[0., 1.]])
        >>> learner.from_cell_sums([-1.7, 0.4], n_features=1).predict([[0.0]])
        array([[1.]])
    """

    bins: int = 4

    def __post_init__(self) -> None:
        whole("bins", self.bins)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Few and many cells."""
        return (cls(), cls(bins=1), cls(bins=3))

    def fit(
        self, features: Any, labels: Any, *, weights: Any = None, gram: Any = None
    ) -> HistogramModels:
        """Add up w·y in every cell; `gram` is ignored. See `Learner.fit`."""
        batch = checked(features, labels, weights)
        xp = namespace(batch.features)
        members, _, d = batch.features.shape
        cells = self.n_cells(d)
        keys = cell_numbers(batch.features, self.bins)
        first = xp.arange(members, device=device(keys), dtype=xp.int64) * cells
        keys = xp.reshape(keys + first[:, None], (-1,))
        order = xp.argsort(keys)
        values = xp.take(xp.reshape(batch.labels * batch.weights, (-1,)), order)
        # Sums of runs of equal keys: the array standard has no scatter-add.
        running = xp.concat([xp.zeros_like(values[:1]), xp.cumulative_sum(values)])
        edges = xp.arange(members * cells + 1, device=device(keys), dtype=xp.int64)
        places = xp.searchsorted(xp.take(keys, order), edges)
        reached = xp.take(running, places)
        sums = xp.reshape(reached[1:] - reached[:-1], (members, cells))
        return HistogramModels(cells=sums, bins=self.bins, dimension=d)

    def n_cells(self, n_features: int) -> int:
        """Number of cells m^d."""
        cells = int(self.bins ** whole("n_features", n_features))
        if cells > _MOST_CELLS:
            raise InvalidParameter("bins", f"small enough that bins^d <= {_MOST_CELLS}", self.bins)
        return cells

    def indicators(self, features: Any, labels: Any) -> Array:
        """(n, cells): y·1{x ∈ cell} for rows (n, d), what each person would privatise."""
        rows = as_double("features", features)
        xp = namespace(rows)
        signs = as_double("labels", labels, like=rows)
        if rows.ndim != 2 or signs.shape != rows.shape[:1]:
            raise InvalidData("features", "an array (n, d) beside labels (n,)")
        numbers = cell_numbers(rows, self.bins)
        cells = xp.arange(self.n_cells(rows.shape[1]), device=device(rows), dtype=xp.int64)
        return xp.astype(numbers[:, None] == cells[None, :], rows.dtype) * signs[:, None]

    def from_cell_sums(self, sums: Any, *, n_features: int) -> HistogramModels:
        """The classifier of given (noisy) cell sums, (cells,) or (B, cells)."""
        array = as_double("sums", sums)
        array = array[None, :] if array.ndim == 1 else array
        return HistogramModels(cells=array, bins=self.bins, dimension=n_features)


@dataclass(frozen=True, eq=False, kw_only=True)
class HistogramModels(Models, name="histogram"):
    """B histogram classifiers: the score of x is the number in its cell.

    Attributes:
        cells: (B, m^d); the cell with bins (i₁, …, i_d) along the axes is number Σ i_k m^(k−1).
        bins: m.
        dimension: d.

    Example:
        >>> models = HistogramModels(cells=[[-1.0, 2.0]], bins=2, dimension=1)
        >>> models.scores([[-0.3], [0.3], [7.0]])
        array([[-1.,  2.,  2.]])
    """

    cells: Array
    bins: int
    dimension: int

    def __post_init__(self) -> None:
        cells = as_double("cells", self.cells)
        count = Histogram(bins=self.bins).n_cells(self.dimension)
        if cells.ndim != 2 or cells.shape[1] != count:
            raise InvalidData("cells", f"an array (B, {count})", f"shape {tuple(cells.shape)}")
        object.__setattr__(self, "cells", cells)

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return self.dimension

    def __len__(self) -> int:
        return int(self.cells.shape[0])

    def scores(self, features: Any) -> Array:
        """Every member's number in the cell of each row, (B, n)."""
        rows = checked_rows(features, self, like=self.cells)
        xp = namespace(rows)
        numbers = cell_numbers(rows, self.bins)
        if rows.ndim == 2:
            return xp.take(self.cells, numbers, axis=1)
        return xp.take_along_axis(self.cells, numbers, axis=1)

    def select(self, indices: Any) -> HistogramModels:
        """The members at `indices`, in that order."""
        return self._with(taken((self.cells,), indices)[0])

    def average(self, weights: Any) -> HistogramModels:
        """Mean numbers of all members, or of each group of `weights`' rows."""
        return self._with(
            group_means(self.cells, group_shares(weights, len(self), like=self.cells))
        )

    def _with(self, cells: Array) -> HistogramModels:
        return HistogramModels(cells=cells, bins=self.bins, dimension=self.dimension)

    def _scaled(self, factors: Array) -> HistogramModels:
        return self._with(self.cells * factors[:, None])

    def _size(self) -> Array:
        xp = namespace(self.cells)
        return xp.max(xp.abs(self.cells), axis=1)


def cell_numbers(features: Array, bins: int) -> Array:
    """The number of the cell of each row (…, d), as integers (…)."""
    xp = namespace(features)
    low, high = scalar(0.0, like=features), scalar(float(bins - 1), like=features)
    along = xp.floor(xp.clip((features + 1.0) * (0.5 * bins), low, high))
    digits = xp.asarray(
        [math.prod([bins] * k) for k in range(features.shape[-1])],
        dtype=xp.float64,
        device=device(features),
    )
    return xp.astype(xp.sum(along * digits, axis=-1), xp.int64)
