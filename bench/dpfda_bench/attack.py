"""Strangers who keep a collector busy: ``python -m dpfda_bench.attack HOST PORT KIND STUDY``.

Eight connections from another address of this machine send the same request again and again, and
open a new connection when theirs was closed, until the process is ended.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from dpfda.client.crowd import request_bytes

CONNECTIONS = 8
KINDS = {
    "bodies": ("POST", "/api/studies/{}/replies", b'{"replies":[' + b"1," * 2_000_000 + b"1]}"),
    "document": ("GET", "/openapi/openapi.json", b""),
    "page": ("GET", "/login", b""),
    "tokens": ("GET", "/api/studies/{}/task", b""),
}
_ADDRESS = "127.0.3.1"


@contextmanager
def attacked(url: str, kind: str, study: str) -> Iterator[None]:
    """Strangers send as long as the block lasts."""
    place = urlsplit(url)
    command = [sys.executable, "-m", "dpfda_bench.attack", str(place.hostname), str(place.port)]
    process = subprocess.Popen([*command, kind, study])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


async def _stranger(host: str, port: int, request: bytes) -> None:
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(host, port, local_addr=(_ADDRESS, 0))
            try:
                while True:
                    writer.write(request)
                    head = (await reader.readuntil(b"\r\n\r\n")).lower()
                    length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                    await reader.readexactly(length)
                    if b"connection: close" in head:
                        break
            finally:
                writer.close()


async def _all(host: str, port: str, kind: str, study: str) -> None:
    method, path, body = KINDS[kind]
    request = request_bytes(method, path.format(study), body, token="made-up")
    await asyncio.gather(*(_stranger(host, int(port), request) for _ in range(CONNECTIONS)))


if __name__ == "__main__":
    asyncio.run(_all(*sys.argv[1:]))
