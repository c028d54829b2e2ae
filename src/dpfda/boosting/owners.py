"""The rows of many owners as one padded batch, so that a round is a few array operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData


@dataclass(frozen=True, eq=False, repr=False)
class OwnerRows:
    """Private rows of H owners, each with up to N of them.

    Attributes:
        features: shape (H, N, d); 0 where an owner has fewer rows.
        labels: label numbers, shape (H, N); 0 where there is no row.
        present: True where there is a row, shape (H, N).

    Example:
        >>> rows = OwnerRows.grouped([[0.1], [0.2], [0.3]], [1, 0, 1], groups=["a", "b", "a"])
        >>> len(rows), rows.sizes.tolist()
        (2, [2, 1])
    """

    features: FloatArray
    labels: IntArray
    present: npt.NDArray[np.bool_]

    @classmethod
    def grouped(cls, features: Any, labels: Any, *, groups: Any = None) -> Self:
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
    def sizes(self) -> IntArray:
        """N^h, how many rows each owner has: public."""
        return np.asarray(self.present.sum(axis=1), dtype=np.int64)

    def take(self, index: Any) -> OwnerRows:
        """Some of the owners."""
        return OwnerRows(self.features[index], self.labels[index], self.present[index])

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return f"OwnerRows({len(self)} owners)"
