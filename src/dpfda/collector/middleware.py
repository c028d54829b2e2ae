"""Middleware of every request: timeouts, headers, limits on large bodies, and CORS.

* `Observed` measures a request, adds headers and logs failures.
* `Separated` serves organizers and monitoring on a listener of their own.
* `ProcessorTime` bounds what requests of strangers from one address may cost.
* `LargeBodies` bounds what large bodies of one address may cost.
* `Origins` lets pages of named hosts talk to this collector in a person's browser. A browser asks
  before a page of one host talks to another, and refuses without an answer. An operator may name an
  origin, so that the page on which people take part is served by a host that they trust more than
  the collector. Only requests of participants are opened, not those of organizers.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections import Counter
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    MutableMapping,
)
from functools import partial
from typing import Any

import msgspec

from dpfda.client.http import is_loopback
from dpfda.collector.limits import RateLimit, Sleep, origin
from dpfda.collector.log import request_id
from dpfda.collector.metrics import Metrics
from dpfda.collector.refusal import KNOWN, Refused
from dpfda.collector.tracing import tracing
from dpfda.errors import InvalidParameter

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

log = logging.getLogger("dpfda.collector")

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        b"base-uri 'none'",
    ),
]


_ENCRYPTED = (b"strict-transport-security", b"max-age=31536000")  # seconds: a year


AT_ONCE = "dpfda.at_once"
"""Extension of a server that sends head and body of an answer in one piece (`run.py`)."""


class Observed:
    """The application with a clock and security headers around it.

    All requests are counted. A request is logged if it failed in the collector (5xx), or if it
    changed something and was not a participant's (`log.py`). The answer to a request that failed
    names it, as its line in the log does.

    Args:
        application: serves every request.
        metrics: counts them.
        secure: whether browsers reach it through TLS; then they are told never to do otherwise.
    """

    def __init__(self, application: Application, metrics: Metrics, *, secure: bool = False) -> None:
        self.application = application
        self.metrics = metrics
        self._headers = [*_HEADERS, _ENCRYPTED] if secure else _HEADERS
        self._lines = b"".join(b"%b: %b\r\n" % header for header in self._headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500
        name = f"{random.getrandbits(32):08x}"
        request_id.set(name)

        at_once = scope.get("extensions", {}).get(AT_ONCE, {}).get("send")
        held: MutableMapping[str, Any] | None = None  # a head that waits for its body

        async def observed_send(message: MutableMapping[str, Any]) -> None:
            nonlocal status, held
            if message["type"] == "http.response.start":
                status = message["status"]
                if status == 200 and at_once is not None:
                    held = message
                    return
            elif held is not None:
                message, after, held = held, message, None
                body = after.get("body", b"")
                whole = not after.get("more_body", False)
                if whole and at_once(send, message["headers"], self._lines, body):
                    return
                await send(self._protected(message, name))
                message = after
            await send(self._protected(message, name))

        try:
            await self.application(scope, receive, observed_send)
        finally:
            took = time.perf_counter() - started
            route = str(scope.get("path_template") or "unknown")
            self.metrics.note(route, status, took)
            failed = status >= 500
            if failed or _is_logged(scope["method"], route, status):
                fields = {"method": scope["method"], "route": route, "status": status}
                if study := _STUDY_ID.search(scope["path"]):
                    fields["study"] = study[1]
                level, event = (logging.ERROR, "failed") if failed else (logging.INFO, "request")
                log.log(level, event, extra={"fields": {**fields, "ms": round(took * 1000, 2)}})
                if not _OF_PEOPLE.match(route) or scope["method"] == "DELETE":
                    began = time.time_ns() - round(took * 1e9)
                    name = str(fields.get("study", ""))
                    tracing.request(scope["method"], route, status, began, name)

    def _protected(self, message: MutableMapping[str, Any], name: str) -> MutableMapping[str, Any]:
        """The head of an answer with the headers of all; the name of a request that failed."""
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *self._headers]
            if message["status"] >= 500:
                message["headers"].append((b"x-request-id", name.encode()))
        return message


_STUDY_ID = re.compile(r"/(?:studies|study)/([0-9a-f]{1,64})(?:/|$)")
_OF_PEOPLE = re.compile(r"/api/studies/[^/]+/(?:enrol|task|reply|replies|withdraw|receipts)")


def _is_logged(method: str, route: str, status: int) -> bool:
    """Whether a successful request changed something and is not from a participant.

    Removing the replies of a study is the administrator's.
    """
    if status >= 400 or method not in ("POST", "PUT", "PATCH", "DELETE"):
        return False
    return method == "DELETE" or not _OF_PEOPLE.match(route)


_PUBLIC = re.compile(
    r"/(?:health|openapi/openapi\.json|take-part(?:/[^/]*)?|static/[^/]+|api/+studies"
    r"|api/+studies/+[0-9a-f]+(?:/+(?:enrol|task|reply|replies|withdraw|model|models|verdict)"
    r"|/+receipts/+[^/]+)?)/*"
)


class Separated:
    """An application that serves two listeners.

    On the public one it has only what participants and readers of results need. What needs the
    administrator's key, the dashboard and the metrics are on the other one.

    Args:
        application: serves every request.
        port: of the listener for administrators.
    """

    def __init__(self, application: Application, port: int) -> None:
        self.application = application
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["server"][1] != self._port:
            writes = scope["method"] in ("PUT", "PATCH", "DELETE")
            creates = scope["method"] == "POST" and scope["path"].rstrip("/").endswith("studies")
            if writes or creates or not _PUBLIC.fullmatch(scope["path"]):
                scope["path_template"] = "unknown"
                why = "nothing is here; organizers use the address of --admin-listen"
                await _refuse(send, Refused(404, "not_found", why))
                return
        await self.application(scope, receive, send)


SECONDS = 0.5
"""Of processor time, for strangers of one address at once,"""
SECONDS_A_SECOND = 0.1
"""and after that. Addresses that took more are answered late, and only that they are too fast."""
_CONNECTION = 0.0003  # seconds of the processor around a request: connection, parser, answer
_REFUSAL = 0.0006  # for a participant's request that is refused after a look into the database
_HERE = ("127.0.0.1", "::1")  # whoever is on this machine can stop the collector anyway
_OWN_WAY = ("task", "reply", "replies", "withdraw")  # served by `people.py`


class ProcessorTime:
    """Gives the strangers of an address a bounded share of the processor.

    A stranger is who shows neither the key, nor a session, nor the token of a participant. Requests
    that the framework serves are measured: everything that the event loop computes for them, and a
    fixed amount for their connection. A request of a participant costs nothing if it succeeds and a
    fixed amount if it is refused.

    Each worker process has its own count. The count of an address may be used up by others at that
    address; then its requests are answered with 429 after a pause, and a device repeats them.
    """

    def __init__(
        self,
        application: Application,
        *,
        limit: RateLimit | None = None,
        sleep: Sleep = asyncio.sleep,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        self.application = application
        self._limit = limit or RateLimit(rate=SECONDS_A_SECOND, burst=SECONDS)
        self._sleep = sleep
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        client = scope.get("client")
        if scope["type"] != "http" or client is None or client[0] in _HERE:
            await self.application(scope, receive, send)
            return
        place = origin(str(client[0]))
        if not self._limit.would_allow(place, least=0.0):
            self._refused()
            await self._sleep(_PAUSE)
            why = "requests from this address take too much of this collector's time"
            await _refuse(send, Refused(429, "too_fast", why, retry_after=1))
            return
        if scope["path"].rstrip("/").rpartition("/")[2] in _OWN_WAY:
            await self._serve_participant(scope, receive, send, place)
            return
        work = _Measured(self.application(scope, receive, send))
        try:
            await work
        finally:
            if not scope.get(KNOWN):
                self._limit.charge(place, work.seconds + _CONNECTION)

    async def _serve_participant(
        self, scope: Scope, receive: Receive, send: Send, place: str
    ) -> None:
        async def noted_send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start" and 300 <= message["status"] < 500:
                self._limit.charge(place, _REFUSAL)
            await send(message)

        await self.application(scope, receive, noted_send)


class _Measured:
    """A coroutine, and the seconds of the event loop's thread that its steps take."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, None]:
        step: Callable[[], Any] = partial(self._work.send, None)
        while True:
            began = time.thread_time()
            try:
                awaited = step()
            except StopIteration:
                return
            finally:
                self.seconds += time.thread_time() - began
            try:
                step = partial(self._work.send, (yield awaited))
            except BaseException as error:  # such as that the request was cancelled
                step = partial(self._work.throw, error)


LARGE = 64 * 1024
"""Bytes; a body that is longer is large, and so is one whose head does not state its length."""
MOST_AT_ONCE = 8
"""Large bodies that are read at the same time from one address: each may hold megabytes."""
_REFUSED = 10  # large bodies of one address that are refused at once
_REFUSED_A_SECOND = 0.5  # and after that
_PAUSE = 1.0  # seconds until an address that has sent more is answered


class LargeBodies:
    """Bounds what large bodies of one address may cost everybody else.

    A large body that is refused was received for nothing. An address may send a few of them. After
    that its large bodies are not read: each is refused after a pause, and its connection is closed,
    so that the sender has to wait for every attempt. Large bodies that are accepted cost nothing.
    """

    def __init__(
        self,
        application: Application,
        *,
        limit: RateLimit | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.application = application
        self._refused = limit or RateLimit(rate=_REFUSED_A_SECOND, burst=_REFUSED)
        self._sleep = sleep
        self._reading: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or not _is_large(scope):
            await self.application(scope, receive, send)
            return
        place = origin(str(scope["client"][0]) if scope.get("client") else "")
        if not self._refused.would_allow(place):
            await self._sleep(_PAUSE)
            why = "this address has sent too many large requests that were refused"
            await _refuse(send, Refused(429, "too_fast", why, retry_after=1))
            return
        if self._reading[place] >= MOST_AT_ONCE:
            why = "this address sends too many large requests at the same time"
            await _refuse(send, Refused(429, "too_fast", why, retry_after=1))
            return
        reading, lost = True, False

        def done() -> None:
            nonlocal reading
            if reading:
                reading = False
                self._reading[place] -= 1
                if not self._reading[place]:
                    del self._reading[place]

        async def counted_receive() -> MutableMapping[str, Any]:
            nonlocal lost
            message = await receive()
            lost = message["type"] == "http.disconnect"
            if not message.get("more_body", False):
                done()
            return message

        async def noted_send(message: MutableMapping[str, Any]) -> None:
            refused = message["type"] == "http.response.start" and 400 <= message["status"] < 500
            if refused and not lost:  # a connection that broke off is nobody's mistake
                self._refused.allows(place)
            await send(message)

        self._reading[place] += 1
        try:
            await self.application(scope, counted_receive, noted_send)
        finally:
            done()


def _is_large(scope: Scope) -> bool:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return not value.isdigit() or int(value[:20]) > LARGE
        if name == b"transfer-encoding":
            return True
    return False


async def _refuse(send: Send, refused: Refused) -> None:
    """An answer after which the connection is closed with what was not read of the body."""
    body = msgspec.json.encode(refused.to_dict())
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    pause = refused.details.get("retry_after")
    if isinstance(pause, int):
        headers.append((b"retry-after", b"%d" % pause))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_ORIGIN = re.compile(r"(https?)://([a-z0-9][a-z0-9.-]*|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")
_STUDY = r"/api/studies/[0-9a-f]{1,64}"
_ROUTES = {
    b"GET": re.compile(rf"{_STUDY}(?:/task|/receipts/[^/]+)?"),
    b"POST": re.compile(rf"{_STUDY}/(?:enrol|reply|withdraw)"),
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

    def __init__(self, application: Application, allowed: Iterable[str]) -> None:
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
