"""Goals that figures should keep, and figures beside their goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dpfda.study.outcome import Outcome
from dpfda.study.results import show

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Goal:
    """A bound that a figure should keep.

    Examples:
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


def goals_table(outcome: Outcome, goals: Mapping[str, Goal], *, title: str = "") -> RenderableType:
    """Every figure beside its goal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for heading in ("figure", "measured", "goal", "met"):
        table.add_column(heading, justify="right" if heading == "measured" else "left")
    for key, figure in outcome.figures.items():
        goal = goals.get(key)
        wanted = f"{goal.direction} {show(goal.bound)}" if goal else "–"
        verdict = "–" if goal is None else "yes" if goal.met(figure) else "NO"
        table.add_row(key, show(figure), wanted, Text(verdict, "bold red" * (verdict == "NO")))
    return table
