"""Many simulated people who share a few HTTP connections in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from urllib.parse import urlsplit

import msgspec
import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import DpfdaError
from dpfda.noise import Source
from dpfda.protocol.person import Crowd
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import ReplyMessage, TaskMessage

_PAUSE = 0.1  # seconds until a person without a task asks again


class Wire:
    """A minimal HTTP/1.1 connection that uses little processor time, for load tests."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._host, self._port = parts.hostname, parts.port or 80
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Send a request as bytes; return status and body of the answer.

        Raises:
            OSError: the connection was lost; the next call opens a new one.
        """
        try:
            if self._writer is None or self._reader is None:
                self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
            self._writer.write(request)
            head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            body = await self._reader.readexactly(length)
            if b"\r\nconnection: close\r\n" in head:  # the server process is about to end
                self.close()
            return int(head[9:12]), body
        except (asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise ConnectionResetError("the collector closed the connection") from error
        except OSError:
            self.close()
            raise

    async def ask(
        self, method: str, path: str, body: bytes | None = None, *, token: str | None = None
    ) -> tuple[int, bytes]:
        """Send one request."""
        return await self.send(request_bytes(method, path, body, token=token))

    def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


def request_bytes(
    method: str, path: str, body: bytes | None = None, *, token: str | None = None
) -> bytes:
    """The bytes of a request.

    Examples:
        >>> request_bytes("GET", "/health").splitlines()[0]
        b'GET /health HTTP/1.1'
    """
    head = f"{method} {path} HTTP/1.1\r\nHost: collector\r\n"
    if token is not None:
        head += f"Authorization: Bearer {token}\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + (body or b"")


def reply_body(
    plan: StudyPlan, asked: bytes, features: FloatArray, labels: IntArray, source: Source
) -> bytes:
    """The reply of one person to a task message."""
    message = msgspec.json.decode(asked, type=TaskMessage)
    person = Crowd(plan, lambda start, stop: (features[start:stop], labels), source=source)
    values = person.answer(plan.read_task(message.task)).values[0].tolist()
    return msgspec.json.encode(
        ReplyMessage.saying(message.plan, message.phase, message.ticket, values)
    )


@dataclass(eq=False)
class RemoteCrowd:
    """The people of one study, who take part one after the other on each connection.

    Attributes:
        url: the collector.
        plan: the plan of the study.
        features: encoded curves, one row a person.
        labels: label numbers.
        tokens: their invitations.
        source: the source of their randomness.
        tell: called after every person.
        bytes_sent: total length of their replies.
    """

    url: str
    plan: StudyPlan
    features: FloatArray
    labels: IntArray
    _: KW_ONLY
    tokens: Sequence[str]
    source: Source
    tell: Callable[[], None] = lambda: None
    bytes_sent: int = field(default=0, init=False)

    async def take_part(self, *, connections: int = 16) -> None:
        """Let every person take part once."""
        people = iter(range(len(self.features)))
        await asyncio.gather(*(self._queue(people) for _ in range(connections)))

    async def _queue(self, people: Iterator[int]) -> None:
        wire = Wire(self.url)
        try:
            for person in people:
                await self._one(wire, person)
                self.tell()
        finally:
            wire.close()

    async def _one(self, wire: Wire, person: int) -> None:
        path = f"/api/studies/{self.plan.hash[:16]}"
        token = self.tokens[person]
        task = await _granted(wire, "GET", path + "/task", token=token)
        own = slice(person, person + 1)
        features, labels = self.features[own], np.asarray(self.labels[own])
        reply = reply_body(self.plan, task, features, labels, self.source)
        await _granted(wire, "POST", path + "/reply", reply, token=token)
        self.bytes_sent += len(reply)


async def _granted(
    wire: Wire, method: str, path: str, body: bytes | None = None, *, token: str
) -> bytes:
    """Repeat a request until it is granted; statuses 202 and 429 mean that it may be later."""
    while True:
        status, answer = await wire.ask(method, path, body, token=token)
        if status == 200:
            return answer
        if status not in (202, 429):
            raise DpfdaError(f"{method} {path} was refused with status {status}")
        await asyncio.sleep(_PAUSE)
