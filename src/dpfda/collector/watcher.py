"""Concludes phases in time: looks after every study, and after those that fail ever more rarely.

Studies that cannot go on: since when, how often they were tried, and when they are again.

Removes what is due to be forgotten, a little at a time, so that nobody waits for it.

Whether the storage works: asked by many, tried once, and answered soon in any case.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from dpfda.collector.log import failure
from dpfda.collector.storage.base import StudyRecord, Unavailable

_FIRST_PAUSE = 1.0  # seconds; doubled with every failure
_LONGEST_PAUSE = 60.0  # what was repaired goes on within this time


class StuckStudy(msgspec.Struct, frozen=True, kw_only=True):
    """A study whose phase could not be concluded.

    Attributes:
        study: its id.
        phase: number of the phase.
        since: when it failed first, by the clock that never jumps.
        attempts: how often it failed.
        error: kind of the last failure; never its message, which may quote a reply.
        again: when it is tried again, by the same clock.
    """

    study: str
    phase: int
    since: float
    attempts: int
    error: str
    again: float


class StuckStudies:
    """The studies that fail in this process: each is tried again, with growing pauses.

    Examples:
        >>> clock = iter([0.0, 0.5, 1.0])
        >>> stuck = StuckStudies(clock=lambda: next(clock))
        >>> stuck.failed("a", 0, "TypeError").again
        1.0
        >>> stuck.must_wait("a"), stuck.must_wait("a")
        (True, False)
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, StuckStudy] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._known)

    def must_wait(self, study: str) -> bool:
        """Whether it failed so recently that it is left alone for now."""
        known = self._known.get(study)
        return known is not None and self._clock() < known.again

    def failed(self, study: str, phase: int, error: str, *, took: float = 0.0) -> StuckStudy:
        """Remember a failure; what took long waits at least as long, so that others go on."""
        now, before = self._clock(), self._known.get(study)
        attempts = 1 if before is None else before.attempts + 1
        # Whoever has failed a hundred times needs no power of two of that.
        pause = max(took, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(attempts - 1, 30)))
        self._known[study] = StuckStudy(
            study=study,
            phase=phase,
            since=now if before is None else before.since,
            attempts=attempts,
            error=error,
            again=now + pause,
        )
        return self._known[study]

    def freed(self, study: str) -> None:
        """It went on."""
        self._known.pop(study, None)

    def hurry(self, study: str) -> None:
        """Try a study again at once, because a request asked for it."""
        known = self._known.get(study)
        if known is not None:
            self._known[study] = msgspec.structs.replace(known, again=known.since)

    def keep(self, present: Mapping[str, int]) -> None:
        """Forget studies that another process has advanced, finished or deleted.

        Args:
            present: the phase of every study that runs.
        """
        gone = [study for study, one in self._known.items() if present.get(study) != one.phase]
        for study in gone:
            self.freed(study)

    def listed(self, most: int = 100) -> list[StuckStudy]:
        """The studies that are stuck longest."""
        return sorted(self._known.values(), key=lambda one: one.since)[:most]


_TICK = 1.0  # seconds between looks: another process may have noted something, or been killed

log = logging.getLogger("dpfda.collector")


class Repeated:
    """Calls `step` every second, and whenever it is called for, one after the other.

    Args:
        step: what is done.
        failed: what the log says if it fails; the message of the failure may quote rows.

    Attributes:
        called: whether somebody has called since the last step.
    """

    def __init__(self, step: Callable[[], Awaitable[object]], failed: str) -> None:
        self._step, self._failed = step, failed
        self.called = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, with what a crash may have left."""
        self._task = asyncio.create_task(self._repeat())

    async def stop(self) -> None:
        """Stop. The next process continues with the remaining work."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def call(self) -> None:
        """There may be something to do: look now."""
        self.called.set()

    async def _repeat(self) -> None:
        while True:
            try:
                await self._step()
            except Exception as error:  # this must not end
                log.error(self._failed, extra={"fields": failure(error)})
            try:
                # Not `wait_for`: called and cancelled at once, it would forget the second.
                async with asyncio.timeout(_TICK):
                    await self.called.wait()
            except TimeoutError:
                continue
            self.called.clear()


class AtWork(NamedTuple):
    """A phase that is being concluded, since a time of the clock that never jumps."""

    study: str
    phase: int
    since: float


class Watcher(Repeated):
    """Advances studies that are due.

    Args:
        due: studies whose phase must be concluded.
        conclude: concludes the phase of one of them.

    Attributes:
        stuck: those that could not be concluded.
        at_work: the study whose phase is being concluded now, and since when; others wait.
    """

    def __init__(
        self,
        due: Callable[[], Awaitable[list[StudyRecord]]],
        conclude: Callable[[StudyRecord], Awaitable[None]],
    ) -> None:
        super().__init__(self.look, "studies could not be listed")
        self._due = due
        self._conclude = conclude
        self.stuck = StuckStudies()
        self.at_work: AtWork | None = None

    async def look(self) -> None:
        """Conclude what is due; whatever fails is remembered, and the others go on."""
        due = await self._due()
        self.stuck.keep({record.id: record.phase for record in due})
        for record in due:
            if self.stuck.must_wait(record.id):
                continue
            began = time.monotonic()
            self.at_work = AtWork(record.id, record.phase, began)
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


_PATIENCE = 10.0  # seconds that a request waits for the end


class Forgetter(Repeated):
    """Calls a storage's `forget` while there is something to do.

    Args:
        forget: one step; whether there is more.
    """

    def __init__(self, forget: Callable[[], Awaitable[bool]]) -> None:
        super().__init__(self._all, "what is due could not be forgotten")
        self._forget = forget
        self._one = asyncio.Lock()

    async def finish(self) -> bool:
        """Wait a limited time until nothing is due; return whether that was reached.

        What is due was noted before: a storage that fails now is tried again later, and whoever
        asked to forget is not told that it failed.
        """
        try:
            await asyncio.wait_for(self._all(), _PATIENCE)
        except (TimeoutError, Unavailable):
            self.call()
            return False
        return True

    async def _all(self) -> None:
        async with self._one:
            while await self._forget():
                pass


PATIENCE = 1.5  # seconds until whoever asks is told that there is no answer
_FRESH = 1.0  # seconds for which a result is good: asking often writes no more often


class Pulse:
    """Checks the storage in a separate thread, which other work cannot delay.

    Args:
        probe: writes something small, or raises `Unavailable`.
    """

    def __init__(self, probe: Callable[[], None]) -> None:
        self._probe = probe
        self._thread = ThreadPoolExecutor(1, "probe")
        self._trial: asyncio.Future[str] | None = None
        self._until = 0.0

    async def trouble(self) -> str:
        """A description of the problem; empty if there is none."""
        if self._trial is None or (self._trial.done() and time.monotonic() >= self._until):
            self._trial = asyncio.get_running_loop().run_in_executor(self._thread, self._try)
        trial = self._trial
        await asyncio.wait([trial], timeout=PATIENCE)
        return trial.result() if trial.done() else "the database does not answer"

    def _try(self) -> str:
        try:
            self._probe()
        except Unavailable as error:
            return str(error)
        finally:
            self._until = time.monotonic() + _FRESH
        return ""

    def stop(self) -> None:
        """Try no more."""
        self._thread.shutdown(cancel_futures=True)
