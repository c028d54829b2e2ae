"""A collector in this process, without HTTP, whose conclusions are drawn here; and its people."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from dpfda.collector.conclude import Worker
from dpfda.collector.refusal import Refused
from dpfda.collector.replies import Sent
from dpfda.collector.service import Collector
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import Lapse, NewReply, StudyRecord
from dpfda.collector.storage.memory import MemoryStorage
from dpfda.noise import SimulationSource
from dpfda.protocol.task import Task
from dpfda.protocol.wire import ReplyMessage, TaskMessage, token_hash

OPEN, INVITED = StudySettings(open=True), StudySettings()
TWO_PHASES = {"name": "answers", "center_known": True, "evaluation_share": 0.5}
"""Number 0 and number 1, half of all people each."""


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
    return Sent(token, message, hmac.digest(token, body, "sha256"))


class Here(Worker):
    """Draws conclusions in this process; that another one does is tested with real servers."""

    closed = False

    async def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args)

    def close(self) -> None:
        self.closed = True


def with_collector(
    course: Callable[[Collector, Recording], Awaitable[Any]],
    storage: Recording | None = None,
    **options: Any,
) -> Any:
    """A course of events in a collector."""

    async def run() -> Any:
        own = Recording() if storage is None else storage
        collector = Collector(own, **options)
        collector._worker, collector._planner = Here(), Here()
        try:
            return await course(collector, own)
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
    sent = ReplyMessage.saying(message.plan, message.phase, message.ticket, values.tolist())
    sent = msgspec.structs.replace(sent, **other)
    return sent, msgspec.json.encode(sent)


async def answer(collector: Collector, study: str) -> None:
    token, message = await person(collector, study)
    await collector.reply(study, sent_by(token, *reply_to(message)))


async def concluded(collector: Collector, study: str) -> StudyRecord:
    await collector._conclude(await collector.study(study))
    return await collector.study(study)
