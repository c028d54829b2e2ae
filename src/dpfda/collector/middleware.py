"""Around every request: a clock, safe headers, and a log line if it failed here.

Pages of other hosts that may talk to this collector in a person's browser.

A browser asks before a page of one host talks to another one, and refuses without an answer. So it
stays, unless the operator names an origin: somebody may then serve the page on which people take
part from a host that they trust more than the collector. Only what people ask for is opened; the
organizer's interface and the dashboard are not.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from dpfda.client.http import is_loopback
from dpfda.collector.metrics import Metrics
from dpfda.errors import InvalidParameter

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("dpfda.collector")

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
]


class Observed:
    """The application with a clock and security headers around it.

    Requests are counted, not logged: tickets are numbered in the order of requests, so a line with
    a time for each request would tell when each ticket was taken. Only failures (5xx) are logged.
    """

    def __init__(self, application: Any, metrics: Metrics) -> None:
        self.application = application
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def observed_send(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        try:
            await self.application(scope, receive, observed_send)
        finally:
            took = time.perf_counter() - started
            route = str(scope.get("path_template") or "unknown")
            self.metrics.note(route, status, took)
            if status >= 500:
                fields = {"method": scope["method"], "route": route, "status": status}
                log.info("request", extra={"fields": {**fields, "ms": round(took * 1000, 2)}})


_ORIGIN = re.compile(r"(https?)://([a-z0-9][a-z0-9.-]*|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")
_STUDY = r"/api/studies/[0-9a-f]{1,64}"
_ROUTES = {
    b"GET": re.compile(rf"{_STUDY}(?:/task|/receipts/[^/]+)?"),
    b"POST": re.compile(rf"{_STUDY}/(?:enrol|reply)"),
}
_ALLOWED = [
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
]


def checked_origin(origin: str, *, name: str = "--allow-origin") -> str:
    """An origin as browsers write it.

    Examples:
        >>> checked_origin("https://studies.example")
        'https://studies.example'
    """
    found = _ORIGIN.fullmatch(origin)
    if found is None or not (found[1] == "https" or is_loopback(found[2].strip("[]"))):
        rule = "such as https://studies.example: encrypted, no path, in lower case"
        raise InvalidParameter(name, rule, origin)
    return origin


class Origins:
    """An application that pages of these origins may use, as far as people take part.

    Args:
        application: serves every request.
        allowed: origins, as `checked_origin` has them.
    """

    def __init__(self, application: Any, allowed: Iterable[str]) -> None:
        self.application = application
        self._allowed = frozenset(origin.encode() for origin in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        heads = dict(scope["headers"]) if scope["type"] == "http" else {}
        origin = heads.get(b"origin")
        asks = scope.get("method") == "OPTIONS"
        method = heads.get(b"access-control-request-method") if asks else _method(scope)
        route = _ROUTES.get(method or b"")
        if origin not in self._allowed or route is None or not route.fullmatch(scope["path"]):
            await self.application(scope, receive, send)
            return
        told = [(b"access-control-allow-origin", origin), (b"vary", b"origin")]
        if asks:
            scope["path_template"] = "/api/studies/{study}"
            headers = [*told, (b"access-control-allow-methods", method), *_ALLOWED]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return

        async def telling(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *told]
            await send(message)

        await self.application(scope, receive, telling)


def _method(scope: Scope) -> bytes:
    return str(scope.get("method", "")).encode()
