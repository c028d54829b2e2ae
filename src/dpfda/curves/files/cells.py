"""Cells of a file as numbers, and what a column that is not made of numbers looks like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date

import numpy as np

from dpfda._validate import FloatArray

_MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none", "missing", ".", "-", "?"}
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
_ALIKE = 3  # columns that are numbered hardly by chance
_MANY = 10  # rows that are hardly numbered by chance
_UNITS = 2  # different ones in a column, no unit among them
_FEW = 20  # different words: more are no set of labels


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is nothing in it."""
    return cell.strip().lower() in _MISSING


def number(cell: str, decimal: str = ".") -> float | None:
    """A cell as a number, NaN where it is empty, None where it is something else.

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


def numbers(cells: Sequence[str], decimal: str = ".") -> tuple[FloatArray, int | None]:
    """A column as numbers, and the place of the first cell that is none."""
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
    """Whether Python would read numbers from what nobody else takes for one: 1_0, other digits."""
    return "_" in text or not text.isascii()


def has_decimal_commas(cells: Sequence[str]) -> bool:
    """Whether commas stand where other files have points: some cell has one, none has a point."""
    commas = any(_COMMA_NUMBER.fullmatch(cell.strip()) for cell in cells)
    return commas and not any("." in cell and number(cell) is not None for cell in cells)


def hours(cells: Sequence[str]) -> FloatArray | None:
    """Times of day as hours since midnight, of the first day where they have dates; or None.

    The page on which people take part reads the same (`clients/browser/page/csv.ts`).

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
    """A class as text: 1, 1.0 and "1" are the same label."""
    whole = _WHOLE.fullmatch(cell.strip())
    return whole[1] if whole else cell.strip()


def looks_like(cells: Sequence[str]) -> str:
    """What a column that is not made of numbers seems to hold.

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
    """What a column of numbers seems to hold: it may number the rows, or name them.

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
    """Places of columns that are named alone, where most others are numbered alike.

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
    """Names as grid points, where they are strictly increasing numbers."""
    found = [number(name, decimal) for name in names]
    points = np.array([np.nan if value is None else value for value in found])
    usable = points.size > 1 and bool(np.isfinite(points).all() and np.all(np.diff(points) > 0))
    return points if usable else None
