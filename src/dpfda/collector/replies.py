"""Storing replies: how they are checked and committed in groups.

Requests that arrive during a commit share the next one. No request waits for a group to fill, so a
single request has no delay. Under load the groups grow, and one sync of the disk serves many
requests. `PendingWrites` counts the waiting requests and measures their waiting times. A request
that waits too long gets the answer that nothing could be stored; its sender may safely repeat it.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, ParamSpec, Self, TypeVar

import msgspec

from dpfda.collector.phases import OpenPhase
from dpfda.collector.refusal import Refused
from dpfda.collector.storage.base import NewReply, Storage, Stored, Unavailable
from dpfda.protocol.wire import ReplyMessage, token_hash

_LARGEST = 2**31 - 1  # largest integer of every database
LONGEST = 12.0  # seconds; longer than the 10 seconds that the database waits for a lock
SILENT = "the database does not answer"
_encode = msgspec.json.Encoder().encode


class Sent(msgspec.Struct, frozen=True, gc=False):
    """A received reply: hash of the token, message, and digest of its bytes.

    The digest is keyed with the token, which is not stored, and covers the nonce, which is not
    stored either. So neither a person with another token, nor a person with the token and access to
    the storage, can find out to which reply a digest belongs.
    """

    token: bytes
    message: ReplyMessage
    digest: bytes

    @classmethod
    def by(
        cls, token: str, message: ReplyMessage, body: bytes, *, hashed: bytes | None = None
    ) -> Self:
        """The reply of the person with this token; `hashed` is the hash of the token, if known."""
        digest = hmac.digest(token.encode(), body, "sha256")
        return cls(hashed or token_hash(token), message, digest)

    def stored(self, study: str) -> NewReply:
        """The stored form of the reply, without nonce and in canonical JSON."""
        message = self.message
        number = min(message.ticket, _LARGEST)
        body = _encode(message.kept())
        return NewReply(self.token, study, message.phase, number, self.digest, body)


Arrived = tuple[OpenPhase, ReplyMessage, NewReply]
"""A reply to store, with the phase that checks it."""


def store(storage: Storage, arrived: Sequence[Arrived]) -> list[Stored | Refused]:
    """Check a group of replies phase by phase, and store the valid ones."""
    refused: dict[int, Refused] = {}
    for phase in dict.fromkeys(phase for phase, *_ in arrived):
        places = [place for place, one in enumerate(arrived) if one[0] is phase]
        verdicts = phase.judge([arrived[place][1] for place in places])
        for place, verdict in zip(places, verdicts, strict=True):
            if verdict is not None:
                refused[place] = verdict
    good = [reply for place, (*_, reply) in enumerate(arrived) if place not in refused]
    stored = iter(storage.add_replies(good) if good else [])
    return [refused[place] if place in refused else next(stored) for place in range(len(arrived))]


P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class PendingWrites:
    """The requests that wait until their data are durable.

    Examples:
        >>> clock = iter([0.0, 2.5])
        >>> pending = PendingWrites(clock=lambda: next(clock))
        >>> with pending.waiting(3):
        ...     pending.depth, pending.oldest()
        (3, 2.5)
        >>> pending.oldest()
        0.0
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[object, float] = {}  # in the order of arrival
        self.depth = 0

    def waiting(self, items: int = 1) -> _Waiting:
        """Count a request during the block."""
        return _Waiting(self, items)

    def begin(self, key: object, items: int) -> None:
        """Note that a request begins to wait."""
        self._since[key] = self._clock()
        self.depth += items

    def end(self, key: object, items: int) -> None:
        """Note that a request no longer waits."""
        del self._since[key]
        self.depth -= items

    def oldest(self) -> float:
        """Seconds that the oldest waiting request has waited; 0 if there is none."""
        first = next(iter(self._since.values()), None)
        return 0.0 if first is None else self._clock() - first


class _Waiting:
    """Context of a waiting request; a class, because it is faster than a generator."""

    __slots__ = ("_items", "_pending")

    def __init__(self, pending: PendingWrites, items: int) -> None:
        self._pending, self._items = pending, items

    def __enter__(self) -> None:
        self._pending.begin(self, self._items)

    def __exit__(self, *_: object) -> None:
        self._pending.end(self, self._items)


class _Request(Generic[T, R]):
    """Items of one request, with the time of arrival and the future of the result."""

    __slots__ = ("future", "items", "since")

    def __init__(self, items: Sequence[T], since: float) -> None:
        self.items, self.since = items, since
        self.future: asyncio.Future[list[R | Exception]]
        self.future = asyncio.get_running_loop().create_future()


class GroupCommit(Generic[T, R]):
    """Collects items and hands them to `write` in groups, in a thread.

    A request that has waited for `longest` seconds fails (`Unavailable`). A commit that has begun
    continues; otherwise it does not begin.

    Args:
        write: stores a group durably and returns one result per item.
        executor: executor that runs `write`.
        most: number of items from which a group is full; 1 commits every request separately. Items
            of one request stay together.
        pending: counts the waiting requests.
        longest: time limit in seconds.
        noted: called with the size of each committed group and its duration in seconds.
    """

    def __init__(
        self,
        write: Callable[[Sequence[T]], list[R]],
        executor: Executor,
        *,
        most: int = 256,
        pending: PendingWrites | None = None,
        longest: float = LONGEST,
        noted: Callable[[int, float], None] = lambda _, __: None,
    ) -> None:
        self._write = write
        self._executor = executor
        self._most = most
        self._pending = pending or PendingWrites()
        self._longest = longest
        self._waiting: deque[_Request[T, R]] = deque()
        self._writing: list[_Request[T, R]] = []
        self._worker: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._noted = noted

    async def add(self, item: T) -> R:
        """Store one item; returns when it is durable."""
        (result,) = await self.add_all((item,))
        if isinstance(result, Exception):
            raise result
        return result

    async def add_all(self, items: Sequence[T]) -> list[R | Exception]:
        """Store some items in one commit; return the result or the error of each item."""
        request: _Request[T, R] = _Request(items, time.monotonic())
        self._waiting.append(request)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(self._longest, self._expire)
        with self._pending.waiting(len(items)):
            return await request.future

    def _expire(self) -> None:
        """Fail requests that have waited too long, and restart the timer for the next one.

        One timer serves all requests; it checks only the oldest ones.
        """
        begun_before = time.monotonic() - self._longest
        for request in (*self._writing, *self._waiting):
            if request.since > begun_before:
                pause = request.since - begun_before
                self._watch = asyncio.get_running_loop().call_later(pause, self._expire)
                return
            if not request.future.done():
                request.future.set_exception(Unavailable(SILENT))
        self._watch = None

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                group: list[T] = []
                self._writing = []
                while self._waiting and len(group) < self._most:
                    request = self._waiting.popleft()
                    if not request.future.done():  # the request has not timed out or been cancelled
                        group += request.items
                        self._writing.append(request)
                if not group:
                    continue
                began = time.perf_counter()
                try:
                    results = await loop.run_in_executor(self._executor, self._commit, group)
                    self._noted(len(group), time.perf_counter() - began)
                except Exception as error:  # the executor was shut down
                    results = [error] * len(group)
                first = 0
                for request in self._writing:
                    size = len(request.items)
                    if not request.future.done():  # the client did not disconnect
                        request.future.set_result(results[first : first + size])
                    first += size
        finally:
            self._worker = None
            self._writing = []

    def _commit(self, group: list[T]) -> list[R | Exception]:
        """Commit a group; after an error, commit its items separately."""
        try:
            return list(self._write(group))
        except Exception as error:
            if isinstance(error, Unavailable):  # separate commits would each wait again
                return [error] * len(group)
            if len(group) == 1:
                return [error]
        return [result for item in group for result in self._commit([item])]


class Threads:
    """The threads of a storage: one that writes, and two that read.

    Args:
        pending: counts requests that wait for a write.
    """

    def __init__(self, pending: PendingWrites) -> None:
        self.writer = ThreadPoolExecutor(1, "write")
        self.readers = ThreadPoolExecutor(2, "read")
        self._pending = pending

    async def write(self, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a writing method, with a time limit."""
        with self._pending.waiting():
            return await _in_time(self.in_writer(method, *args, **kwargs))

    async def read(self, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a reading method, with a time limit."""
        return await _in_time(self.in_reader(method, *args, **kwargs))

    def in_writer(
        self, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[R]:
        """Run a writing method without a time limit, and without counting it as waiting."""
        return _run(self.writer, partial(method, *args, **kwargs))

    def in_reader(
        self, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[R]:
        """Run a read without a time limit."""
        return _run(self.readers, partial(method, *args, **kwargs))

    def shutdown(self) -> None:
        """Shut the threads down."""
        self.writer.shutdown()
        self.readers.shutdown()


def _run(executor: Executor, call: Callable[[], R]) -> asyncio.Future[R]:
    return asyncio.get_running_loop().run_in_executor(executor, call)


async def _in_time(work: asyncio.Future[R]) -> R:
    work.add_done_callback(_ignore)  # the waiting client may disconnect
    done, _ = await asyncio.wait([work], timeout=LONGEST)
    if not done:
        raise Unavailable(SILENT)
    return work.result()


def _ignore(work: asyncio.Future[Any]) -> None:
    """Retrieve an error, so that asyncio does not report it as unhandled."""
    if not work.cancelled():
        work.exception()
