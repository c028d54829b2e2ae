"""Addresses of the pages."""

from __future__ import annotations

from pathlib import Path

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from dpfda.collector.api import After, host_of, page_of
from dpfda.collector.key import Keyhole
from dpfda.collector.pages import form_routes, session, study_routes, views
from dpfda.collector.pages.asked import SMALL, Asked, Page, form_in, go, own_form
from dpfda.collector.pages.participant import take_part
from dpfda.collector.refusal import Refused
from dpfda.collector.service import Collector
from dpfda.collector.settings import Settings

_STATIC = Path(__file__).parent / "static"
_LINES = 50  # studies on a page


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


@post("/login", include_in_schema=False, request_max_body_size=SMALL)
async def login(request: Asked, configuration: NamedDependency[Settings]) -> Page:
    """Check the key."""
    keyhole: Keyhole = request.app.state.keyhole
    typed = (await form_in(request)).get("key", "")
    if not await keyhole.fits(typed, host_of(request)):
        return views.login_page(wrong=True)
    answer = go("/")
    answer.set_cookie(session.new_session(configuration))
    return answer


@post("/logout", include_in_schema=False, request_max_body_size=SMALL)
async def logout(
    request: Asked,
    configuration: NamedDependency[Settings],
    collector: NamedDependency[Collector],
    csrf: NamedDependency[str],
) -> Page:
    """End the session, here and wherever its cookie was copied to."""
    await own_form(request, csrf)
    ended = session.require_session(request, configuration)
    await collector.end_session(ended.name, until=ended.until)
    answer = go("/login")
    answer.set_cookie(session.no_session(configuration))
    return answer


@get("/", include_in_schema=False)
async def list_studies(
    collector: NamedDependency[Collector], csrf: NamedDependency[str], after: After = None
) -> Page:
    """The newest studies, or older ones."""
    lines, following = await page_of(collector, after, _LINES)
    return views.list_page(lines, older=following, newest=after is None, csrf=csrf)


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


HANDLERS = [
    static, take_part, login_form, login, logout, list_studies, interface,
    *study_routes.HANDLERS, *form_routes.HANDLERS,
]  # fmt: skip
