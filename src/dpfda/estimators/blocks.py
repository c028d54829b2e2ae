"""Where the rows of a fit are: in chunks, in files, in blocks of dask. What comes back is sums.

A *block* starts a pass over some of the rows, chunk by chunk: a function without arguments, which a
worker of a cluster may call as well as this process. `Summing` is all that is done to it.
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
"""Starts a new pass over chunks X, or (X, y)."""
Sums = tuple[int, IntArray]
"""How many rows, and what they add up to: all that leaves a block."""


@runtime_checkable
class Blocks(Protocol):
    """Rows in several places: what an engine needs to have to be fitted to by `fit_stream`.

    Which process calls `work` on which block, in which order, and how often it was started again,
    changes no bit.
    """

    def gather(self, work: Callable[[Block], Sums]) -> Iterable[Sums]:
        """`work` of each block, in any order; it can be pickled, and so can what it gives."""
        ...

    def first(self) -> tuple[Any, Any]:
        """A chunk (X, y) with the form of all chunks; its values are not used."""
        ...

    @property
    def rows(self) -> int | None:
        """How many there are, where it is known without a pass."""
        ...


@dataclass(frozen=True)
class InTurn:
    """Blocks that this process goes through, one after the other."""

    blocks: Sequence[Block]
    rows: int | None = None

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Self:
        """Blocks whose rows are counted without a pass where all of them say how many they have."""
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
    """Work on one block, here or on a worker: read and sum its rows. Holds nothing private.

    Attributes:
        reader: an estimator (`CentralEstimator`) without ledger and without a source of noise.
        asked: the conversation, and `look` its question; None, None counts rows.
        grid_points: of curves given as arrays.
    """

    reader: Any
    asked: Conversation[Any] | None = None
    look: AdditiveQuery | None = None
    grid_points: Any = None

    def __call__(self, block: Block) -> Sums:
        """Sums over all chunks."""
        n, totals = 0, np.zeros(0 if self.look is None else self.look.size, dtype=np.int64)
        for X, y in pairs(block):
            read = self.reader._read(X, y, grid_points=self.grid_points, reset=False)
            if self.look is not None:
                held = self.reader._records(self.asked, read)
                totals += self.look.sums(self.look.fitting(held))
            n += count_rows(X)
        return n, totals


def pairs(block: Block) -> Iterator[tuple[Any, Any]]:
    """X and y of each chunk that has rows; a chunk that is not a pair is X alone."""
    for chunk in block():
        X, y = chunk if isinstance(chunk, tuple) and len(chunk) == 2 else (chunk, None)
        if count_rows(X):
            yield X, y


def blank(rows: Any) -> Any:
    """Two rows of the same form without content: zeros, or empty strings."""
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
    """Whether it is a collection of dask, which need not be installed to ask."""
    return hasattr(X, "__dask_graph__")


def merge(parts: Iterable[Sums]) -> Sums:
    """Counts and sums of all blocks, in any order: they are whole numbers."""
    n, totals = 0, None
    for count, sums in parts:
        n, totals = n + count, sums if totals is None else totals + sums
    return n, np.zeros(0, dtype=np.int64) if totals is None else totals
