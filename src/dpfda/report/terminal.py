"""How an `Outcome` is shown: table on the terminal, JSON."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.report.outcome import Outcome
from dpfda.report.table import Table, show
from dpfda.report.unclipped import Unclipped

if TYPE_CHECKING:
    from rich.console import RenderableType


def machine() -> dict[str, Any]:
    """Where a number was measured.

    Examples:
        >>> sorted(machine())
        ['cpus', 'numpy', 'platform', 'python']
    """
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
        "platform": platform.platform(),
    }


def to_json(value: Any) -> str:
    """JSON text of plain values and numpy numbers; NaN and infinity become null.

    Examples:
        >>> print(to_json({"ratio": np.float64(2.0), "missing": math.nan}))
        {
          "ratio": 2.0,
          "missing": null
        }
    """
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def rows_table(outcome: Outcome, *, title: str = "") -> RenderableType:
    """The rows as a table, with the notes below."""
    from rich.console import Group
    from rich.text import Text

    table = rich_table(Table.of(outcome.rows, title=title))
    return Group(table, *(Text(note) for note in outcome.notes))


def rich_table(shown: Table) -> RenderableType:
    """A table on the terminal; what others have written is text, not markup."""
    from rich.table import Table as RichTable
    from rich.text import Text

    words = (shown.title or None, shown.note or None)
    table = RichTable(title=words[0], caption=words[1], title_justify="left")
    for place, heading in enumerate(shown.headings):
        table.add_column(Text(heading), justify="right" if shown.of_numbers(place) else "left")
    for row in shown.rows:
        table.add_row(*(Text(show(cell)) for cell in row))
    return Unclipped(table)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
