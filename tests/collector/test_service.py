"""The rules of a collector, in one process without HTTP: who is let in, what is kept, what ends."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from dpfda.collector import open_phase, service
from dpfda.collector.conclude import Conclusion, begin
from dpfda.collector.open_phase import OpenPhase
from dpfda.collector.refusal import Refused, no_ticket, not_stored
from dpfda.collector.service import Collector, Sent
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import Lapse, NewReply, StudyRecord
from dpfda.collector.storage.memory import MemoryStorage
from dpfda.collector.worker import Worker
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.task import Task
from dpfda.protocol.wire import ReplyMessage, TaskMessage, token_hash

OPEN, INVITED = StudySettings(open=True), StudySettings()
TWO_PHASES = {"name": "questions", "center_known": True, "evaluation_share": 0.5}
"""Half of all people each; phases of nobody are passed over."""


class Recording(MemoryStorage):
    """A storage that says what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self.until: Mapping[bytes, float] = {}
        self.lapse: Mapping[str, Lapse] = {}
        self.received: list[NewReply] = []

    def close(self) -> None:
        self.closed = True

    def enrol(self, people: Any, *, until: Mapping[bytes, float] = {}) -> Any:
        self.until = until
        return super().enrol(people, until=until)

    def issue(self, people: Any, *, now: float, lapse: Mapping[str, Lapse] = {}) -> Any:
        self.lapse = lapse
        return super().issue(people, now=now, lapse=lapse)

    def add_replies(self, replies: Sequence[NewReply]) -> Any:
        self.received += replies
        return super().add_replies(replies)

    def change(self, study: str, **parts: Any) -> None:
        self._change(study, **parts)


def sent_by(token: bytes, message: Any, body: bytes) -> Sent:
    """A reply of somebody of whom only the token's hash is known here."""
    return Sent(token, message, body, hmac.digest(token, body, "sha256"))


class Here(Worker):
    """Draws conclusions in this process; that another one does is tested with real servers."""

    closed = False

    async def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args)

    def close(self) -> None:
        self.closed = True


def phases(plan: StudyPlan) -> list[int]:
    """Numbers of those that ask somebody."""
    return [n for n, phase in enumerate(Server(plan).findings.phases) if phase.people]


def with_collector(course: Callable[[Collector, Recording], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        storage = Recording()
        collector = Collector(storage)
        collector._worker, collector._planner = Here(), Here()
        try:
            return await course(collector, storage)
        finally:
            await collector.stop()

    return asyncio.run(run())


async def refusal(request: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        await request
    return refused.value.status, refused.value.code


async def person(collector: Collector, study: str) -> tuple[bytes, TaskMessage]:
    (invitation,) = await collector.invite(study, 1)
    token = token_hash(invitation)
    return token, read_task(await collector.task(study, token))


read_task = msgspec.json.Decoder(TaskMessage).decode


def reply_to(message: TaskMessage, **other: Any) -> tuple[ReplyMessage, bytes]:
    task = Task.from_dict(message.task)
    values = task.answer((np.array([[0.5, 0.0]]), np.array([1])), SimulationSource(0)).values[0]
    sent = ReplyMessage(message.plan, message.phase, message.ticket, values.tolist())
    sent = msgspec.structs.replace(sent, **other)
    return sent, msgspec.json.encode(sent)


async def answer(collector: Collector, study: str) -> None:
    token, message = await person(collector, study)
    await collector.reply(study, sent_by(token, *reply_to(message)))


async def concluded(collector: Collector, study: str) -> StudyRecord:
    await collector._conclude(await collector.study(study))
    return await collector.study(study)


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


def test_a_phase_that_ends_meanwhile_lets_people_in(make_plan: Any) -> None:
    """What is known of a phase is forgotten at its end, maybe while somebody is being enrolled."""

    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(4).to_dict(), OPEN)).id
        add = collector.enrolments.add

        async def ends_now(person: Any) -> Any:
            collector._phases.clear()
            return await add(person)

        collector.enrolments.add = ends_now  # type: ignore[method-assign]
        assert len(await collector.enrol(study)) == 43

    with_collector(course)


def test_one_task_a_person(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        direction, evaluation = phases(make_plan(2, **TWO_PHASES))
        study = (await collector.create(make_plan(2, **TWO_PHASES).to_dict(), OPEN)).id
        other = (await collector.create(make_plan(2, seed=1).to_dict(), OPEN)).id
        assert await refusal(collector.task(study, b"?")) == (401, "unknown_token")
        token, message = await person(collector, study)
        assert read_task(await collector.task(study, token)) == message
        assert await refusal(collector.task(other, token)) == (403, "wrong_study")
        waiting = token_hash(await collector.enrol(study))
        assert await refusal(collector.task(study, waiting)) == (202, "wait")
        assert message.phase == direction
        assert (await concluded(collector, study)).phase == evaluation
        assert await refusal(collector.task(study, token)) == (410, "late")
        assert read_task(await collector.task(study, waiting)).phase == evaluation
        assert (await concluded(collector, study)).status == "finished"
        assert await refusal(collector.enrol(study)) == (410, "finished")
        assert await refusal(collector.invite(study, 1)) == (410, "finished")

    with_collector(course)


def test_nobody_finds_out_what_another_person_replied(make_plan: Any) -> None:
    """Not by sending the very reply again, in a phase or after it: what says yes is the token."""

    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        (mine,), (theirs,) = await collector.invite(study, 1), await collector.invite(study, 1)
        tasks = [read_task(await collector.task(study, token_hash(one))) for one in (mine, theirs)]
        own, other = (reply_to(task) for task in tasks)
        receipt = await collector.reply(study, Sent.by(theirs, *other))
        await collector.reply(study, Sent.by(mine, *own))
        assert await refusal(collector.reply(study, Sent.by(mine, *other))) == (403, "wrong_ticket")
        await concluded(collector, study)
        assert await refusal(collector.reply(study, Sent.by(mine, *other))) == (410, "late")
        assert await collector.reply(study, Sent.by(theirs, *other)) == receipt
        digests = {reply.digest for reply in storage.received}
        assert hashlib.sha256(other[1]).digest() not in digests
        assert hmac.digest(token_hash(theirs), other[1], "sha256") not in digests

    with_collector(course)


def test_padding_is_not_stored(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        token, message = await person(collector, study)
        said, body = reply_to(message)
        padded = body + b" " * 60_000
        receipt = await collector.reply(study, sent_by(token, said, padded))
        assert storage.received[-1].body == body
        assert await collector.reply(study, sent_by(token, said, padded)) == receipt
        assert await refusal(collector.reply(study, sent_by(token, said, body))) == (
            409,
            "answered",
        )

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
        assert not collector._opening

    with_collector(course)


def test_one_reply_a_person(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        direction, _ = phases(make_plan(4, **TWO_PHASES))
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        token, message = await person(collector, study)
        silent, missed = await person(collector, study)
        good = reply_to(message)

        async def refused(token: bytes = token, **other: Any) -> tuple[int, str]:
            return await refusal(
                collector.reply(study, sent_by(token, *reply_to(message, **other)))
            )

        assert await refused(plan="0" * 64) == (409, "wrong_study")
        assert await refused(phase=direction + 1) == (409, "wrong_phase")
        assert await refused(phase=-1) == (409, "wrong_phase")
        assert await refused(ticket=-1) == (409, "wrong_phase")
        assert await refused(ticket=2) == (422, "bad_reply")
        assert await refused(values=[0.0] * 9) == (422, "bad_reply")
        assert storage.received == []
        assert await refused(token=b"?") == (401, "unknown_token")
        assert await refused(token=silent) == (403, "wrong_ticket")
        assert collector._phases[study].answered == 0

        receipt = await collector.reply(study, sent_by(token, *good))
        assert await collector.reply(study, sent_by(token, *good)) == receipt
        assert collector._phases[study].answered == 1
        assert not collector.watcher.called.is_set()
        other = reply_to(message, values=[-value for value in good[0].values])
        assert await refusal(collector.reply(study, sent_by(token, *other))) == (409, "answered")

        await concluded(collector, study)
        gone = sent_by(silent, *reply_to(missed))
        assert await refusal(collector.reply(study, gone)) == (410, "late")
        assert (await collector.reply(study, sent_by(token, *good))) == receipt
        late = await refused(ticket=2**40)
        assert late == (410, "late"), "which ticket it was is forgotten"
        assert storage.received[-1].number == 2**31 - 1  # what every database can hold

    with_collector(course)


def test_the_last_reply_wakes_the_watcher(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(2).to_dict(), OPEN)).id
        await answer(collector, study)
        assert not collector.watcher.called.is_set()
        await answer(collector, study)
        assert collector.watcher.called.is_set()

    with_collector(course)


def test_answers_are_counted_from_what_is_stored(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(2).to_dict(), OPEN)).id
        await answer(collector, study)
        collector._phases.clear()  # as another process would find it
        await answer(collector, study)
        assert collector.watcher.called.is_set()

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


def test_what_is_closing_is_read_again(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        direction, evaluation = phases(make_plan(4, **TWO_PHASES))
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        first = await collector._phase(study)
        storage.change(study, quota=7)
        assert await collector._phase(study) is first
        assert first.record.quota == 2  # nobody asks the storage again
        storage.change(study, status="closing")
        assert (await collector._phase(study, at_least=99)).record.status == "closing"
        storage.change(study, status="open")
        assert await collector._phase(study) is first
        assert first.record.status == "open"
        storage.change(study, phase=evaluation)
        assert (await collector._phase(study, at_least=direction)).record.phase == direction
        later = await collector._phase(study, at_least=evaluation)
        assert later is not first
        assert later.record.phase == evaluation

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
        await collector._phase(study)
        await collector._conclude(before)
        assert study not in collector._phases
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
        for phase in phases(plan):
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


def test_a_stopped_collector_holds_nothing() -> None:
    async def course(collector: Collector, storage: Recording) -> Any:
        return collector, storage

    collector, storage = with_collector(course)
    assert storage.closed
    assert collector._worker.closed
    assert collector._planner.closed
    for pool in (collector._writer, collector._readers):
        with pytest.raises(RuntimeError):
            pool.submit(int)


def test_every_outcome_has_its_answer() -> None:
    issued = {
        "unknown": 401,
        "foreign": 403,
        "lapsed": 410,
        "late": 410,
        "finished": 410,
        "wait": 202,
    }
    assert {name: no_ticket(name).status for name in issued} == issued  # type: ignore[arg-type]
    stored = {
        "unknown": 401,
        "foreign": 403,
        "lapsed": 410,
        "different": 409,
        "late": 410,
        "failed": 422,
    }
    assert {name: not_stored(name).status for name in stored} == stored  # type: ignore[arg-type]


def study_of(plan: StudyPlan, first: Conclusion) -> StudyRecord:
    return StudyRecord(
        id="a",
        hash=plan.hash,
        plan=msgspec.json.encode(plan.to_dict()).decode(),
        settings="{}",
        created=0.0,
        seal="s",
        **first.following,
    )


class TestOpenPhase:
    @pytest.fixture
    def phase(self, make_plan: Any) -> OpenPhase:
        found = begin(make_plan(5).to_dict())
        assert not isinstance(found, str)
        return OpenPhase(study_of(*found))

    def test_tasks_are_made_in_blocks_and_kept_a_while(
        self, phase: OpenPhase, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(open_phase, "_KEPT", 2)
        monkeypatch.setattr(phase, "_size", 2)
        first = read_task(phase.message(0))
        assert (first.ticket, first.phase, first.task["people"]) == (0, 0, 1)
        block = phase._blocks[0]
        assert read_task(phase.message(1)).ticket == 1
        assert phase._blocks[0] is block
        assert read_task(phase.message(4)).ticket == 4  # the last block is not full
        assert list(phase._blocks) == [0, 2]
        phase.message(2)
        assert list(phase._blocks) == [2, 1]
        assert read_task(phase.message(0)) == first

    def test_every_ticket_has_its_own_task(self, make_plan: Any) -> None:
        plan = make_plan(200, name="questions", scales=[0.5, 0.5])
        found = begin(plan.to_dict())
        assert not isinstance(found, str)
        phase = OpenPhase(study_of(*found))
        progress = Server.resume(plan, msgspec.json.decode(found[1].following["state"])).progress
        for ticket in range(0, phase.record.quota, 7):
            asked = read_task(phase.message(ticket)).task
            assert asked == progress.tasks(ticket, 1).to_dict()

    def test_long_tasks_are_made_one_by_one(self, phase: OpenPhase, monkeypatch: Any) -> None:
        assert phase._size == 64
        length = len(msgspec.json.encode(phase._first.to_dict()))
        for most, size in ((3 * length, 3), (length - 1, 1)):
            monkeypatch.setattr(open_phase, "_BYTES", most)
            assert OpenPhase(phase.record)._size == size

    def test_only_possible_replies_are_taken(self, phase: OpenPhase) -> None:
        sent, _ = reply_to(read_task(phase.message(4)))
        wrong = [
            msgspec.structs.replace(sent, **other)
            for other in ({"ticket": 5}, {"values": [1.0]}, {"values": [1.0, float("inf")]})
        ]
        assert phase.judge([sent]) == [None]
        assert phase.judge([]) == []
        verdicts = phase.judge([wrong[0], sent, wrong[1], wrong[2], sent])
        assert [verdict and verdict.status for verdict in verdicts] == [422, None, 422, 422, None]

    def test_replies_of_other_phases_are_left_to_the_storage(self, phase: OpenPhase) -> None:
        """Nobody can say what an earlier phase asked; who is late is told so, or gets a receipt."""
        sent, _ = reply_to(read_task(phase.message(0)))
        odd = msgspec.structs.replace(sent, values=[1.0], ticket=99)
        earlier = msgspec.structs.replace(phase.record, phase=1)
        for record in (earlier, msgspec.structs.replace(phase.record, status="closing")):
            phase.record = record
            assert phase.judge([odd]) == [None]
        for other in ({"phase": 2}, {"phase": -1}, {"ticket": -1}, {"plan": "0"}):
            (verdict,) = phase.judge([msgspec.structs.replace(odd, **other)])
            assert verdict is not None
            assert verdict.status == 409
