"""Processes that compute, so that the event loop never waits: one concludes, one reads plans."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import ParamSpec, TypeVar

import msgspec

from dpfda.collector.metrics import WorkFailed, failure

P = ParamSpec("P")
R = TypeVar("R")

_MODEST = 10  # how much less urgent than the collector it is


class Worker:
    """One process that is started again if it dies, or if it comes to no end.

    Args:
        limit: seconds after which a computation is given up, so that others have their turn.
        modest: whether it is less urgent than the collector: people wait for that, nobody for
            conclusions.
    """

    def __init__(self, *, limit: float = 3600.0, modest: bool = True) -> None:
        self._limit, self._modest = limit, modest
        self._pool: ProcessPoolExecutor | None = None
        self._ended = False
        self._turn = asyncio.Lock()

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function of an importable module over there."""
        call = partial(function, *args, **kwargs)
        async with self._turn:  # so that whoever kills the process takes nobody else's work with it
            try:
                found = await self._run(call)
            except BrokenProcessPool:  # it may have died before
                if self._ended:
                    raise
                self._pool = None
                found = await self._run(call)
        if isinstance(found, _Failure):
            raise WorkFailed(found.error, found.where)
        return found

    async def _run(self, call: Callable[[], R]) -> R | _Failure:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_follow,
                initargs=(os.getpid(), self._modest),
            )
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._pool, _guarded, call)
        try:
            return await asyncio.wait_for(work, self._limit)
        except TimeoutError:
            self._kill()
            return _Failure("TimeoutError", f"no end after {self._limit:g} seconds")

    def close(self) -> None:
        """End the process for good, whatever it does: what it has not finished is done again."""
        self._ended = True
        self._kill()

    def _kill(self) -> None:
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


class _Failure(msgspec.Struct, frozen=True):
    error: str
    where: str


def _guarded(call: Callable[[], R]) -> R | _Failure:
    """The result, or what failed: an exception may not survive the way, and may quote replies."""
    try:
        return call()
    except BaseException as error:
        return _Failure(**failure(error))


def _follow(parent: int, modest: bool) -> None:
    """End when the collector ends, even if it was killed; leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if modest and hasattr(os, "nice"):
        os.nice(_MODEST)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
