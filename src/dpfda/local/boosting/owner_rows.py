"""The rows of many owners as one padded batch, so that a round is a few array operations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData


class OwnerRows(NamedTuple):
    """Private rows of H owners, each with up to N of them: records as requests take them.

    Attributes:
        features: shape (H, N, d); 0 where an owner has fewer rows.
        labels: label numbers, shape (H, N); 0 where there is no row.
        present: True where there is a row, shape (H, N).

    Examples:
        >>> rows = OwnerRows.grouped([[0.1], [0.2], [0.3]], [1, 0, 1], groups=["a", "b", "a"])
        >>> rows.owners, rows.sizes.tolist()
        (2, [2, 1])
    """

    features: FloatArray
    labels: IntArray
    present: npt.NDArray[np.bool_]

    @classmethod
    def grouped(cls, features: Any, labels: Any, *, groups: Any = None) -> OwnerRows:
        """Rows sorted by owner; without `groups` every row is an owner of its own.

        Owners come in the order of their sorted names.
        """
        x = _validate.batch("features", features)
        y = _validate.vector("labels", labels).astype(np.int64)
        if len(x) != len(y):
            raise InvalidData("labels", f"one for each of {len(x)} rows", f"shape {y.shape}")
        if groups is None:
            return cls(x[:, None, :], y[:, None], np.ones((len(x), 1), dtype=bool))
        owners = np.asarray(groups)
        if owners.shape != (len(x),):
            raise InvalidData("groups", f"one for each of {len(x)} rows", f"shape {owners.shape}")
        _, owner, sizes = np.unique(owners, return_inverse=True, return_counts=True)
        order = np.argsort(owner, kind="stable")
        place = np.arange(len(x)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        shape = (len(sizes), int(sizes.max()))
        padded, marks = np.zeros((*shape, x.shape[1])), np.zeros(shape, dtype=np.int64)
        present = np.zeros(shape, dtype=bool)
        padded[owner[order], place] = x[order]
        marks[owner[order], place] = y[order]
        present[owner[order], place] = True
        return cls(padded, marks, present)

    @property
    def owners(self) -> int:
        """H."""
        return len(self.features)

    @property
    def sizes(self) -> IntArray:
        """How many rows each owner has, 1 for one who has none: private."""
        return np.asarray(np.maximum(self.present.sum(axis=1), 1), dtype=np.int64)

    def take(self, index: Any) -> OwnerRows:
        """Some of the owners."""
        return OwnerRows(self.features[index], self.labels[index], self.present[index])

    def at(self, place: IntArray) -> OwnerRows:
        """The rows in some places of every owner, (H, places)."""
        return OwnerRows(
            np.take_along_axis(self.features, place[..., None], axis=1),
            np.take_along_axis(self.labels, place, axis=1),
            np.take_along_axis(self.present, place, axis=1),
        )

    def first(self, most: int) -> OwnerRows:
        """Every owner's first `most` rows, in as many places whether there are rows or not."""
        rows = self
        if not self.present.all():  # rows before gaps
            rows = self.at(np.argsort(~self.present, axis=1, kind="stable"))
        lacking = max(most - rows.features.shape[1], 0)
        kept: list[Any] = [column[:, :most] for column in rows]
        if lacking:
            kept = [np.pad(c, [(0, 0), (0, lacking)] + [(0, 0)] * (c.ndim - 2)) for c in kept]
        return OwnerRows(*kept)

    def __repr__(self) -> str:
        return f"OwnerRows({self.owners} owners)"
