"""The present phase of a study as a process knows it: what to ask and what to accept.

`OpenPhase` is one phase. `Phases` is a cache of those that were used last; it is read again from
the storage when another process may have ended a phase.
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

_MOST = 64  # tickets whose tasks are made at once
_BYTES = 1 << 18  # and how long all of them may be
_KEPT = 16  # blocks of tasks remembered

_encode = msgspec.json.Encoder().encode


def opened(record: StudyRecord) -> OpenPhase:
    """The phase that a record describes; refused where this release cannot read what is stored."""
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
    """Tasks of a phase follow from what is stored at its beginning: no state but a cache."""

    def __init__(self, record: StudyRecord) -> None:
        self.record = record
        self.plan = read_plan(record.plan)
        self.settings = msgspec.json.decode(record.settings, type=StudySettings)
        self.answered = 0
        self.smallest = record.quota
        self.lapse = Lapse(self.settings.lapse, final=self.settings.open)
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        if record.quota:  # a finished study is asked nothing, and needs no version that can go on
            self._run = resume(self.plan, record.state).run
            self.smallest = min(step.people for step in self._run.steps if step.people)
            self._first = self._run.tasks(0, 1)
            length = len(_encode(self._first.to_dict()))
            self._size = max(1, min(_MOST, _BYTES // length))

    def message(self, ticket: int) -> bytes:
        """The task on its way to the holder of a ticket: a `TaskMessage` as JSON."""
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
        """Check each reply by itself, in one pass; None where a reply is valid."""
        record = self.record  # which may be replaced meanwhile
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
        """Whether every reply could come from the phase's mechanism: one look at all of them."""
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
    """Tasks of neighboring tickets, made at once; what they have in common is encoded once."""

    def __init__(self, task: Task) -> None:
        asked = task.to_dict() | {"people": 1}
        self._own = {name: asked.pop(name) for name in task.own_fields()}
        self._common = {name: msgspec.Raw(_encode(value)) for name, value in asked.items()}

    def asked(self, place: int) -> dict[str, object]:
        """The task of one of them, as JSON has it."""
        return self._common | {name: [rows[place]] for name, rows in self._own.items()}


INTERVAL = 0.1  # seconds between two looks at one study
MOST_PHASES = 256  # in memory; one takes up to 225 kB, and milliseconds to read again


class _Known(NamedTuple):
    phase: OpenPhase
    began: float  # to be read

    def serves(self, at_least: int) -> bool:
        record = self.phase.record  # without a ticket its settings may still be edited
        return record.phase >= at_least and record.status != "closing" and record.issued > 0


class Phases:
    """A cache of phases.

    Another process may have ended what is known here, so whoever speaks of a later phase than the
    known one is a reason to look, and so is a phase that closes, or one of which nobody has seen a
    question: its settings may have been edited. Anybody may speak of phase a
    million: a study is looked at once in an interval, and all who asked meanwhile wait for that.
    None of them is refused for what was true before they asked.

    Args:
        read: the present phase of a study from the storage, given the known one.
        clock: seconds.
        sleep: how to let time pass.
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
        self._known: OrderedDict[str, _Known] = OrderedDict()  # the longest unused one first
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def get(self, study: str, *, at_least: int = 0) -> OpenPhase:
        """The present phase; of an earlier one than `at_least` it is certain that it is present."""
        known = self._known.get(study)
        if known is not None and known.serves(at_least):
            self._known.move_to_end(study)
            return known.phase
        asked = self._clock()
        while known is None or not (known.serves(at_least) or known.began >= asked):
            look = self._looking.get(study)
            if look is None:
                look = self._looking[study] = asyncio.create_task(self._look(study))
            await asyncio.shield(look)  # whoever hangs up does not stop it
            known = self._known.get(study)
        return known.phase

    def forget(self, study: str) -> None:
        """Drop the cached phase of a study."""
        self._known.pop(study, None)
        self._looking.pop(study, None)  # what it finds may be no longer true

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
