"""Replies on their way into the storage: how they are checked and committed in groups.

Requests that arrive while a commit is under way share the next one. No request waits for a group to
fill, so a single request is as fast as it can be; under load groups grow, and one sync of the disk
serves many requests. `PendingWrites` counts the requests that wait, and for how long. A request
that waits too long is answered that nothing could be stored; its sender may repeat it without harm.
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

_LARGEST = 2**31 - 1  # number that every database can hold
LONGEST = 12.0  # seconds that a request waits; a lock in the database is waited for at most 10
SILENT = "the database does not answer"
_encode = msgspec.json.Encoder().encode


class Sent(msgspec.Struct, frozen=True, gc=False):
    """A reply as it came: hash of the token, what it says, and a digest of the bytes that said it.

    The digest is keyed with the token itself, which the storage does not have, and covers the
    nonce, which is not kept: neither whoever asks with another token, nor whoever has the token and
    reads the storage, can try which reply it belongs to.
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
        """The same as it is kept: what it says, without nonce, spaces, or digits without end."""
        message = self.message
        number = min(message.ticket, _LARGEST)
        body = _encode(message.kept())
        return NewReply(self.token, study, message.phase, number, self.digest, body)


Arrived = tuple[OpenPhase, ReplyMessage, NewReply]
"""A reply on its way into the storage, and who judges it."""


def store(storage: Storage, arrived: Sequence[Arrived]) -> list[Stored | Refused]:
    """Judge a group of replies phase by phase, and store those that are none's fault."""
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
    """Requests that wait until what they sent is durable.

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
        """Count a request as long as the block lasts."""
        return _Waiting(self, items)

    def begin(self, key: object, items: int) -> None:
        """Somebody waits from now on."""
        self._since[key] = self._clock()
        self.depth += items

    def end(self, key: object, items: int) -> None:
        """They do not wait any more."""
        del self._since[key]
        self.depth -= items

    def oldest(self) -> float:
        """Seconds that the request which came first has waited; 0 if none waits."""
        first = next(iter(self._since.values()), None)
        return 0.0 if first is None else self._clock() - first


class _Waiting:
    """A block in which somebody waits. No generator: each reply has one."""

    __slots__ = ("_items", "_pending")

    def __init__(self, pending: PendingWrites, items: int) -> None:
        self._pending, self._items = pending, items

    def __enter__(self) -> None:
        self._pending.begin(self, self._items)

    def __exit__(self, *_: object) -> None:
        self._pending.end(self, self._items)


class _Request(Generic[T, R]):
    """Items that came together, who waits for them, and since when."""

    __slots__ = ("future", "items", "since")

    def __init__(self, items: Sequence[T], since: float) -> None:
        self.items, self.since = items, since
        self.future: asyncio.Future[list[R | Exception]]
        self.future = asyncio.get_running_loop().create_future()


class GroupCommit(Generic[T, R]):
    """Collects items and hands them to `write` in groups, in a thread.

    A request that has waited for `longest` seconds fails (`Unavailable`). If its commit has begun,
    the commit goes on; otherwise it is not begun.

    Args:
        write: stores a group and returns one result an item, all durable.
        executor: where `write` runs.
        most: a group that has so many items takes no more; 1 commits every request alone. Items
            that came together stay together.
        pending: counts those that wait.
        longest: seconds.
        noted: is given the size of each group that was committed, and the seconds that it took.
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
        """Answer requests that have waited too long; look again when the next one may have.

        There is one timer for all of them, and it looks at few: those that came first.
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
                    if not request.future.done():  # nobody waits for it any more
                        group += request.items
                        self._writing.append(request)
                if not group:
                    continue
                began = time.perf_counter()
                try:
                    results = await loop.run_in_executor(self._executor, self._commit, group)
                    self._noted(len(group), time.perf_counter() - began)
                except Exception as error:  # the executor takes no more work
                    results = [error] * len(group)
                first = 0
                for request in self._writing:
                    size = len(request.items)
                    if not request.future.done():  # the client did not hang up
                        request.future.set_result(results[first : first + size])
                    first += size
        finally:
            self._worker = None
            self._writing = []

    def _commit(self, group: list[T]) -> list[R | Exception]:
        """Results of a group; whatever is wrong with one item, the others are tried alone."""
        try:
            return list(self._write(group))
        except Exception as error:
            if isinstance(error, Unavailable):  # one after the other they would wait for ever
                return [error] * len(group)
            if len(group) == 1:
                return [error]
        return [result for item in group for result in self._commit([item])]


class Threads:
    """The thread that writes into a storage, and those that read.

    Args:
        pending: counts the requests that wait for a write.
    """

    def __init__(self, pending: PendingWrites) -> None:
        self.writer = ThreadPoolExecutor(1, "write")
        self.readers = ThreadPoolExecutor(2, "read")
        self._pending = pending

    async def write(self, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a method that writes, unless it takes too long."""
        with self._pending.waiting():
            return await _in_time(self.in_writer(method, *args, **kwargs))

    async def read(self, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a method that reads, unless it takes too long."""
        return await _in_time(self.in_reader(method, *args, **kwargs))

    def in_writer(
        self, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[R]:
        """Write without a limit on its time, and without counting it as somebody who waits."""
        return _run(self.writer, partial(method, *args, **kwargs))

    def in_reader(
        self, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[R]:
        """Run a read without a time limit."""
        return _run(self.readers, partial(method, *args, **kwargs))

    def shutdown(self) -> None:
        """Take no more work."""
        self.writer.shutdown()
        self.readers.shutdown()


def _run(executor: Executor, call: Callable[[], R]) -> asyncio.Future[R]:
    return asyncio.get_running_loop().run_in_executor(executor, call)


async def _in_time(work: asyncio.Future[R]) -> R:
    work.add_done_callback(_ignore)  # whoever waits may hang up
    done, _ = await asyncio.wait([work], timeout=LONGEST)
    if not done:
        raise Unavailable(SILENT)
    return work.result()


def _ignore(work: asyncio.Future[Any]) -> None:
    """Retrieve an error, so that asyncio does not report it as unhandled."""
    if not work.cancelled():
        work.exception()
