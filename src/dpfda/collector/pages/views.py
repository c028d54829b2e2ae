"""The contents of each page; templates define the form.

Privacy:
    No data of people are used: the curve, label and randomness of the sample reply are invented
    and public.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
from litestar.response import Template
from markupsafe import Markup

from dpfda.client.http import is_loopback
from dpfda.collector.organizers import named
from dpfda.collector.pages import charts, planning
from dpfda.collector.pages.form import (
    EXAMPLES,
    PRESETS,
    check_numbers,
    facts_of,
    in_the_forms_words,
)
from dpfda.collector.pages.session import Visitor
from dpfda.collector.pages.study_view import reminders, settings, study, study_report
from dpfda.collector.pages.templating import act_name, moment, page, phase_name, qr_svg, status_name
from dpfda.collector.plans import check_sizes
from dpfda.collector.storage.base import (
    ADMINISTRATOR,
    Activity,
    Invitations,
    ModelRecord,
    Organizer,
    StudyLine,
    StudyRecord,
)
from dpfda.collector.summary import link
from dpfda.curves.files import OPTIONS
from dpfda.errors import DpfdaError
from dpfda.local.recipe import in_words, plan_from_facts
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.person import Person
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.wire import ReplyMessage
from dpfda.report import Report

_POINTS = 61
_NOTHING = "0" * 32  # placeholder for the random digits of a device
_YES = {-1.0: "no", 1.0: "yes"}


def sample_reply(
    plan: StudyPlan, value_range: tuple[float, float], units: tuple[str, str] = ("", "")
) -> dict[str, Any]:
    """An invented curve, the task of its owner, and the reply in words and bytes.

    Examples:
        >>> from dpfda import plan_study
        >>> plan = plan_study(2000, 1.0, value_range=(0, 10), classes=("no", "yes"))
        >>> sample_reply(plan, (0, 10))["sent"]
        'no, no'
    """
    start, end = plan.encoder.basis.domain_range
    low, high = value_range
    points = np.linspace(start, end, _POINTS)
    part = (points - start) / (end - start)
    curve = (low + high) / 2 + (high - low) * (0.3 * np.sin(5 * part) - 0.15 * part)
    own = plan.classes[-1] if plan.target_range is None else sum(plan.target_range) / 2
    person = Person(
        plan,
        curve=curve,
        grid_points=points,
        label=own,
        ledger=Ledger(plan.epsilon),
        accepts=plan.guarantee.assumptions,
        source=SimulationSource(0),
    )
    values = person.answer(Server(plan).issue(1)).values[0].tolist()
    body = msgspec.json.encode(ReplyMessage(plan.hash, 0, 0, values, _NOTHING))
    answers = [_YES.get(value, f"{value:g}") for value in values]
    return {
        "chart": charts.curve("a made-up curve", points.tolist(), curve.tolist(), units=units),
        "own": str(own),
        "asked": in_words(plan)[0][0]["asked"],
        "answers": len(answers),
        "sent": ", ".join(answers),
        "points": _POINTS,
        "body": body.decode(),
        "bytes": len(body),
    }


MOST_INVITED = 10_000  # most invitations on one page


def login_page(*, wrong: bool = False) -> Template:
    """The sign-in form."""
    return page("login", status=401 if wrong else 200, wrong=wrong, visitor=None)


def list_page(
    studies: list[StudyLine], *, visitor: Visitor, older: str | None = None, newest: bool = True
) -> Template:
    """Studies with their progress; `older` is the cursor of the next page."""
    named = [(one, phase_name(one.kind), status_name(one.status)) for one in studies]
    shared = any(one.owner != ADMINISTRATOR for one in studies)
    return page(
        "studies", studies=named, older=older, newest=newest, shared=shared, visitor=visitor
    )


def activity_page(
    organizers: list[Organizer],
    acts: list[Activity],
    studies: Mapping[str, str],
    *,
    older: int | None,
    newest: bool,
    visitor: Visitor,
) -> Template:
    """The organizers, and who did what.

    Args:
        organizers: all besides the administrator.
        acts: their actions, newest first.
        studies: titles of the studies of these actions, by id; "" for deleted studies.
        older: cursor of the next page.
        newest: whether this is the first page.
        visitor: who sees the page.
    """
    named = [(one, moment(one.created), moment(one.rotated)) for one in organizers]
    return page(
        "activity", organizers=named, acts=_told(acts), studies=studies, older=older,
        newest=newest, visitor=visitor,
    )  # fmt: skip


def _told(acts: Sequence[Activity]) -> list[tuple[Activity, str, str]]:
    """The actions with their time and description."""
    return [(one, moment(one.at), act_name(one.what, one.detail)) for one in acts]


def study_page(
    record: StudyRecord,
    answered: int,
    history: list[ModelRecord],
    *,
    visitor: Visitor,
    here: str = "",
    elsewhere: str | None = None,
    acts: Sequence[Activity] = (),
    invitations: Invitations | None = None,
) -> Template:
    """The page of a study.

    Args: record: the study. answered: number of replies in its current phase. history: its models.
    visitor: who sees the page. here: address of this collector for participants. elsewhere: host of
    a separate participant page. acts: actions of organizers on it, newest first. invitations: how
    many of its links were used, if it is for invited people.
    """
    joining = link(record, here, elsewhere=elsewhere)
    local = is_loopback(urlsplit(elsewhere or here).hostname or "")
    return page(
        "study",
        **study(record, answered, history, here=here, elsewhere=elsewhere),
        warnings=settings(record).warnings(json.loads(record.plan)["n_people"]),
        most_invited=MOST_INVITED,
        qr=Markup(qr_svg(joining)) if here else "",
        only_here=(elsewhere or here) if local else "",
        acts=_told(acts),
        invitations=invitations,
        reminders=reminders(record),
        mine=visitor.account.may_change(record.owner),
        owner=named(record.owner),
        editable=is_editable(record, history),
        visitor=visitor,
    )


def is_editable(record: StudyRecord, history: Sequence[ModelRecord]) -> bool:
    """Whether nobody has seen a question of this study."""
    return record.status == "open" and not record.issued and len(history) == 1


def study_parts(
    record: StudyRecord,
    answered: int,
    history: list[ModelRecord],
    *,
    here: str = "",
    invitations: Invitations | None = None,
) -> Template:
    """The parts of a page that change while a study runs."""
    return page(
        "study_parts", **study(record, answered, history, here=here), invitations=invitations
    )


def report_page(record: StudyRecord, answered: int, history: list[ModelRecord]) -> Report:
    """The report of a study."""
    return study_report(study(record, answered, history, here=""))


def invitations_page(record: StudyRecord, links: list[str], *, visitor: Visitor) -> Template:
    """New invitations, which are shown only once."""
    return page("invitations", record=record, links=links, visitor=visitor)


def close_page(
    record: StudyRecord, answered: int, history: list[ModelRecord], *, visitor: Visitor
) -> Template:
    """Asks whether to end the current phase, and states the consequences."""
    steps = json.loads(history[-1].summary)["phases"] if history else []
    wanted = steps[record.phase]["people"] if record.phase < len(steps) else record.quota
    return page(
        "close", record=record, now=phase_name(record.kind), answered=answered, wanted=wanted,
        waiting=max(record.issued - answered, 0), visitor=visitor,
    )  # fmt: skip


def unreadable_page(record: StudyRecord, *, visitor: Visitor | None) -> Template:
    """The page of a study that this release cannot read."""
    return page(
        "unreadable", title=record.title or record.id, record=record,
        status_name=status_name(record.status), visitor=visitor,
        mine=visitor is not None and visitor.account.may_change(record.owner),
    )  # fmt: skip


def interface_page(document: Mapping[str, Any], *, visitor: Visitor) -> Template:
    """The HTTP interface, from its OpenAPI document."""
    rows = [
        (method.upper(), path, operation.get("description") or operation.get("summary", ""))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if path.startswith("/api") or path in ("/health", "/metrics")
    ]
    return page("interface", rows=rows, visitor=visitor)


def new_page(
    form: Mapping[str, str],
    *,
    visitor: Visitor,
    edited: StudyRecord | None = None,
    complaint: str = "",
    outlook: planning.Outlook | None = None,
    hopeless: bool = False,
) -> Template:
    """The form for a new study, the questions to participants, and the forecast.

    Args:
        form: the values of the fields.
        visitor: who sees the page.
        edited: the study that the form changes; None if it makes a new one.
        complaint: error message about the form.
        outlook: the forecast, if requested.
        hopeless: whether to ask for confirmation, because the study cannot work.
    """
    others = planning.READING[1:]
    return page(
        "new",
        status=422 if complaint else 200,
        form=form,
        edited=edited,
        complaint=complaint,
        examples=list(EXAMPLES),
        fresh=form is PRESETS,
        planned=_planned(form),
        outlook=outlook,
        hopeless=hopeless,
        options=OPTIONS,
        reading_names=others,
        reading_chosen=any(form.get(f"read-{name}") for name in others),
        most_bytes=planning.MOST_BYTES,
        visitor=visitor,
    )


def planned_part(form: Mapping[str, str]) -> Template:
    """The questions and the guarantee of the planned study, or the reason why there is none yet."""
    return page("planned", planned=_planned(form))


def outlook_part(outlook: planning.Outlook) -> Template:
    """The expected error of the study."""
    return page("outlook", outlook=outlook)


def _planned(form: Mapping[str, str]) -> dict[str, Any]:
    facts = facts_of(form)
    try:
        check_numbers(facts)
        plan = plan_from_facts(facts)
        check_sizes(plan)
        rows, notes = in_words(plan)
        curves = "value_range" in facts
        units = form.get("domain_unit", ""), form.get("value_unit", "")
        sample = sample_reply(plan, facts["value_range"], units) if curves else None
    except DpfdaError as error:
        return {"refused": in_the_forms_words(error)}
    named = [row | {"phase": phase_name(row["phase"])} for row in rows]
    return {"refused": "", "rows": named, "notes": notes, "sample": sample}
