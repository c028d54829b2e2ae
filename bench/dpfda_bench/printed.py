"""Numbers that the papers print, as printed: a part of one file for each table."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any


def printed(name: str) -> list[dict[str, Any]]:
    """The rows of a printed table by column: numbers, words, and None where nothing is printed.

    Examples:
        >>> printed("003-table-3")[0]["FRL"]
        5.252
    """
    text = (files(__package__) / "printed.csv").read_text(encoding="utf-8")
    _, part = text.split(f"# {name}\n")
    rows = csv.DictReader(part.partition("\n\n")[0].splitlines())
    return [{key: _value(cell) for key, cell in row.items()} for row in rows]


def _value(cell: str) -> float | str | None:
    try:
        return float(cell)
    except ValueError:
        return cell or None
