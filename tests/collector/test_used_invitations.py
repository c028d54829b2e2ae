"""One invitation on two devices: one reply, and whoever comes second spends nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_collector import QuickCollector

from dpfda.client import RemoteClient
from dpfda.client.http import Connection
from dpfda.client.remote import InvitationUsed
from dpfda.collector.collector_process import CollectorProcess

ROW = {"curve": [0.5, -0.5], "label": "yes"}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("used")
    options = ["--rate", "1000"]
    with QuickCollector(f"sqlite:///{folder}/x.db", log=folder / "log", options=options) as found:
        yield found


def devices(collector: CollectorProcess, plan: Any, folder: Path, *names: str) -> list[Any]:
    """Devices that have joined a study with one invitation."""
    (token,) = collector.invite(plan.hash, 1)
    found = [RemoteClient(folder / name, limit_epsilon=9.0) for name in names]
    for device in found:
        device.join(collector.url, plan.hash, most_epsilon=9.0, invitation=token)
    return found


def replies(collector: CollectorProcess, plan: Any) -> list[bytes]:
    return collector.read("GET", f"/api/studies/{plan.hash[:16]}/phases/0/replies").splitlines()


def test_a_used_invitation_draws_nothing(
    collector: CollectorProcess, make_plan: Any, tmp_path: Path
) -> None:
    plan = make_plan(4, seed=901)
    collector.create(plan)
    first, second = devices(collector, plan, tmp_path, "first", "second")
    receipt = first.submit(plan.hash, **ROW)
    with pytest.raises(InvitationUsed, match="nothing was drawn, spent or sent here"):
        second.submit(plan.hash, **ROW)
    assert second.ledger.remaining.epsilon == 9.0
    assert second.stage(plan.hash) == "joined"
    assert first.submit(plan.hash, **ROW) == receipt
    assert len(replies(collector, plan)) == 1
    (other,) = collector.invite(plan.hash, 1)  # somebody who opened the wrong link first
    second.join(collector.url, plan.hash, most_epsilon=9.0, invitation=other)
    second.submit(plan.hash, **ROW)
    assert len(replies(collector, plan)) == 2


def test_a_reply_drawn_in_vain_is_not_sent(
    collector: CollectorProcess, make_plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(4, seed=902)
    collector.create(plan)
    first, second = devices(collector, plan, tmp_path, "first", "second")
    for device in (first, second):
        device.prepare(plan.hash, **ROW)
    sent: list[str] = []
    asking = Connection.ask

    def noted(self: Connection, method: str, path: str, **how: Any) -> Any:
        sent.append(f"{method} {path.rpartition('/')[2]}")
        return asking(self, method, path, **how)

    first.send(plan.hash)
    monkeypatch.setattr(Connection, "ask", noted)
    for _ in range(2):
        with pytest.raises(InvitationUsed, match="is not sent"):
            second.send(plan.hash)
    assert sent == ["GET task"] * 2, "no second reply of one person leaves"
    assert len(replies(collector, plan)) == 1


def test_the_same_bytes_are_sent_again_though_the_study_has_them(
    collector: CollectorProcess, make_plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that stopped before the receipt came is no second device."""
    plan = make_plan(4, seed=903)
    collector.create(plan)
    (device,) = devices(collector, plan, tmp_path, "one")
    device.prepare(plan.hash, **ROW)
    asking = RemoteClient._ask

    def cut(self: Any, url: str, insecure: bool, method: str, *rest: Any, **how: Any) -> Any:
        found = asking(self, url, insecure, method, *rest, **how)
        if method == "POST":
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(RemoteClient, "_ask", cut)
    with pytest.raises(KeyboardInterrupt):
        device.send(plan.hash)
    monkeypatch.undo()
    again = RemoteClient(tmp_path / "one")
    assert again.stage(plan.hash) == "drawn"
    assert len(again.send(plan.hash)) == 48
    assert len(replies(collector, plan)) == 1


def test_the_log_does_not_tell_when_a_ticket_was_taken(
    collector: CollectorProcess, make_plan: Any, tmp_path: Path
) -> None:
    """Tickets are numbered in the order of requests: a line for each would be a time for each."""
    plan = make_plan(3, seed=904)
    collector.create(plan, open=True)
    assert collector.log is not None
    last = '"route": "/api/studies", "status": 201'  # written after the answer was sent
    deadline = time.monotonic() + 20
    while last not in (before := collector.log.read_text().splitlines())[-1]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for k in range(2):
        device = RemoteClient(tmp_path / str(k), limit_epsilon=9.0)
        device.join(collector.url, plan.hash, most_epsilon=9.0)
        device.submit(plan.hash, **ROW)
        device.counted(plan.hash)
        with Connection(collector.url) as connection:
            assert connection.ask("GET", f"/take-part/{plan.hash}").status == 200
            assert connection.ask("GET", "/api/nothing").status == 404
    assert collector.log.read_text().splitlines() == before
    events = {json.loads(line)["event"] for line in before if line.startswith("{")}
    assert "study created" in events, "what it did itself is logged"
