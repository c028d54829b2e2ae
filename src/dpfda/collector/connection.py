"""Below the requests: what one connection may send, how long it may take, and who makes room."""

from __future__ import annotations

import asyncio
import resource
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD = 16 * 1024  # bytes of a request's first line and headers, as in many servers
MOST_HEADERS = 100
_PIECES, _PIECE = 1000, 256  # a body may come in so many pieces, and one for so many bytes
_SPARE = 64  # files that are no connections: database, sockets, log


class _TooLarge(Exception):
    """A head that goes on and on, or a body of crumbs: an error, which the parser passes on."""


class PatientProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with bounds on heads, and hanging up on whoever takes too long.

    The patience is that for idle connections: so long a head may take, then a body, then each part
    of an answer that the other side reads. When there are as many connections as the process may
    have, whoever has kept it waiting longest makes room.
    """

    _waiting: ClassVar[dict[PatientProtocol, None]] = {}  # without a whole request, oldest first
    _timer: asyncio.TimerHandle | None = None
    _head = 0  # bytes of this request's first line and headers
    _pieces = _body = 0  # of this request's body, and their bytes
    _silent = 0  # bytes since the parser last found anything
    _unread = 0  # bytes of answers that the other side had not read at the last look

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._waiting[self] = None
        if len(self.connections) > most_connections():
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]  # now: its end is told later, when others may have come
            oldest.transport.abort()
        self._wait()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.config.timeout_keep_alive, self._hang_up)

    def _hang_up(self) -> None:
        cycle, unread = self.cycle, self.transport.get_write_buffer_size()
        making = cycle is not None and not cycle.response_complete and not cycle.more_body
        if unread and unread >= self._unread > 0:  # nothing was read since the last look
            self.transport.abort()
        elif unread or making:
            self._unread = unread
            self._wait()
        elif not self.transport.is_closing():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Wait anew for every new request."""
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
        """A header; also one that follows a body in chunks."""
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

    def on_body(self, body: bytes) -> None:
        """A piece of the body, whose size each route bounds; it may not come crumb by crumb."""
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
        """The answer is complete: the next request is waited for."""
        if self in self.connections:
            self._waiting[self] = None
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or too much of one, and hang up."""
        sizes = max(self._head, self._silent), len(self.headers or ())
        large = sizes[0] > MOST_HEAD or sizes[1] > MOST_HEADERS
        status = b"431 Request Header Fields Too Large" if large else b"400 Bad Request"
        head = b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(head % status)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.pop(self, None)
        super().connection_lost(exc)


def most_connections() -> int:
    """How many connections this process may have, by its limit of open files."""
    return max(_SPARE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE)


def allow_many_files() -> None:
    """Raise the limit of open files as far as it may be raised without asking anybody."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
