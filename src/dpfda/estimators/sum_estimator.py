"""The base of estimators whose fit is one conversation over sums of rows.

    sums(block) ── merge, in any order ──> release: noise once, in the process that sent the query

| rows are | transport | noise |
|---|---|---|
| in memory | `fit` (`curate`) | the caller's |
| in chunks, files, dask blocks | `fit_stream` (`estimators/blocks.py`) | the caller's |
| at sites, simulated in one process | `dpfda.rehearse` | a share of each site |

Sums are integers, so every split of the rows gives the same bits.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpfda.curate import gather
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidParameter
from dpfda.estimators.base import PrivateEstimator
from dpfda.estimators.blocks import Blocks, InTurn, Summing, is_dask, merge
from dpfda.estimators.curve_reader import count_rows, take
from dpfda.estimators.file_block import FileBlock, blocks_of
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.holder import Exchange
from dpfda.protocol.query import AdditiveQuery, Records


class SumEstimator(PrivateEstimator):
    """An estimator in steps: the form of rows, what is asked, records, what is concluded."""

    def fit_stream(
        self,
        chunks: Any,
        *,
        target: str | None = None,
        grid_points: Any = None,
        scheduler: Any = None,
    ) -> Self:
        """Fit from chunks X, or (X, y), in little memory, to the same bits as `fit`.

        Args:
            chunks: what starts a new pass over rows, or several of these:

                * a function that yields chunks X or (X, y); with `target`, frames;
                * a path, folder, pattern (``lake/*.parquet``) or address (``s3://…``) of files:
                  CSV, TSV, Parquet, Feather or NPZ;
                * a frame: a `pyarrow.dataset`, a table of pyarrow, pandas or polars (also lazy), a
                  relation of DuckDB or a collection of dask;
                * `Blocks` of another engine.

                There is a pass for every question, and a first one that reads and counts rows:
                their number is public.
            target: of files and frames, the column that is y.
            grid_points: as in `fit`.
            scheduler: address of a dask scheduler, or its client: its workers read the blocks, all
                that they send is sums, and noise is drawn here. By default this process reads.
        """
        like = self._file(Path(), target)
        if is_dask(chunks):
            chunks = _cluster().OfFrames(chunks, like)
        if isinstance(chunks, Blocks):
            return self._fit_afar(chunks, grid_points=grid_points)
        blocks = blocks_of(chunks, like)
        if scheduler is not None:
            return self._fit_afar(_cluster().OnWorkers(blocks, scheduler), grid_points=grid_points)
        return self._fit_blocks(InTurn.of(blocks), grid_points=grid_points)

    def _file(self, path: Path, target: str | None) -> FileBlock:
        """A file whose columns are those that public ranges name."""
        ranges = getattr(self, "feature_ranges", None)
        public = PublicColumns.of(ranges) if isinstance(ranges, Mapping) else None
        return FileBlock(path, target, public, None if target is None else self._names_of_y())

    def _fit_dask(self, X: Any, y: Any, *, grid_points: Any, groups: Any) -> Self:
        """A fit to collections of dask."""
        if groups is not None:
            rule = "left out for dask: rows of one person may lie in different blocks"
            raise InvalidParameter("groups", rule, type(groups).__name__)
        return self._fit_afar(_cluster().OfDask(X, y), grid_points=grid_points)

    def _fit_afar(self, blocks: Blocks, *, grid_points: Any) -> Self:
        """A fit to rows that this process does not see."""
        names, (X, y) = self._names_of_y(), blocks.first()
        if names is not None:
            y = np.array([names[0]] * 2)
        return self._fit_like(X, y, blocks, grid_points=grid_points)

    def _fit_blocks(self, blocks: Blocks, *, grid_points: Any) -> Self:
        """A fit to rows that this process reads."""
        return self._fit_like(*blocks.first(), blocks, grid_points=grid_points)

    def _fit_like(self, X: Any, y: Any, blocks: Blocks, *, grid_points: Any) -> Self:
        """A fit to rows of the form of X and y."""
        if X is None:
            raise InvalidParameter("chunks", "a function that starts a pass over rows", "no row")
        if count_rows(X) == 1:  # a form shows in two rows; of their values nothing is used
            X, y = (None if part is None else take(part, np.zeros(2, int)) for part in (X, y))
        form = self._form(X, y, grid_points=grid_points)
        work = Summing(self._reader(), grid_points=grid_points)

        def read() -> int:
            """Go through all rows, so that what is refused is refused before it is paid for."""
            return merge(blocks.gather(work))[0]

        n = read() if blocks.rows is None else blocks.rows
        asked, source = self._asks(form, rows=n), self._source()

        def sums(look: AdditiveQuery) -> Any:
            return merge(blocks.gather(replace(work, asked=asked, look=look)))

        first = None if blocks.rows is None else read
        result, holder = gather(asked, sums, n=n, first=first, source=source, ledger=self.ledger)
        promise = asked.guarantee.drawn_from(source)
        transcript = holder.transcript
        return self._concluded(asked, form, result, transcript=transcript, guarantee=promise)

    def _reader(self) -> Self:
        """A copy that can read rows and do nothing else: what a worker gets."""
        reader = copy.copy(self)
        reader.ledger, reader.random_state = None, 0 if self._is_simulation else None
        return reader

    @abstractmethod
    def _form(self, X: Any, y: Any, *, grid_points: Any) -> Any:
        """The public facts of rows like these: their shape, never a value."""

    @abstractmethod
    def _asks(self, form: Any, *, rows: int) -> Conversation[Any]:
        """The queries about this many rows of that form, from public parameters alone."""

    @abstractmethod
    def _chunk(self, X: Any, y: Any, *, grid_points: Any) -> Any:
        """Private rows of that form as numbers; all are read once before anything is paid for."""

    @abstractmethod
    def _held(self, asked: Any, chunk: Any) -> Records:
        """The same, one row at a time, as the questions need them."""

    @abstractmethod
    def _concluded(
        self,
        asked: Any,
        form: Any,
        result: Any,
        *,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        """Set the fitted attributes from a public result."""

    def _names_of_y(self) -> Sequence[Any] | None:
        """The public labels that y has, if it has labels; refused where they were to be found.

        Nobody sees the rows of all blocks or sites together.
        """
        return None


def _cluster() -> Any:
    """The module that needs dask, loaded on first use."""
    return import_module("dpfda.estimators.cluster")
