"""Rows on a cluster: dask collections, or blocks that its workers read.

A worker receives a query and returns sums, a few numbers for every block. The result does not
depend on which worker computes which block, on the order, or on restarts; all bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import unquoted_engine
from dpfda.errors import DpfdaError, InvalidData, InvalidParameter, MissingExtra, ProtocolError
from dpfda.estimators.blocks import Block, Sums, blank, is_dask, pairs
from dpfda.estimators.file_block import FileBlock, FrameBlock

try:
    import dask
    from distributed import Client, as_completed
    from distributed.scheduler import KilledWorker
except ModuleNotFoundError as error:
    raise MissingExtra.of(error) or error from None

_PATIENCE = 10  # timeout for the answer of a scheduler, in seconds


@dataclass(frozen=True)
class OnWorkers:
    """Blocks that workers of a scheduler read: functions or files that they can reach.

    Attributes:
        blocks: the blocks, each of which is one task.
        scheduler: the address of a scheduler, or a connected client.
        rows: number of rows, or None if it is unknown.
    """

    blocks: Sequence[Block]
    scheduler: Any
    rows: int | None = None

    def gather(self, work: Callable[[Block], Sums]) -> Iterator[Sums]:
        """The results of all blocks, in the order in which workers finish."""
        with self._client() as client:
            futures = client.map(partial(_kept_in, work), self.blocks, pure=False)
            for future in as_completed(futures, loop=client.loop):
                with _living_workers():
                    found = future.result()
                yield _opened(found)

    def first(self) -> tuple[Any, Any]:
        """Two blank rows in the form of the first block, whose rows stay with the worker."""
        with self._client() as client, _living_workers():
            form = partial(_kept_in, _first)
            found: tuple[Any, Any] = _opened(client.submit(form, self.blocks, pure=False).result())
            return found

    def _client(self) -> AbstractContextManager[Any]:
        if isinstance(self.scheduler, Client):
            return nullcontext(self.scheduler)
        try:
            client = Client(self.scheduler, set_as_default=False, timeout=_PATIENCE)
        except (OSError, ValueError, TypeError):
            rule = "the address of a dask scheduler that answers, or a client"
            raise InvalidParameter("scheduler", rule, self.scheduler) from None
        return client  # type: ignore[no-any-return]


@dataclass(frozen=True)
class OfDask:
    """The blocks of a dask array or dataframe, computed by the current scheduler."""

    X: Any
    y: Any = None

    def __post_init__(self) -> None:
        if self.y is not None and not is_dask(self.y):
            raise InvalidData("y", "a collection of dask, as X is", type(self.y).__name__)

    @property
    def rows(self) -> int | None:
        """The number of rows, if the chunks are known."""
        count = self.X.shape[0]
        return int(count) if isinstance(count, (int, np.integer)) else None

    def gather(self, work: Callable[[Block], Sums]) -> Iterable[Sums]:
        """The results of all blocks."""
        shared = dask.delayed(work, pure=False, traverse=False)
        add_up = dask.delayed(_add_up, pure=False)
        with unquoted_engine(self.X), _living_workers():
            found = dask.compute(*(add_up(shared, pair) for pair in self._pairs()))
        return map(_opened, found)

    def _pairs(self) -> list[Any]:
        """X and y of each block, delayed."""
        if _is_table(self.X) and (self.y is None or _is_table(self.y)):
            # One expression for X and y: dask merges small partitions differently in each.
            known = [self.X] if self.y is None else [self.X, self.y]
            if len({one.npartitions for one in known}) > 1:
                many = [str(one.npartitions) for one in known]
                raise InvalidData("y", f"in as many partitions as X: {many[0]}", many[1])
            how: Any = {"meta": (None, object), "align_dataframes": False}
            paired = self.X.map_partitions(_pair, *known[1:], enforce_metadata=False, **how)
            return list(paired.to_delayed())
        X = _parts(self.X)
        y = [None] * len(X) if self.y is None else _parts(self._beside())
        if len(X) != len(y):
            raise InvalidData("y", f"in as many blocks as X: {len(X)}", f"{len(y)}")
        pair = dask.delayed(_pair, pure=False)
        return [pair(one, other) for one, other in zip(X, y, strict=True)]

    def first(self) -> tuple[Any, Any]:
        """Two blank rows of the same form."""
        return blank(_like(self.X)), None if self.y is None else blank(_like(self.y))

    def _beside(self) -> Any:
        """Targets in the same blocks as rows."""
        known = hasattr(self.y, "rechunk") and hasattr(self.X, "chunks") and self.rows is not None
        return self.y.rechunk({0: self.X.chunks[0]}) if known else self.y


@dataclass(frozen=True)
class OfFrames:
    """The partitions of a dask dataframe as tables, which are read like files.

    Attributes:
        frame: the dataframe.
        like: a file block that defines X and y of a partition.
    """

    frame: Any
    like: FileBlock
    rows: int | None = None

    def gather(self, work: Callable[[Block], Sums]) -> Iterable[Sums]:
        """The results of all partitions."""
        with _living_workers():
            found = dask.compute(*self._tasks(work))
        return map(_opened, found)

    def first(self) -> tuple[Any, Any]:
        """Two blank rows in the form of the first partition that has rows."""
        for task in self._tasks(_form):
            with _living_workers():
                computed = task.compute()
            X, y = _opened(computed)
            if X is not None:
                return X, y
        return None, None

    def _tasks(self, work: Callable[[Block], Any]) -> list[Any]:
        shared = dask.delayed(partial(_of_frame, work, self.like), pure=False, traverse=False)
        return [shared(part) for part in self.frame.to_delayed()]


def _of_frame(work: Callable[[Block], Any], like: FileBlock, frame: Any) -> Any:
    return _kept_in(work, FrameBlock(partial(_alone, frame), like))


def _form(block: Block) -> tuple[Any, Any]:
    return _first([block])


def _kept_in(work: Callable[[Any], Any], given: Any) -> Any:
    """The result of a worker; errors are returned instead of raised.

    When a task raises an error, the worker writes its arguments to the log, and an error of another
    library may quote a value.
    """
    try:
        return work(given)
    except DpfdaError as error:
        return error
    except Exception as error:
        kind = type(error).__name__
        return ProtocolError(f"a worker raised {kind} in a block; fit without scheduler to see it")


@contextmanager
def _living_workers() -> Iterator[None]:
    """State in an error that a worker died; the message of dask names only an internal task."""
    try:
        yield
    except KilledWorker as error:
        tries = error.allowed_failures + 1
        raise DpfdaError(
            f"a worker of the cluster died in a block of rows (attempts: {tries}). Its log states "
            "why, often too little memory: pass smaller blocks or start workers with more memory"
        ) from None


def _opened(found: Any) -> Any:
    if isinstance(found, DpfdaError):
        raise found
    return found


def _pair(X: Any, y: Any = None) -> tuple[Any, Any]:
    return X, y


def _is_table(collection: Any) -> bool:
    return hasattr(collection, "map_partitions") and not hasattr(collection, "rechunk")


def _add_up(work: Callable[[Block], Sums], chunk: Any) -> Any:
    return _kept_in(work, partial(_alone, chunk))


def _alone(one: Any) -> list[Any]:
    return [one]


def _first(blocks: Sequence[Block]) -> tuple[Any, Any]:
    """The form of the first chunk with rows, found on a worker."""
    for block in blocks:
        for X, y in pairs(block):
            return blank(X), None if y is None else blank(y)
    return None, None


def _parts(collection: Any) -> list[Any]:
    """The blocks of a collection, each with complete rows."""
    if hasattr(collection, "rechunk"):
        across = dict.fromkeys(range(1, collection.ndim), -1)
        collection = collection.rechunk(across) if across else collection
    return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))


def _like(collection: Any) -> Any:
    """An empty table, or an empty array with the same columns."""
    if hasattr(collection, "rechunk"):
        return np.zeros((0, *collection.shape[1:]), dtype=collection.dtype)
    return collection._meta
