"""Public ranges and categories of the columns of a table, in the units of the data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._registry import Portable
from dpfda._validate import FloatArray
from dpfda.errors import InvalidData, InvalidParameter

Table: TypeAlias = object
"""Rows as an array, a list of lists, a data frame, or a mapping from names to columns."""
FeatureRanges = Mapping[Any, Any] | Sequence[Any]
"""One pair (low, high) for all columns; one pair per column; or a mapping from column to (low,
high) or to its categories. A column is given by its name or, in a table without names, by its
number, counted from 0. With a mapping, other columns are not read."""
# limits of half a range, so that coefficients, which are ratios, stay finite
_WIDTHS = 1e-100, 1e100


NO_GAPS = "leave such rows out, and state this with the result, or fill them with a public number"


@dataclass(frozen=True)
class Column(Portable):
    """One column: a range of numbers, or its categories, each of which becomes a number 0 or 1."""

    key: Any
    low: float = 0.0
    high: float = 1.0
    categories: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        low, high = _validate.interval(f"range of {self.key!r}", (self.low, self.high))
        if not _WIDTHS[0] <= high / 2 - low / 2 <= _WIDTHS[1]:
            name, rule = (
                f"half of the range of {self.key!r}",
                f"from {_WIDTHS[0]:g} to {_WIDTHS[1]:g}",
            )
            raise InvalidParameter(name, rule, high / 2 - low / 2)
        for name, value in (("low", low), ("high", high), ("categories", tuple(self.categories))):
            object.__setattr__(self, name, value)

    @property
    def names(self) -> list[str]:
        """Names of the numbers that encode the column."""
        return [f"{self.key}={category}" for category in self.categories] or [str(self.key)]

    def numbers(self, values: Sequence[object], *, strict: bool = True) -> FloatArray:
        """Private values as numbers, shape (n, 1) or (n, categories); some may lie outside.

        An unknown category is encoded by zeros. With `strict`, missing values and words raise an
        error about the column. Otherwise they become NaN, because an error would reveal something.
        """
        if self.categories:
            same = [[_equal(cell, one) for one in self.categories] for cell in values]
            return np.asarray(same, dtype=np.float64).reshape(-1, len(self.categories))
        kind: Any = getattr(values, "dtype", None)  # the type of the column, the same for all rows
        of_dates = getattr(kind, "is_temporal", lambda: getattr(kind, "kind", None) in {"m", "M"})
        if of_dates():
            rule = "a column of numbers, not of dates: count days, for example, from a public one"
            raise InvalidData(f"X[{self.key!r}]", rule)
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            if strict:
                rule = "a column of numbers (or list its categories in feature_ranges)"
                raise InvalidData(f"X[{self.key!r}]", rule) from None
            numbers = np.array([_number(cell) for cell in values])
        if strict and np.isnan(numbers).any():
            raise InvalidData(f"X[{self.key!r}]", f"without missing values (NaN): {NO_GAPS}")
        return numbers[:, None]


@dataclass(frozen=True)
class PublicColumns(Portable):
    """The public columns of a table.

    Examples:
        >>> table = PublicColumns.of({"age": (20, 80), "sex": ["f", "m"]}, name="feature_ranges")
        >>> table.names, table.low.tolist(), table.high.tolist()
        (['age', 'sex=f', 'sex=m'], [20.0, 0.0, 0.0], [80.0, 1.0, 1.0])
        >>> import pandas
        >>> table.read(pandas.DataFrame({"sex": ["m"], "age": [90]})).tolist()
        [[80.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]
    named: bool

    def __post_init__(self) -> None:
        read = (Column.from_dict(one) if isinstance(one, Mapping) else one for one in self.columns)
        object.__setattr__(self, "columns", tuple(read))

    @classmethod
    def of(
        cls, ranges: FeatureRanges | None, *, name: str = "feature_ranges", width: int | None = None
    ) -> PublicColumns:
        """Read the public description of the columns; one pair for all needs `width`."""
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
        """Names of the numbers in a row."""
        return [name for column in self.columns for name in column.names]

    @property
    def contrasts(self) -> list[int]:
        """Positions of numbers without the first category of each column, which is the reference.

        With all categories and a constant, the columns would be linearly dependent.

        Examples:
            >>> PublicColumns.of({"age": (20, 80), "sex": ["f", "m"]}).contrasts
            [0, 2]
        """
        first = [place == 0 < len(one.categories) for one in self.columns
                 for place in range(len(one.names))]  # fmt: skip
        return [place for place, left_out in enumerate(first) if not left_out]

    @property
    def low(self) -> FloatArray:
        """The lower bound of each number."""
        return np.concatenate([[column.low] * len(column.names) for column in self.columns])

    @property
    def high(self) -> FloatArray:
        """The upper bound of each number."""
        return np.concatenate([[column.high] * len(column.names) for column in self.columns])

    @property
    def center(self) -> FloatArray:
        """The center of each range."""
        return np.asarray(self.low / 2 + self.high / 2)

    @property
    def column_centers(self) -> dict[Any, float]:
        """The center of the range of each column of numbers."""
        return {one.key: one.low / 2 + one.high / 2 for one in self.columns if not one.categories}

    @property
    def half(self) -> FloatArray:
        """Half of the width of each range."""
        return np.asarray(self.high / 2 - self.low / 2)

    def scaling(self, *, centered: bool) -> tuple[FloatArray, FloatArray]:
        """Shift and scale that map each number into [-1, 1].

        If not centered, the shift is 0: a model without intercept could not compensate for a shift.
        """
        shift = self.center if centered else np.zeros(len(self.names))
        return shift, np.maximum(self.high - shift, shift - self.low)

    def read(self, X: Table, *, strict: bool = True) -> FloatArray:
        """Private rows as numbers inside their ranges, shape (n, len(names)).

        With `strict`, missing values and words are refused; otherwise they become NaN, or no
        category. Values outside a range are moved to its nearest end.
        """
        return np.clip(self.numbers(X, strict=strict), self.low, self.high)

    def read_and_mark(self, X: Table) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """`read`, and which rows (n,) had a value outside its range or an unlisted category."""
        numbers = self.numbers(X)
        inside = np.clip(numbers, self.low, self.high)
        outside = (numbers != inside).any(axis=1)
        first = 0
        for column in self.columns:
            last = first + len(column.names)
            if column.categories:
                outside |= ~inside[:, first:last].any(axis=1)
            first = last
        return inside, np.asarray(outside)

    def numbers(self, X: Table, *, strict: bool = True) -> FloatArray:
        """The same as `read`, before values are moved into their ranges."""
        numbers = self._numbers(X)
        if numbers is not None:  # the common case, without a loop over columns
            gaps = np.isnan(numbers).any(axis=0)
            if strict and gaps.any():
                key = self.names[int(gaps.argmax())]
                raise InvalidData(f"X[{key!r}]", f"without missing values (NaN): {NO_GAPS}")
            return numbers
        if strict:
            self.check(X)
        read = zip(self.columns, self._cells(X), strict=True)
        return np.concatenate([one.numbers(cells, strict=strict) for one, cells in read], axis=1)

    def _numbers(self, X: Table) -> FloatArray | None:
        """Rows that are already numbers in the order of `names`; otherwise None."""
        try:
            rows = np.asarray(X) if isinstance(X, (list, tuple, np.ndarray)) else np.empty(0)
        except ValueError:  # ragged
            return None
        if rows.dtype.kind not in "fiub":
            return None
        if self.places is not None:
            placed = None if any(one.categories for one in self.columns) else self._placed(rows)
            return None if placed is None else np.stack(placed, axis=1).astype(np.float64)
        return None if rows.shape[1:] != (len(self.names),) else rows.astype(np.float64)

    @property
    def places(self) -> list[int] | None:
        """Positions of the columns, if their names are numbers."""
        keys = [column.key for column in self.columns]
        numbers = all(isinstance(key, int) and not isinstance(key, bool) for key in keys)
        return keys if self.named and numbers else None

    def _placed(self, X: Any) -> list[Any] | None:
        """The private columns at their positions; None if the table has no such positions."""
        names = getattr(X, "columns", None)
        if self.places is None or isinstance(X, Mapping):
            return None
        if names is not None and not all(isinstance(name, str) for name in names):
            return None  # the names are numbers and identify the columns
        whole = names is not None or isinstance(X, np.ndarray)
        rows = X if whole else np.asarray(X, dtype=object)
        width = len(names) if names is not None else (rows.shape[1] if rows.ndim == 2 else 0)
        if not 0 <= min(self.places) <= max(self.places) < width:
            return None
        return [rows[:, k] if names is None else rows[names[k]] for k in self.places]

    def check(self, X: Any) -> None:
        """Refuse a table with other columns, which are public; values are not checked."""
        if self._numbers(X) is not None:
            return
        if not self.named:
            if np.ndim(X) != 2 or np.shape(X)[1] != len(self.columns):
                rule = f"a table of {len(self.columns)} columns, as feature_ranges states"
                raise InvalidData("X", rule, f"shape {np.shape(X)}")
            return
        if self._placed(X) is not None:
            return
        there = X if isinstance(X, Mapping) else getattr(X, "columns", None)
        if there is None and self.places is not None:
            rule = f"a table of {max(self.places) + 1} columns or more, as feature_ranges states"
            raise InvalidData("X", rule, f"shape {np.shape(X)}")
        if there is None:
            raise InvalidData("X", "a DataFrame, because feature_ranges names columns")
        for column in self.columns:
            if column.key not in there:
                raise InvalidData("X", f"a table with the column {column.key!r}")

    def _cells(self, X: Any) -> list[Any]:
        """The private values by column; a missing column consists of None."""
        placed = self._placed(X)
        if placed is not None:
            return placed
        if not self.named:
            rows = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X, dtype=object)
            if rows.ndim == 2 and rows.shape[1] == len(self.columns):
                return list(rows.T)
            return [[None] * (len(rows) if rows.ndim == 2 else 1)] * len(self.columns)
        if isinstance(X, Mapping):
            missing = [None] * max((len(cells) for cells in X.values()), default=1)
            return [X.get(column.key, missing) for column in self.columns]
        missing = [None] * (len(X) if hasattr(X, "columns") else 1)
        there = getattr(X, "columns", ())
        return [X[one.key] if one.key in there else missing for one in self.columns]


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _equal(cell: object, category: object) -> bool:
    """Whether a cell holds the category; False if they cannot be compared."""
    try:
        return bool(cell == category)
    except Exception:  # such as a missing value of pandas, which has no truth value
        return False


def _column(name: str, key: object, known: object) -> Column:
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


def middle(name: str, pair: object) -> tuple[float, float]:
    """Center and half width of one public range."""
    low, high = _validate.interval(name, pair)
    return low / 2 + high / 2, high / 2 - low / 2
