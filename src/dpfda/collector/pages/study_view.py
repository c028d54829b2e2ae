"""What one study's page shows, from what is stored of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from dpfda.collector.pages import charts
from dpfda.collector.pages.words import (
    feature_name,
    phase_name,
    score_name,
    status_name,
)
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import ModelRecord, StudyRecord
from dpfda.protocol.beside_guessing import beside_guessing
from dpfda.protocol.plan import StudyPlan

_LINES = 12  # slope functions on a page


def settings(record: StudyRecord) -> StudySettings:
    """How this collector runs a study."""
    return msgspec.json.decode(record.settings, type=StudySettings)


def link(record: StudyRecord, here: str, token: str = "") -> str:
    """Where people take part; what is after the # no browser sends."""
    return f"{here}/take-part/{record.hash}" + (f"#invitation={token}" if token else "")


def study(
    record: StudyRecord, answered: int, history: list[ModelRecord], *, here: str
) -> dict[str, Any]:
    """Everything that its templates name.

    Args:
        record: the study.
        answered: how many have answered in its present phase.
        history: its models.
        here: where people reach this collector.
    """
    found = json.loads(history[-1].summary)
    how, plan = settings(record), StudyPlan.from_dict(json.loads(record.plan))
    done = {entry.phase: entry.people for entry in history}
    finished = record.status == "finished"
    phases = _phases(record, answered, found["phases"], done)
    return {
        "title": record.title or record.id,
        "record": record,
        "status_name": status_name(record.status),
        "now": "" if finished else phase_name(record.kind),
        "plan": plan,
        "how": how,
        "here": here or "ADDRESS",
        "link": link(record, here),
        "phases": phases,
        "wanted": sum(phase["people"] for phase in phases),
        "people": (0 if finished else answered) + sum(done.values()),
        "found": found,
        "verdict": beside_guessing(plan, found, finished=finished),
        "growth": _growth(record, answered, history),
        "members": _members(found["members"]),
        "slopes": _slopes(plan, found["slope"]),
        "estimates": _estimates(plan, found),
    }


def _phases(
    record: StudyRecord, answered: int, phases: list[dict[str, Any]], done: Mapping[int, int]
) -> list[dict[str, Any]]:
    """One row for phases of one kind that follow each other: why they are several is no matter."""
    rows: list[dict[str, Any]] = []
    for number, phase in enumerate(phases):
        if not phase["people"]:
            continue
        here = number == record.phase and record.status != "finished"
        came = answered if here else done.get(number, 0)
        name = phase_name(phase["kind"])
        if not rows or rows[-1]["name"] != name:
            rows.append({"name": name, "people": 0, "came": 0, "here": False})
        row = rows[-1]
        row["people"] += phase["people"]
        row["came"] += came
        row["here"] = row["here"] or here
    return rows


def _growth(
    record: StudyRecord, answered: int, history: list[ModelRecord]
) -> dict[str, Any] | None:
    """Answers over time, by the ends of phases: when a reply came is kept nowhere."""
    counts, total = [(record.created, 0)], 0
    for entry in history:
        if entry.phase >= 0:
            total += entry.people
            counts.append((entry.created, total))
    if record.status != "finished" and answered:
        counts.append((max(time.time(), counts[-1][0]), total + answered))
    if len(counts) < 3:
        return None
    ends = _moment(counts[0][0]), _moment(counts[-1][0])
    return charts.steps("people who answered, at the end of each phase", counts, ends)


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


def _members(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not rows:
        return None
    cells = []
    for place, row in enumerate(rows, start=1):
        turned = "reversed" if row["reversed"] else ""
        shown = row | {"people": int(row["people"]), "reversed": turned}
        names = ("accuracy", "low", "high", "people", "reversed", "weight")
        cells.append([place, *(shown[name] for name in names)])
    title = "accuracy of each member, reversed ones marked, weights below"
    return {"chart": charts.members(title, rows), "rows": cells}


def _slopes(plan: StudyPlan, slopes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A picture of each, named by what it speaks for."""
    shown = []
    for one in slopes[:_LINES]:
        named = score_name(plan, one["score"])
        if plan.encoder.channels > 1:
            named += f", channel {one['channel'] + 1}"
        drawn = charts.curve(f"slope function for {named}", one["t"], one["beta"], one["error"])
        flat = one["error"] is not None and all(
            abs(beta) <= charts.WIDE * error
            for beta, error in zip(one["beta"], one["error"], strict=True)
        )
        band = one["error"] is not None
        shown.append({"name": named, "chart": drawn, "band": band, "flat": flat})
    return shown


def _estimates(plan: StudyPlan, found: Mapping[str, Any]) -> dict[str, Any] | None:
    """A table; what a model does not look at has no number in it."""
    if not found["estimates"]:
        return None
    several = plan.n_scores > 1
    headings = ["feature", found["learnt"] or "estimate", "low", "high", "people"]
    rows = []
    for row in found["estimates"]:
        numbers = [row[name] for name in ("value", "low", "high")]
        if found["learnt"] == "correlation":  # noise leads beyond what a correlation can be
            numbers = [None if one is None else min(max(one, -1.0), 1.0) for one in numbers]
        if not any(numbers):
            numbers = [None] * 3
        named = feature_name(plan.encoder, row["feature"], folded=found["folded"])
        cells = [named, *numbers, row["people"]]
        rows.append([score_name(plan, row["score"]), *cells] if several else cells)
    return {"headings": ["speaks for", *headings] if several else headings, "rows": rows}
