"""The present phase of every study, as one process knows it: read again when needed, seldom."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from dpfda.collector.open_phase import OpenPhase

INTERVAL = 0.1  # seconds between two looks at one study


class _Known(NamedTuple):
    phase: OpenPhase
    began: float  # to be read

    def serves(self, at_least: int) -> bool:
        record = self.phase.record
        return record.phase >= at_least and record.status != "closing"


class Phases:
    """A cache of phases.

    Another process may have ended what is known here, so whoever speaks of a later phase than the
    known one is a reason to look, and so is a phase that closes. Anybody may speak of phase a
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
        self._known: dict[str, _Known] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def get(self, study: str, *, at_least: int = 0) -> OpenPhase:
        """The present phase; of an earlier one than `at_least` it is certain that it is present."""
        known = self._known.get(study)
        if known is not None and known.serves(at_least):
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
        """What is known of a study is not so any more."""
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
        finally:
            if self._looking.get(study) is me:
                del self._looking[study]
