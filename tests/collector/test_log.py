"""What a collector writes into its log: nothing about participants, and not without end."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from forked_collector import QuickCollector

from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.log import LINES, BoundedLines
from dpfda.collector.storage.sql import SqlStorage


def _fail() -> None:
    """Replies of the value 0.5 fail in the collector, with their value in the error."""
    add = SqlStorage.add_replies

    def add_or_fail(storage: SqlStorage, replies: Any) -> Any:
        if any(b"0.5," in reply.body for reply in replies):
            raise ValueError(f"cannot store {replies}")
        return add(storage, replies)

    SqlStorage.add_replies = add_or_fail  # type: ignore[method-assign]


class Failing(QuickCollector):
    prepare = _fail


class Participant:
    """Somebody with an address of their own, who remembers all that must not be in a log."""

    def __init__(self, collector: CollectorProcess, plan: Any, place: str) -> None:
        self.collector, self.plan, self.place = collector, plan, place
        self.path = f"/api/studies/{plan.hash[:16]}"
        self.secrets = [place]

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        wire = HTTPConnection("127.0.0.1", self.collector.port, source_address=(self.place, 0))
        head = {"Authorization": f"Bearer {self.secrets[1]}"} if len(self.secrets) > 1 else {}
        wire.request(method, path, None if body is None else json.dumps(body), head)
        answer = wire.getresponse()
        found = answer.status, json.loads(answer.read())
        self.headers = dict(answer.getheaders())
        wire.close()
        return found

    def take_part(self, value: float) -> int:
        token = self.ask("POST", f"{self.path}/enrol")[1]["token"]
        self.secrets += [token, hashlib.sha256(token.encode()).hexdigest()]
        ticket = self.ask("GET", f"{self.path}/task")[1]["ticket"]
        nonce = secrets.token_hex(16)
        reply = {"plan": self.plan.hash, "phase": 0, "ticket": ticket, "values": [value, 0.125]}
        status, told = self.ask("POST", f"{self.path}/reply", {**reply, "nonce": nonce})
        self.secrets += [nonce, "0.125"]
        if status == 200:
            self.secrets.append(told["receipt"])
            self.ask("GET", f"{self.path}/receipts/{told['receipt']}")
        return status


def test_a_log_of_a_real_run(tmp_path: Path, make_plan: Any) -> None:
    log = tmp_path / "log"
    plan = make_plan(50)
    with Failing(f"sqlite:///{tmp_path / 'x.db'}", log=log, options=["--rate", "100"]) as collector:
        collector.create(plan, open=True, deadline=3600)
        before = log.read_text()
        honest = [Participant(collector, plan, f"127.0.4.{i}") for i in range(1, 9)]
        assert {one.take_part(0.25) for one in honest} == {200}
        assert log.read_text() == before, "no line, and no time, of those who took part"
        unlucky = Participant(collector, plan, "127.0.4.9")
        assert unlucky.take_part(0.5) == 500
        named = unlucky.headers["x-request-id"]
        stranger = Participant(collector, plan, "127.0.4.10")
        for path in ("/reply", "/enrol/x", "/task"):
            stranger.ask("POST", stranger.path + path, {"token": "secret-in-a-body"})
        invited = collector.invite(plan.hash, 2)
        collector.request("POST", f"{stranger.path}/phases/0/close")
        collector.wait_until(plan.hash[:16])
        text = log.read_text()
    hidden = [secret for one in (*honest, unlucky, stranger) for secret in one.secrets]
    hidden += [collector.admin_key, *invited, "secret-in-a-body", "cannot store", "127.0.0.1"]
    assert [secret for secret in hidden if secret in text] == []
    lines = [json.loads(line) for line in text.splitlines()]
    assert all({"time", "level", "event"} <= set(line) for line in lines)
    failed = [line for line in lines if line.get("request") == named]
    assert [line["event"] for line in failed] == ["unexpected", "failed"]
    assert failed[1]["study"] == plan.hash[:16]
    assert {"method", "route", "status", "ms", "level"} <= set(failed[1])
    assert failed[0]["error"] == "ValueError"
    routes = [line["route"] for line in lines if line["event"] == "request"]
    assert len(routes) == 3, "a study, invitations, and the end of a phase"
    assert not [route for route in routes if route.rpartition("/")[2] in ("enrol", "reply", "task")]


@pytest.mark.parametrize(
    "request_text",
    [
        b"NOT HTTP\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    ],
    ids=["malformed", "websocket"],
)
def test_strangers_cannot_fill_the_disk(tmp_path: Path, request_text: bytes) -> None:
    log = tmp_path / "log"
    with QuickCollector(f"sqlite:///{tmp_path / 'x.db'}", log=log) as collector:
        for _ in range(10 * LINES):
            with socket.create_connection(("127.0.0.1", collector.port)) as wire:
                wire.sendall(request_text)
                wire.recv(1000)
        lines = log.read_text().splitlines()
    assert len(lines) < 2.5 * LINES  # at most two kinds
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_dropped_lines_are_counted() -> None:
    clock = [0.0]
    bounded = BoundedLines(clock=lambda: clock[0])

    def record(level: int, event: str) -> logging.LogRecord:
        return logging.LogRecord("dpfda.collector", level, "", 0, event, (), None)

    written = [bounded.filter(record(logging.ERROR, "failed")) for _ in range(LINES + 5)]
    assert sum(written) == LINES
    assert bounded.filter(record(logging.ERROR, "another kind"))
    assert all(bounded.filter(record(logging.INFO, "study created")) for _ in range(3 * LINES))
    clock[0] += 10.0
    late = record(logging.ERROR, "failed")
    assert bounded.filter(late)
    assert late.dropped == 5  # type: ignore[attr-defined]
