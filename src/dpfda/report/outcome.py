"""What a demonstration or a benchmark hands back: a table, named numbers, notes, a plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpfda.report import Contents, Picture, Table


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A measured result, ready to be printed as a table, as JSON and as a picture.

    Attributes:
        rows: a table, one dictionary a row; what one of them has not is shown as a dash.
        figures: numbers by name.
        notes: sentences that a reader of the table needs.
        plot: draws the picture and returns the matplotlib figure; None if there is none.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    plot: Callable[[], Any] | None = None

    def contents(self, *, caption: str = "", **more: Any) -> Contents:
        """What a report shows of it; `more` are other parts of `Contents`."""
        figures = [{"figure": name, "value": value} for name, value in self.figures.items()]
        tables = tuple(map(Table.of, filter(None, (self.rows, figures))))
        pictures = (Picture(caption=caption, draw=self.plot),) if self.plot is not None else ()
        known: dict[str, Any] = {"tables": tables, "pictures": pictures, "notes": tuple(self.notes)}
        return Contents(**(known | more))
