"""Background work: conclusion of phases, deletion, and checks of the storage.

* `Watcher` concludes phases that are due.
* `StuckStudies` lists studies whose conclusion fails; they are tried again with growing pauses.
* `Forgetter` deletes data in small steps, so that requests do not wait for it.
* `Pulse` checks the storage, at most once per second, with a limited waiting time.
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
_LONGEST_PAUSE = 60.0  # seconds


class StuckStudy(msgspec.Struct, frozen=True, kw_only=True):
    """A study whose phase could not be concluded.

    Attributes:
        study: its id.
        phase: number of the phase.
        since: monotonic time of the first failure.
        attempts: number of failures.
        error: type of the last error; not its message, which may quote a reply.
        again: monotonic time of the next attempt.
    """

    study: str
    phase: int
    since: float
    attempts: int
    error: str
    again: float


class StuckStudies:
    """The studies that fail in this process; each is tried again with growing pauses.

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
        """Whether it failed too recently for another attempt."""
        known = self._known.get(study)
        return known is not None and self._clock() < known.again

    def failed(self, study: str, phase: int, error: str, *, took: float = 0.0) -> StuckStudy:
        """Record a failure; the pause is at least as long as the attempt, for other studies."""
        now, before = self._clock(), self._known.get(study)
        attempts = 1 if before is None else before.attempts + 1
        # The exponent is limited, so that the power does not overflow.
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
        """Remove a study that was concluded."""
        self._known.pop(study, None)

    def hurry(self, study: str) -> None:
        """Try a study again at once, because a request asked for it."""
        known = self._known.get(study)
        if known is not None:
            self._known[study] = msgspec.structs.replace(known, again=known.since)

    def keep(self, present: Mapping[str, int]) -> None:
        """Remove studies that another process has advanced, finished or deleted.

        Args:
            present: the phase of every due study.
        """
        gone = [study for study, one in self._known.items() if present.get(study) != one.phase]
        for study in gone:
            self.freed(study)

    def listed(self, most: int = 100) -> list[StuckStudy]:
        """The studies that have been stuck longest."""
        return sorted(self._known.values(), key=lambda one: one.since)[:most]


_TICK = 1.0  # seconds between steps, as other processes may create work or be killed

log = logging.getLogger("dpfda.collector")


class Repeated:
    """Calls `step` every second and after each `call`, never concurrently.

    Args:
        step: the function to call.
        failed: log message for errors, whose own messages may quote rows.

    Attributes:
        called: set by `call` until the next step.
    """

    def __init__(self, step: Callable[[], Awaitable[object]], failed: str) -> None:
        self._step, self._failed = step, failed
        self.called = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start; the first step handles work that a crash left."""
        self._task = asyncio.create_task(self._repeat())

    async def stop(self) -> None:
        """Stop. The next process continues with the remaining work."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def call(self) -> None:
        """Run a step as soon as possible."""
        self.called.set()

    async def _repeat(self) -> None:
        while True:
            try:
                await self._step()
            except Exception as error:  # the loop must not end
                log.error(self._failed, extra={"fields": failure(error)})
            try:
                # Not `wait_for`, which can lose a cancellation that comes together with the event.
                async with asyncio.timeout(_TICK):
                    await self.called.wait()
            except TimeoutError:
                continue
            self.called.clear()


class AtWork(NamedTuple):
    """A phase that is being concluded, since a monotonic time."""

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
        at_work: the phase that is being concluded now; others wait.
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
        """Conclude all phases that are due; failures are recorded and do not stop the others."""
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


_PATIENCE = 10.0  # seconds that a request waits for a deletion


class Forgetter(Repeated):
    """Calls a storage's `forget` while deletions are due.

    Args:
        forget: does one step; returns whether more is due.
    """

    def __init__(self, forget: Callable[[], Awaitable[bool]]) -> None:
        super().__init__(self._all, "what is due could not be forgotten")
        self._forget = forget
        self._one = asyncio.Lock()

    async def finish(self) -> bool:
        """Wait a limited time until nothing is due; return whether that was reached.

        The deletion was recorded before, so after an error of the storage it is repeated later, and
        the request itself does not fail.
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


PATIENCE = 1.5  # seconds that a health check waits for the storage
_FRESH = 1.0  # seconds for which a result is reused


class Pulse:
    """Checks the storage in a separate thread, which other work cannot delay.

    Args:
        probe: does a small write, or raises `Unavailable`.
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
        """Stop the thread."""
        self._thread.shutdown(cancel_futures=True)
