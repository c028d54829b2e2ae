"""Whether the storage works: asked by many, tried once, and answered soon in any case."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from dpfda.collector.storage.base import Unavailable

PATIENCE = 1.5  # seconds until whoever asks is told that there is no answer
_FRESH = 1.0  # seconds for which a result is good: asking often writes no more often


class Pulse:
    """Tries the storage in a thread of its own, which nothing else can hold up.

    Args:
        probe: writes something small, or raises `Unavailable`.
    """

    def __init__(self, probe: Callable[[], None]) -> None:
        self._probe = probe
        self._thread = ThreadPoolExecutor(1, "probe")
        self._trial: asyncio.Future[str] | None = None
        self._until = 0.0

    async def trouble(self) -> str:
        """What is wrong; nothing where all is well."""
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
