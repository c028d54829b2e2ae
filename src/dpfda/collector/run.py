"""Serve a collector with uvicorn: one process, or several on the same socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import msgspec
import uvicorn
from uvicorn.supervisors import Multiprocess

from dpfda.collector.app import ENVIRONMENT
from dpfda.collector.connection import PatientProtocol, allow_many_files
from dpfda.collector.settings import Settings
from dpfda.errors import InvalidParameter


def listen(host: str, port: int) -> socket.socket:
    """Take an address before anything else is done, or say why it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InvalidParameter("--port", f"free at {host}: {reason}", port) from None


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    listener: socket.socket | None = None,
    workers: int = 1,
    certificate: str | None = None,
    private_key: str | None = None,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted.

    Args:
        settings: what to serve.
        host: the address to listen on.
        port: 0 takes a free one.
        listener: what `listen` has opened already at this address.
        workers: how many processes; more than one needs a database that they can share.
        certificate: file with the TLS certificate (PEM).
        private_key: file with its key.
        announce: is told the URL once it is listened on.
    """
    allow_many_files()
    os.environ[ENVIRONMENT] = msgspec.json.encode(settings).decode()
    configuration = uvicorn.Config(
        "dpfda.collector.app:from_environment",
        factory=True,
        http=PatientProtocol,
        workers=workers,
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=max(1, round(settings.patience)),
        timeout_graceful_shutdown=10,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
        ws="none",
        backlog=1024,
    )
    listener = listen(host, port) if listener is None else listener
    scheme = "https" if certificate else "http"
    shown = f"[{host}]" if ":" in host else host
    announce(f"{scheme}://{shown}:{listener.getsockname()[1]}")
    if workers > 1:
        Multiprocess(configuration, [listener]).run()
    else:
        uvicorn.Server(configuration).run(sockets=[listener])
