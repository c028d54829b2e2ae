"""Requests of participants without the web framework: tasks and replies, single or in batches.

The framework would take longer than all other work for such a request, so these routes are served
here. `api.py` declares them for the OpenAPI document.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from dpfda.collector.limits import RateLimit
from dpfda.collector.middleware import Application, Receive, Scope, Send
from dpfda.collector.refusal import Refused, no_token
from dpfda.collector.replies import Sent
from dpfda.collector.service import Collector
from dpfda.protocol.wire import Receipt, ReplyMessage, Withdrawal, Withdrawn, nonce_of, token_hash

SMALL = 64 * 1024
"""Largest size of a reply in bytes."""
MOST_REPLIES = 1000
"""Largest number of replies in one batch."""
MOST_BYTES = 4 * 1024 * 1024
"""Largest size of a batch in bytes."""
_BRACES = 2 * MOST_REPLIES + 1
"""Opening braces of the largest batch: one for the whole, two for each delivery."""
_AROUND = 1024  # bytes of a withdrawal without the reply
_AT_A_TIME = 50  # deliveries that are read before other requests are served

_ROUTE = re.compile(r"/+api/+studies/+([0-9a-f]{1,64})/+(task|reply|replies|withdraw)/*")
# ends of the decoder's messages about a missing or invalid nonce
_ABOUT_NONCE = ("`nonce`", "`$.nonce`")
_NONCE = "a reply needs a nonce: 32 hexadecimal digits, in lower case, drawn at random for it alone"
_ENCODE = msgspec.json.Encoder().encode


class Delivery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The token and reply of one person, delivered by a gateway."""

    token: str
    reply: msgspec.Raw


class Deliveries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replies of several people."""

    replies: list[Delivery]


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The outcome of one delivery: a receipt, or the refusal that a single reply would get."""

    receipt: str | None = None
    error: dict[str, Any] | None = None


class Verdicts(msgspec.Struct, frozen=True):
    """The outcomes of all deliveries, in order."""

    verdicts: list[Verdict]


_reply = msgspec.json.Decoder(ReplyMessage).decode
_withdrawal = msgspec.json.Decoder(Withdrawal).decode
_deliveries = msgspec.json.Decoder(Deliveries).decode


class Told(Protocol):
    """An exception that carries its HTTP response."""

    status_code: int
    content: dict[str, dict[str, object]]
    headers: Mapping[str, str]


Handlers = Mapping[int | type[Exception], Callable[[Any, Any], Told]]


class People:
    """Serves requests of participants; other requests are passed to another application.

    Args:
        application: serves everything else.
        limit: rate limit of the requests with one token.
        handlers: responses to exceptions, by type.

    Attributes:
        collector: must be set before the first request.
    """

    collector: Collector

    def __init__(self, application: Application, limit: RateLimit, handlers: Handlers) -> None:
        self.application = application
        self._limit = limit
        self._handlers = handlers
        self._served: dict[tuple[str, str], _Serve] = {
            ("GET", "task"): self._task,
            ("POST", "reply"): self._take_one,
            ("POST", "replies"): self._take_many,
            ("POST", "withdraw"): self._withdraw,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        asked = _ROUTE.fullmatch(scope["path"]) if scope["type"] == "http" else None
        serve = None if asked is None else self._served.get((scope["method"], asked[2]))
        if asked is None or serve is None:
            await self.application(scope, receive, send)
            return
        scope["path_template"] = f"/api/studies/{{study}}/{asked[2]}"
        headers = []
        try:
            status, body = 200, await serve(asked[1], scope, receive)
        except Exception as error:
            kind = next(kind for kind in type(error).__mro__ if kind in self._handlers)
            told = self._handlers[kind](None, error)
            status, body = told.status_code, _ENCODE(told.content)
            headers = [(k.lower().encode(), str(v).encode()) for k, v in told.headers.items()]
        headers.append((b"content-type", b"application/json"))
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _task(self, study: str, scope: Scope, _: Receive) -> bytes:
        return await self.collector.task(study, self._token(_bearer(scope)))

    async def _take_one(self, study: str, scope: Scope, receive: Receive) -> bytes:
        token = _bearer(scope)
        hashed = self._token(token)
        body = await _read(receive, most=SMALL)
        sent = Sent.by(token, _read_reply(body), body, hashed=hashed)
        return _ENCODE(await self.collector.reply(study, sent))

    async def _take_many(self, study: str, scope: Scope, receive: Receive) -> bytes:
        hashed = self._token(_bearer(scope))
        if not await self.collector.knows(study, hashed):  # check before a large body is read
            raise no_token()
        brought = _read_deliveries(await _read(receive, most=MOST_BYTES))
        judged: list[Sent | Exception] = []
        for first in range(0, len(brought), _AT_A_TIME):
            judged += [_opened(one, self._limit) for one in brought[first : first + _AT_A_TIME]]
            await asyncio.sleep(0)
        sent = [one for one in judged if isinstance(one, Sent)]
        taken = iter(await self.collector.take(study, sent) if sent else [])
        return _ENCODE(
            Verdicts([self._verdict(next(taken) if isinstance(o, Sent) else o) for o in judged])
        )

    async def _withdraw(self, study: str, scope: Scope, receive: Receive) -> bytes:
        token = _bearer(scope)
        hashed = self._token(token)
        try:
            wish = _withdrawal(await _read(receive, most=SMALL + _AROUND))
            body = wish.reply.encode()
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise _malformed() from None
        message = _read_reply(body)
        if not hmac.compare_digest(nonce_of(wish.secret), message.nonce):
            raise Refused(403, "wrong_secret", "this secret is not the one of this reply")
        await self.collector.withdraw(study, Sent.by(token, message, body, hashed=hashed))
        return _ENCODE(Withdrawn(True))

    def _token(self, token: str) -> bytes:
        """The hash of a token; raises an error above its rate limit."""
        return _limited(token, self._limit)

    def _verdict(self, found: Receipt | Exception) -> Verdict:
        if isinstance(found, Receipt):
            return Verdict(receipt=found.receipt)
        kind = next(kind for kind in type(found).__mro__ if kind in self._handlers)
        told = self._handlers[kind](None, found)
        return Verdict(error={"status": told.status_code} | told.content["error"])


_Serve = Callable[[str, Scope, Receive], Awaitable[bytes]]


def _limited(token: str, limit: RateLimit) -> bytes:
    found = token_hash(token)
    if not limit.allows(found):
        raise Refused(429, "too_fast", "this token asks too often", retry_after=1)
    return found


def _opened(brought: Delivery, limit: RateLimit) -> Sent | Exception:
    try:
        body = bytes(brought.reply)
        if len(body) > SMALL:
            raise _too_large()
        hashed = _limited(brought.token, limit)
        return Sent.by(brought.token, _read_reply(body), body, hashed=hashed)
    except Exception as error:
        return error


def _bearer(scope: Scope) -> str:
    """The token after ``Bearer`` in the request header."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            return bearer(value.decode("latin-1"))
    raise no_token()


def bearer(authorization: str | None) -> str:
    """The token after ``Bearer``."""
    scheme, _, credential = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not credential:
        raise no_token()
    return credential


async def _read(receive: Receive, *, most: int) -> bytes:
    """The body of the request; a body above the limit is refused."""
    parts: list[bytes] = []
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _malformed()
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        more = message.get("more_body", False)
        if length > most:
            raise _too_large()
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_reply(body: bytes) -> ReplyMessage:
    try:
        return _reply(body)
    except msgspec.ValidationError as error:
        if str(error).endswith(_ABOUT_NONCE):
            raise Refused(400, "bad_nonce", _NONCE) from None
        raise _malformed() from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _malformed() from None


def _read_deliveries(body: bytes) -> list[Delivery]:
    """Parse the deliveries, but not the replies in them.

    They are counted first, because parsing millions takes long. If a delivery is malformed, the
    whole request is refused, because that is a mistake of the gateway. The reply in a delivery may
    be any JSON and is checked separately.
    """
    if body.count(b"{") > _BRACES:
        raise _too_many()
    try:
        found = _deliveries(body).replies
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _malformed() from None
    if len(found) > MOST_REPLIES:
        raise _too_many()
    return found


def _too_many() -> Refused:
    return Refused(413, "too_many", f"at most {MOST_REPLIES} replies go in one request")


def _malformed() -> Refused:
    return Refused(400, "malformed", "the request is not one this interface knows")


def _too_large() -> Refused:
    return Refused(413, "too_large", "the request is longer than this interface takes")
