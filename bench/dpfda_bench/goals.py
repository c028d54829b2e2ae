"""Goals that figures should keep, and figures beside their goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dpfda.report.contents import Outcome, Table, show


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


def goals_table(outcome: Outcome, goals: Mapping[str, Goal], *, title: str = "") -> Table:
    """Every figure beside its goal."""
    rows = []
    for key, figure in outcome.figures.items():
        goal = goals.get(key)
        wanted = f"{goal.direction} {show(goal.bound)}" if goal else "–"
        verdict = "–" if goal is None else "yes" if goal.met(figure) else "NO"
        rows.append((key, show(figure), wanted, verdict))
    headings = ("figure", "measured", "goal", "met")
    return Table(headings=headings, rows=tuple(rows), title=title)


def missed(outcome: Outcome, goals: Mapping[str, Goal]) -> tuple[str, ...]:
    """Goals that were not met, in sentences."""
    return tuple(
        f"{key} is {show(figure)}; its goal is {goals[key].direction} {show(goals[key].bound)}."
        for key, figure in outcome.figures.items()
        if key in goals and not goals[key].met(figure)
    )
