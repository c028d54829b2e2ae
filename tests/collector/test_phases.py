"""How a phase is found, how often it is read, and how it ends."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from one_process import (
    OPEN,
    TWO_PHASES,
    Recording,
    answer,
    concluded,
    person,
    refusal,
    reply_to,
    sent_by,
    with_collector,
)

from dpfda.collector import service
from dpfda.collector.phases import INTERVAL, Phases
from dpfda.collector.refusal import Refused
from dpfda.collector.service import Collector
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import StudyRecord
from dpfda.protocol.server import Server


def test_a_phase_that_ends_meanwhile_lets_people_in(make_plan: Any) -> None:
    """What is known of a phase is forgotten at its end, maybe while somebody is being enrolled."""

    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(4).to_dict(), OPEN)).id
        add = collector.enrolments.add

        async def ends_now(person: Any) -> Any:
            collector.phases.forget(study)
            return await add(person)

        collector.enrolments.add = ends_now  # type: ignore[method-assign]
        assert len(await collector.enrol(study)) == 43

    with_collector(course)


def test_a_phase_is_opened_once_however_many_ask(make_plan: Any, monkeypatch: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        opened, times = service.opened, []
        monkeypatch.setattr(service, "opened", lambda record: times.append(1) or opened(record))
        asked = [collector.task(study, bytes(32)) for _ in range(40)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(one, Refused) for one in found)
        assert len(times) == 1
        missing = await asyncio.gather(collector.task("0" * 16, b"?"), return_exceptions=True)
        assert isinstance(missing[0], Refused)
        assert not collector.phases._looking

    with_collector(course)


def test_what_is_closing_is_read_again(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        learning, evaluation = 0, 1
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        await person(collector, study)  # has seen a question: nothing can be edited any more
        first = await collector.phases.get(study)
        storage.change(study, quota=7)
        assert await collector.phases.get(study) is first
        assert first.record.quota == 2  # nobody asks the storage again
        storage.change(study, status="closing")
        assert (await collector.phases.get(study, at_least=99)).record.status == "closing"
        storage.change(study, status="open")
        assert await collector.phases.get(study) is first
        assert first.record.status == "open"
        storage.change(study, phase=evaluation)
        assert (await collector.phases.get(study, at_least=learning)).record.phase == learning
        later = await collector.phases.get(study, at_least=evaluation)
        assert later is not first
        assert later.record.phase == evaluation

    with_collector(course)


def test_only_the_present_phase_is_closed(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(2).to_dict(), OPEN)).id
        assert await refusal(collector.close_phase(study, 1)) == (409, "wrong_phase")
        assert not collector.watcher.called.is_set()
        await collector.close_phase(study, 0)
        assert collector.watcher.called.is_set()
        assert (await collector.study(study)).status == "closing"
        finished = await concluded(collector, study)
        assert finished.status == "finished"
        closing = collector.close_phase(study, finished.phase)
        assert await refusal(closing) == (409, "wrong_phase")

    with_collector(course)


def test_a_deadline_is_counted_from_the_first_ticket(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        plan = make_plan(2).to_dict()
        study = (await collector.create(plan, StudySettings(deadline=100))).id
        assert (await collector.study(study)).due is None
        before = time.time()
        await person(collector, study)
        due = (await collector.study(study)).due
        assert due is not None
        assert before + 100 <= due <= time.time() + 100
        await collector.watcher.look()
        assert (await collector.study(study)).status == "open"
        storage.change(study, due=time.time() - 1)
        await collector.watcher.look()
        assert (await collector.study(study)).status == "finished"

    with_collector(course)


def test_a_conclusion_is_drawn_once_and_looked_after(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        before = await collector.study(study)
        await collector.phases.get(study)
        await collector._conclude(before)
        assert study not in collector.phases
        assert collector.watcher.called.is_set()  # the next phase may be complete already
        assert len(await collector.models(study)) == 2
        await collector._conclude(before)  # a worker that was slower
        assert len(await collector.models(study)) == 2

    with_collector(course)


@pytest.mark.parametrize(
    ("design", "online", "begun"),
    [("mrma_stream", True, True), ("mrma_stream", False, False), ("moments", True, False)],
)
def test_a_stream_goes_on_where_it_should(
    make_plan: Any, design: str, online: bool, begun: bool
) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        plan, settings = make_plan(2, name=design), StudySettings(online=online)
        study = (await collector.create(plan.to_dict(), settings)).id
        asking = [number for number, step in enumerate(Server(plan).run.steps) if step.people]
        for phase in asking:
            ended = await collector.study(study)
            assert (ended.phase, ended.successor) == (phase, None)
            await collector._conclude(ended)
        ended = await collector.study(study)
        assert ended.status == "finished"
        lines = await collector.page(most=9)
        others = [await collector.study(line.id) for line in lines if line.id != study]
        assert [record.id for record in others] == ([ended.successor] if begun else [])
        assert [(record.phase, record.settings) for record in others] == (
            [(0, ended.settings)] if begun else []
        )

    with_collector(course)


@pytest.mark.timed
def test_the_watcher_advances_what_is_complete(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        await collector.start()
        study = (await collector.create(make_plan(2).to_dict(), OPEN)).id
        await answer(collector, study)
        await answer(collector, study)
        for _ in range(100):
            if (await collector.study(study)).status == "finished":
                break
            await asyncio.sleep(0.02)
        assert (await collector.study(study)).status == "finished"
        await asyncio.sleep(0.05)
        assert not collector.watcher.called.is_set()

    with_collector(course)


class Reading(Recording):
    """Counts how often a study is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def study(self, study: str) -> StudyRecord | None:
        self.reads += 1
        return super().study(study)


@pytest.mark.timed
def test_whoever_speaks_of_a_far_phase_makes_nobody_read(make_plan: Any) -> None:
    """Each such reply, of nobody, made the storage read the study again."""

    async def course(collector: Collector, storage: Any) -> None:
        study = (await collector.create(make_plan(4).to_dict(), OPEN)).id
        token, message = await person(collector, study)
        storage.reads, began = 0, time.monotonic()
        far = sent_by(b"?", *reply_to(message, phase=10**6))
        for _ in range(3):
            asked = [collector.reply(study, far) for _ in range(100)]
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert {one.code for one in found if isinstance(one, Refused)} == {"wrong_phase"}
            assert len(found) == 100
        assert storage.reads <= 1 + (time.monotonic() - began) / INTERVAL
        assert storage.reads <= 4
        await collector.reply(study, sent_by(token, *reply_to(message)))

    with_collector(course, Reading())


class TestPhases:
    """The cache alone, with a clock of its own."""

    def with_phases(self, course: Any) -> None:
        self.now, self.slept, self.reads = 0.0, [], []
        self.present = 3

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.now += max(0.0, seconds)
            await asyncio.sleep(0)

        async def read(study: str, known: Any) -> Any:
            self.reads.append((study, known))
            found = self.present
            await asyncio.sleep(0)
            if found < 0:
                raise Refused(404, "unknown_study", "")
            record = SimpleNamespace(phase=found, status=self.status, issued=1)
            return SimpleNamespace(record=record)

        self.status = "open"
        asyncio.run(course(Phases(read, clock=lambda: self.now, sleep=sleep)))

    def test_it_is_read_when_it_must_be(self) -> None:
        async def course(known: Phases) -> None:
            first = await known.get("a")
            assert [await known.get("a", at_least=n) for n in (0, 3)] == [first, first]
            assert (self.reads, self.slept) == ([("a", None)], [])
            self.now = 0.04
            assert (await known.get("a", at_least=4)).record.phase == 3
            assert self.reads[1:] == [("a", first)]
            assert self.slept == [pytest.approx(0.06)]
            self.now, self.present, self.status = 9.0, 4, "closing"
            assert (await known.get("a", at_least=4)).record.phase == 4
            assert self.slept[1:] == [pytest.approx(-8.8)], "long ago"
            assert len(self.reads) == 3
            self.now = 9.01
            await known.get("a")
            assert len(self.reads) == 4, "what closes is read again"
            assert known._looking == {}

        self.with_phases(course)

    def test_who_asks_after_it_was_begun_to_be_read_has_it_read_again(self) -> None:
        async def course(known: Phases) -> None:
            first = asyncio.create_task(known.get("a"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert len(self.reads) == 1
            self.present, self.now = 4, 0.01
            assert (await known.get("a", at_least=4)).record.phase == 4
            assert (await first).record.phase == 3
            assert len(self.reads) == 2

        self.with_phases(course)

    def test_what_is_forgotten_meanwhile_is_not_kept(self) -> None:
        async def course(known: Phases) -> None:
            asked = asyncio.create_task(known.get("a"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            known.forget("a")
            known.forget("b")
            self.present = 5
            assert (await asked).record.phase == 5
            assert "a" in known
            assert len(self.reads) == 2
            known.forget("a")
            assert "a" not in known
            self.present = -1
            both = await asyncio.gather(known.get("a"), known.get("a"), return_exceptions=True)
            assert [type(one) for one in both] == [Refused] * 2
            assert (len(self.reads), known._looking) == (3, {})

        self.with_phases(course)

    def test_who_hangs_up_stops_nobody_else(self) -> None:
        async def course(known: Phases) -> None:
            gone, there = (asyncio.create_task(known.get("a")) for _ in range(2))
            await asyncio.sleep(0)
            gone.cancel()
            assert (await there).record.phase == 3
            assert gone.cancelled()
            assert len(self.reads) == 1

        self.with_phases(course)
