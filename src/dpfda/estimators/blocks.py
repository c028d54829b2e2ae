"""Rows of a fit in chunks, in files or in blocks of dask; each block returns only sums.

A *block* is a function without arguments that starts a pass over some of the rows, chunk by chunk.
This process or a worker of a cluster may call it. `Summing` is the only computation on a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from dpfda._validate import IntArray
from dpfda.errors import InvalidData
from dpfda.estimators.reading import count_rows
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.query import AdditiveQuery

Block = Callable[[], Iterable[Any]]
"""A function that starts a new pass over chunks X, or (X, y)."""
Sums = tuple[int, IntArray]
"""The number of rows and their sums, which are the only output of a block."""


@runtime_checkable
class Blocks(Protocol):
    """Rows in several places: the interface of engines for `fit_stream`.

    The result does not depend on which process calls `work` on which block, on the order, or on
    restarts; all bits are the same.
    """

    def gather(self, work: Callable[[Block], Sums]) -> Iterable[Sums]:
        """The results of `work` on each block, in any order; `work` and results can be pickled."""
        ...

    def first(self) -> tuple[Any, Any]:
        """A chunk (X, y) with the form of all chunks; its values are not used."""
        ...

    @property
    def rows(self) -> int | None:
        """The number of rows, or None if it is not known without a pass."""
        ...


@dataclass(frozen=True)
class InTurn:
    """Blocks that this process reads, one after the other."""

    blocks: Sequence[Block]
    rows: int | None = None

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Self:
        """Blocks with the total number of rows, if all of them state their number."""
        counts = [getattr(block, "rows", None) for block in blocks]
        known = [count for count in counts if count is not None]
        return cls(blocks, sum(known) if known and len(known) == len(blocks) else None)

    def gather(self, work: Callable[[Block], Sums]) -> Iterator[Sums]:
        """One block at a time."""
        return map(work, self.blocks)

    def first(self) -> tuple[Any, Any]:
        """The first chunk with a row in it."""
        for block in self.blocks:
            for X, y in pairs(block):
                return X, y
        return None, None


@dataclass(frozen=True)
class Summing:
    """The work on one block, here or on a worker: read and sum its rows. It holds no private data.

    Attributes:
        reader: an estimator (`CentralEstimator`) without ledger and without a source of noise.
        conversation: the conversation; None to count rows only.
        query: the query of the conversation; None to count rows only.
        grid_points: grid of curves given as arrays.
    """

    reader: Any
    conversation: Conversation[Any] | None = None
    query: AdditiveQuery | None = None
    grid_points: Any = None

    def __call__(self, block: Block) -> Sums:
        """Sums over all chunks."""
        query = self.query
        n, totals = 0, np.zeros(0 if query is None else query.size, dtype=np.int64)
        for X, y in pairs(block):
            read = self.reader._read(X, y, grid_points=self.grid_points, reset=False)
            if query is not None:
                records = self.reader._records(self.conversation, read)
                totals += query.sums(query.fitting(records))
            n += count_rows(X)
        return n, totals


def pairs(block: Block) -> Iterator[tuple[Any, Any]]:
    """X and y of each chunk that has rows; a chunk that is not a pair consists of X only."""
    for chunk in block():
        X, y = chunk if isinstance(chunk, tuple) and len(chunk) == 2 else (chunk, None)
        if count_rows(X):
            yield X, y


def blank(rows: Any) -> Any:
    """Two rows of the same form without data: zeros, or empty strings."""
    if hasattr(rows, "columns"):
        columns = {name: _blanks(np.asarray(rows[name]).dtype.kind) for name in rows.columns}
        return type(rows)(columns)
    if hasattr(rows, "to_frame"):  # one column of a table
        return _blanks(np.asarray(rows).dtype.kind)
    if not hasattr(rows, "shape"):
        raise InvalidData(
            "X", "an array or a table, because rows are read in blocks", type(rows).__name__
        )
    return np.zeros((2, *rows.shape[1:])) if rows.dtype.kind in "fiub" else _blanks("O")


def _blanks(kind: str) -> Any:
    return np.zeros(2) if kind in "fiub" else np.array(["", ""], dtype=object)


def is_dask(X: Any) -> bool:
    """Whether X is a collection of dask; dask need not be installed."""
    return hasattr(X, "__dask_graph__")


def merge(parts: Iterable[Sums]) -> Sums:
    """Add counts and sums of all blocks; they are integers, so the order does not matter."""
    n, totals = 0, None
    for count, sums in parts:
        n, totals = n + count, sums if totals is None else totals + sums
    return n, np.zeros(0, dtype=np.int64) if totals is None else totals
