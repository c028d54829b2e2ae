"""A load generator in a process of its own: ``python -m dpfda_bench.load HOST PORT``.

Requests come as one msgpack document on standard input, answers and times go as one to standard
output. It shares no line with the service or its client: what it measures, any gateway would see.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
import uvloop

from dpfda.errors import DpfdaError

CONNECTIONS = 64


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How a number of requests went.

    Attributes:
        elapsed: seconds from the first request to the last answer.
        began: when each request was sent, by this machine's monotonic clock.
        seconds: of each request, in their order.
        statuses: of each answer.
        bodies: of each answer; empty unless they were asked for.
    """

    elapsed: float
    began: list[float]
    seconds: list[float]
    statuses: list[int]
    bodies: list[bytes]

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.seconds) / self.elapsed

    def quantile(self, share: float) -> float:
        """Milliseconds within which this share was answered."""
        return float(np.quantile(self.seconds, share)) * 1000


class Asked(msgspec.Struct, frozen=True):
    """What the other process is given."""

    requests: list[bytes]
    connections: int
    keep: bool


def load(
    url: str,
    requests: Sequence[bytes],
    *,
    connections: int = CONNECTIONS,
    keep: bool = False,
    status: int | None = 200,
) -> Load:
    """Send requests as fast as they are answered, each connection one at a time.

    Args:
        url: of the collector.
        requests: as they go over the wire.
        connections: how many at once.
        keep: hand back the bodies of all answers.
        status: what every answer must have; None allows any.
    """
    parts = urlsplit(url)
    with tempfile.TemporaryFile() as asking, tempfile.TemporaryFile() as answers:
        asking.write(msgspec.msgpack.encode(Asked(list(requests), connections, keep)))
        asking.seek(0)
        command = [sys.executable, "-m", "dpfda_bench.load", str(parts.hostname), str(parts.port)]
        subprocess.run(command, stdin=asking, stdout=answers, check=True)
        answers.seek(0)
        found = msgspec.msgpack.decode(answers.read(), type=Load)
    others = sorted(set(found.statuses) - {status})
    if status is not None and others:
        raise DpfdaError(f"every answer should have had status {status}, some had {others}")
    return found


class _Sender(asyncio.Protocol):
    """One HTTP/1.1 connection that sends its next request when the last one is answered."""

    def __init__(self, queue: Iterator[tuple[int, bytes]], found: Load, keep: bool) -> None:
        self._queue = queue
        self._found = found
        self._keep = keep
        self._buffer = b""
        self._wanted = 0
        self._place = 0
        self._since = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def begin(self) -> None:
        """Send the next request, if there is one."""
        found = next(self._queue, None)
        if found is None:
            self.done.set_result(None)
            self._transport.close()
            return
        self._place, request = found
        self._found.began[self._place] = self._since = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._wanted:
            head, end, _ = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._wanted = len(head) + 4 + int(length or 0)
        if len(self._buffer) < self._wanted:
            return
        self._found.seconds[self._place] = time.perf_counter() - self._since
        self._found.statuses[self._place] = int(self._buffer[9:12])
        if self._keep:
            self._found.bodies[self._place] = self._buffer.partition(b"\r\n\r\n")[2]
        self._buffer, self._wanted = b"", 0
        self.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(
                exc or ConnectionResetError("the collector closed the connection")
            )


async def _send_all(host: str, port: int, asked: Asked) -> Load:
    number = len(asked.requests)
    found = Load(
        elapsed=0.0,
        began=[0.0] * number,
        seconds=[0.0] * number,
        statuses=[0] * number,
        bodies=[b""] * number if asked.keep else [],
    )
    queue = iter(enumerate(asked.requests))
    loop = asyncio.get_running_loop()
    senders = [
        (await loop.create_connection(lambda: _Sender(queue, found, asked.keep), host, port))[1]
        for _ in range(min(asked.connections, number))
    ]
    start = time.perf_counter()
    for sender in senders:
        sender.begin()
    await asyncio.gather(*(sender.done for sender in senders))
    return msgspec.structs.replace(found, elapsed=time.perf_counter() - start)


def main(host: str, port: str) -> None:
    """Read what to send, send it, write how it went."""
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Asked)
    found = uvloop.run(_send_all(host, int(port), asked))
    sys.stdout.buffer.write(msgspec.msgpack.encode(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
