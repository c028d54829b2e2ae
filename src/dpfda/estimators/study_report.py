"""What the report of a study in one process shows: who was asked what, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from dpfda.protocol.comparison import HELD_OUT
from dpfda.protocol.plan import StudyPlan
from dpfda.report import Contents, Picture, Table

LEFT_OUT = (
    "Errors on held-out people are left out: they were computed from these people's data without "
    "noise, and are not covered by the guarantee."
)
_BETTER, _NO_BETTER = "Better than", ("No better than", "Worse than")  # than guessing, or the mean


class Result(Protocol):
    """Numbers of a study with their intervals, and what they mean."""

    held_out: int
    notes: list[str]

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row a number."""


def of_study(
    own: Contents,
    plan: StudyPlan,
    result: Result,
    *,
    simulated: bool,
    verdict: Mapping[str, Any],
    draw: Callable[[], Any],
    replies: Sequence[str] = (),
) -> Contents:
    """The contents of a study's model with what the study itself knows of it.

    Args:
        own: what the model shows by itself.
        plan: the study.
        result: what it found.
        simulated: whether people are made up: only then errors on held-out people are shown.
        verdict: `protocol.beside_guessing` of it.
        draw: makes a figure.
        replies: those notes of the result that rest on replies alone.
    """
    rows, notes = result.table(), tuple(result.notes)
    hidden = bool(result.held_out) and not simulated
    if hidden:
        rows = [row for row in rows if HELD_OUT not in row.values()]
        notes = (*replies, LEFT_OUT)
    title = "Estimates and errors; low and high are 1.96 standard errors of the noise away"
    tables = [Table.of(rows, title=title)] if rows else []
    if verdict["rows"]:
        tables.append(errors(plan, verdict["rows"]))
    good = not verdict["nothing"]
    elsewhere = not verdict["rows"] and result.held_out and not hidden
    told = () if elsewhere or not verdict["told"] else (verdict["told"],)
    better = tuple(note for note in notes if note.startswith(_BETTER))
    no_better = tuple(note for note in notes if note.startswith(_NO_BETTER))
    notes = tuple(note for note in notes if note not in better + no_better)
    return replace(
        own,
        doubts=(() if good else told) + no_better,
        verdict=(told if good else ()) + better,
        tables=(*tables, *own.tables),
        pictures=(Picture(caption="What was asked, and what was learnt.", draw=draw),),
        settings=settings(plan),
        notes=(*(note for note in notes if note not in " ".join(told)), *own.notes),
    )


def errors(plan: StudyPlan, rows: Sequence[Sequence[Any]], note: str = "") -> Table:
    """Errors beside each other: shares of labels in percent, those of a number in its unit.

    Examples:
        >>> from dpfda.local.recipe import plan_study
        >>> plan = plan_study(100, 1.0, value_range=(0, 1), classes=("no", "yes"))
        >>> errors(plan, [("this model", 0.125, -0.1, 0.3)]).rows
        (('this model', '12.5 %', '0.0 %', '30.0 %'),)
    """

    def shown(error: float | None) -> Any:
        if error is None or plan.target_range is not None:
            return error
        return f"{100 * min(max(error, 0.0), 1.0):.1f} %"  # noise leads beyond what a share can be

    cells = tuple((name, *map(shown, numbers)) for name, *numbers in rows)
    headings = ("error of", "error", "low", "high")
    return Table(headings=headings, rows=cells, title="Errors beside each other", note=note)


def settings(plan: StudyPlan) -> dict[str, Any]:
    """The public facts of a study."""
    basis = plan.encoder.basis
    known = {
        "people": plan.n_people,
        "ε of each": plan.epsilon,
        "what is learnt": plan.what_is_learnt,
        "what is protected": plan.protects,
        "range of t": basis.domain_range if basis.functional else None,
        "features": f"{plan.encoder.n_features} ({basis.name})",
        "design": plan.design,
        "hash of the plan": plan.hash,
    }
    return {name: value for name, value in known.items() if value is not None}
