"""A table on the terminal that is too wide comes in parts: no number is ever cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Column, Table

_FRAME = 3
"""What a column needs beside its text: a blank on either side and a line."""


@dataclass(frozen=True)
class Unclipped:
    """A rich table; where it does not fit, the columns that name a row are repeated in each part.

    Numbers keep their width and words break between words only, unless one column and the names
    alone are wider than the terminal.

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

    table: Table

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

    def _part(self, columns: list[Column], *, first: bool, last: bool) -> Table:
        from rich.table import Table

        whole = self.table
        table = Table(
            title=whole.title if first else None,
            caption=whole.caption if last else None,
            title_justify="left",
        )
        for column in columns:
            least, number = _least(column), column.justify == "right"
            table.add_column(  # rich takes space from columns of words only
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
    """Columns that fit beside each other, the names of rows in front."""
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
    """How many of the first columns tell all rows apart."""
    cells = [[str(cell) for cell in column.cells] for column in columns]
    for count in range(1, len(cells)):
        rows = list(zip(*cells[:count], strict=True))
        if len(set(rows)) == len(rows):
            return count
    return min(1, len(cells))


def _least(column: Column) -> int:
    """The longest word of a column, its heading included."""
    texts = [str(column.header), *map(str, column.cells)]
    return max((len(word) for text in texts for word in text.split()), default=1)
