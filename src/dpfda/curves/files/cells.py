"""Tables of named columns, conversion of cells to numbers, and the position of invalid cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda._validate import AnyArray, FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter

BoolArray = npt.NDArray[np.bool_]
Cells = AnyArray | Sequence[str]
"""The cells of a column."""

MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none", "missing", ".", "-", "?"}
_DATE = re.compile(r"(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d\d(:\d\d)?)", re.ASCII)
_CLOCK = re.compile(
    r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?(?: ?(?:Z|[+-]\d\d:?\d\d))?",
    re.ASCII,
)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})*(\.\d+)?", re.ASCII)
_UNIT = re.compile(r"[^\w\s]?\s*[+-]?\d[\d.,]*\s*\S{0,5}")
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"([+-]?\d+)\.0*", re.ASCII)
_DIGITS = re.compile(r"[+-]?\d+(?:[.,]\d+)?", re.ASCII)
_ALIKE = 3  # numbered columns that are unlikely to be a coincidence
_MANY = 10  # numbered rows that are unlikely to be a coincidence
_UNITS = 2  # different units in one column, counting an empty one
_FEW = 20  # most different words of a column of labels


def is_missing(cell: str) -> bool:
    """Whether a cell denotes a missing value."""
    return cell.strip().lower() in MISSING


def number(cell: str, decimal: str = ".") -> float | None:
    """A cell as a number; NaN if it is empty, None if it is not a number.

    Examples:
        >>> number(" 2,5", ","), number("2,5"), number("n/a")
        (2.5, None, nan)
    """
    text = cell.strip()
    if is_missing(text):
        return float("nan")
    if decimal != ".":
        text = "x" if "." in text else text.replace(decimal, ".")
    try:
        return None if _foreign(text) else float(text)
    except ValueError:
        return None


def numbers(cells: Cells, decimal: str = ".") -> tuple[FloatArray, int | None]:
    """A column as numbers, and the position of the first cell that is not a number."""
    if decimal == "." and not _foreign("".join(cells)):
        try:
            return np.array(cells, dtype=np.float64), None  # the common case, at numpy's speed
        except ValueError:
            pass
    found = [number(cell, decimal) for cell in cells]
    wrong = next((place for place, value in enumerate(found) if value is None), None)
    values = np.array([np.nan if value is None else value for value in found], dtype=np.float64)
    return values, wrong


def _foreign(text: str) -> bool:
    """Whether cells contain numbers that only Python accepts, such as 1_0 or other digits."""
    return "_" in text or not text.isascii()


def has_decimal_commas(cells: Sequence[str]) -> bool:
    """Whether commas are decimal marks: some number has a comma, and none has a point."""
    commas = any(_COMMA_NUMBER.fullmatch(cell.strip()) for cell in cells)
    return commas and not any("." in cell and number(cell) is not None for cell in cells)


def hours(cells: Sequence[str]) -> FloatArray | None:
    """Times of day as hours since midnight of the first day; None for other cells.

    The participant page has an equivalent reader (`clients/browser/files`).

    Examples:
        >>> hours(["7:30", "18:00:36"]), hours(["2026-01-31 23:00", "2026-02-01T01:30"])
        (array([ 7.5 , 18.01]), array([23. , 25.5]))
        >>> hours(["7.5", "18:00"])
    """
    found = [_CLOCK.fullmatch(cell.strip()) for cell in cells]
    parts = [one.groups(default="") for one in found if one is not None]
    dated = {bool(day) for day, *_ in parts}
    if not parts or len(parts) < len(found) or len(dated) > 1:
        return None
    try:
        days = [date.fromisoformat(day).toordinal() if day else 0 for day, *_ in parts]
    except ValueError:
        return None
    clock = [int(h) + int(m) / 60 + float(s or 0) / 3600 for _, h, m, s in parts]
    return np.array([24.0 * (day - days[0]) + one for day, one in zip(days, clock, strict=True)])


def label(cell: str) -> str:
    """A label as text: 1, 1.0 and "1" are the same label."""
    whole = _WHOLE.fullmatch(cell.strip())
    return whole[1] if whole else cell.strip()


def looks_like(cells: Sequence[str]) -> str:
    """The kind of content of a column that does not consist of numbers.

    Examples:
        >>> looks_like(["2021-03-01"]), looks_like(["p1", "p2"]), looks_like(["f"] * 9)
        ('dates', 'ids', 'labels')
        >>> looks_like(["1,204", "988"]), looks_like(["$8.50", "$7"])
        ('numbers with commas between thousands', 'numbers with units')
    """
    words = [cell.strip() for cell in cells if not is_missing(cell)]
    if not words:
        return "nothing"
    if _mostly(_DATE, words):
        return "dates"
    if _mostly(_THOUSANDS, words):
        return "numbers with commas between thousands"
    units = {re.sub(r"[\d.,+\s-]", "", word) for word in words}
    if _mostly(_UNIT, words) and len(units) <= _UNITS:
        return "numbers with units"
    different = len(set(words))
    if different == len(words):
        return "ids"
    return "labels" if different <= _FEW else "ids" if different < len(words) / 2 else "text"


def _mostly(pattern: re.Pattern[str], words: Sequence[str]) -> bool:
    return sum(pattern.fullmatch(word) is not None for word in words) > 0.9 * len(words)


def kind_of_numbers(values: FloatArray) -> str:
    """The kind of content of a column of numbers: values, row numbers, or identifiers.

    Examples:
        >>> kind_of_numbers(np.arange(20.0)), kind_of_numbers(1000 + 7 * np.arange(20.0))
        ('row numbers', 'ids')
        >>> kind_of_numbers(np.arange(20.0) ** 0.5)
        'numbers'
    """
    if values.size < _MANY or np.any(values[:_MANY] % 1):  # most columns end here
        return "numbers"
    steps = np.diff(values)
    if np.any(values % 1) or not np.all(steps > 0):
        return "numbers"
    return "row numbers" if values[0] in (0, 1) and np.all(steps == 1) else "ids"


def strays(names: Sequence[str]) -> list[int]:
    """Positions of columns with a unique kind of name, if most other names are numbered.

    Examples:
        >>> strays(["age", "0", "0.5", "1"]), strays(["t1", "t2", "t3", "weight kg"])
        ([0], [3])
        >>> strays(["jan", "feb", "mar"]), strays(["hip1", "hip2", "knee1", "knee2"])
        ([], [])
    """
    stems = [_DIGITS.sub("#", name.strip().lower()) for name in names]
    counts = Counter(stems)
    alike = max((counts[stem] for stem in stems if "#" in stem), default=0)
    if alike < _ALIKE or 2 * alike <= len(names):
        return []
    return [place for place, stem in enumerate(stems) if counts[stem] == 1]


def grid_in(names: Sequence[str], decimal: str = ".") -> FloatArray | None:
    """Names as grid points, if they are strictly increasing numbers; otherwise None."""
    found = [number(name, decimal) for name in names]
    points = np.array([np.nan if value is None else value for value in found])
    usable = points.size > 1 and bool(np.isfinite(points).all() and np.all(np.diff(points) > 0))
    return points if usable else None


_SPAN = ".."
NUMBER = "@"  # prefix of a column number, because names may be numbers themselves
# names that errors may show; numbers could be data of a person
_WORD = re.compile(r"[^\W\d]\w*([ .()/%-]+\w*)*")


@dataclass(frozen=True, eq=False)
class Table:
    """Some rows of a file, column by column.

    Attributes:
        names: names of the columns, or their numbers if the file has no names.
        columns: cells as text, or numbers if the file format stores numbers.
        decimal: decimal mark.
        first: number of the first row; 1 is the row below the header.
        centers: by column, the public number that replaces an empty cell.

    Examples:
        >>> table = Table(("sex", "0", "1"), (["f", "m"], ["1", "2"], ["3", ""]))
        >>> table.numbers(["0", "1"], gaps=True).tolist(), table.text("sex").tolist()
        ([[1.0, 3.0], [2.0, nan]], ['f', 'm'])
    """

    names: tuple[str, ...]
    columns: tuple[Any, ...]
    decimal: str = "."
    first: int = 1
    centers: Mapping[str, float] = field(default_factory=dict)
    _known: dict[int, tuple[FloatArray, int | None]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def column(self, place: int) -> Cells:
        """The cells of a column."""
        cells: Cells = self.columns[place]
        return cells

    def numbers(self, names: Sequence[str], *, gaps: bool = False) -> FloatArray:
        """Columns of numbers, (n, k); with `gaps`, empty cells are NaN."""
        places = [place_of(name, self.names) for name in names]
        self.read_ahead(places)
        found = [self._numbers(place, gaps=gaps) for place in places]
        return np.column_stack(found) if found else np.empty((len(self), 0))

    def read_ahead(self, places: Sequence[int]) -> None:
        """Read several columns as numbers at once, if that is faster."""

    def text(self, name: str, *, gaps: bool = False) -> AnyArray:
        """A column of labels or ids; with `gaps`, empty cells are "", otherwise refused."""
        place = place_of(name, self.names)
        column = self.column(place)
        known = {cell: label(str(cell)) for cell in set(column)}
        empty = {cell for cell, word in known.items() if is_missing(word)}
        if empty and not gaps:
            row = next(row for row, cell in enumerate(column) if cell in empty)
            raise InvalidData(self._cell(row, place), "given (--drop-empty leaves out such rows)")
        known |= dict.fromkeys(empty, "")
        return np.array([known[cell] for cell in column], dtype=object)

    def hours(self, name: str) -> FloatArray | None:
        """A column of times of day as hours since the first midnight; None for other columns."""
        return hours([str(cell) for cell in self.column(place_of(name, self.names))])

    def kind(self, place: int) -> str:
        """The kind of content of a column: numbers, row numbers, dates, ids, labels, text, none."""
        values, wrong = self._parsed(place)
        if wrong is None and not np.isnan(values).all():
            return kind_of_numbers(values)
        found = [cell for cell in map(str, self.column(place)) if not is_missing(cell)]
        right = sum(number(cell, self.decimal) is not None for cell in found)
        # A column of numbers with a few words has invalid cells; it is not a column of words.
        return "numbers" if found and 2 * right >= len(found) else looks_like(found)

    def _parsed(self, place: int) -> tuple[FloatArray, int | None]:
        if place not in self._known:
            column = self.column(place)
            if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
                self._known[place] = column.astype(np.float64), None
            else:
                self._known[place] = numbers(column, self.decimal)
        return self._known[place]

    def _numbers(self, place: int, *, gaps: bool) -> FloatArray:
        values, wrong = self._parsed(place)
        if wrong is not None:
            dated = looks_like([str(self.column(place)[wrong])]) == "dates"
            raise InvalidData(self._cell(wrong, place), "a number", "a date" if dated else "a word")
        if np.isinf(values).any():
            where = self._cell(int(np.argmax(np.isinf(values))), place)
            raise InvalidData(where, "finite", "an infinity")
        if not gaps and np.isnan(values).any():
            center = self.centers.get(self.names[place])
            if center is not None:
                return np.where(np.isnan(values), center, values)
            where = self._cell(int(np.argmax(np.isnan(values))), place)
            raise InvalidData(where, "given (pass --fill, or --drop-empty for rows without data)")
        return values

    def is_empty(self, names: Sequence[str]) -> BoolArray:
        """Which cells of some columns are empty, (n, k)."""
        places = [place_of(name, self.names) for name in names]
        self.read_ahead(places)
        found = [self._is_empty(place) for place in places]
        return np.column_stack(found) if found else np.empty((len(self), 0), dtype=bool)

    def _is_empty(self, place: int) -> BoolArray:
        values, wrong = self._parsed(place)
        if wrong is None:
            return np.isnan(values)
        return np.array([is_missing(str(cell)) for cell in self.column(place)], dtype=bool)

    def only(self, kept: BoolArray) -> Table:
        """A selection of rows, which keep their row numbers."""
        if kept.all():
            return self
        return _Selection(
            self.names,
            (),
            self.decimal,
            self.first,
            self.centers,
            whole=self,
            kept=np.flatnonzero(kept),
        )

    def row_number(self, row: int) -> int:
        """The row of the file, counted below its header."""
        return self.first + row

    def _cell(self, row: int, place: int) -> str:
        return f"row {self.row_number(row)}, {shown(place, self.names)}"


@dataclass(frozen=True, eq=False)
class _Selection(Table):
    """Some of the rows of another table."""

    whole: Table = field(default=Table((), ()), repr=False)
    kept: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    def __len__(self) -> int:
        return len(self.kept)

    def column(self, place: int) -> Cells:
        cells = self.whole.column(place)
        return cells[self.kept] if isinstance(cells, np.ndarray) else [cells[k] for k in self.kept]

    def read_ahead(self, places: Sequence[int]) -> None:
        self.whole.read_ahead(places)
        for place in places:
            values, wrong = self.whole._parsed(place)
            if wrong is None:
                self._known[place] = values[self.kept], None

    def row_number(self, row: int) -> int:
        return self.whole.row_number(int(self.kept[row]))


def shown(place: int, names: Sequence[str]) -> str:
    """A column as errors show it: its name, or its number if the name could be a value."""
    name = names[place]
    if _WORD.fullmatch(name):
        return f"column {name!r}"
    return f"column {place + 1}" if name == str(place + 1) else f"column {NUMBER}{place + 1}"


def place_of(name: str, names: Sequence[str], *, option: str = "a feature") -> int:
    """The position of a column, by its name or its number: @3 is the third."""
    if names.count(name) == 1:
        return names.index(name)
    if names.count(name) > 1:
        raise InvalidParameter(option, "a name that one column has (or a number like @3)", name)
    number = name.removeprefix(NUMBER)
    if number != name and number.isascii() and number.isdigit() and 1 <= int(number) <= len(names):
        return int(number) - 1
    words = {one.lower(): one for one in names if _WORD.fullmatch(one)}  # other names may be values
    near = get_close_matches(name.lower(), words, n=1)
    hint = f" (did you mean {words[near[0]]!r}?)" if near else ""
    raise InvalidParameter(option, f"a column of the file{hint}", name)


def places_of(text: str, names: Sequence[str], *, option: str) -> list[int]:
    """Positions of columns given like ``age,weight`` or, as a span, ``t0..t92``."""
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
