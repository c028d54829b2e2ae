"""An HTTP client on the standard library: one connection, limited answers, identical retries."""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Self
from urllib.parse import SplitResult, urlsplit

from dpfda.errors import DpfdaError, InvalidParameter, printable

_MOST_BYTES = 8 << 20
_ALTOGETHER = 4  # multiple of the timeout: limit for a server that sends its answer slowly
_ATTEMPTS, _PAUSE = 8, 0.2  # seconds, doubled every time
# characters that would end a line or a word of a request
_UNSENDABLE = re.compile(rb"[\x00-\x20\x7f]")


class Unreachable(DpfdaError):
    """The collector could not be reached, or did not answer in time."""


class Answer(NamedTuple):
    """Status and body of a response."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body as plain values; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def reason(self) -> str:
        """The collector's error message, as one printable line."""
        message = self._error("message")
        return printable(message) if message else f"HTTP status {self.status}"

    @property
    def code(self) -> str:
        """The error code, one word for programs."""
        return str(self._error("code"))[:40]

    def _error(self, part: str) -> object:
        found = self.json()
        error = found.get("error") if isinstance(found, dict) else None
        return error.get(part) if isinstance(error, dict) else None


class Connection:
    """A connection to one collector; a lost connection is opened again.

    Args:
        url: where the collector is: ``https://host``, or ``http://`` on this machine.
        timeout: seconds to wait for an answer.
        certificates: file of certificates to trust instead of the system's.
        insecure: allow ``http://`` to other machines. Tokens and replies are then not encrypted,
            and anybody on the network path can read them and answer in the person's place.
        most: limit on the bytes of an answer.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 30.0,
        certificates: str | None = None,
        insecure: bool = False,
        most: int = _MOST_BYTES,
    ) -> None:
        parts, port = _address(url)
        assert parts.hostname is not None
        if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname):
            rule = "https://, or http:// to this machine (insecure allows others)"
            raise InvalidParameter("url", rule, url)
        self._base = parts.path.rstrip("/")
        self._most = most
        self._altogether = _ALTOGETHER * timeout
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = _trusting(certificates)
            self._connection = http.client.HTTPSConnection(
                parts.hostname, port, timeout=timeout, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(parts.hostname, port, timeout=timeout)

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request, without retries."""
        given = dict(headers or {})
        if body is not None:
            given["Content-Type"] = "application/json"
        try:
            with self._limited():
                self._connection.request(method, self._base + path, body=body, headers=given)
                response = self._connection.getresponse()
                content = response.read(self._most + 1)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next request opens a new one
            raise Unreachable(f"the collector did not answer ({type(error).__name__})") from None
        if len(content) > self._most or response.length:
            self._connection.close()
            wrong = "too long" if len(content) > self._most else "cut off"
            raise Unreachable(f"the collector's answer is {wrong}")
        return Answer(response.status, content)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Limit the total time of an answer; `timeout` limits only each part of it."""
        timer = threading.Timer(self._altogether, self._hang_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _hang_up(self) -> None:
        open_socket = self._connection.sock
        if open_socket is not None:
            with suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _address(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna")
        sendable = not _UNSENDABLE.search(host + parts.path.encode("ascii"))
    except ValueError:  # invalid port, invalid address in brackets, or invalid host name
        parts, port, sendable = SplitResult("", "", "", "", ""), None, False
    if not sendable or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameter("url", "an http:// or https:// address", url)
    return parts, port


def _trusting(certificates: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificates)
    except OSError:
        rule = "a file of certificates (PEM)"
        raise InvalidParameter("certificates", rule, certificates) from None


def is_loopback(host: str) -> bool:
    """Whether a host name always refers to this machine.

    Examples:
        >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("127.0.0.1.example.org")
        (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def persistently(
    request: Callable[[], Answer],
    *,
    once: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    notify: Callable[[str], object] = lambda words: None,
) -> Answer:
    """Repeat a request after lost connections and after statuses 5xx and 429.

    Args:
        request: what to do.
        once: repeat it after 429 alone, which says that nothing was done.
        sleep: how to wait.
        notify: called with a line of text before the first repetition.

    Examples:
        >>> answers = iter([Answer(503, b""), Answer(200, b"{}")])
        >>> persistently(lambda: next(answers), sleep=lambda seconds: None).status
        200
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            answer = request()
        except Unreachable as error:
            if once or attempt == _ATTEMPTS:
                raise
            trouble = str(error)
        else:
            if answer.status != 429 and (once or answer.status < 500):
                return answer
            trouble = f"the collector answered {answer.reason!r}"
            if attempt == _ATTEMPTS:
                raise Unreachable(f"{trouble} {attempt} times")
        if attempt == 1:
            notify(f"{trouble}: trying again, up to {_ATTEMPTS - 1} times")
        sleep(min(_PAUSE * 2 ** (attempt - 1), 10.0))
    raise AssertionError
