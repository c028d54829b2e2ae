"""kill -9 at the boundaries of every design's phases: the study ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from forked_collector import Death, ForkedCollector
from small_studies import answer_one, replies, small_studies

from dpfda.client.crowd import Wire
from dpfda.collector.plans import IN_PROCESS
from dpfda.collector.storage import open_storage
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.wire import ReplyMessage, TaskMessage

MOMENTS = ["told", "learning", "writing", "written"]


BOTH = ("moments", "answers", "mrma_stream")  # one phase, six, and one with a successor
CASES = [
    (name, "sqlite")
    for name, plan in small_studies().items()
    if plan.design["name"] not in IN_PROCESS
] + [(name, "postgresql") for name in BOTH]


OFTEN = ("moments", "answers", "vectors", "mrma_stream", "gradient_boosting")


def moments(name: str, number: int, earlier: int) -> list[str]:
    """At which to die: the first batch of a kind of phase at all, the next four at one each.

    The collector never sees a design either, and `test_states.py` takes up the stored states of
    all: most designs are killed once in each kind of phase.
    """
    if name not in OFTEN:
        return [] if earlier else [MOMENTS[number % len(MOMENTS)]]
    return MOMENTS if earlier == 0 else MOMENTS[earlier - 1 : earlier]


@dataclass(frozen=True)
class Ended:
    """A phase as it ends where nobody is killed: how many answered, the model, what is stored."""

    phase: int
    kind: str
    quota: int
    model: Any
    state: str


def undisturbed(plan: StudyPlan) -> list[Ended]:
    """The phases in which somebody is asked, whatever the design makes of the replies."""
    server, ended = Server(plan), []
    while not server.finished:
        asked = server.phase, server.kind, server.quota
        for _ in range(server.wanted):
            answer_one(server)
        state = msgspec.json.encode(server.state()).decode()
        ended.append(Ended(*asked, json.loads(server.model.to_json()), state))
    return ended


@dataclass
class Person:
    """Asks for a task until there is one, and repeats a reply until it is acknowledged."""

    token: str = ""
    asked: bytes = b""
    body: bytes = b""
    receipts: list[bytes] = field(default_factory=list)

    async def take_part(self, wire: Wire, plan: StudyPlan) -> None:
        path = f"/api/studies/{plan.hash[:16]}"
        if not self.token:
            self.token = json.loads(await ask(wire, 201, "POST", path + "/enrol", b"{}"))["token"]
        if not self.body:
            asked = await ask(wire, 200, "GET", path + "/task", token=self.token)
            assert self.asked in (b"", asked), "the same question, however often it is asked for"
            self.asked = asked
            message = msgspec.json.decode(asked, type=TaskMessage)
            values = replies(plan.read_task(message.task), message.phase, message.ticket)
            self.body = msgspec.json.encode(
                ReplyMessage.saying(message.plan, message.phase, message.ticket, values[0].tolist())
            )
        self.receipts.append(
            await ask(wire, 200, "POST", path + "/reply", self.body, token=self.token)
        )


read_reply = msgspec.json.Decoder(ReplyMessage).decode


async def ask(wire: Wire, expected: int, *request: Any, **more: Any) -> bytes:
    while True:
        status, body = await wire.ask(*request, **more)
        if status != 202:  # there is no free task until the phase is concluded
            assert status == expected, (status, body)
            return body
        await asyncio.sleep(0.02)


def everybody(people: list[Person], url: str, plan: StudyPlan) -> None:
    """Whoever has no receipt goes on, until that is nobody or the collector is dead."""

    async def queue() -> None:
        wire = Wire(url)
        try:
            for person in people:
                if not person.receipts:
                    await person.take_part(wire, plan)
        except OSError:
            pass
        finally:
            wire.close()

    asyncio.run(queue())


@pytest.mark.parametrize(("name", "database"), CASES, indirect=["database"])
def test_killed_at_the_boundaries(name: str, database: str) -> None:
    """A database stores bytes and never sees a design: few designs need both databases."""
    plan = small_studies()[name]
    expected, study = undisturbed(plan), plan.hash[:16]
    collector, people = ForkedCollector(database), []
    collector.alone = True
    collector.start().create(plan, online=True, open=True)
    collector.kill()
    for number, phase in enumerate(expected):
        people += [Person() for _ in range(phase.quota)]
        earlier = [one.kind for one in expected[:number]].count(phase.kind)
        for moment in moments(name, number, earlier):
            collector.start(Death(moment, study, phase.phase, phase.quota))
            everybody(people, collector.url, plan)
            collector.await_death()
    collector.start()
    try:
        everybody(people, collector.url, plan)  # whoever was not told yet
        status = collector.wait_until(study)
        history = collector.request("GET", f"/api/studies/{study}/models")
        kept = [
            collector.read("GET", f"/api/studies/{study}/phases/{phase.phase}/replies").split()
            for phase in expected
        ]
        receipts = [person.receipts for person in people]
        for person in people:
            person.receipts = []
        everybody(people, collector.url, plan)
        assert [person.receipts for person in people] == receipts, "and again: the same receipt"
        successor = status["successor"]
        assert (successor is not None) == (plan.design["name"] == "mrma_stream")
        if successor is not None:
            assert collector.request("GET", f"/api/studies/{successor}")["status"] == "open"
    finally:
        collector.stop()
    assert [(entry["phase"], entry["people"]) for entry in history] == [
        (-1, 0),
        *((phase.phase, phase.quota) for phase in expected),
    ]
    assert [entry["model"] for entry in history[1:]] == [phase.model for phase in expected]
    sent = sorted(msgspec.json.encode(read_reply(person.body).kept()) for person in people)
    assert sorted(body for phase in kept for body in phase) == sent, "each reply, once"
    tickets = [[json.loads(body)["ticket"] for body in phase] for phase in kept]
    assert tickets == [list(range(phase.quota)) for phase in expected]
    storage = open_storage(database)
    record = storage.study(study)
    assert record is not None
    assert record.state == expected[-1].state
    assert record.enrolled == len(people), "nobody came twice"
    storage.close()
