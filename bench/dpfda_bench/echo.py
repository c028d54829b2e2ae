"""The least that a server can do: ``python -m dpfda_bench.echo`` sends back what it was sent.

It runs on the collector's server, with the collector's protocol: what a reply takes longer than an
echo is the collector's own work.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from dpfda.collector.run import PatientProtocol, listen


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """A bare ASGI application."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def echoing() -> Iterator[tuple[str, int]]:
    """The URL of an echo in a process of its own, and that process."""
    command = [sys.executable, "-m", "dpfda_bench.echo"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def main() -> None:
    """Serve until terminated; the first line says where."""
    listener = listen("127.0.0.1", 0)
    sys.stdout.write(f"http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    configuration = uvicorn.Config(
        echo,
        http=PatientProtocol,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        ws="none",
        backlog=1024,
    )
    uvicorn.Server(configuration).run(sockets=[listener])


if __name__ == "__main__":
    main()
