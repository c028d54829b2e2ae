"""Addresses of one study's pages."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from litestar import MediaType, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from dpfda.collector.api import StudyName
from dpfda.collector.metrics import failure
from dpfda.collector.pages import views
from dpfda.collector.pages.asked import SMALL, Asked, Page, go, own_form
from dpfda.collector.pages.study_view import link
from dpfda.collector.pages.templating import text
from dpfda.collector.refusal import Refused
from dpfda.collector.service import Collector
from dpfda.collector.storage.base import StudyRecord

log = logging.getLogger("dpfda.collector")


@get("/study/{study:str}", include_in_schema=False)
async def show_study(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """One study."""
    found = await _everything(collector, study)
    return _shown(found[0], lambda: views.study_page(*found, csrf=csrf, here=_here(request)), csrf)


@get("/study/{study:str}/live", include_in_schema=False)
async def live_study(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """The changing part of a study's page."""
    found = await _everything(collector, study)
    return _shown(found[0], lambda: views.study_parts(*found, here=_here(request)))


@get("/study/{study:str}/report", include_in_schema=False)
async def download_report(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
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
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """Make invitations and show them."""
    form = await own_form(request, csrf)
    count = form.get("count", "")
    many = int(count) if count.isdecimal() and len(count) < 9 else 0
    if not 1 <= many <= views.MOST_INVITED:
        told = f"between 1 and {views.MOST_INVITED} people can be invited at once"
        raise Refused(422, "bad_count", told)
    record = await collector.study(study)
    tokens = await collector.invite(study, many)
    links = [link(record, _here(request), token) for token in tokens]
    if form.get("as") == "file":
        lines = "".join(f"{number},{one}\r\n" for number, one in enumerate(links, start=1))
        return _download(f"number,link\r\n{lines}", "text/csv", f"invitations-{study}.csv")
    return views.invitations_page(record, links, csrf=csrf)


@get("/study/{study:str}/export/{what:str}", include_in_schema=False)
async def export(
    study: StudyName,
    what: FromPath[str],
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """The plan, the newest model, or what all replies add up to."""
    record = await collector.study(study)
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
    """What a study was sent of each phase: of a server's state nothing that is one person's."""
    run = state["run"]
    return run.get("progress") or {"phases": [one["summary"] for one in run["passed"]]}


def _download(content: str, kind: str, name: str) -> Page:
    """A file to keep; `name` is made of digits and words of ours."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content.encode(), media_type=kind, headers=headers)


def _here(request: Asked) -> str:
    """Where this collector is reached, as the browser of whoever asks says."""
    return str(request.base_url).rstrip("/")


@post("/study/{study:str}/close", include_in_schema=False, request_max_body_size=SMALL)
async def close_phase(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """End a phase with the replies it has."""
    form = await own_form(request, csrf)
    phase = form.get("phase", "")
    await collector.close_phase(study, int(phase) if phase.isdecimal() and len(phase) < 9 else -1)
    return go(f"/study/{study}")


@post("/study/{study:str}/purge", include_in_schema=False, request_max_body_size=SMALL)
async def purge_study(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """Forget the replies of concluded phases."""
    await _sure(request, csrf)
    await collector.purge(study)
    return go(f"/study/{study}")


@post("/study/{study:str}/delete", include_in_schema=False, request_max_body_size=SMALL)
async def delete_study(
    study: StudyName,
    request: Asked,
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """Forget all of a study."""
    await _sure(request, csrf)
    await collector.delete(study)
    return go("/")


async def _sure(request: Asked, csrf: str) -> None:
    """Refuse a form of elsewhere, or one without the tick that what is meant is meant."""
    form = await own_form(request, csrf)
    if form.get("sure") != "yes":
        raise Refused(422, "not_sure", "tick the box: this cannot be undone")


def _shown(record: StudyRecord, draw: Callable[[], Template | str], csrf: str = "") -> Page:
    """A page; or one that says so where this release cannot read what another has stored."""
    try:
        page = draw()
        return Response(page if isinstance(page, str) else text(page), media_type=MediaType.HTML)
    except Exception as error:
        fields = {"study": record.id, **failure(error)}
        log.error("a study cannot be shown", extra={"fields": fields})
        return views.unreadable_page(record, csrf=csrf)


async def _everything(collector: Collector, study: str) -> tuple[Any, int, Any]:
    record = await collector.study(study)
    return record, await collector.answered(record), await collector.models(study)


HANDLERS = [
    show_study, live_study, download_report, export, invite, close_phase, purge_study, delete_study,
]  # fmt: skip
