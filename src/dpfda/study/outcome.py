"""What a demonstration or a benchmark hands back: a table, named numbers, notes, a plot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


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


def columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of all rows, in the order in which they come.

    Examples:
        >>> columns([{"task": "a", "error": 3}, {"task": "b", "guessing": 50}])
        ['task', 'error', 'guessing']
    """
    return list(dict.fromkeys(key for row in rows for key in row))
