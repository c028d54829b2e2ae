"""Around every request: a clock, safe headers, and a log line if it failed here."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from dpfda.collector.metrics import Metrics

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
