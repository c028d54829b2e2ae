"""The present phase of a study as a collector process knows it: what to ask, what to accept."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from dpfda.collector.conclude import read_plan, resume
from dpfda.collector.refusal import Refused
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import StudyRecord
from dpfda.errors import ProtocolError
from dpfda.protocol.task import Task, check_reply
from dpfda.protocol.wire import ReplyMessage, TaskMessage

_KEPT = 1 << 13  # tasks remembered between question and answer


class OpenPhase:
    """Tasks of a phase follow from what is stored at its beginning: no state but a cache."""

    def __init__(self, record: StudyRecord) -> None:
        self.record = record
        self.plan = read_plan(record.plan)
        self.settings = msgspec.json.decode(record.settings, type=StudySettings)
        self._progress = resume(self.plan, record.state).progress
        self._tasks: OrderedDict[int, Task] = OrderedDict()
        self.answered = 0

    def task(self, ticket: int) -> Task:
        """What the holder of a ticket is asked."""
        task = self._tasks.get(ticket)
        if task is None:
            task = self._progress.tasks(ticket, 1)
            self._tasks[ticket] = task
            if len(self._tasks) > _KEPT:
                self._tasks.popitem(last=False)
        return task

    def message(self, ticket: int) -> TaskMessage:
        """The task on its way to a person."""
        return TaskMessage(self.record.hash, self.record.phase, ticket, self.task(ticket).to_dict())

    def check(self, message: ReplyMessage) -> None:
        """Refuse what is no possible reply to its ticket."""
        if not 0 <= message.ticket < self.record.quota:
            raise Refused(422, "bad_reply", "there is no such ticket in this phase")
        try:
            check_reply(self.task(message.ticket), [message.values])
        except ProtocolError as error:
            raise Refused(422, "bad_reply", str(error)) from None

    def forget(self, ticket: int) -> None:
        """The reply is stored: the task is not needed again."""
        self._tasks.pop(ticket, None)
