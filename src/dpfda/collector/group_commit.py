"""Group commit: requests that arrive while a commit is under way share the next one.

Nobody waits for a group to fill, so a lone request is as fast as it can be; under load groups grow
by themselves and one sync of the disk serves many requests.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Generic, TypeVar

from dpfda.collector.storage.base import Unavailable

T = TypeVar("T")
R = TypeVar("R")


class GroupCommit(Generic[T, R]):
    """Collects items and hands them to `write` in groups, in a thread.

    Args:
        write: stores a group and returns one result an item, all durable.
        executor: where `write` runs.
        most: largest group; 1 commits every item alone.
    """

    def __init__(
        self, write: Callable[[Sequence[T]], list[R]], executor: Executor, *, most: int = 256
    ) -> None:
        self._write = write
        self._executor = executor
        self._most = most
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self.groups = 0
        self.items = 0

    async def add(self, item: T) -> R:
        """Store one item; returns when it is durable."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        try:
            while self._waiting:
                size = min(len(self._waiting), self._most)
                await self._commit([self._waiting.popleft() for _ in range(size)])
        finally:
            self._worker = None

    async def _commit(self, group: list[tuple[T, asyncio.Future[R]]]) -> None:
        loop = asyncio.get_running_loop()
        self.groups += 1
        self.items += len(group)
        try:
            results = await loop.run_in_executor(
                self._executor, self._write, [item for item, _ in group]
            )
        except Exception as error:
            if isinstance(error, Unavailable):  # one after the other they would wait for ever
                for _, future in group:
                    if not future.done():
                        future.set_exception(error)
            elif len(group) > 1:  # whatever was wrong with one of them, the others are tried alone
                for entry in group:
                    await self._commit([entry])
            elif not group[0][1].done():
                group[0][1].set_exception(error)
            return
        for (_, future), result in zip(group, results, strict=True):
            if not future.done():  # the client did not hang up
                future.set_result(result)
