"""Middleware of every request: timeouts, headers, limits on large bodies, and CORS.

* `Observed` measures a request, adds headers and logs failures.
* `Separated` serves organizers and monitoring on a separate listener.
* `ProcessorTime` limits the processor time for requests of strangers from one address.
* `LargeBodies` limits the cost of large bodies from one address.
* `Origins` allows pages of named hosts to access this collector from a browser (CORS). An operator
  can thereby use a participant page on a host that people trust more than the collector. Only
  requests of participants are allowed, not those of organizers.
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
"""Name of the server extension that sends head and body of an answer in one piece (`run.py`)."""


class Observed:
    """Measures and logs the requests of an application, and adds security headers.

    All requests are counted. A request is logged if it failed in the collector (5xx), or if it
    changed something and was not from a participant (`log.py`). The answer to a failed request and
    its log line contain the same request id.

    Args:
        application: serves every request.
        metrics: counts the requests.
        secure: whether browsers reach it through TLS; then answers require them to always use TLS
            (HSTS).
    """

    def __init__(self, application: Application, metrics: Metrics, *, secure: bool = False) -> None:
        self.application = application
        self.metrics = metrics
        self._headers = [*_HEADERS, _ENCRYPTED] if secure else _HEADERS
        self._lines = b"".join(b"%b: %b\r\n" % header for header in self._headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500
        name = f"{random.getrandbits(32):08x}"
        request_id.set(name)

        at_once = scope.get("extensions", {}).get(AT_ONCE, {}).get("send")
        held: MutableMapping[str, Any] | None = None  # a head that was not sent yet

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
        """Add the common headers to the head of an answer, and the request id if it failed."""
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *self._headers]
            if message["status"] >= 500:
                message["headers"].append((b"x-request-id", name.encode()))
        return message


_STUDY_ID = re.compile(r"/(?:studies|study)/([0-9a-f]{1,64})(?:/|$)")
_OF_PEOPLE = re.compile(r"/api/studies/[^/]+/(?:enrol|task|reply|replies|withdraw|receipts)")


def _is_logged(method: str, route: str, status: int) -> bool:
    """Whether a successful request changed something and is not from a participant.

    DELETE is never from a participant.
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

    The public listener serves only requests of participants and of readers of results. The other
    listener also serves the dashboard, the metrics and all requests that need a key.

    Args:
        application: serves every request.
        port: port of the listener for administrators.
    """

    def __init__(self, application: Application, port: int) -> None:
        self.application = application
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
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
"""Seconds of processor time that strangers from one address may use at once."""
SECONDS_A_SECOND = 0.1
"""Seconds of processor time per second after that. Further requests are refused after a pause."""
# processor seconds outside the measured part of a request: connection, parser, answer
_CONNECTION = 0.0003
_REFUSAL = 0.0006  # for a participant's request that is refused after a query to the database
_HERE = ("127.0.0.1", "::1")  # local users can stop the collector anyway
_OWN_WAY = ("task", "reply", "replies", "withdraw")  # served by `people.py`


class ProcessorTime:
    """Limits the processor time that strangers from one address can use.

    A stranger sends neither a valid key, nor a session, nor the token of a participant. For
    requests that the framework serves, the time of the event loop is measured, and a fixed amount
    is added for the connection. A request of a participant is charged only if it is refused, with a
    fixed amount.

    Each worker process has a separate count. If others at an address use up its time, its requests
    are answered with 429 after a pause, and devices repeat them.
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
        """Serve one request."""
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
    """A coroutine that measures the time of its steps in the thread of the event loop."""

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
            except BaseException as error:  # for example because the request was cancelled
                step = partial(self._work.throw, error)


LARGE = 64 * 1024
"""Bytes above which a body is large; a body without a stated length is also large."""
MOST_AT_ONCE = 8
"""Large bodies that are read at the same time from one address: each may hold megabytes."""
_REFUSED = 10  # refused large bodies of one address before slowing down
_REFUSED_A_SECOND = 0.5  # and after that
_PAUSE = 1.0  # seconds before the answer to an address that has sent more


class LargeBodies:
    """Limits the cost of large bodies from one address.

    Receiving a large body that is then refused is wasted work. An address may send a few of them.
    After that, its large bodies are not read: each is refused after a pause, and the connection is
    closed. Large bodies that are accepted are not charged.
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
        """Serve one request."""
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
            if refused and not lost:  # a lost connection is not charged
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
    """Send a refusal and close the connection without reading the rest of the body."""
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
    """Check an origin, which must have the form that browsers send.

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
    """Lets pages of these origins send requests of participants.

    Args:
        application: serves every request.
        allowed: origins in the form of `checked_origin`.
    """

    def __init__(self, application: Application, allowed: Iterable[str]) -> None:
        self.application = application
        self._allowed = frozenset(origin.encode() for origin in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
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
