"""Around every request: a clock, a log line, safe headers, and limited patience."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

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
    """The application with a clock, a log and security headers around it."""

    def __init__(self, application: Any, metrics: Metrics, *, quiet: bool) -> None:
        self.application = application
        self.metrics = metrics
        self._quiet = quiet

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
            if not self._quiet or status >= 500:
                fields = {"method": scope["method"], "route": route, "status": status}
                log.info("request", extra={"fields": {**fields, "ms": round(took * 1000, 2)}})


class PatientProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, hanging up on whoever does not finish a request's head or body.

    The patience is that for idle connections.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.config.timeout_keep_alive, self._hang_up)

    def _hang_up(self) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self._wait()  # the request is complete, the answer is being made
        elif not self.transport.is_closing():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Wait anew for every new request."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before and self._timer is not None:
            self._timer.cancel()
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
