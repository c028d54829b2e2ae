"""Tables of results: the same cells on a terminal and on a page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

_NUMBER = re.compile(r"[-–+\d.,…e %∞±()\[\]]*")
_MOST = 12  # entries of a list that are shown


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows for people to read.

    Attributes:
        headings: of the columns.
        rows: as many cells each.
        title: what it shows.
        note: a sentence on how to read it.

    Examples:
        >>> table = Table.of([{"task": "a", "error": 3}, {"task": "b", "guessing": 50}])
        >>> table.headings, table.rows[1], table.of_numbers(1)
        (('task', 'error', 'guessing'), ('b', None, 50), True)
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str = ""
    note: str = ""

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], **more: str) -> Self:
        """One of dictionaries; what one of them has not is None."""
        names = tuple(dict.fromkeys(key for row in rows for key in row))
        cells = tuple(tuple(row.get(name) for name in names) for row in rows)
        return cls(headings=names, rows=cells, **more)

    def of_numbers(self, column: int) -> bool:
        """Whether all cells of a column are numbers, or written like some."""
        return all(_is_number(row[column]) for row in self.rows)


def _is_number(cell: Any) -> bool:
    if isinstance(cell, str):
        return _NUMBER.fullmatch(cell) is not None
    numbers = (int, float, np.integer, np.floating)
    return cell is None or (isinstance(cell, numbers) and not isinstance(cell, bool))


def show(value: Any) -> str:
    """One cell: four significant digits for a float, text as it is.

    Examples:
        >>> show(0.123456), show(3), show(None), show(math.nan), show(True), show(1234567.0)
        ('0.1235', '3', '–', '–', 'yes', '1.235e+06')
        >>> show((0.0, 1 / 3)), show({"low": 0.25})
        ('(0, 0.3333)', 'low 0.25')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray):
        return show(value.tolist())
    if isinstance(value, (tuple, list)):
        shown = [show(part) for part in value[:_MOST]]
        rest = [f"… {len(value)} in all"] if len(value) > _MOST else []
        return f"({', '.join(shown + rest)})"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {show(part)}" for key, part in value.items())
    return str(value)
