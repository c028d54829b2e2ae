"""Routes of the dashboard: the list of studies, the form for a new study, the pages of a study."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from litestar import MediaType, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Template

from dpfda.collector.api import After, BeforeNumber, Service, StudyName, host_of, page_of
from dpfda.collector.limits import AdminAuth
from dpfda.collector.log import failure
from dpfda.collector.organizers import FIRST
from dpfda.collector.pages import planning, session, views
from dpfda.collector.pages.codebook import codebook
from dpfda.collector.pages.form import (
    EXAMPLES,
    PRESETS,
    check_numbers,
    check_title,
    facts_of,
    form_of,
    in_the_forms_words,
    information_of,
    settings_of,
)
from dpfda.collector.pages.participant import take_part, worker
from dpfda.collector.pages.session import (
    LARGE,
    SMALL,
    Asked,
    Page,
    Visiting,
    Visitor,
    form_in,
    go,
    own_form,
    posted,
)
from dpfda.collector.pages.study_view import settings
from dpfda.collector.pages.templating import text
from dpfda.collector.refusal import Refused, begun, note_known
from dpfda.collector.service import Collector
from dpfda.collector.settings import Settings
from dpfda.collector.storage.base import StudyRecord
from dpfda.collector.summary import link
from dpfda.errors import DpfdaError
from dpfda.local.recipe import plan_from_facts
from dpfda.protocol.plan import StudyPlan

_HEX = re.compile("[0-9a-f]{1,64}")
_AT_ONCE = 2  # limit on running forecasts for a forecast that updates while the form is edited


@get("/new", include_in_schema=False)
async def new_form(
    collector: Service, visitor: Visiting, example: FromQuery[str] = "", like: FromQuery[str] = ""
) -> Page:
    """The form for a new study, filled with presets, an example, or another study."""
    visitor.account.require_creator()
    if example in EXAMPLES:
        filled = PRESETS | {"title-0": example.capitalize()} | EXAMPLES[example]
        return views.new_page(filled, visitor=visitor)
    if not like:
        return views.new_page(PRESETS, visitor=visitor)
    record = await collector.study(like[:64])
    try:
        filled = form_of(StudyPlan.from_dict(json.loads(record.plan)), settings(record))
    except DpfdaError as error:
        return views.new_page(PRESETS, visitor=visitor, complaint=in_the_forms_words(error))
    return views.new_page(filled, visitor=visitor)


@get("/planned", include_in_schema=False)
async def show_plan(request: Asked, visitor: Visiting) -> Page:
    """Preview the questions of the study that the form describes."""
    visitor.account.require_creator()
    return views.planned_part(_typed(request))


@get("/outlook", include_in_schema=False)
async def show_outlook(request: Asked, visitor: Visiting) -> Page:
    """Preview the expected error of the study while the form is edited."""
    visitor.account.require_creator()
    form = _typed(request)
    found = await planning.outlook(facts_of(form), form, quick=True, waiting=_AT_ONCE)
    return views.outlook_part(found)


@get("/study/{study:str}/edit", include_in_schema=False)
async def edit_form(study: StudyName, collector: Service, visitor: Visiting) -> Page:
    """The form for changing a study that nobody has joined."""
    record = await _own(collector, study, visitor)
    if not views.is_editable(record, await collector.models(study)):
        raise begun()
    plan = StudyPlan.from_dict(json.loads(record.plan))
    try:
        filled = form_of(plan, settings(record)) | {"seed-0": str(plan.seed)}
    except DpfdaError:
        told = "this study was planned elsewhere, with settings that the form does not have"
        raise Refused(409, "not_of_form", told) from None
    return views.new_page(filled, visitor=visitor, edited=record)


@post("/study/{study:str}/edit", include_in_schema=False, request_max_body_size=LARGE)
async def edit_study(
    study: StudyName, request: Asked, collector: Service, visitor: Visiting
) -> Page:
    """Change a study that nobody has joined."""
    record = await _own(collector, study, visitor)
    return await _saved(await own_form(request, visitor.csrf), collector, visitor, record)


@post("/new", include_in_schema=False, request_max_body_size=LARGE)
async def create_study(request: Asked, collector: Service, visitor: Visiting) -> Page:
    """Create a study from the form."""
    visitor.account.require_creator()
    return await _saved(await own_form(request, visitor.csrf), collector, visitor, None)


async def _saved(
    form: dict[str, str], collector: Collector, visitor: Visitor, edited: StudyRecord | None
) -> Page:
    """Store the study of the form, as a new one or instead of `edited`.

    A study that cannot work is stored only if the organizer confirms it.

    Args:
        form: fields of the form.
        collector: stores it.
        visitor: the organizer who sent the form.
        edited: the study to change.
    """
    facts = facts_of(form)
    try:
        check_numbers(facts)
        check_title(facts)
        how = settings_of(form, None if edited is None else settings(edited))
        plan = replace(plan_from_facts(facts), information=information_of(form))
        if form.get("anyway") != "yes":
            found = await planning.outlook(facts, form | {"error": ""}, quick=True)
            if found.prospect == "cannot work":
                told = f"{found.first} Nothing was {'created' if edited is None else 'changed'}."
                return views.new_page(
                    form, visitor=visitor, edited=edited, complaint=told, outlook=found,
                    hopeless=True,
                )  # fmt: skip
        sent, by = plan.to_dict(), visitor.account.name
        if edited is None:
            record = await collector.create(sent, how, by=by)
        else:
            record = await collector.edit(edited.id, sent, how, by=by)
    except DpfdaError as error:
        told = in_the_forms_words(error)
        return views.new_page(form, visitor=visitor, edited=edited, complaint=told)
    return go(f"/study/{record.id}")


@post("/forecast", include_in_schema=False, request_max_body_size=LARGE + 4 * planning.MOST_BYTES)
async def forecast_study(request: Asked, collector: Service, visitor: Visiting) -> Page:
    """The form with a forecast of the study in it."""
    visitor.account.require_creator()
    form, file = posted(await request.body(), request.headers.get("content-type", ""))
    session.check_form(visitor.csrf, form, request)
    outlook = await planning.outlook(facts_of(form), form, file)
    edits = form.get("edits", "")[:64]
    edited = await _own(collector, edits, visitor) if _HEX.fullmatch(edits) else None
    return views.new_page(form, visitor=visitor, edited=edited, outlook=outlook)


def _typed(request: Asked) -> dict[str, str]:
    form = {key: str(value) for key, value in request.query_params.items()}
    if sum(map(len, form.values())) > SMALL:
        raise Refused(413, "too_large", "more than a form holds")
    return form


log = logging.getLogger("dpfda.collector")


@get("/study/{study:str}", include_in_schema=False)
async def show_study(
    study: StudyName, request: Asked, collector: Service, visitor: Visiting
) -> Page:
    """The page of a study."""
    found = await _everything(collector, study)
    here, elsewhere = _here(request), _elsewhere(request)
    acts = await collector.activities(most=_ACTS, study=study)
    invitations = await collector.invitations(found[0])

    def draw() -> Template:
        return views.study_page(
            *found, visitor=visitor, here=here, elsewhere=elsewhere, acts=acts,
            invitations=invitations,
        )  # fmt: skip

    return _shown(found[0], draw, visitor)


@get("/study/{study:str}/live", include_in_schema=False)
async def live_study(
    study: StudyName, request: Asked, collector: Service, visitor: Visiting
) -> Page:
    """The changing part of a study's page."""
    found = await _everything(collector, study)
    invitations = await collector.invitations(found[0])
    return _shown(
        found[0],
        lambda: views.study_parts(*found, here=_here(request), invitations=invitations),
    )


@get("/study/{study:str}/report", include_in_schema=False)
async def download_report(
    study: StudyName, request: Asked, collector: Service, visitor: Visiting
) -> Page:
    """The study as one HTML file."""
    found = await _everything(collector, study)
    answer = _shown(found[0], lambda: views.report_page(*found).html())
    answer.headers["Content-Disposition"] = f'attachment; filename="study-{study}.html"'
    return answer


@post("/study/{study:str}/invite", include_in_schema=False, request_max_body_size=SMALL)
async def invite(
    study: StudyName,
    request: Asked,
    collector: Service,
    visitor: Visiting,
) -> Page:
    """Make invitations and show them."""
    record = await _own(collector, study, visitor)
    form = await own_form(request, visitor.csrf)
    count = form.get("count", "")
    many = int(count) if count.isdecimal() and len(count) < 9 else 0
    if not 1 <= many <= views.MOST_INVITED:
        told = f"between 1 and {views.MOST_INVITED} people can be invited at once"
        raise Refused(422, "bad_count", told)
    tokens = await collector.invite(study, many, by=visitor.account.name)
    here, elsewhere = _here(request), _elsewhere(request)
    links = [link(record, here, token, elsewhere=elsewhere) for token in tokens]
    if form.get("as") == "file":
        lines = "".join(f"{number},{one}\r\n" for number, one in enumerate(links, start=1))
        return _download(f"number,link\r\n{lines}", "text/csv", f"invitations-{study}.csv")
    return views.invitations_page(record, links, visitor=visitor)


@get("/study/{study:str}/export/{what:str}", include_in_schema=False)
async def export(
    study: StudyName, what: FromPath[str], collector: Service, visitor: Visiting
) -> Page:
    """Download the plan, the newest model, the sums of all replies, or a codebook of them."""
    record = await collector.study(study)
    if what == "codebook":
        newest = (await collector.models(study))[-1]
        plan, how = StudyPlan.from_dict(json.loads(record.plan)), settings(record)
        lines = codebook(plan, how, json.loads(newest.document), json.loads(newest.summary))
        return _download(lines, "text/csv", f"codebook-{study}.csv")
    if what == "plan":
        content = record.plan
    elif what == "model":
        content = (await collector.models(study))[-1].document
    elif what == "sums":
        history = await collector.models(study)
        content = json.dumps({
            "plan": record.hash,
            "phases": [
                {"phase": one.phase, "kind": one.kind, "people": one.people,
                 "found": json.loads(one.summary)}
                for one in history
            ],
            "state": sums_of(json.loads(record.state)),
        })  # fmt: skip
    else:
        raise Refused(404, "not_found", "there is no such export")
    return _download(content, "application/json", f"{what}-{study}.json")


def sums_of(state: dict[str, Any]) -> dict[str, Any]:
    """The sums of each phase in a server's state, without anything about one person."""
    run = state["run"]
    return run.get("progress") or {"phases": [one["summary"] for one in run["passed"]]}


def _download(content: str, kind: str, name: str) -> Page:
    """A file to download; `name` must not contain text of users."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content.encode(), media_type=kind, headers=headers)


def _here(request: Asked) -> str:
    """The public address of this collector: the setting, or the address of this request."""
    configured: Settings = request.app.state.settings
    return configured.public_url or str(request.base_url).rstrip("/")


def _elsewhere(request: Asked) -> str | None:
    """The host of a separate participant page, if there is one."""
    configured: Settings = request.app.state.settings
    return configured.page_url


@post("/study/{study:str}/close", include_in_schema=False, request_max_body_size=SMALL)
async def close_phase(
    study: StudyName, request: Asked, collector: Service, visitor: Visiting
) -> Page:
    """End a phase with the replies that have arrived, after the organizer confirmed it."""
    await _own(collector, study, visitor)
    form = await own_form(request, visitor.csrf)
    if form.get("sure") != "yes":
        return views.close_page(*await _everything(collector, study), visitor=visitor)
    phase = form.get("phase", "")
    number = int(phase) if phase.isdecimal() and len(phase) < 9 else -1
    await collector.close_phase(study, number, by=visitor.account.name)
    return go(f"/study/{study}")


@post("/study/{study:str}/purge", include_in_schema=False, request_max_body_size=SMALL)
async def purge_study(
    study: StudyName, request: Asked, collector: Service, visitor: Visiting
) -> Page:
    """Delete the replies of finished phases."""
    await _own(collector, study, visitor)
    await _sure(request, visitor)
    await collector.purge(study, by=visitor.account.name)
    return go(f"/study/{study}")


@post("/study/{study:str}/delete", include_in_schema=False, request_max_body_size=SMALL)
async def delete_study(
    study: StudyName, request: Asked, collector: Service, visitor: Visiting
) -> Page:
    """Delete a study with all its data."""
    await _own(collector, study, visitor)
    await _sure(request, visitor)
    await collector.delete(study, by=visitor.account.name)
    return go("/")


async def _own(collector: Collector, study: str, visitor: Visitor) -> StudyRecord:
    """The study, if the visitor may change it."""
    record = await collector.study(study)
    visitor.account.require_owner(record.owner)
    return record


async def _sure(request: Asked, visitor: Visitor) -> None:
    """Refuse a form from another site, or without the confirmation."""
    form = await own_form(request, visitor.csrf)
    if form.get("sure") != "yes":
        raise Refused(422, "not_sure", "tick the box: this cannot be undone")


def _shown(
    record: StudyRecord, draw: Callable[[], Template | str], visitor: Visitor | None = None
) -> Page:
    """A page, or an error page if this release cannot read the stored study."""
    try:
        page = draw()
        return Response(page if isinstance(page, str) else text(page), media_type=MediaType.HTML)
    except Exception as error:
        fields = {"study": record.id, **failure(error)}
        log.error("a study cannot be shown", extra={"fields": fields})
        return views.unreadable_page(record, visitor=visitor)


async def _everything(collector: Collector, study: str) -> tuple[Any, int, Any]:
    record = await collector.study(study)
    return record, await collector.answered(record), await collector.models(study)


_ACTS = 20  # number of actions on a study's page
_STATIC = Path(__file__).parent / "static"
_LINES = 50  # studies on a page


@get("/static/{name:str}", include_in_schema=False)
async def static(name: FromPath[str]) -> Response[bytes]:
    """The style sheet, the scripts, and the browser client of participants."""
    kinds = {
        "style.css": "text/css",
        "script.js": "text/javascript",
        "client.js": "text/javascript",
        "take-part.js": "text/javascript",
        "take-part.css": "text/css",
        "take-part.webmanifest": "application/manifest+json",
        "icon.svg": "image/svg+xml",
    }
    if name not in kinds:
        raise Refused(404, "not_found", "there is no such file")
    return Response((_STATIC / name).read_bytes(), media_type=kinds[name])


@get("/login", include_in_schema=False)
async def login_form() -> Page:
    """Ask for the key."""
    return views.login_page()


@post("/login", include_in_schema=False, request_max_body_size=SMALL)
async def login(
    request: Asked, configuration: NamedDependency[Settings], collector: Service
) -> Page:
    """Check the key."""
    keyhole: AdminAuth = request.app.state.keyhole
    typed = (await form_in(request)).get("key", "").strip()
    account = await keyhole.account(typed, host_of(request))
    if account is None:
        return views.login_page(wrong=True)
    answer = go("/")
    answer.set_cookie(session.new_session(configuration, collector.clock.now(), account))
    return answer


@post("/logout", include_in_schema=False, request_max_body_size=SMALL)
async def logout(
    request: Asked, configuration: NamedDependency[Settings], collector: Service, visitor: Visiting
) -> Page:
    """End the session; copies of its cookie stop working, too."""
    await own_form(request, visitor.csrf)
    await collector.end_session(visitor.session, until=visitor.until)
    answer = go("/login")
    answer.set_cookie(session.no_session(configuration))
    return answer


@get("/", include_in_schema=False)
async def list_studies(collector: Service, visitor: Visiting, after: After = None) -> Page:
    """The newest studies, or older ones."""
    lines, following = await page_of(collector, after, _LINES)
    return views.list_page(lines, older=following, newest=after is None, visitor=visitor)


@get("/activity", include_in_schema=False)
async def list_activity(collector: Service, visitor: Visiting, before: BeforeNumber = None) -> Page:
    """The organizers and the log of their actions."""
    found = await collector.activities(most=_LINES + 1, before=before)
    named = {one.study for one in found if one.study}
    studies = {study: await _title(collector, study) for study in named}
    return views.activity_page(
        await collector.organizers(), found[:_LINES], studies,
        older=found[_LINES - 1].number if len(found) > _LINES else None,
        newest=before is None, visitor=visitor,
    )  # fmt: skip


async def _title(collector: Collector, study: str) -> str:
    """The title of a study; empty if it was deleted."""
    try:
        record = await collector.study(study)
    except Refused:
        return ""
    return record.title or record.id


@get("/interface", include_in_schema=False)
async def interface(request: Asked, visitor: Visiting) -> Page:
    """The HTTP interface, for people."""
    return views.interface_page(request.app.openapi_schema.to_schema(), visitor=visitor)


async def signed_in(
    request: Asked, configuration: NamedDependency[Settings], collector: Service
) -> Visitor:
    """The visitor of a page, who must be signed in."""
    name = session.claimed_name(request)
    account = FIRST if name == FIRST.name else await collector.account(name)
    if account is None:
        raise session.NotSignedIn
    found = session.require_session(request, configuration, collector.clock.now(), account)
    if await collector.session_ended(found.session):
        raise session.NotSignedIn
    note_known(request.scope)
    return found


HANDLERS = [
    static, worker, take_part, login_form, login, logout, list_studies, list_activity, interface,
    new_form, show_plan, show_outlook, create_study, forecast_study, edit_form, edit_study,
    show_study, live_study, download_report, export, invite, close_phase, purge_study, delete_study,
]  # fmt: skip
