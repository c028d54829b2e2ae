"""Titles and results of studies for invited people are for them and for the administrator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from forked_collector import QuickCollector

from dpfda.client.http import Connection
from dpfda.collector import phases
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.phases import Phases
from dpfda.protocol.wire import ReplyMessage, TaskMessage


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    with QuickCollector(f"sqlite:///{tmp_path_factory.mktemp('seen') / 'x.db'}") as found:
        yield found


def status(collector: CollectorProcess, path: str, credential: str = "") -> int:
    head = {"Authorization": f"Bearer {credential}"} if credential else {}
    with Connection(collector.url) as connection:
        return connection.ask("GET", path, headers=head).status


def test_strangers_see_studies_that_are_open_to_them(
    collector: CollectorProcess, make_plan: Any
) -> None:
    closed, opened, other = (
        collector.create(make_plan(10, seed=seed), open=seed == 1, deadline=60.0)["id"]
        for seed in range(3)
    )
    with Connection(collector.url) as connection:
        listed = connection.ask("GET", "/api/studies").json()["studies"]
    assert [one["id"] for one in listed] == [opened]
    everything = collector.request("GET", "/api/studies")["studies"]
    assert {one["id"] for one in everything} == {closed, opened, other}
    assert status(collector, "/api/studies", "x" * 30) == 401
    (invited,), (elsewhere,) = collector.invite(closed, 1), collector.invite(other, 1)
    for what in ("model", "models", "verdict"):
        path = f"/api/studies/{closed}/{what}"
        assert status(collector, path) == 401
        assert status(collector, path, elsewhere) == 401
        assert status(collector, path, invited) == 200
        assert status(collector, path, collector.admin_key) == 200
        assert status(collector, f"/api/studies/{opened}/{what}") == 200
    assert status(collector, f"/api/studies/{closed}") == 200, "who has the link sees what is asked"


def test_phases_that_nobody_asks_for_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "MOST_PHASES", 3)
    reads: list[str] = []

    async def read(study: str, _: Any) -> Any:
        reads.append(study)
        return SimpleNamespace(record=SimpleNamespace(id=study, phase=0, status="open", issued=1))

    async def course() -> None:
        known = Phases(read)
        for study in ("a", "b", "c", "a", "d", "a"):
            assert (await known.get(study)).record.id == study
        assert [study in known for study in "abcd"] == [True, False, True, True]
        assert reads == ["a", "b", "c", "d"]
        everybody = await asyncio.gather(*(known.get(str(number)) for number in range(50)))
        assert [one.record.id for one in everybody] == [str(number) for number in range(50)]
        assert len(known._known) == 3

    asyncio.run(course())


@pytest.mark.parametrize(
    ("field", "number"), [("phase", -5), ("ticket", 10**30), ("ticket", -1), ("phase", 2**53)]
)
def test_numbers_that_are_none_are_refused(field: str, number: int) -> None:
    """As the browser does: no number above 2^53 - 1 is the same everywhere."""
    task = {"plan": "0" * 64, "phase": 0, "ticket": 0, "task": {}}
    reply = {"plan": "0" * 64, "phase": 0, "ticket": 0, "values": [], "nonce": "0" * 32}
    for message, kind in ((task, TaskMessage), (reply, ReplyMessage)):
        msgspec.json.decode(json.dumps(message), type=kind)
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json.dumps(message | {field: number}), type=kind)
