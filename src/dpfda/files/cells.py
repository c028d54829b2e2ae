"""Cells of a file as numbers, and what a column that is not made of numbers looks like."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from dpfda._validate import FloatArray

_MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none", "missing", ".", "-", "?"}
_DATE = re.compile(r"(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d\d(:\d\d)?)", re.ASCII)
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"([+-]?\d+)\.0*", re.ASCII)
_MANY = 10  # rows that are hardly numbered by chance
_FEW = 20  # different words: more are no set of labels


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is nothing in it."""
    return cell.strip().lower() in _MISSING


def number(cell: str, decimal: str = ".") -> float | None:
    """A cell as a number, NaN where it is empty, None where it is something else.

    Example:
        >>> number(" 2,5", ","), number("2,5"), number("n/a")
        (2.5, None, nan)
    """
    text = cell.strip()
    if is_missing(text):
        return float("nan")
    if decimal != ".":
        text = "x" if "." in text else text.replace(decimal, ".")
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def numbers(cells: Sequence[str], decimal: str = ".") -> tuple[FloatArray, int | None]:
    """A column as numbers, and the place of the first cell that is none."""
    if decimal == ".":
        try:
            return np.array(cells, dtype=np.float64), None  # the common case, at numpy's speed
        except ValueError:
            pass
    found = [number(cell, decimal) for cell in cells]
    wrong = next((place for place, value in enumerate(found) if value is None), None)
    values = np.array([np.nan if value is None else value for value in found], dtype=np.float64)
    return values, wrong


def has_decimal_commas(cells: Sequence[str]) -> bool:
    """Whether commas stand where other files have points: some cell has one, none has a point."""
    commas = any(_COMMA_NUMBER.fullmatch(cell.strip()) for cell in cells)
    return commas and not any("." in cell and number(cell) is not None for cell in cells)


def label(cell: str) -> str:
    """A class as text: 1, 1.0 and "1" are the same label."""
    whole = _WHOLE.fullmatch(cell.strip())
    return whole[1] if whole else cell.strip()


def looks_like(cells: Sequence[str]) -> str:
    """What a column that is not made of numbers seems to hold.

    Example:
        >>> looks_like(["2021-03-01"]), looks_like(["p1", "p2"]), looks_like(["f"] * 9)
        ('dates', 'ids', 'labels')
    """
    words = [cell.strip() for cell in cells if not is_missing(cell)]
    if words and sum(_DATE.fullmatch(word) is not None for word in words) > 0.9 * len(words):
        return "dates"
    different = len(set(words))
    if different == len(words):
        return "ids"
    return "labels" if different <= _FEW else "ids" if different < len(words) / 2 else "text"


def counts_rows(values: FloatArray) -> bool:
    """Whether a column holds 0, 1, 2, ... or 1, 2, 3, ...: it numbers the rows."""
    return values.size >= _MANY and values[0] in (0, 1) and bool(np.all(np.diff(values) == 1))


def grid_in(names: Sequence[str], decimal: str = ".") -> FloatArray | None:
    """Names as grid points, where they are strictly increasing numbers."""
    found = [number(name, decimal) for name in names]
    points = np.array([np.nan if value is None else value for value in found])
    usable = points.size > 1 and bool(np.isfinite(points).all() and np.all(np.diff(points) > 0))
    return points if usable else None
