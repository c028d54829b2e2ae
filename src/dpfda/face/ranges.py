"""Public ranges in the user's own units: what is known of a table before anybody looks at it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._registry import Portable
from dpfda._validate import FloatArray
from dpfda.errors import InvalidData, InvalidParameter

FeatureRanges = Mapping[Any, Any] | Sequence[Any]
"""(low, high) for every column, one pair a column, or column → (low, high) or its categories."""


@dataclass(frozen=True)
class Column(Portable):
    """One column: a range of numbers, or the list of its categories (one number 0/1 for each)."""

    key: Any
    low: float = 0.0
    high: float = 1.0
    categories: tuple[Any, ...] = ()

    @property
    def names(self) -> list[str]:
        """Of the numbers it becomes."""
        return [f"{self.key}={category}" for category in self.categories] or [str(self.key)]

    def numbers(self, values: Any) -> FloatArray:
        """Private values as numbers inside the range, shape (n, 1) or (n, categories).

        An unknown category is none of them. Nothing is refused for its value.
        """
        if self.categories:
            cells = np.asarray(values, dtype=object)
            return np.stack([cells == one for one in self.categories], axis=1).astype(np.float64)
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            rule = "a column of numbers (or list its categories in feature_ranges)"
            raise InvalidData(f"X[{self.key!r}]", rule) from None
        if np.isnan(numbers).any():
            raise InvalidData(f"X[{self.key!r}]", "without missing values (NaN)")
        return np.clip(numbers, self.low, self.high)[:, None]


@dataclass(frozen=True)
class Table(Portable):
    """The public columns of a table.

    Example:
        >>> table = Table.of({"age": (20, 80), "sex": ["f", "m"]}, name="feature_ranges")
        >>> table.names, table.low.tolist(), table.high.tolist()
        (['age', 'sex=f', 'sex=m'], [20.0, 0.0, 0.0], [80.0, 1.0, 1.0])
        >>> import pandas
        >>> table.read(pandas.DataFrame({"sex": ["m"], "age": [90]})).tolist()
        [[80.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]
    named: bool

    @classmethod
    def of(cls, ranges: Any, *, name: str = "feature_ranges", width: int | None = None) -> Table:
        """Read what a user says about the columns; `width` where one pair stands for all."""
        if isinstance(ranges, Mapping):
            return cls(tuple(_column(f"{name}[{k!r}]", k, one) for k, one in ranges.items()), True)
        if isinstance(ranges, str) or not isinstance(ranges, (Sequence, np.ndarray)):
            rule = "given: (low, high), one such pair a column, or a mapping column → (low, high)"
            raise InvalidParameter(name, rule, ranges)
        if not any(isinstance(one, Collection) for one in ranges):
            low, high = _validate.interval(name, ranges)
            return cls(tuple(Column(k, low, high) for k in range(width or 1)), False)
        pairs = tuple(_column(f"{name}[{k}]", k, one) for k, one in enumerate(ranges))
        if width is not None and len(pairs) != width:
            raise InvalidParameter(name, f"one pair for each of {width} columns", len(pairs))
        return cls(pairs, False)

    @property
    def names(self) -> list[str]:
        """Of the numbers in a row."""
        return [name for column in self.columns for name in column.names]

    @property
    def low(self) -> FloatArray:
        """The least each number can be."""
        return np.concatenate([[column.low] * len(column.names) for column in self.columns])

    @property
    def high(self) -> FloatArray:
        """The largest each number can be."""
        return np.concatenate([[column.high] * len(column.names) for column in self.columns])

    @property
    def center(self) -> FloatArray:
        """The middle of each range."""
        return np.asarray(self.low / 2 + self.high / 2)

    @property
    def half(self) -> FloatArray:
        """Half of the width of each range."""
        return np.asarray(self.high / 2 - self.low / 2)

    def scaling(self, *, centered: bool) -> tuple[FloatArray, FloatArray]:
        """Shift and scale that bring each number into [-1, 1].

        Not centered: no shift, for lines without a constant, which nothing makes up for.
        """
        shift = self.center if centered else np.zeros(len(self.names))
        return shift, np.maximum(self.high - shift, shift - self.low)

    def read(self, X: Any) -> FloatArray:
        """Private rows as numbers inside their ranges, shape (n, len(names))."""
        if not self.named:
            rows = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
            if rows.ndim != 2 or rows.shape[1] != len(self.columns):
                rule = f"a table of {len(self.columns)} columns, one for each of feature_ranges"
                raise InvalidData("X", rule, f"shape {rows.shape}")
            plain = rows.dtype.kind in "fiub" and not any(one.categories for one in self.columns)
            if plain and not np.isnan(rows).any():  # the common case, at once
                return np.clip(rows.astype(np.float64), self.low, self.high)
            cells = list(rows.T)
        else:
            if not hasattr(X, "columns"):
                raise InvalidData("X", "a DataFrame, because feature_ranges names columns")
            for column in self.columns:
                if column.key not in X.columns:
                    raise InvalidData("X", f"a table with the column {column.key!r}")
            cells = [X[column.key] for column in self.columns]
        return np.concatenate(
            [column.numbers(values) for column, values in zip(self.columns, cells, strict=True)],
            axis=1,
        )


def _column(name: str, key: Any, known: Any) -> Column:
    """A pair of numbers is a range; anything else is a list of categories."""
    if isinstance(known, str) or not isinstance(known, (Collection, np.ndarray)):
        raise InvalidParameter(name, "(low, high), or a list of categories", known)
    values = [one.item() if isinstance(one, np.generic) else one for one in known]
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in values)
    if numbers and len(values) == 2 and not isinstance(known, (set, frozenset)):
        return Column(key, *_validate.interval(name, values))
    if not values or len(set(values)) != len(values):
        raise InvalidParameter(name, "a list of different categories", known)
    return Column(
        key, categories=tuple(sorted(values) if isinstance(known, (set, frozenset)) else values)
    )


def middle(name: str, pair: Any) -> tuple[float, float]:
    """Center and half width of one public range."""
    low, high = _validate.interval(name, pair)
    return low / 2 + high / 2, high / 2 - low / 2
