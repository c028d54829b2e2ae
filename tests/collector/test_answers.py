"""Answers that go out in one piece: the same headers as others, and no other answer does."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import MethodType, SimpleNamespace
from typing import Any

import pytest
from forked_collector import QuickCollector

from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.middleware import _HEADERS
from dpfda.collector.run import _answer


@pytest.fixture(scope="module")
def collector() -> Iterator[CollectorProcess]:
    with QuickCollector("memory:") as process:
        yield process


def asked(collector: CollectorProcess, *requests: bytes) -> list[tuple[list[bytes], bytes]]:
    """Header lines and body of each answer, all on one connection that the collector closes."""
    with socket.create_connection(("127.0.0.1", collector.port), timeout=20) as wire:
        wire.sendall(b"".join(requests))
        found = b""
        while part := wire.recv(1 << 16):
            found += part
    answers = []
    while found:
        head, _, rest = found.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        stated = next(int(one[16:]) for one in lines if one.startswith(b"content-length: "))
        length = 0 if rest.startswith(b"HTTP/1.1") or not rest else stated
        answers.append((lines, rest[:length]))
        found = rest[length:]
    return answers


LIVE = b"GET /live HTTP/1.1\r\nHost: x\r\n"


def test_every_answer_has_its_headers_once(collector: CollectorProcess) -> None:
    end = b"Connection: close\r\n\r\n"
    first, second, last = asked(collector, LIVE + b"\r\n", LIVE + b"\r\n", LIVE + end)
    for lines, body in (first, second, last):
        assert lines[0] == b"HTTP/1.1 200 OK"
        assert body == b'{"status":"ok"}'
        names = [line.partition(b":")[0] for line in lines[1:]]
        assert len(names) == len(set(names))
        assert {name for name, _ in _HEADERS} | {b"date", b"content-type"} <= set(names)
    assert b"connection: close" in last[0]
    assert b"connection: close" not in first[0]
    assert sorted(first[0]) == sorted(line for line in last[0] if line != b"connection: close")


def test_heads_and_refusals_are_sent_by_the_server(collector: CollectorProcess) -> None:
    end = b"Connection: close\r\n\r\n"
    head = LIVE.replace(b"GET", b"HEAD") + b"\r\n"
    missing = LIVE.replace(b"/live", b"/nothing") + end
    answers = asked(collector, head, missing)
    assert [lines[0].split()[1] for lines, _ in answers] == [b"200", b"404"]
    assert answers[0][1] == b""
    for lines, _ in answers:
        assert lines.count(b"x-content-type-options: nosniff") == 1


class Cycle:
    """A request of the server, as far as an answer in one piece changes it."""

    def __init__(self, **other: Any) -> None:
        self.__dict__ |= {"keep_alive": True, "scope": {"method": "GET"}} | other
        self.flow = SimpleNamespace(write_paused=other.get("paused", False))
        self.disconnected = other.get("disconnected", False)
        self.default_headers = [(b"date", b"today")]
        self.written: list[bytes] = []
        self.transport = SimpleNamespace(write=self.written.append)
        self.message_event = SimpleNamespace(set=lambda: None)
        self.answered = 0

    def on_response(self) -> None:
        self.answered += 1

    def send(self) -> None: ...


def answer(cycle: Cycle, *headers: tuple[bytes, bytes], body: bytes = b"{}") -> bool:
    return _answer(MethodType(Cycle.send, cycle), headers, b"x: y\r\n", body)


LENGTH = (b"content-length", b"2")


def test_one_piece() -> None:
    cycle = Cycle()
    assert answer(cycle, LENGTH)
    assert cycle.written == [
        b"HTTP/1.1 200 OK\r\nx: y\r\ndate: today\r\ncontent-length: 2\r\n\r\n{}"
    ]
    assert cycle.answered == 1


@pytest.mark.parametrize(
    ("cycle", "headers"),
    [
        (Cycle(keep_alive=False), [LENGTH]),
        (Cycle(paused=True), [LENGTH]),
        (Cycle(scope={"method": "HEAD"}), [LENGTH]),
        (Cycle(), []),
        (Cycle(), [(b"content-length", b"3")]),
        (Cycle(), [LENGTH, (b"connection", b"close")]),
        (Cycle(), [LENGTH, (b"transfer-encoding", b"chunked")]),
        (Cycle(), [LENGTH, (b"location", b"/\r\nset-cookie: a=b")]),
        (Cycle(), [LENGTH, (b"location", b"/\nset-cookie: a=b")]),
    ],
)
def test_what_the_server_has_to_send(cycle: Cycle, headers: list[tuple[bytes, bytes]]) -> None:
    assert not answer(cycle, *headers)
    assert not cycle.written
    assert not cycle.answered


def test_nothing_is_written_to_a_connection_that_is_gone() -> None:
    cycle = Cycle(disconnected=True)
    assert answer(cycle, LENGTH)
    assert not cycle.written
