"""Named columns of cells, and the place of what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves.files import cells
from dpfda.errors import InvalidData, InvalidParameter

_SPAN = ".."
NUMBER = "@"  # in front of the number of a column: names may be numbers themselves
_WORD = re.compile(r"[^\W\d]\w*([ .()/%-]+\w*)*")  # may be shown: a number could be somebody's


@dataclass(frozen=True, eq=False)
class Table:
    """Some rows of a file, column by column.

    Attributes:
        names: of the columns; their numbers where the file has none.
        columns: cells as text, or numbers where the file itself holds numbers.
        decimal: what stands in the middle of numbers.
        first: number of the first row, counted below the header.

    Examples:
        >>> table = Table(("sex", "0", "1"), (["f", "m"], ["1", "2"], ["3", ""]))
        >>> table.numbers(["0", "1"], gaps=True).tolist(), table.text("sex").tolist()
        ([[1.0, 3.0], [2.0, nan]], ['f', 'm'])
    """

    names: tuple[str, ...]
    columns: tuple[Any, ...]
    decimal: str = "."
    first: int = 1
    _known: dict[int, tuple[FloatArray, int | None]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def column(self, place: int) -> Any:
        """The cells of a column."""
        return self.columns[place]

    def numbers(self, names: Sequence[str], *, gaps: bool = False) -> FloatArray:
        """Columns of numbers, (n, k); empty cells are NaN where there may be `gaps`."""
        places = [place_of(name, self.names) for name in names]
        self.read_ahead(places)
        found = [self._numbers(place, gaps=gaps) for place in places]
        return np.column_stack(found) if found else np.empty((len(self), 0))

    def read_ahead(self, places: Sequence[int]) -> None:
        """Read several columns as numbers at once, where that is faster."""

    def text(self, name: str) -> Any:
        """A column of labels or ids, none of them empty."""
        place = place_of(name, self.names)
        column = self.column(place)
        known = {cell: cells.label(str(cell)) for cell in set(column)}
        empty = {cell for cell, word in known.items() if cells.is_missing(word)}
        if empty:
            row = next(row for row, cell in enumerate(column) if cell in empty)
            raise InvalidData(self._cell(row, place), "given")
        return np.array([known[cell] for cell in column], dtype=object)

    def hours(self, name: str) -> FloatArray | None:
        """A column of times of day as hours since the first midnight; None if it is another."""
        return cells.hours([str(cell) for cell in self.column(place_of(name, self.names))])

    def kind(self, place: int) -> str:
        """What a column looks like: numbers, row numbers, dates, ids, labels, text, nothing."""
        values, wrong = self._parsed(place)
        if wrong is None and not np.isnan(values).all():
            return cells.kind_of_numbers(values)
        found = [cell for cell in map(str, self.column(place)) if not cells.is_missing(cell)]
        right = sum(cells.number(cell, self.decimal) is not None for cell in found)
        # One stray word in a column of numbers is a cell to be named, not a column to drop.
        return "numbers" if found and 2 * right >= len(found) else cells.looks_like(found)

    def _parsed(self, place: int) -> tuple[FloatArray, int | None]:
        if place not in self._known:
            column = self.column(place)
            numeric = isinstance(column, np.ndarray) and column.dtype.kind in "fiub"
            self._known[place] = (
                (column.astype(np.float64), None)
                if numeric
                else cells.numbers(column, self.decimal)
            )
        return self._known[place]

    def _numbers(self, place: int, *, gaps: bool) -> FloatArray:
        values, wrong = self._parsed(place)
        if wrong is not None:
            dated = cells.looks_like([str(self.column(place)[wrong])]) == "dates"
            raise InvalidData(self._cell(wrong, place), "a number", "a date" if dated else "a word")
        if np.isinf(values).any():
            where = self._cell(int(np.argmax(np.isinf(values))), place)
            raise InvalidData(where, "finite", "an infinity")
        if not gaps and np.isnan(values).any():
            where = self._cell(int(np.argmax(np.isnan(values))), place)
            raise InvalidData(where, "given (or pass --fill)", "an empty cell")
        return values

    def _cell(self, row: int, place: int) -> str:
        return f"row {self.first + row}, {shown(place, self.names)}"


def shown(place: int, names: Sequence[str]) -> str:
    """A column in words: its name, unless that might be a value that was taken for a name."""
    name = names[place]
    if _WORD.fullmatch(name):
        return f"column {name!r}"
    return f"column {place + 1}" if name == str(place + 1) else f"column {NUMBER}{place + 1}"


def place_of(name: str, names: Sequence[str], *, option: str = "a feature") -> int:
    """Where a column is, by its name or its number: @3 is the third."""
    if names.count(name) == 1:
        return names.index(name)
    if names.count(name) > 1:
        raise InvalidParameter(option, "a name that one column has (or a number like @3)", name)
    number = name.removeprefix(NUMBER)
    if number != name and number.isascii() and number.isdigit() and 1 <= int(number) <= len(names):
        return int(number) - 1
    words = {one.lower(): one for one in names if _WORD.fullmatch(one)}  # others may be values
    near = get_close_matches(name.lower(), words, n=1)
    hint = f" (did you mean {words[near[0]]!r}?)" if near else ""
    raise InvalidParameter(option, f"a column of the file{hint}", name)


def places_of(text: str, names: Sequence[str], *, option: str) -> list[int]:
    """Columns named like ``age,weight`` or, from one to another, ``t0..t92``."""
    found: list[int] = []
    for part in text.split(","):
        name = part.strip()
        if name not in names and _SPAN in name:
            ends = [place_of(end, names, option=option) for end in name.split(_SPAN, 1)]
            found += range(ends[0], ends[1] + 1)
        else:
            found.append(place_of(name, names, option=option))
    if not found or len(set(found)) < len(found):
        raise InvalidParameter(option, "different columns of the file", text)
    return found
