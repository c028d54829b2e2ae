"""What each page shows; the templates say how."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar.response import Template
from markupsafe import Markup

from dpfda.collector.pages import charts, planning
from dpfda.collector.pages.form import check_numbers, facts_of, in_the_forms_words
from dpfda.collector.pages.sample_reply import sample_reply
from dpfda.collector.pages.templating import page
from dpfda.collector.pages.words import phase_name
from dpfda.collector.plans import check_sizes
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import ModelRecord, StudyLine, StudyRecord
from dpfda.errors import DpfdaError
from dpfda.files import OPTIONS
from dpfda.protocol.plan import StudyPlan
from dpfda.recipe import in_words, plan_from_facts

MOST_INVITED = 10_000  # at once, on one page


def login_page(*, wrong: bool = False) -> Template:
    """Asks for the key."""
    return page("login", status=401 if wrong else 200, wrong=wrong, csrf="")


def list_page(
    studies: list[StudyLine], *, csrf: str, older: str | None = None, newest: bool = True
) -> Template:
    """Studies with their progress; `older` is the cursor of the next page."""
    return page("studies", studies=studies, older=older, newest=newest, csrf=csrf)


def study_page(
    record: StudyRecord, answered: int, history: list[ModelRecord], *, csrf: str
) -> Template:
    """One study."""
    return page(
        "study",
        **_study(record, answered, history),
        warnings=_how(record).warnings(),
        most_invited=MOST_INVITED,
        csrf=csrf,
    )


def study_parts(record: StudyRecord, answered: int, history: list[ModelRecord]) -> Template:
    """What changes while a study runs."""
    return page("study_parts", **_study(record, answered, history))


def report_page(
    record: StudyRecord, answered: int, history: list[ModelRecord], style: str
) -> Template:
    """A study in one file, to keep."""
    return page("report", **_study(record, answered, history), style=Markup(style), csrf="")


def invitations_page(record: StudyRecord, tokens: list[str], *, csrf: str) -> Template:
    """New invitations, for the only time."""
    anybody = _how(record).open
    return page("invitations", record=record, anybody=anybody, tokens=tokens, csrf=csrf)


def unreadable_page(record: StudyRecord, *, csrf: str) -> Template:
    """A study of which only this much is known."""
    return page("unreadable", title=record.title or record.id, record=record, csrf=csrf)


def interface_page(document: Mapping[str, Any], *, csrf: str) -> Template:
    """The HTTP interface, from its OpenAPI document."""
    rows = [
        (method.upper(), path, operation.get("description") or operation.get("summary", ""))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if path.startswith("/api") or path in ("/health", "/metrics")
    ]
    return page("interface", rows=rows, csrf=csrf)


def new_page(
    form: Mapping[str, str],
    *,
    csrf: str,
    complaint: str = "",
    outlook: planning.Outlook | None = None,
    hopeless: bool = False,
) -> Template:
    """The form for a new study, beside what people would be asked in it, and its forecast.

    Args:
        form: what is in it.
        csrf: the session's token.
        complaint: why it was not taken.
        outlook: the forecast, if it was asked for.
        hopeless: whether to ask if the study is to be created nevertheless.
    """
    others = planning.READING[1:]
    return page(
        "new",
        status=422 if complaint else 200,
        form=form,
        complaint=complaint,
        planned=_planned(form),
        outlook=outlook,
        hopeless=hopeless,
        options=OPTIONS,
        reading_names=others,
        reading_chosen=any(form.get(f"read-{name}") for name in others),
        most_bytes=planning.MOST_BYTES,
        csrf=csrf,
    )


def planned_part(form: Mapping[str, str]) -> Template:
    """Who would be asked what, and what they are promised; or why there is no study yet."""
    return page("planned", planned=_planned(form))


def outlook_part(outlook: planning.Outlook) -> Template:
    """What the study would be worth."""
    return page("outlook", outlook=outlook)


def _planned(form: Mapping[str, str]) -> dict[str, Any]:
    facts = facts_of(form)
    try:
        check_numbers(facts)
        plan = plan_from_facts(facts)
        check_sizes(plan)
        rows, notes = in_words(plan)
        sample = sample_reply(plan, facts["value_range"])
    except DpfdaError as error:
        return {"refused": in_the_forms_words(error)}
    named = [row | {"phase": phase_name(row["phase"])} for row in rows]
    return {"refused": "", "rows": named, "notes": notes, "sample": sample}


def _how(record: StudyRecord) -> StudySettings:
    return msgspec.json.decode(record.settings, type=StudySettings)


def _study(record: StudyRecord, answered: int, history: list[ModelRecord]) -> dict[str, Any]:
    newest = json.loads(history[-1].summary)
    done = {entry.phase: entry.people for entry in history}
    return {
        "title": record.title or record.id,
        "record": record,
        "plan": StudyPlan.from_dict(json.loads(record.plan)),
        "anybody": _how(record).open,
        "phases": list(_phases(record, answered, newest["phases"], done)),
        "people": answered + sum(done.values()),
        "found": newest,
        "members": _members(newest["members"]),
        "slope": _slope(newest["slope"]),
        "estimates": [
            [row[name] for name in ("score", "feature", "value", "low", "high", "people")]
            for row in newest["estimates"]
        ],
    }


def _phases(
    record: StudyRecord, answered: int, phases: list[dict[str, Any]], done: Mapping[int, int]
) -> Any:
    for number, phase in enumerate(phases):
        if phase["people"]:
            here = number == record.phase and record.status != "finished"
            yield phase | {"came": answered if here else done.get(number, 0)}


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


def _slope(slopes: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not slopes:
        return None
    return charts.curve("slope function", slopes[0]["t"], slopes[0]["beta"])
