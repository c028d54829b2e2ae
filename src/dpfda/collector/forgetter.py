"""Removes what is due to be forgotten, a little at a time, so that nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dpfda.collector.metrics import failure

_TICK = 1.0  # seconds between looks: another process may have noted something, or been killed
_PATIENCE = 10.0  # seconds that a request waits for the end

log = logging.getLogger("dpfda.collector")


class Forgetter:
    """Calls a storage's `forget` while there is something to do.

    Args:
        forget: one step; whether there is more.
    """

    def __init__(self, forget: Callable[[], Awaitable[bool]]) -> None:
        self._forget = forget
        self._due = asyncio.Event()
        self._one = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, with what a crash may have left."""
        self._task = asyncio.create_task(self._go_on())

    async def stop(self) -> None:
        """The rest is done by whoever comes next."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def look(self) -> None:
        """Something has become due."""
        self._due.set()

    async def finish(self) -> bool:
        """Wait until nothing is due, but not for ever; whether that was reached."""
        try:
            await asyncio.wait_for(self._all(), _PATIENCE)
        except TimeoutError:
            self.look()
            return False
        return True

    async def _all(self) -> None:
        async with self._one:
            while await self._forget():
                pass

    async def _go_on(self) -> None:
        while True:
            try:
                await self._all()
            except Exception as error:  # its message may quote rows
                log.error("what is due could not be forgotten", extra={"fields": failure(error)})
            try:
                await asyncio.wait_for(self._due.wait(), _TICK)
            except TimeoutError:
                continue
            self._due.clear()
