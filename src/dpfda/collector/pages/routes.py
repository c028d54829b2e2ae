"""Addresses of the pages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from litestar import MediaType, Request, Response, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from dpfda.collector.api import After, StudyName, host_of, page_of
from dpfda.collector.key import Keyhole
from dpfda.collector.metrics import failure
from dpfda.collector.pages import planning, session, views
from dpfda.collector.pages.form import PRESETS, facts_of, number
from dpfda.collector.pages.participant import take_part
from dpfda.collector.pages.posted import posted
from dpfda.collector.pages.templating import text
from dpfda.collector.refusal import Refused
from dpfda.collector.service import Collector
from dpfda.collector.settings import Settings, StudySettings
from dpfda.collector.storage.base import StudyRecord
from dpfda.errors import DpfdaError
from dpfda.recipe import plan_from_facts

Asked = Request[Any, Any, State]
Page = Response[Any]
_STATIC = Path(__file__).parent / "static"
log = logging.getLogger("dpfda.collector")

_MOST = 16 * 1024
_LINES = 50  # studies on a page


def _go(address: str) -> Page:
    return Response("", status_code=303, headers={"Location": address})


async def _form(request: Asked) -> dict[str, str]:
    return posted(await request.body(), request.headers.get("content-type", ""))[0]


async def _own_form(request: Asked, csrf: str) -> dict[str, str]:
    """What was typed into a form of ours; one of elsewhere is refused."""
    form = await _form(request)
    session.check_form(csrf, form, request)
    return form


@get("/static/{name:str}", include_in_schema=False)
async def static(name: FromPath[str]) -> Response[bytes]:
    """The style sheet, the scripts, and the client that browsers take part with."""
    kinds = {
        "style.css": "text/css",
        "script.js": "text/javascript",
        "client.js": "text/javascript",
        "take-part.js": "text/javascript",
        "take-part.css": "text/css",
    }
    if name not in kinds:
        raise Refused(404, "not_found", "there is no such file")
    return Response((_STATIC / name).read_bytes(), media_type=kinds[name])


@get("/login", include_in_schema=False)
async def login_form() -> Page:
    """Ask for the key."""
    return views.login_page()


@post("/login", include_in_schema=False, request_max_body_size=_MOST)
async def login(request: Asked, configuration: NamedDependency[Settings]) -> Page:
    """Check the key."""
    keyhole: Keyhole = request.app.state.keyhole
    typed = (await _form(request)).get("key", "")
    if not await keyhole.fits(typed, host_of(request)):
        return views.login_page(wrong=True)
    answer = _go("/")
    answer.set_cookie(session.new_session(configuration))
    return answer


@post("/logout", include_in_schema=False, request_max_body_size=_MOST)
async def logout(
    request: Asked,
    configuration: NamedDependency[Settings],
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """End the session, here and wherever its cookie was copied to."""
    await _own_form(request, csrf)
    ended = session.require_session(request, configuration)
    await collector.end_session(ended.name, until=ended.until)
    answer = _go("/login")
    answer.set_cookie(session.no_session(configuration))
    return answer


@get("/", include_in_schema=False)
async def list_studies(
    collector: NamedDependency[Collector], csrf: NamedDependency[str], after: After = None
) -> Page:
    """The newest studies, or older ones."""
    lines, following = await page_of(collector, after, _LINES)
    return views.list_page(lines, older=following, newest=after is None, csrf=csrf)


@get("/study/{study:str}", include_in_schema=False)
async def show_study(
    study: StudyName, collector: NamedDependency[Collector], csrf: NamedDependency[str]
) -> Page:
    """One study."""
    found = await _everything(collector, study)
    return _shown(found[0], lambda: views.study_page(*found, csrf=csrf), csrf)


@get("/study/{study:str}/live", include_in_schema=False)
async def live_study(
    study: StudyName, collector: NamedDependency[Collector], csrf: NamedDependency[str]
) -> Page:
    """The changing part of a study's page."""
    found = await _everything(collector, study)
    return _shown(found[0], lambda: views.study_parts(*found))


@get("/study/{study:str}/report", include_in_schema=False)
async def download_report(
    study: StudyName, collector: NamedDependency[Collector], csrf: NamedDependency[str]
) -> Page:
    """The study as one HTML file."""
    style = (_STATIC / "style.css").read_text(encoding="utf-8")
    found = await _everything(collector, study)
    answer = _shown(found[0], lambda: views.report_page(*found, style))
    answer.headers["Content-Disposition"] = f'attachment; filename="study-{study}.html"'
    return answer


@post("/study/{study:str}/invite", include_in_schema=False, request_max_body_size=_MOST)
async def invite(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """Make invitations and show them."""
    form = await _own_form(request, csrf)
    count = form.get("count", "")
    many = int(count) if count.isdecimal() and len(count) < 9 else 0
    if not 1 <= many <= views.MOST_INVITED:
        told = f"between 1 and {views.MOST_INVITED} people can be invited at once"
        raise Refused(422, "bad_count", told)
    record = await collector.study(study)
    return views.invitations_page(record, await collector.invite(study, many), csrf=csrf)


@post("/study/{study:str}/close", include_in_schema=False, request_max_body_size=_MOST)
async def close_phase(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """End a phase with the replies it has."""
    form = await _own_form(request, csrf)
    phase = form.get("phase", "")
    await collector.close_phase(study, int(phase) if phase.isdecimal() and len(phase) < 9 else -1)
    return _go(f"/study/{study}")


@post("/study/{study:str}/purge", include_in_schema=False, request_max_body_size=_MOST)
async def purge_study(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """Forget the replies of concluded phases."""
    await _sure(request, csrf)
    await collector.purge(study)
    return _go(f"/study/{study}")


@post("/study/{study:str}/delete", include_in_schema=False, request_max_body_size=_MOST)
async def delete_study(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """Forget all of a study."""
    await _sure(request, csrf)
    await collector.delete(study)
    return _go("/")


async def _sure(request: Asked, csrf: str) -> None:
    """Refuse a form of elsewhere, or one without the tick that what is meant is meant."""
    form = await _own_form(request, csrf)
    if form.get("sure") != "yes":
        raise Refused(422, "not_sure", "tick the box: this cannot be undone")


@get("/new", include_in_schema=False)
async def new_form(csrf: NamedDependency[str]) -> Page:
    """The form for a new study."""
    return views.new_page(PRESETS, csrf=csrf)


@get("/planned", include_in_schema=False)
async def show_plan(request: Asked, csrf: NamedDependency[str]) -> Page:
    """What people would be asked if the form were sent like this."""
    form = {key: str(value) for key, value in request.query_params.items()}
    return views.planned_part(form)


@post("/new", include_in_schema=False, request_max_body_size=_MOST)
async def create_study(
    request: Asked, collector: NamedDependency[Collector], csrf: NamedDependency[str]
) -> Page:
    """Create a study from the form."""
    form = await _own_form(request, csrf)
    try:
        deadline = number(form.get("deadline-0"))
        chosen = {"deadline": deadline, "open": form.get("open") == "yes"}
        how = msgspec.convert(chosen, StudySettings)
        record = await collector.create(plan_from_facts(facts_of(form)).to_dict(), how)
    except (DpfdaError, msgspec.ValidationError) as error:
        return views.new_page(form, csrf=csrf, complaint=str(error)[:300])
    return _go(f"/study/{record.id}")


@post("/forecast", include_in_schema=False, request_max_body_size=_MOST + 4 * planning.MOST_BYTES)
async def forecast_study(request: Asked, csrf: NamedDependency[str]) -> Page:
    """The form again, with what the study in it would be worth."""
    form, file = posted(await request.body(), request.headers.get("content-type", ""))
    session.check_form(csrf, form, request)
    numbers = {name: number(form.get(name)) for name in planning.ERRORS}
    outlook = await planning.outlook(facts_of(form), form, numbers, file)
    return views.new_page(form, csrf=csrf, outlook=outlook)


@get("/interface", include_in_schema=False)
async def interface(request: Asked, csrf: NamedDependency[str]) -> Page:
    """The HTTP interface, for people."""
    return views.interface_page(request.app.openapi_schema.to_schema(), csrf=csrf)


async def signed_in(
    request: Asked,
    configuration: NamedDependency[Settings],
    collector: NamedDependency[Collector],
) -> str:
    """The token for a page's forms: whoever is not signed in gets no page that asks for it."""
    found = session.require_session(request, configuration)
    if await collector.session_ended(found.name):
        raise session.NotSignedIn
    return found.csrf


def _shown(record: StudyRecord, draw: Callable[[], Template], csrf: str = "") -> Page:
    """A page; or one that says so where this release cannot read what another has stored."""
    try:
        return Response(text(draw()), media_type=MediaType.HTML)
    except Exception as error:
        fields = {"study": record.id, **failure(error)}
        log.error("a study cannot be shown", extra={"fields": fields})
        return views.unreadable_page(record, csrf=csrf)


async def _everything(collector: Collector, study: str) -> tuple[Any, int, Any]:
    record = await collector.study(study)
    return record, await collector.answered(record), await collector.models(study)


HANDLERS = [
    static, take_part, login_form, login, logout, list_studies, show_study, live_study,
    download_report, invite, close_phase, purge_study, delete_study, new_form, show_plan,
    create_study, forecast_study, interface,
]  # fmt: skip
