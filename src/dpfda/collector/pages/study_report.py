"""A study in the form of every report, from what its page shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfda.collector.pages.templating import drawn
from dpfda.estimators.study_report import errors, settings
from dpfda.privacy.deployment import Deployment
from dpfda.protocol.plan import StudyPlan
from dpfda.report import Contents, Picture, Report, Table

_COMPUTED = "Everything here is computed from randomized replies, one of each person."
_FORGOTTEN = "Older replies were forgotten: new ones contradict them."


def study_report(shown: Mapping[str, Any]) -> Report:
    """The page; `shown` is what `study_view.study` says."""
    plan, found, verdict = shown["plan"], shown["found"], shown["verdict"]
    bad = verdict["nothing"]
    doubts = found["notes"] + [verdict["told"]] * bool(bad and verdict["told"])
    doubts += [
        f"Slope for {one['name']}: {one['doubt']}" for one in shown["slopes"] if one["doubt"]
    ]
    contents = Contents(
        verdict=() if bad else (verdict["told"],),
        doubts=tuple(doubts),
        tables=tuple(_tables(shown)),
        pictures=tuple(_pictures(shown)),
        settings=settings(plan) | _units(shown["how"]),
        notes=(_FORGOTTEN,) * bool(found["drifted"]),
    )
    facts = Deployment(
        product=_product(plan),
        mechanism=f"randomized replies (design {plan.design['name']})",
        guarantee=plan.guarantee,
        records=shown["people"],
        domain=_domain(plan),
        computed=f"{_COMPUTED} {verdict['told']}".strip(),
    )
    return Report.of(facts, contents, title=str(shown["title"]))


def _product(plan: StudyPlan) -> str:
    rows = "curves" if plan.encoder.basis.functional else "rows of numbers"
    if plan.target_range is not None:
        return f"a rule that predicts a number from {rows}"
    return f"a rule that assigns one of the labels {', '.join(map(str, plan.classes))} to {rows}"


def _tables(shown: Mapping[str, Any]) -> list[Table]:
    tables = []
    if shown["verdict"]["rows"]:
        judged = shown["found"]["error"]["people"]
        note = f"95 % intervals from {judged:,} evaluation participants' noisy answers."
        tables.append(errors(shown["plan"], shown["verdict"]["rows"], note))
    phases = [
        {"asked": one["name"], "answered": one["came"], "wanted": one["people"]}
        for one in shown["phases"]
    ]
    tables.append(Table.of(phases, title="Who was asked what"))
    if shown["members"]:
        headings = ("model", "accuracy", "low", "high", "judged by", "reversed", "weight")
        told = tuple(map(tuple, shown["members"]["rows"]))
        title = "First models, with 95 % intervals"
        tables.append(Table(headings=headings, rows=told, title=title))
    if shown["estimates"]:
        learnt, named = shown["estimates"]["rows"], tuple(shown["estimates"]["headings"])
        rows = tuple(map(tuple, learnt))
        note, title = shown["estimates"]["note"], "What was learnt about each feature"
        tables.append(Table(headings=named, rows=rows, title=title, note=note))
    return tables


def _pictures(shown: Mapping[str, Any]) -> list[Picture]:
    pictures = []
    for one in shown["slopes"]:
        told = f"Slope function β(t): where it is above 0, larger x(t) speaks for {one['name']}."
        told += f" {one['note']}"
        pictures.append(Picture(caption=told, svg=drawn("curve", one["chart"])))
    if shown["members"]:
        told = "First models: accuracy with interval; reversed ones in another color; weights."
        pictures.append(Picture(caption=told, svg=drawn("members", shown["members"]["chart"])))
    if shown["growth"]:
        told = "People who answered, counted at the end of each phase (UTC)."
        pictures.append(Picture(caption=told, svg=drawn("curve", shown["growth"])))
    return pictures


def _domain(plan: StudyPlan) -> dict[str, Any]:
    if plan.target_range is not None:
        return {"target_range": plan.target_range}
    return {"classes": plan.classes}


def _units(how: Any) -> dict[str, Any]:
    units = {"unit of t": how.domain_unit, "unit of values": how.value_unit}
    units |= {"unit of the number": how.target_unit}
    return {name: unit for name, unit in units.items() if unit}
