"""Serve a collector with uvicorn: one process, or several on the same socket.

Granian stores replies somewhat faster, because its parser is not written in Python. It is not used,
because the limits here, which keep one connection from blocking the others, are a subclass of
uvicorn's protocol, and granian has no such class. The limits concern connections: how much one may
send, how long it may take, and which one is closed if there are too many.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import MethodType
from typing import ClassVar, cast

import msgspec
import uvicorn
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.supervisors import Multiprocess

from dpfda.collector.app import ENVIRONMENT
from dpfda.collector.log import log_to_stderr
from dpfda.collector.metrics import DIRECTORY
from dpfda.collector.middleware import AT_ONCE
from dpfda.collector.settings import Settings
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import Unavailable
from dpfda.errors import InvalidParameter

MOST_HEAD = 16 * 1024  # bytes of a request's first line and headers, as in many servers
MOST_HEADERS = 100
_PIECES, _PIECE = 1000, 256  # a body may come in 1000 pieces, plus one for each 256 bytes
_LAST = 1.0  # seconds in which an idle connection may send one more request to a process that ends
# seconds in which a worker must start or answer its supervisor; otherwise it is replaced
_START = 30
_NOT_AT_ONCE = (b"connection", b"transfer-encoding")
_SPARE = 64  # open files that are not connections: database, sockets, log


class _TooLarge(Exception):
    """Raised in the parser for a head that is too large, or a body in too many small pieces."""


class PatientProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with limits on the size of request heads and on the time of requests.

    The time limit is that for idle connections. It applies to the head, then to the body, then to
    each part of an answer that the client reads. If there are too many connections, the one that
    has waited longest for a complete request is closed.
    """

    # connections without a complete request, oldest first
    _waiting: ClassVar[dict[PatientProtocol, None]] = {}
    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes of this request's first line and headers
    _pieces = _body = 0  # number and bytes of the pieces of this request's body
    _silent = 0  # bytes since the last event of the parser
    _unread = 0  # bytes of answers that the client had not read at the last check
    _ending = False  # the process ends; this request is the last one

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._waiting[self] = None
        if len(self.connections) > most_connections():
            oldest = next(iter(self._waiting))
            # at once: `connection_lost` comes later, after further connections
            del self._waiting[oldest]
            oldest.transport.abort()
        self._wait()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.config.timeout_keep_alive, self._hang_up)

    def _hang_up(self) -> None:
        cycle, unread = self.cycle, self.transport.get_write_buffer_size()
        making = cycle is not None and not cycle.response_complete and not cycle.more_body
        if unread and unread >= self._unread > 0:  # nothing was read since the last check
            self.transport.abort()
        elif unread or making:
            self._unread = unread
            self._wait()
        elif not self.transport.is_closing():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Restart the timer for every new request."""
        before = self.cycle
        self._silent += len(data)
        super().data_received(data)
        if self._silent > MOST_HEAD and not self.transport.is_closing():
            self.send_400_response("")
        if self.cycle is not before and self._timer is not None:
            self._timer.cancel()
            self._wait()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._head = self._silent = self._pieces = self._body = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header, or a trailer after a chunked body."""
        self._silent = 0
        self._head += len(name) + len(value)
        super().on_header(name, value)
        if self._head > MOST_HEAD or len(self.headers) > MOST_HEADERS:
            raise _TooLarge

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._silent = 0
        self._head += len(self.url)
        if self._head > MOST_HEAD:
            raise _TooLarge
        super().on_headers_complete()
        if self.cycle is not None:
            self.scope["extensions"] = _EXTENSIONS
            if self._ending:
                self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Receive a piece of the body; the number of small pieces is limited."""
        self._silent = 0
        self._pieces += 1
        self._body += len(body)
        if self._pieces > _PIECES + self._body // _PIECE:
            raise _TooLarge
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._silent = 0
        self._waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is complete; wait for the next request."""
        if self in self.connections:
            self._waiting[self] = None
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid or oversized request with an error and close the connection."""
        sizes = max(self._head, self._silent), len(self.headers or ())
        large = sizes[0] > MOST_HEAD or sizes[1] > MOST_HEADERS
        status = b"431 Request Header Fields Too Large" if large else b"400 Bad Request"
        head = b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(head % status)
        self.transport.close()

    def shutdown(self) -> None:
        """End the connection after answering current requests and those that arrive shortly.

        A request may arrive at this moment, also the first one of a new connection. Its sender
        could not know whether it was read, and would have to send it again.
        """
        if self.cycle is None or self.cycle.response_complete:
            self._ending = True
            self.loop.call_later(_LAST, super().shutdown)
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer of a closed connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.pop(self, None)
        super().connection_lost(exc)


def _answer(
    send: MethodType,
    headers: Iterable[tuple[bytes, bytes]],
    lines: bytes,
    body: bytes,
) -> bool:
    """Send status 200, headers and body in one piece; False if uvicorn must send them.

    Uvicorn writes twice and searches each header, which takes longer than to read a reply.

    Args:
        send: uvicorn's `send` method of this request.
        headers: headers of this answer.
        lines: further headers, common to all answers.
        body: the whole body.
    """
    cycle = cast("RequestResponseCycle", send.__self__)
    if not cycle.keep_alive or cycle.flow.write_paused or cycle.scope["method"] == "HEAD":
        return False
    parts = [STATUS_LINE[200], lines]
    stated = b""
    for name, value in (*cycle.default_headers, *headers):
        if name in _NOT_AT_ONCE or b"\r" in value or b"\n" in value:
            return False
        if name == b"content-length":
            stated = value
        parts += name, b": ", value, b"\r\n"
    if stated != b"%d" % len(body):
        return False
    if not cycle.disconnected:
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.transport.write(b"".join((*parts, b"\r\n", body)))
        cycle.message_event.set()
        cycle.on_response()
    return True


# Shared by all requests: a reference to the request would create cyclic garbage.
_EXTENSIONS: dict[str, dict[object, object]] = {AT_ONCE: {"send": _answer}}


def most_connections() -> int:
    """Largest number of connections of this process, by its limit of open files."""
    return max(_SPARE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE)


def allow_many_files() -> None:
    """Raise the soft limit of open files to the hard limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def listen(host: str, port: int, *, name: str = "--port") -> socket.socket:
    """Bind the address first; the error states why it is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        number = error.errno or -1  # negative for host names that cannot be resolved
        if number < 0 or number == errno.EADDRNOTAVAIL:
            which = "--host" if name == "--port" else name
            raise InvalidParameter(which, "an address of this machine", host) from None
        rule = f"free at {host}: {os.strerror(number)}"
        raise InvalidParameter(name, rule, port) from None


def inherited() -> dict[str, socket.socket]:
    """Listeners that the service manager opened and keeps open while this program restarts.

    By systemd's protocol there are `LISTEN_FDS` of them, from file 3 on, for the process
    `LISTEN_PID`. They are ``public`` and ``admin`` by `LISTEN_FDNAMES`, or in this order.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return {}
    number = int(os.environ.get("LISTEN_FDS", "0"))
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")
    if not set(names) <= {"public", "admin"}:
        names = ["public", "admin"]
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):  # not for worker processes
        os.environ.pop(name, None)
    return {name: socket.socket(fileno=3 + i) for i, name in enumerate(names[:number])}


def check_certificate(certificate: str, private_key: str) -> None:
    """Check a certificate and its key."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            certificate, private_key, password=lambda: ""
        )
    except OSError as error:
        reason = error.strerror or "cannot be read"
        rule = f"a certificate that belongs to --tls-key ({reason})"
        raise InvalidParameter("--tls-certificate", rule, certificate) from None


def check_storage(url: str) -> None:
    """Open a storage once to report errors clearly, without its password."""
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
    """A URL without its possibly secret parts."""
    parts = make_url(url)
    return str(parts.database if parts.host is None else f"{parts.host}/{parts.database}")


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    listener: socket.socket | None = None,
    admin_listener: socket.socket | None = None,
    workers: int | None = None,
    tls: tuple[str | None, str | None] = (None, None),
    announce: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted.

    Args:
        settings: what to serve.
        host: the address to listen on.
        port: 0 takes a free one.
        listener: a socket that `listen` has already opened at this address.
        admin_listener: a separate socket for dashboard, metrics and requests that need a key.
        workers: number of processes, with a supervisor; more than one needs a database that they
            can share. None for this process only.
        tls: files with the TLS certificate (PEM) and with its key.
        announce: called with the URLs of the listeners, one per line, once they are open.
    """
    allow_many_files()
    if admin_listener is not None:
        port_of_it = admin_listener.getsockname()[1]
        settings = msgspec.structs.replace(settings, admin_port=port_of_it)
    os.environ[ENVIRONMENT] = msgspec.json.encode(settings).decode()
    configuration = uvicorn.Config(
        "dpfda.collector.app:from_environment",
        factory=True,
        http=PatientProtocol,
        workers=workers or 1,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=bool(settings.proxies),  # by default uvicorn would trust local clients
        forwarded_allow_ips=list(settings.proxies),
        timeout_keep_alive=max(1, round(settings.patience)),
        timeout_graceful_shutdown=10,
        timeout_worker_healthcheck=_START,
        ssl_certfile=tls[0],
        ssl_keyfile=tls[1],
        ws="none",
        backlog=1024,
    )
    listener = listen(host, port) if listener is None else listener
    scheme = "https" if tls[0] else "http"
    listeners = [one for one in (listener, admin_listener) if one is not None]
    lines = []
    for one in listeners:
        address = host if one is listener else one.getsockname()[0]
        shown = f"[{address}]" if ":" in address else address
        lines.append(f"{scheme}://{shown}:{one.getsockname()[1]}")
    announce("\n".join(lines))
    if workers is not None:
        log_to_stderr()
        with tempfile.TemporaryDirectory(prefix="dpfda-metrics-") as folder:
            os.environ[DIRECTORY] = folder
            Multiprocess(configuration, listeners).run()
    else:
        uvicorn.Server(configuration).run(sockets=listeners)
