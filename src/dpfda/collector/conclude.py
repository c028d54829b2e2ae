"""The conclusion of a phase, which computes the next phase from the replies, and its processes.

The computation is a deterministic function of plan and replies, because its randomness is public
and follows from the plan. After a crash it is repeated with the same result. It runs in separate
processes, so that the event loop never waits: one process concludes phases, another one reads
plans.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

import msgspec
import numpy as np

import dpfda.local.mrma.study  # noqa: F401 (now, so that the first request does not wait for them)
from dpfda._validate import FloatArray, IntArray
from dpfda.collector.log import WorkFailed, failure
from dpfda.collector.plans import check_shape, check_sizes, odd_part, rehearse
from dpfda.collector.refusal import bad_plan
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import ModelRecord, Storage, StudyRecord
from dpfda.collector.summary import summarize
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import BLOCK, Server
from dpfda.protocol.wire import Reply


class Conclusion(msgspec.Struct, frozen=True):
    """The result of a phase.

    Attributes:
        following: number, kind, quota, status and state of the next phase.
        document: the model as JSON.
        summary: contents of the dashboard, as JSON.
        people: number of replies.
        carried: the plan of the next round, as JSON, if this was one round of a stream.
    """

    following: dict[str, Any]
    document: str
    summary: str
    people: int
    carried: str | None = None

    def recorded(self, study: str, phase: int, kind: str, *, created: float) -> ModelRecord:
        """The record for the history of the model."""
        return ModelRecord(
            study=study,
            phase=phase,
            kind=kind,
            people=self.people,
            created=created,
            document=self.document,
            summary=self.summary,
        )


def read_plan(plan: str) -> StudyPlan:
    """A plan from its JSON."""
    return StudyPlan.from_dict(msgspec.json.decode(plan))


def begin(plan: dict[str, Any]) -> tuple[StudyPlan, Conclusion] | str:
    """Create the initial state of a study from a received plan; return the error if it is invalid.

    The error is returned as text, because exceptions do not pass well between processes.
    """
    try:
        return _begin(plan)
    except DpfdaError as error:
        return _shortened(error)
    except Exception:  # any error of a part that received an invalid value
        return _shortened(InvalidParameter(*odd_part(plan)))


def _shortened(error: DpfdaError) -> str:
    return " ".join(str(error).split())[:500]


def _begin(plan: dict[str, Any]) -> tuple[StudyPlan, Conclusion]:
    check_shape(plan)
    contract = StudyPlan.from_dict(plan)
    check_sizes(contract)
    # The plan must survive a round trip through JSON, in which it is stored and published.
    if read_plan(msgspec.json.encode(contract.to_dict()).decode()).hash != contract.hash:
        raise InvalidParameter("plan", "made of values that JSON can hold", "others")
    rehearse(contract)
    return contract, _describe(Server(contract), people=0)


def resume(plan: StudyPlan, state: str) -> Server:
    """The server at the beginning of a stored phase."""
    return Server.resume(plan, msgspec.json.decode(state))


def conclude_stored(url: str, record: StudyRecord, median_group: int = 0) -> Conclusion:
    """End a phase with the replies in the storage at `url`.

    Reading here avoids sending many replies from the serving process to this one.
    """
    replies = _storage(url).replies(record.id, record.phase)
    return conclude(record.plan, record.state, replies, median_group)


@cache
def _storage(url: str) -> Storage:
    return open_storage(url)


def conclude(
    plan: str, state: str, replies: Sequence[tuple[int, bytes]], median_group: int = 0
) -> Conclusion:
    """End a phase with the given replies.

    Args:
        plan: the study's plan.
        state: the stored state at the beginning of the phase.
        replies: ticket numbers and bodies, in the order of tickets.
        median_group: people per group of a median of means; 0 for plain means.
    """
    contract = read_plan(plan)
    server = Server.resume(contract, msgspec.json.decode(state), median_group=median_group)
    phase, quota = server.phase, server.quota
    server.issued = quota
    if replies:
        numbers = np.array([number for number, _ in replies], dtype=np.int64)
        values = np.array([msgspec.json.decode(body, type=Reply).values for _, body in replies])
        _receive(server, numbers, values, quota)
    if server.phase == phase and not server.finished:
        server.close_phase()
    return _describe(server, people=len(replies))


def _receive(server: Server, numbers: IntArray, values: FloatArray, quota: int) -> None:
    """Pass all replies to the server, one block of tickets at a time."""
    for first in range(0, quota, BLOCK):
        last = min(first + BLOCK, quota)
        here = (numbers >= first) & (numbers < last)
        if here.any():
            block = np.zeros((last - first, values.shape[1]))
            missing = np.ones(last - first, dtype=bool)
            block[numbers[here] - first] = values[here]
            missing[numbers[here] - first] = False
            server.receive(block, start=first, missing=missing)


def _describe(server: Server, *, people: int) -> Conclusion:
    following = {
        "phase": server.phase,
        "kind": server.kind,
        "quota": server.quota,
        "status": "finished" if server.finished else "open",
        "state": msgspec.json.encode(server.state()).decode(),
    }
    return Conclusion(
        following=following,
        document=server.model.to_json(),
        summary=msgspec.json.encode(summarize(server)).decode(),
        people=people,
        carried=_carried(server),
    )


def _carried(server: Server) -> str | None:
    """The plan of the next round, if the design is one round of a stream; otherwise None."""
    following = server.findings.following
    if following is None:
        return None
    plan = server.plan.to_dict() | {"design": following.to_dict(), "seed": server.plan.seed + 1}
    return msgspec.json.encode(plan).decode()


P = ParamSpec("P")
R = TypeVar("R")

_MODEST = 10  # niceness of low-priority computations


class Worker:
    """One process, which is restarted if it dies or exceeds a time limit.

    Args:
        limit: seconds after which a computation is aborted, so that others can run.
        modest: whether it runs with lower priority than the collector, because nobody waits for its
            results.
    """

    def __init__(self, *, limit: float = 3600.0, modest: bool = True) -> None:
        self._limit, self._modest = limit, modest
        self._pool: ProcessPoolExecutor | None = None
        self._ended = False
        self._turn = asyncio.Lock()

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function of an importable module in this process."""
        call = partial(function, *args, **kwargs)
        async with self._turn:  # one computation at a time, so that a kill aborts only that one
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
        """Kill the process permanently; unfinished work is repeated after a restart."""
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
    """The result or the failure; not the exception, which may be unpicklable or quote replies."""
    try:
        return call()
    except BaseException as error:
        return _Failure(**failure(error))


def _follow(parent: int, modest: bool) -> None:
    """End this process when the collector ends, even if it was killed; ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if modest and hasattr(os, "nice"):
        os.nice(_MODEST)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


PLAN_SECONDS = 60.0
"""Time limit for reading and rehearsing a plan."""
_ID_DIGITS = 16


async def begin_study(
    worker: Worker, sent: dict[str, Any], settings: StudySettings, *, now: Callable[[], float]
) -> tuple[StudyRecord, ModelRecord]:
    """The records of a new study and of its initial model, not stored yet."""
    try:
        begun = await worker.run(begin, sent)
    except WorkFailed as error:
        if error.error != TimeoutError.__name__:
            raise
        begun = f"plan must be one that can be begun within {PLAN_SECONDS:g} seconds"
    if isinstance(begun, str):  # the error text from the worker
        raise bad_plan(begun)
    plan, first = begun
    record = StudyRecord(
        id=plan.hash[:_ID_DIGITS],
        hash=plan.hash,
        plan=msgspec.json.encode(plan.to_dict()).decode(),
        title=plan.title,
        epsilon=plan.epsilon,
        settings=msgspec.json.encode(settings).decode(),
        deadline=settings.deadline,
        created=now(),
        seal=secrets.token_hex(32),
        open=settings.open,
        **first.following,
    )
    return record, first.recorded(record.id, -1, "begin", created=record.created)
