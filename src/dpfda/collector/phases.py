"""The current phase of a study: its tasks, and the check of its replies.

`OpenPhase` is one phase. `Phases` is a cache of recently used phases. It reads a phase again from
the storage if another process may have ended it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from dpfda.collector.conclude import read_plan, resume
from dpfda.collector.log import failure
from dpfda.collector.refusal import Refused
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import Lapse, StudyRecord
from dpfda.errors import ChangedStudy, ProtocolError
from dpfda.protocol.task import Task, check_reply
from dpfda.protocol.wire import ReplyMessage, TaskMessage

log = logging.getLogger("dpfda.collector")

_MOST = 64  # tickets whose tasks are created at once
_BYTES = 1 << 18  # largest total size of these tasks
_KEPT = 16  # blocks of tasks in the cache

_encode = msgspec.json.Encoder().encode


def opened(record: StudyRecord) -> OpenPhase:
    """The phase of a record; an error if this release cannot read the stored state."""
    try:
        return OpenPhase(record)
    except Exception as error:
        log.error(
            "a study cannot be read", extra={"fields": {"study": record.id, **failure(error)}}
        )
        why = str(error) if isinstance(error, ChangedStudy) else "it cannot be read"
        raise Refused(
            503, "unreadable", f"this collector cannot continue the study: {why}"
        ) from None


class OpenPhase:
    """One phase, whose tasks follow from its stored initial state; it holds only a cache."""

    def __init__(self, record: StudyRecord) -> None:
        self.record = record
        self.plan = read_plan(record.plan)
        self.settings = msgspec.json.decode(record.settings, type=StudySettings)
        self.answered = 0
        self.smallest = record.quota
        self.lapse = Lapse(self.settings.lapse, final=self.settings.open)
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        if record.quota:  # a finished study has no tasks, so its state need not be readable
            self._run = resume(self.plan, record.state).run
            self.smallest = min(step.people for step in self._run.steps if step.people)
            self._first = self._run.tasks(0, 1)
            length = len(_encode(self._first.to_dict()))
            self._size = max(1, min(_MOST, _BYTES // length))

    def message(self, ticket: int) -> bytes:
        """The message with the task of a ticket: a `TaskMessage` as JSON."""
        number, place = divmod(ticket, self._size)
        block = self._blocks.get(number)
        if block is None:
            start = number * self._size
            people = min(self._size, self.record.quota - start)
            block = self._blocks[number] = _Block(self._run.tasks(start, people))
            if len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return _encode(TaskMessage(self.record.hash, self.record.phase, ticket, block.asked(place)))

    def judge(self, messages: Sequence[ReplyMessage]) -> list[Refused | None]:
        """Check each reply separately, in one pass; None if a reply is valid."""
        record = self.record  # another thread may replace it meanwhile
        present, taking = record.phase, record.status == "open"
        verdicts: list[Refused | None] = []
        for message in messages:
            refused = None
            if message.plan != record.hash:
                refused = Refused(409, "wrong_study", "the reply belongs to another study")
            elif not 0 <= message.phase <= present or message.ticket < 0:
                refused = Refused(409, "wrong_phase", "the study has no such ticket yet")
            elif taking and message.phase == present and message.ticket >= record.quota:
                refused = Refused(422, "bad_reply", "there is no such ticket in this phase")
            verdicts.append(refused)
        if taking:
            doubtful = [
                place
                for place, verdict in enumerate(verdicts)
                if verdict is None and messages[place].phase == present
            ]
            if not self._all_possible([messages[place].values for place in doubtful]):
                for place in doubtful:
                    verdicts[place] = self._impossible(messages[place].values)
        return verdicts

    def _all_possible(self, values: list[list[float]]) -> bool:
        """Whether every reply could come from the phase's mechanism, checked for all at once."""
        if not values:
            return True
        width = self._first.width
        if any(len(row) != width for row in values):
            return False
        matrix = np.array(values).reshape(-1, width)
        return bool(np.isfinite(matrix).all() and self._first.allows(matrix).all())

    def _impossible(self, values: list[float]) -> Refused | None:
        try:
            check_reply(self._first, [values])
        except ProtocolError as error:
            return Refused(422, "bad_reply", str(error))
        return None


class _Block:
    """Tasks of consecutive tickets, created at once; their common fields are encoded once."""

    def __init__(self, task: Task) -> None:
        asked = task.to_dict() | {"people": 1}
        self._own = {name: asked.pop(name) for name in task.own_fields()}
        self._common = {name: msgspec.Raw(_encode(value)) for name, value in asked.items()}

    def asked(self, place: int) -> dict[str, object]:
        """The task of one ticket, as plain JSON values."""
        return self._common | {name: [rows[place]] for name, rows in self._own.items()}


INTERVAL = 0.1  # seconds between two reads of one study
# phases in memory; one takes up to 225 kB, and reading it again takes milliseconds
MOST_PHASES = 256


class _Known(NamedTuple):
    phase: OpenPhase
    began: float  # when reading began

    def serves(self, at_least: int) -> bool:
        record = self.phase.record  # before the first ticket its settings may still change
        return record.phase >= at_least and record.status != "closing" and record.issued > 0


class Phases:
    """A cache of phases.

    Another process may have changed a cached phase. It is read again if a request mentions a later
    phase, if it is closing, or if no ticket was issued, because then its settings may have been
    edited. As anybody can send any phase number, a study is read at most once per `INTERVAL`, and
    all requests meanwhile wait for that read. So no request is refused because of outdated state.

    Args:
        read: reads the current phase of a study from the storage, given the cached one.
        clock: returns seconds.
        sleep: waits for some seconds.
    """

    def __init__(
        self,
        read: Callable[[str, OpenPhase | None], Awaitable[OpenPhase]],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._read = read
        self._clock = clock
        self._sleep = sleep
        self._known: OrderedDict[str, _Known] = OrderedDict()  # least recently used first
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def get(self, study: str, *, at_least: int = 0) -> OpenPhase:
        """The current phase; read again if the cached one is earlier than `at_least`."""
        known = self._known.get(study)
        if known is not None and known.serves(at_least):
            self._known.move_to_end(study)
            return known.phase
        asked = self._clock()
        while known is None or not (known.serves(at_least) or known.began >= asked):
            look = self._looking.get(study)
            if look is None:
                look = self._looking[study] = asyncio.create_task(self._look(study))
            await asyncio.shield(look)  # a client that disconnects does not cancel it
            known = self._known.get(study)
        return known.phase

    def forget(self, study: str) -> None:
        """Drop the cached phase of a study."""
        self._known.pop(study, None)
        self._looking.pop(study, None)  # its result may be outdated

    def __contains__(self, study: str) -> bool:
        return study in self._known

    async def _look(self, study: str) -> None:
        me = asyncio.current_task()
        try:
            known = self._known.get(study)
            if known is not None:
                await self._sleep(known.began + INTERVAL - self._clock())
            began = self._clock()
            phase = await self._read(study, None if known is None else known.phase)
            if self._looking.get(study) is me:
                self._known[study] = _Known(phase, began)
                self._known.move_to_end(study)
                if len(self._known) > MOST_PHASES:
                    self._known.popitem(last=False)
        finally:
            if self._looking.get(study) is me:
                del self._looking[study]
