"""What the routes of the pages share: requests, redirections, and forms that came from here."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response
from litestar.datastructures import State

from dpfda.collector.pages import session
from dpfda.collector.pages.posted import posted

Asked = Request[Any, Any, State]
Page = Response[Any]
SMALL = 16 * 1024
"""Bytes that a form may have."""


def go(address: str) -> Page:
    """Send the browser elsewhere."""
    return Response("", status_code=303, headers={"Location": address})


async def form_in(request: Asked) -> dict[str, str]:
    """What was typed."""
    return posted(await request.body(), request.headers.get("content-type", ""))[0]


async def own_form(request: Asked, csrf: str) -> dict[str, str]:
    """What was typed into a form of ours; one of elsewhere is refused."""
    form = await form_in(request)
    session.check_form(csrf, form, request)
    return form
