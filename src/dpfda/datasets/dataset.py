"""What a loader returns: arrays and the words that explain them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """A public data set, or a simulated one.

    Attributes:
        name: short name.
        description: what a row is, and what X, y and groups mean.
        X: one curve (n, T) or one vector (n, d) per row; NaN where missing.
        y: labels −1 and +1, class names, or a number to predict; None where there is none.
        grid_points: the T points of the curves; None for vectors.
        groups: rows with the same entry belong together (one person, or copies of one row).
            A split that tears a group apart leaks, and a guarantee per row is m times weaker for
            somebody with m rows (C21).
        train: True where the source calls the row a training row; None where it does not say.
        feature_names: names of the columns of vectors.
        categories: for a column that was text, the words behind the codes 0, 1, 2, ...
        extra: further columns by name, one entry per row.
        truth: what only a simulation knows, such as the slope function on the grid.

    Examples:
        >>> from dpfda.datasets import simulate_001
        >>> simulate_001(3, random_state=0)
        Dataset('simulation_001', X (3, 101), y (3,), grid_points (101,), truth: slope)
    """

    name: str
    description: str
    X: FloatArray
    y: npt.NDArray[Any] | None = None
    grid_points: FloatArray | None = None
    groups: npt.NDArray[Any] | None = None
    train: npt.NDArray[np.bool_] | None = None
    feature_names: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    truth: Mapping[str, FloatArray] = field(default_factory=dict)

    def take(self, rows: npt.ArrayLike) -> Dataset:
        """The same data set with these rows only (indices or a mask)."""
        chosen = np.asarray(rows)
        return replace(
            self,
            X=self.X[chosen],
            y=None if self.y is None else self.y[chosen],
            groups=None if self.groups is None else self.groups[chosen],
            train=None if self.train is None else self.train[chosen],
            extra={name: column[chosen] for name, column in self.extra.items()},
        )

    def __repr__(self) -> str:
        shapes = {
            "X": self.X,
            "y": self.y,
            "grid_points": self.grid_points,
            "groups": self.groups,
            "train": self.train,
        }
        parts = [f"{key} {value.shape}" for key, value in shapes.items() if value is not None]
        for title, names in (("extra", self.extra), ("truth", self.truth)):
            parts += [f"{title}: {', '.join(names)}"] if names else []
        return f"Dataset({self.name!r}, {', '.join(parts)})"


def signs(positive: npt.NDArray[np.bool_]) -> FloatArray:
    """Labels +1 where `positive`, −1 elsewhere."""
    return np.where(positive, 1.0, -1.0)
