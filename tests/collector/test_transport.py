"""Below the messages: TLS with a local certificate, and clients that take their time."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from dpfda.client import RemoteClient
from dpfda.client.http import Answer, Connection, Unreachable, persistently
from dpfda.collector.collector_process import CollectorProcess


def test_tls(certificate: tuple[Path, Path], tmp_path: Path, make_plan: Any) -> None:
    file, key = map(str, certificate)
    options = ["--tls-certificate", file, "--tls-key", key]
    plan = make_plan(5, epsilon=1.0)
    with CollectorProcess(f"sqlite:///{tmp_path}/x.db", options=options) as collector:
        assert collector.url.startswith("https://")
        with Connection(collector.url, certificates=file) as connection:
            headers = {"Authorization": f"Bearer {collector.admin_key}"}
            body = json.dumps({"plan": plan.to_dict(), "settings": {"open": True}}).encode()
            answer = persistently(
                lambda: connection.ask("POST", "/api/studies", body=body, headers=headers)
            )
            assert answer.status == 201
            login = f"key={collector.admin_key}"
            connection._connection.request("POST", "/login", login)
            signed = connection._connection.getresponse()
            signed.read()
            assert "Secure" in signed.headers["Set-Cookie"]
        client = RemoteClient(tmp_path / "home", limit_epsilon=1.0, certificates=file)
        client.join(collector.url, plan.hash, most_epsilon=1.0)
        assert client.submit(plan.hash, curve=[0.1, 0.2], label="yes")
        stranger = RemoteClient(tmp_path / "stranger", limit_epsilon=1.0)
        stranger._sleep = lambda seconds: None
        with pytest.raises(Unreachable, match="SSL"):
            stranger.join(collector.url, plan.hash, most_epsilon=1.0)


def test_what_changes_something_is_asked_for_again_only_if_nothing_was_done() -> None:
    for once, statuses, last in (
        (False, [429, 503, 500, 200], 200),
        (True, [429, 429, 503, 200], 503),
        (True, [500, 200], 500),
        (True, [409, 200], 409),
    ):
        answers = [Answer(status, b"") for status in reversed(statuses)]
        asked = persistently(answers.pop, once=once, sleep=lambda _: None)
        assert asked.status == last

    def lost() -> Answer:
        tried.append(1)
        raise Unreachable("the collector did not answer")

    for once, times in ((False, 8), (True, 1)):
        tried: list[int] = []
        with pytest.raises(Unreachable):
            persistently(lost, once=once, sleep=lambda _: None)
        assert len(tried) == times


@pytest.mark.timed
def test_slow_clients_are_hung_up_on(tmp_path: Path) -> None:
    with CollectorProcess(f"sqlite:///{tmp_path}/x.db", options=["--patience", "1"]) as collector:
        head = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
        starts = [b"", b"GET /health HT", head, head + b"\r\nkey=", head + b"\r\n"]
        sockets = [socket.create_connection(("127.0.0.1", collector.port)) for _ in starts]
        begun = time.monotonic()
        for slow, start in zip(sockets, starts, strict=True):
            slow.sendall(start)
            slow.settimeout(20)
        with Connection(collector.url) as connection:  # others are served meanwhile
            assert connection.ask("GET", "/health").status == 200
        for slow in sockets:
            while slow.recv(4096):
                pass
            slow.close()
        assert time.monotonic() - begun < 15
