"""Serve a collector with uvicorn: one process, or several on the same socket.

Granian takes durable replies somewhat faster, as its parser is not Python's. What keeps one
connection from stopping the others, bounds on heads and patience (`connection.py`), is a subclass
of uvicorn's protocol, and has no place there.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import msgspec
import uvicorn
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from uvicorn.supervisors import Multiprocess

from dpfda.collector.app import ENVIRONMENT
from dpfda.collector.connection import PatientProtocol, allow_many_files
from dpfda.collector.settings import Settings
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import Unavailable
from dpfda.errors import InvalidParameter


def listen(host: str, port: int) -> socket.socket:
    """Take an address before anything else is done, or say why it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        number = error.errno or -1  # negative: names that nobody resolves
        if number < 0 or number == errno.EADDRNOTAVAIL:
            raise InvalidParameter("--host", "an address of this machine", host) from None
        rule = f"free at {host}: {os.strerror(number)}"
        raise InvalidParameter("--port", rule, port) from None


def check_certificate(certificate: str, private_key: str) -> None:
    """Refuse files that are no certificate and its key."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            certificate, private_key, password=lambda: ""
        )
    except OSError as error:
        reason = error.strerror or "cannot be read"
        rule = f"a certificate that belongs to --tls-key ({reason})"
        raise InvalidParameter("--tls-certificate", rule, certificate) from None


def check_storage(url: str) -> None:
    """Open a storage once, so that what is wrong with it is said in words; never its password."""
    name = "--database"
    try:
        parts = make_url(url) if "://" in url else None
    except (ArgumentError, ValueError):
        rule = "sqlite:///FILE or postgresql://USER@HOST/NAME"
        raise InvalidParameter(name, rule, "another text") from None
    if parts is not None and parts.drivername == "sqlite" and parts.database:
        folder = Path(parts.database).absolute().parent
        if not folder.is_dir():
            raise InvalidParameter(name, "in a folder that exists", str(folder))
    try:
        open_storage(url).close()
    except (DBAPIError, Unavailable) as error:
        cause = error if isinstance(error, DBAPIError) else error.__cause__
        reason = " ".join(str(getattr(cause, "orig", error)).split())[:200]
        raise InvalidParameter(name, f"one that can be opened ({reason})", _shown(url)) from None


def _shown(url: str) -> str:
    """A URL without what may be secret in it."""
    parts = make_url(url)
    return str(parts.database if parts.host is None else f"{parts.host}/{parts.database}")


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
        proxy_headers=bool(settings.proxies),  # uvicorn itself would believe whoever is local
        forwarded_allow_ips=list(settings.proxies),
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
