"""One study that cannot go on stops no other: it is named, told of, tried again, and recovers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dpfda.collector import health
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.conclude import Worker
from dpfda.collector.health import LONG
from dpfda.collector.log import WorkFailed, failure
from dpfda.collector.refusal import Refused
from dpfda.collector.service import Collector, StudySettings
from dpfda.collector.storage.memory import MemoryStorage
from dpfda.collector.storage.postgresql import PostgresqlStorage
from dpfda.collector.storage.sqlite import SqliteStorage
from dpfda.collector.watcher import AtWork, StuckStudies, Watcher
from dpfda.errors import InvalidParameter


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def until(true: Any) -> Any:
    """What a function says once it says something."""
    deadline = time.monotonic() + 30
    while not (found := true()):
        assert time.monotonic() < deadline, "this never happened"
        time.sleep(0.1)
    return found


def test_pauses_double_up_to_a_minute() -> None:
    clock = Clock()
    stuck = StuckStudies(clock=clock)
    pauses = []
    for _ in range(9):
        pauses.append(stuck.failed("a", 0, "TypeError").again - clock.now)
        clock.now += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    (one,) = stuck.listed()
    assert (one.since, one.attempts, one.error) == (100.0, 9, "TypeError")
    for _ in range(2000):
        assert stuck.failed("a", 0, "TypeError").again - clock.now == 60


def test_who_must_wait() -> None:
    clock = Clock()
    stuck = StuckStudies(clock=clock)
    stuck.failed("a", 0, "TypeError")
    assert stuck.must_wait("a")
    assert not stuck.must_wait("b")
    clock.now += 1
    assert not stuck.must_wait("a")
    stuck.failed("a", 0, "TypeError")
    stuck.hurry("a")
    stuck.hurry("b")
    assert not stuck.must_wait("a")
    assert len(stuck) == 1
    assert stuck.failed("a", 0, "KeyError").attempts == 3  # asking for it is no repair
    stuck.freed("a")
    stuck.freed("b")
    assert stuck.failed("a", 1, "KeyError").attempts == 1


def test_what_others_have_repaired_is_forgotten() -> None:
    clock = Clock()
    stuck = StuckStudies(clock=clock)
    for name in "abc":
        stuck.failed(name, 1, "TypeError")
        clock.now -= 10
    stuck.keep({"a": 1, "b": 2})  # b was advanced, c is finished
    assert [one.study for one in stuck.listed()] == ["a"]
    stuck.failed("b", 2, "TypeError")
    assert [one.study for one in stuck.listed()] == ["b", "a"]  # the longest first
    assert [one.study for one in stuck.listed(1)] == ["b"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def collector(database: str, log: Path) -> Iterator[CollectorProcess]:
    with CollectorProcess(database, log=log) as running:
        yield running


def state_of(database: str, study: str, state: str | None = None) -> str:
    """What is stored of a study before its phase; replaced, if another is given."""
    backend = PostgresqlStorage if database.startswith("postgresql") else SqliteStorage
    engine = backend._connect(database, patience=10)
    with engine.begin() as connection:
        query = sa.text("SELECT state FROM study WHERE id = :id")
        before = connection.execute(query, {"id": study}).scalar_one()
        if state is not None:
            change = sa.text("UPDATE study SET state = :state WHERE id = :id")
            connection.execute(change, {"id": study, "state": state})
    engine.dispose()
    return str(before)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_older_and_younger_studies_go_on(
    collector: CollectorProcess, database: str, log: Path, make_plan: Any
) -> None:
    older, broken, younger = (
        collector.create(make_plan(seed=seed), online=False)["id"] for seed in range(3)
    )
    whole = state_of(database, broken)
    # As if a release had changed what a study keeps: a number where there was a mapping.
    kept = json.loads(whole)
    state_of(database, broken, json.dumps(kept | {"run": kept["run"] | {"sums": 17.25}}))
    for study in (broken, older, younger):
        collector.request("POST", f"/api/studies/{study}/phases/0/close")
    for study in (older, younger):
        assert collector.wait_until(study)["status"] == "finished"

    told = until(lambda: collector.request("GET", "/health").get("stuck"))
    assert [one["study"] for one in told] == [broken]
    since = time.mktime(time.strptime(told[0]["since"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert time.time() - 60 < since <= time.time()
    health = collector.request("GET", "/health")  # 200: the others must not be stopped for it
    assert (health["status"], health["studies_stuck"]) == ("stuck", 1)
    with urllib.request.urlopen(collector.url + "/health") as answer:
        stranger = json.loads(answer.read())
    assert stranger == {"status": "stuck", "studies_stuck": 1}, "which one, only with the key"
    metrics = collector.read("GET", "/metrics").decode()
    assert "\ndpfda_studies_stuck 1.0\n" in metrics
    assert "\ndpfda_concluding_seconds 0.0" in metrics
    assert float(re.search(r"\ndpfda_longest_stuck_seconds (\S+)", metrics)[1]) > 0
    assert broken not in metrics

    first = told[0]["attempts"]
    until(lambda: collector.request("GET", "/health")["stuck"][0]["attempts"] > first)
    lines = [json.loads(line) for line in log.read_text().splitlines() if "advanced" in line]
    assert {line["study"] for line in lines} == {broken}
    assert {line["level"] for line in lines} == {"error"}
    assert [line["attempts"] for line in lines] == list(range(1, len(lines) + 1))
    assert all("/dpfda/protocol/study.py" in line["where"] for line in lines)
    assert "17.25" not in log.read_text()  # what was stored is not in the log

    state_of(database, broken, whole)
    collector.request("POST", f"/api/studies/{broken}/phases/0/close")  # at once, not in a minute
    assert collector.wait_until(broken)["status"] == "finished"
    until(lambda: collector.request("GET", "/health") == {"status": "ok"})
    assert "\ndpfda_studies_stuck 0.0\n" in collector.read("GET", "/metrics").decode()


def test_what_took_long_waits_as_long() -> None:
    clock = Clock()
    stuck = StuckStudies(clock=clock)
    assert stuck.failed("a", 0, "TimeoutError", took=3600.0).again == clock.now + 3600
    assert stuck.failed("a", 0, "TimeoutError", took=1.0).again == clock.now + 2


@pytest.mark.timed
def test_what_comes_to_no_end_is_given_up() -> None:
    async def main() -> None:
        worker = Worker(limit=60)
        first = await worker.run(os.getpid)
        worker._limit = 0.2
        with pytest.raises(WorkFailed) as refused:
            await worker.run(time.sleep, 600)
        assert refused.value.error == "TimeoutError"
        assert refused.value.where == "no end after 0.2 seconds"
        worker._limit = 60
        assert await worker.run(os.getpid) != first
        began = time.monotonic()
        endless = asyncio.create_task(worker.run(time.sleep, 600))
        await asyncio.sleep(0.1)
        worker.close()  # nor does the end of the collector wait for it
        endless.cancel()
        await asyncio.gather(endless, return_exceptions=True)
        assert time.monotonic() - began < 30

    asyncio.run(main())


def _private() -> None:
    raise ValueError("a reply is quoted here")


def test_what_fails_or_dies_in_the_worker_process() -> None:
    async def main() -> None:
        worker = Worker()
        try:
            with pytest.raises(WorkFailed) as refused:
                await worker.run(_private)
            assert refused.value.error == "ValueError"
            assert "test_stuck.py:" in refused.value.where
            assert "quoted" not in str(refused.value) + repr(refused.value.__dict__)
            with pytest.raises(WorkFailed):  # and not the end of the collector
                await worker.run(exit)
            deadly, *innocent = await asyncio.gather(
                worker.run(os._exit, 1),
                worker.run(os.getpid),
                worker.run(os.getpid),
                return_exceptions=True,
            )
            assert isinstance(deadly, BrokenProcessPool)
            assert innocent[0] == innocent[1] != os.getpid()
        finally:
            worker.close()

    asyncio.run(main())


def test_a_failure_is_its_kind_and_place() -> None:
    try:
        raise InvalidParameter("x", "private", "secret")
    except InvalidParameter as error:
        told = failure(error)
    assert told["error"] == "InvalidParameter"
    assert told["where"].rpartition(":")[0] == __file__
    assert failure(ValueError("secret")) == {"error": "ValueError", "where": ""}
    assert failure(WorkFailed("KeyError", "x.py:1")) == {"error": "KeyError", "where": "x.py:1"}


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_being_concluded_is_known(make_plan: Any, fails: bool) -> None:
    async def main() -> None:
        collector = Collector(MemoryStorage())
        record = await collector.create(make_plan(4).to_dict(), StudySettings())
        seen: list[Any] = []

        async def conclude(_: Any) -> None:
            seen.append(watcher.at_work)
            if fails:
                raise ValueError

        async def due() -> list[Any]:
            return [record]

        watcher = Watcher(due, conclude)
        began = time.monotonic()
        await watcher.look()
        ((study, phase, since),) = seen
        assert (study, phase) == (record.id, 0)
        assert began <= since <= time.monotonic()
        assert watcher.at_work is None
        await collector.stop()

    asyncio.run(main())


def test_a_study_that_takes_long_is_told() -> None:
    """The phases of others wait for it."""
    assert LONG == 60
    assert health._slow(None) is None
    assert health._slow(AtWork("a", 3, time.monotonic() - LONG + 5)) is None
    told = health._slow(AtWork("a", 3, time.monotonic() - 2 * LONG))
    assert told is not None
    assert (told.study, told.phase) == ("a", 3)
    since = datetime.fromisoformat(told.since)
    assert (
        timedelta(0)
        <= datetime.now(UTC) - since - timedelta(seconds=2 * LONG)
        < timedelta(minutes=1)
    )


def test_a_study_is_created_while_another_is_concluded(make_plan: Any) -> None:
    async def main() -> None:
        collector = Collector(MemoryStorage())
        endless = asyncio.create_task(collector._worker.run(time.sleep, 600))
        try:
            made = collector.create(make_plan(4).to_dict(), StudySettings(open=True))
            assert (await asyncio.wait_for(made, 60)).id
            assert not endless.done()
        finally:
            endless.cancel()  # as the watcher is before its worker ends
            await asyncio.gather(endless, return_exceptions=True)
            await collector.stop()

    asyncio.run(main())


def test_a_plan_that_takes_too_long_is_refused(make_plan: Any, monkeypatch: Any) -> None:
    async def too_long(*_: Any, **__: Any) -> Any:
        raise WorkFailed("TimeoutError", "no end after 60 seconds")

    async def broken(*_: Any, **__: Any) -> Any:
        raise WorkFailed("KeyError", "somewhere")

    async def main() -> None:
        collector = Collector(MemoryStorage())
        sent = make_plan(4).to_dict(), StudySettings(open=True)
        monkeypatch.setattr(collector._planner, "run", too_long)
        with pytest.raises(Refused, match="begun within 60 seconds") as refused:
            await collector.create(*sent)
        assert refused.value.status == 400
        monkeypatch.setattr(collector._planner, "run", broken)
        with pytest.raises(WorkFailed):
            await collector.create(*sent)
        await collector.stop()

    asyncio.run(main())


def test_plans_are_as_urgent_as_the_collector_and_conclusions_are_not() -> None:
    async def main() -> tuple[int, int]:
        collector = Collector(MemoryStorage())
        try:
            return (
                await collector._worker.run(os.nice, 0),
                await collector._planner.run(os.nice, 0),
            )
        finally:
            await collector.stop()

    modest, urgent = asyncio.run(main())
    assert urgent == os.nice(0)
    assert modest == min(19, urgent + 10)
