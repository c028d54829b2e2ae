"""The rules of a collector, in one process without HTTP: who is let in, what is kept, what ends."""

from __future__ import annotations

import time
from typing import Any

import pytest
from one_process import (
    INVITED,
    OPEN,
    TWO_PHASES,
    Recording,
    concluded,
    person,
    read_task,
    refusal,
    with_collector,
)

from dpfda.collector.service import Collector
from dpfda.collector.storage.base import Lapse
from dpfda.protocol.wire import token_hash


def test_studies_are_found_or_refused(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        record = await collector.create(make_plan(4).to_dict(), OPEN)
        assert (await collector.study(record.id)).hash == make_plan(4).hash
        assert [entry.phase for entry in await collector.models(record.id)] == [-1]
        assert await refusal(collector.study("0")) == (404, "unknown_study")
        assert await refusal(collector.models("0")) == (404, "unknown_study")
        again = collector.create(make_plan(4).to_dict(), OPEN)
        assert await refusal(again) == (409, "exists")
        assert await refusal(collector.create({"epsilon": 1}, OPEN)) == (400, "bad_plan")

    with_collector(course)


def test_tokens_are_long_and_for_those_invited(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        closed = (await collector.create(make_plan(4).to_dict(), INVITED)).id
        large = (await collector.create(make_plan(600).to_dict(), OPEN)).id
        assert await refusal(collector.enrol(closed)) == (403, "invited_only")
        assert [len(token) for token in await collector.invite(closed, 3)] == [43] * 3  # 32 bytes
        assert storage.until == {}  # whenever they find the time
        before = time.time()
        token = await collector.enrol(large)
        assert len(token) == 43
        assert before <= storage.until[token_hash(token)] - 3600 <= time.time()
        storage.change(large, enrolled=10**6)
        assert len(await collector.enrol(large)) == 43, "only those who answer count"
        assert collector._enrol([("0", b"", 7.0)]) == ["unknown"]
        assert storage.until == {b"": 7.0}
        for study, final in ((closed, False), (large, True)):
            await person(collector, study)
            assert storage.lapse == {study: Lapse(3600.0, final=final)}

    with_collector(course)


def test_one_task_a_person(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        learning, evaluation = 0, 1
        study = (await collector.create(make_plan(2, **TWO_PHASES).to_dict(), OPEN)).id
        other = (await collector.create(make_plan(2, seed=1).to_dict(), OPEN)).id
        assert await refusal(collector.task(study, b"?")) == (401, "unknown_token")
        token, message = await person(collector, study)
        assert read_task(await collector.task(study, token)) == message
        assert await refusal(collector.task(other, token)) == (403, "wrong_study")
        waiting = token_hash(await collector.enrol(study))
        assert await refusal(collector.task(study, waiting)) == (202, "wait")
        assert message.phase == learning
        assert (await concluded(collector, study)).phase == evaluation
        assert await refusal(collector.task(study, token)) == (410, "late")
        assert read_task(await collector.task(study, waiting)).phase == evaluation
        assert (await concluded(collector, study)).status == "finished"
        assert await refusal(collector.enrol(study)) == (410, "finished")
        assert await refusal(collector.invite(study, 1)) == (410, "finished")

    with_collector(course)


def test_a_stopped_collector_holds_nothing() -> None:
    async def course(collector: Collector, storage: Recording) -> Any:
        return collector, storage

    collector, storage = with_collector(course)
    assert storage.closed
    assert collector._worker.closed
    assert collector._planner.closed
    for pool in (collector._db.writer, collector._db.readers):
        with pytest.raises(RuntimeError):
            pool.submit(int)
