"""Connections that never end, never begin, or never read: others are served as fast as before."""

from __future__ import annotations

import resource
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from forked_collector import QuickCollector

from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.run import MOST_HEAD, MOST_HEADERS

pytestmark = pytest.mark.timed

ENOUGH = 8 << 20  # bytes after which something is endless


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("collector")
    with QuickCollector(f"sqlite:///{folder}/x.db", options=["--patience", "1"]) as process:
        yield process


def dial(collector: CollectorProcess, first: bytes) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", collector.port), timeout=10)
    opened.sendall(first)
    return opened


def answer_to(opened: socket.socket) -> bytes:
    """What was answered before the collector closed the connection."""
    found = b""
    with opened, suppress(ConnectionError):
        while part := opened.recv(1 << 16):
            found += part
    return found


def seconds(collector: CollectorProcess, *, times: int = 15) -> float:
    """What a request takes, in the middle."""
    taken = []
    with Connection(collector.url) as connection:
        for _ in range(times):
            begun = time.perf_counter()
            assert connection.ask("GET", "/login").status == 200
            taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


HEAD = b"GET /login HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "a header": (HEAD + b"X: ", b"a" * 4096),
    "its name": (HEAD, b"a" * 4096),
    "many headers": (HEAD, b"a: b\r\n" * 1000),
    "the address": (b"GET /", b"a" * 4096),
    "what follows a body": (CHUNKED + b"1\r\na\r\n0\r\nX: ", b"a" * 4096),
    "many that follow a body": (CHUNKED + b"1\r\na\r\n0\r\n", b"a: b\r\n" * 1000),
    "the size of a chunk": (CHUNKED + b"1;", b"a" * 4096),
    "a body of crumbs": (CHUNKED.replace(b"/login", b"/api/studies/a/replies"), b"1\r\na\r\n" * 99),
    "nothing": (b"", b"\r\n" * 2048),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_is_endless_is_refused(collector: CollectorProcess, what: str) -> None:
    """A head was kept and copied as it grew: one connection stopped everybody."""
    usual = seconds(collector, times=5)
    first, more = ENDLESS[what]
    sent = 0
    with dial(collector, first) as endless:
        with suppress(OSError):
            while sent < ENOUGH:
                endless.sendall(more)
                sent += len(more)
        assert sent < ENOUGH, "it was read to the end"
    assert seconds(collector, times=5) < 5 * usual + 0.05


@pytest.mark.parametrize(("crumbs", "status"), [(1003, b"401"), (1004, b"400")])
def test_a_body_may_come_in_many_pieces(
    collector: CollectorProcess, crumbs: int, status: bytes
) -> None:
    """A thousand, and one for each 256 bytes."""
    body = b"4\r\nkey=\r\n" + b"1\r\na\r\n" * (crumbs - 1) + b"0\r\n\r\n"
    form = CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Type: application/x-www-form-urlencoded\r\n")
    found = answer_to(dial(collector, form + b"Connection: close\r\n\r\n" + body))
    assert found.split()[1] == status


def head(size: int = 0, headers: int = 0) -> bytes:
    """A request with this many bytes and headers in its head, as the bound counts them."""
    lines = b"".join(b"a: b\r\n" for _ in range(headers - 3))
    counted = len(b"/login" + b"Hostx" + b"X") + len(b"Connectionclose") + 2 * (headers - 3)
    pad = b"p" * max(1, size - counted)
    return (
        b"GET /login HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: "
        + pad
        + b"\r\n"
        + lines
        + b"\r\n"
    )


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (head(MOST_HEAD, 3), b"200"),
        (head(MOST_HEAD + 1, 3), b"431"),
        (head(0, MOST_HEADERS), b"200"),
        (head(0, MOST_HEADERS + 1), b"431"),
        (b"GET /login?" + b"a" * MOST_HEAD + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"431"),
        (b"garbage\r\n\r\n", b"400"),
    ],
)
def test_heads_have_a_size(collector: CollectorProcess, sent: bytes, status: bytes) -> None:
    """In one piece, so that no part of it is ever missing."""
    assert answer_to(dial(collector, sent))[9:12] == status


def test_a_large_body_is_no_head(collector: CollectorProcess) -> None:
    body = b"key=" + b"a" * 4000
    sent = b"POST /login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    sent += b"Content-Length: %d\r\n\r\n" % (8 * len(body)) + 8 * body
    assert len(sent) > MOST_HEAD
    assert answer_to(dial(collector, sent))[9:12] == b"413"


def test_nine_hundred_slow_connections_are_harmless(collector: CollectorProcess) -> None:
    usual = seconds(collector)
    stop = threading.Event()
    with ExitStack() as stack:
        slow = [stack.enter_context(dial(collector, HEAD + b"X: ")) for _ in range(900)]

        def drip() -> None:
            while not stop.wait(0.3):
                for one in slow:
                    with suppress(OSError):
                        one.send(b"a")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            assert seconds(collector) < 5 * usual + 0.05
            slow[0].settimeout(5)
            time.sleep(1)
            assert slow[0].recv(1) == b"", "it was hung up on, though it never fell silent"
        except ConnectionError:
            pass
        finally:
            stop.set()
            thread.join()


def test_who_came_first_and_asked_nothing_makes_room(tmp_path: Any) -> None:
    """With all its files open, a process could not let anybody in."""
    with QuickCollector(f"sqlite:///{tmp_path}/x.db") as collector, ExitStack() as stack:
        resource.prlimit(collector.pid, resource.RLIMIT_NOFILE, (200, 200))
        silent = [stack.enter_context(dial(collector, b"")) for _ in range(250)]
        assert seconds(collector) < 1
        silent[0].settimeout(1)
        with suppress(ConnectionError):
            assert silent[0].recv(1) == b""


def test_an_answer_that_nobody_reads_is_dropped(collector: CollectorProcess) -> None:
    """Whoever asks and does not read held a connection for ever."""
    request = b"GET /openapi/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", collector.port))
        deaf.sendall(request * 300)  # 10 MB of answers
        deadline = time.monotonic() + 40  # for ever is longer, on a busy machine too
        with suppress(ConnectionError):
            while time.monotonic() < deadline:
                deaf.sendall(b"\r\n")
                time.sleep(0.1)
        assert time.monotonic() < deadline
