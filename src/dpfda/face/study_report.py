"""What the report of a study in one process shows: who was asked what, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from dpfda.protocol.plan import StudyPlan
from dpfda.report import Contents, Picture, Table

LEFT_OUT = (
    "Errors on held-out people are left out: they were computed from these people's data without "
    "noise, and are not covered by the guarantee."
)
_HELD_OUT = "held-out people"


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
) -> Contents:
    """The contents of a study's model with what the study itself knows of it.

    Args:
        own: what the model shows by itself.
        plan: the study.
        result: what it found.
        simulated: whether people are made up: only then errors on held-out people are shown.
        verdict: `protocol.judged.verdict` of it.
        draw: makes a figure.
    """
    rows, notes = result.table(), tuple(result.notes)
    hidden = bool(result.held_out) and not simulated
    if hidden:
        rows = [row for row in rows if _HELD_OUT not in row.values()]
        notes = (LEFT_OUT,)
    title = "Estimates and errors, with 95 % intervals"
    tables = [Table.of(rows, title=title)] if rows else []
    if verdict["rows"]:
        names = ("error of", "value", "low", "high")
        errors = [dict(zip(names, row, strict=True)) for row in verdict["rows"]]
        tables.append(Table.of(errors, title="Errors beside each other"))
    good = bool(verdict["rows"]) and not verdict["nothing"]
    elsewhere = not verdict["rows"] and result.held_out and not hidden
    told = () if elsewhere else (verdict["told"],)
    return replace(
        own,
        doubts=() if good else told,
        verdict=told if good else (),
        tables=(*tables, *own.tables),
        pictures=(Picture(caption="What was asked, and what was learnt.", draw=draw),),
        settings=settings(plan),
        notes=(*(note for note in notes if note not in " ".join(told)), *own.notes),
    )


def settings(plan: StudyPlan) -> dict[str, Any]:
    """The public facts of a study."""
    return {
        "people": plan.n_people,
        "ε of each": plan.epsilon,
        "what is learnt": plan.what_is_learnt,
        "design": plan.design["name"],
        "features": plan.encoder.n_features,
        "basis": plan.encoder.basis.name,
        "hash of the plan": plan.hash,
    }
