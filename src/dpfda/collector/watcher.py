"""Concludes phases in time: looks after every study, and after those that fail ever more rarely."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from dpfda.collector.metrics import failure
from dpfda.collector.storage.base import StudyRecord
from dpfda.collector.stuck import StuckStudies

_TICK = 1.0  # seconds between looks at deadlines

log = logging.getLogger("dpfda.collector")


class AtWork(NamedTuple):
    """A phase that is being concluded, since a time in seconds since 1970."""

    study: str
    phase: int
    since: float


class Watcher:
    """Looks every second, and whenever it is called: one study after the other.

    Args:
        due: studies whose phase must be concluded.
        conclude: concludes the phase of one of them.

    Attributes:
        stuck: those that could not be concluded.
        at_work: the study whose phase is being concluded now, and since when; others wait.
        called: whether somebody has called since the last look.
    """

    def __init__(
        self,
        due: Callable[[], Awaitable[list[StudyRecord]]],
        conclude: Callable[[StudyRecord], Awaitable[None]],
    ) -> None:
        self._due = due
        self._conclude = conclude
        self.stuck = StuckStudies()
        self.at_work: AtWork | None = None
        self.called = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to watch deadlines, and take up what a crash interrupted."""
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def call(self) -> None:
        """A phase may be complete: look now."""
        self.called.set()

    async def _watch(self) -> None:
        while True:
            try:
                await self.look()
            except Exception as error:  # the watcher must not end
                log.error("studies could not be listed", extra={"fields": failure(error)})
            try:
                # Not `wait_for`: called and cancelled at once, it would forget the second.
                async with asyncio.timeout(_TICK):
                    await self.called.wait()
            except TimeoutError:
                continue
            self.called.clear()

    async def look(self) -> None:
        """Conclude what is due; whatever fails is remembered, and the others go on."""
        due = await self._due()
        self.stuck.keep({record.id: record.phase for record in due})
        for record in due:
            if self.stuck.must_wait(record.id):
                continue
            began = time.monotonic()
            self.at_work = AtWork(record.id, record.phase, time.time())
            try:
                await self._conclude(record)
            except Exception as error:
                what, took = failure(error), time.monotonic() - began
                known = self.stuck.failed(record.id, record.phase, what["error"], took=took)
                fields = {"study": record.id, "phase": record.phase, "attempts": known.attempts}
                log.error("a study could not be advanced", extra={"fields": {**fields, **what}})
            else:
                self.stuck.freed(record.id)
            finally:
                self.at_work = None
