"""What a benchmark or a reproduction hands back: a table, named numbers, notes, a plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A measured result, ready to be printed as a table, as JSON and as a picture.

    Attributes:
        rows: a table, one dictionary a row, all with the same keys.
        figures: the numbers that goals speak of.
        notes: sentences that a reader of the table needs.
        plot: draws the picture and returns the matplotlib figure; None if there is none.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    plot: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Goal:
    """A bound that a figure should keep.

    Example:
        >>> at_most(0.2).met(0.15), at_least(20).met(12)
        (True, False)
    """

    bound: float
    direction: Literal["at least", "at most"]

    def met(self, figure: float) -> bool:
        """Whether `figure` keeps the bound."""
        return figure >= self.bound if self.direction == "at least" else figure <= self.bound


def at_least(bound: float) -> Goal:
    """A figure that should be large."""
    return Goal(bound, "at least")


def at_most(bound: float) -> Goal:
    """A figure that should be small."""
    return Goal(bound, "at most")
