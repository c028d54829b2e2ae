"""Print an `Outcome`: as a table on the terminal, or as JSON.

A table that is too wide for the terminal is split into parts; no number is cut.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.report.contents import Outcome, Table, show

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Column
    from rich.table import Table as RichTable


_FRAME = 3
"""Width of a column besides its text: two blanks and a line."""


@dataclass(frozen=True)
class Unclipped:
    """A rich table that is split into parts if it is too wide; each part repeats the row names.

    Numbers are never broken, and text is broken only between words, unless the row names and one
    column are already wider than the terminal.

    Examples:
        >>> from rich.console import Console
        >>> from rich.table import Table
        >>> table = Table("method", "first", "second")
        >>> table.add_row("one", "0.123", "0.456")
        >>> Console(width=22).print(Unclipped(table))
        ┏━━━━━━━━┳━━━━━━━┓
        ┃ method ┃ first ┃
        ┡━━━━━━━━╇━━━━━━━┩
        │ one    │ 0.123 │
        └────────┴───────┘
        ┏━━━━━━━━┳━━━━━━━━┓
        ┃ method ┃ second ┃
        ┡━━━━━━━━╇━━━━━━━━┩
        │ one    │ 0.456  │
        └────────┴────────┘
    """

    table: RichTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, or its parts one after the other."""
        from rich.measure import Measurement

        whole = Measurement.get(console, options.update(width=100_000), self.table).maximum
        if whole <= options.max_width:
            yield self.table
            return
        parts = list(_parts(self.table.columns, options.max_width - 1))
        for number, part in enumerate(parts):
            yield self._part(part, first=number == 0, last=number == len(parts) - 1)

    def _part(self, columns: list[Column], *, first: bool, last: bool) -> RichTable:
        from rich.table import Table as RichTable

        whole = self.table
        table = RichTable(
            title=whole.title if first else None,
            caption=whole.caption if last else None,
            title_justify="left",
        )
        for column in columns:
            least, number = _least(column), column.justify == "right"
            table.add_column(  # only columns of words may shrink
                column.header,
                justify=column.justify,
                width=least if number else None,
                min_width=least,
                overflow="fold",
            )
        for row in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*row)
        return table


def _parts(columns: list[Column], width: int) -> Iterator[list[Column]]:
    """Groups of columns that fit the width, each with the row names in front."""
    names = columns[: _naming(columns)]
    if sum(_least(column) + _FRAME for column in names) > width // 2:
        names = columns[:1]
    used = taken = sum(_least(column) + _FRAME for column in names)
    part = list(names)
    for column in columns[len(names) :]:
        need = _least(column) + _FRAME
        if taken + need > width and len(part) > len(names):
            yield part
            part, taken = list(names), used
        part.append(column)
        taken += need
    yield part


def _naming(columns: list[Column]) -> int:
    """Number of leading columns that identify every row."""
    cells = [[str(cell) for cell in column.cells] for column in columns]
    for count in range(1, len(cells)):
        rows = list(zip(*cells[:count], strict=True))
        if len(set(rows)) == len(rows):
            return count
    return min(1, len(cells))


def _least(column: Column) -> int:
    """The length of the longest word of a column, including its heading."""
    texts = [str(column.header), *map(str, column.cells)]
    return max((len(word) for text in texts for word in text.split()), default=1)


def machine() -> dict[str, Any]:
    """The machine on which numbers were measured.

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


def to_json(value: object) -> str:
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
    """A table for the terminal; cells are shown as text, not as markup."""
    from rich.table import Table as RichTable
    from rich.text import Text

    words = (shown.title or None, shown.note or None)
    table = RichTable(title=words[0], caption=words[1], title_justify="left")
    for place, heading in enumerate(shown.headings):
        table.add_column(Text(heading), justify="right" if shown.of_numbers(place) else "left")
    for row in shown.rows:
        table.add_row(*(Text(show(cell)) for cell in row))
    return Unclipped(table)


def _plain(value: object) -> object:
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
