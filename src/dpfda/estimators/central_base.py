"""The base of estimators for the rows of a curator: read, query sums, compute the result.

    rows ── _read ──> numbers ── _records ──> sums ── merge, in any order ──> answer with noise
                        └ shapes only ── _conversation ──> questions ──────────┘    │
                                                            _conclude <─────────────┘

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
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.functions import Grid
from dpfda.central.release import Release
from dpfda.curate import curate, gather
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidParameter
from dpfda.estimators.base import PrivateEstimator
from dpfda.estimators.blocks import Blocks, InTurn, Summing, is_dask, merge
from dpfda.estimators.file_block import FileBlock, blocks_of
from dpfda.estimators.reading import count_rows, in_memory, take
from dpfda.privacy.cost import DELTA
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.holder import Exchange
from dpfda.protocol.public_randomness import one_row_each
from dpfda.protocol.query import AdditiveQuery, Records


class HeldRecords(NamedTuple):
    """Records as rows about a public center, with their public facts.

    The record of a person consists of one row of each entry of `rows`. Curves with several channels
    have rows, a bound and a center for each channel. Sparse curves have a public density of their
    times. The facts in `public` become parameters of the release.
    """

    rows: Records
    grid: Grid = ()
    bounds: tuple[float, ...] = (1.0,)
    center: FloatArray = np.zeros(1)
    density: FloatArray = np.zeros(0)
    public: Mapping[str, Any] = MappingProxyType({})


@dataclass(eq=False, repr=False, kw_only=True)
class CentralEstimator(PrivateEstimator):
    """An estimator with public parameters, whose `fit` asks the queries of one conversation.

    A subclass defines the steps `_read`, `_conversation`, `_records` and `_keep` (or `_conclude`).
    """

    _fills_gaps: ClassVar[bool] = False  # whether X are curves, whose missing points are filled

    delta: float = DELTA
    n_features_in_: int = field(init=False)

    def fit(self, X: Any, y: Any = None, *, grid_points: Any = None, groups: Any = None) -> Self:
        """Fit privately to all records.

        Args:
            X: one row for each record, in any form that this estimator reads.
            y: targets, labels or groups of the rows, if the estimator needs them.
            grid_points: the points of curves given as an array; equidistant by default.
            groups: the person of each row, if people have several rows; ε is per person.
        """
        self._require_raw_rows()
        X, y = in_memory(X), in_memory(y)
        if is_dask(X):
            if groups is not None:
                rule = "left out for dask: rows of one person may lie in different blocks"
                raise InvalidParameter("groups", rule, type(groups).__name__)
            return self._fit_blocks(_cluster().OfDask(X, y), grid_points=grid_points)
        read = self._read(X, y, grid_points=grid_points, reset=True, least=2)
        if groups is not None:
            read = read._replace(rows=self._one_each(read.rows, groups))
        asked = self._conversation(read, len(read.rows[0]))
        records, source = self._records(asked, read), self._source()
        result, curator = curate(asked, records, source=source, ledger=self.ledger)
        promise = asked.guarantee.drawn_from(source)
        return self._conclude(asked, read, result, curator.transcript, promise)

    def fit_stream(
        self,
        chunks: Any,
        *,
        target: str | None = None,
        grid_points: Any = None,
        scheduler: Any = None,
    ) -> Self:
        """Fit from chunks X, or (X, y), with little memory; all bits are the same as with `fit`.

        Args:
            chunks: one of the following, or several:

                * a function that yields chunks X or (X, y); with `target`, frames;
                * a path, folder, pattern (``lake/*.parquet``) or address (``s3://…``) of files:
                  CSV, TSV, Parquet, Feather or NPZ;
                * a frame: a `pyarrow.dataset`, a table of pyarrow, pandas or polars (also lazy), a
                  relation of DuckDB or a collection of dask;
                * `Blocks` of another engine.

                Every query needs one pass over the rows. A first pass reads and counts them; their
                number is public.
            target: the column of files and frames that is y.
            grid_points: as in `fit`.
            scheduler: address of a dask scheduler, or its client. Workers read the blocks and send
                only sums; noise is drawn in this process. By default this process reads.
        """
        like = self._file(target)
        if is_dask(chunks):
            chunks = _cluster().OfFrames(chunks, like)
        elif not isinstance(chunks, Blocks):
            blocks = blocks_of(chunks, like)
            chunks = InTurn.of(blocks)
            if scheduler is not None:
                chunks = _cluster().OnWorkers(blocks, scheduler)
        return self._fit_blocks(chunks, grid_points=grid_points)

    # -- the steps -----------------------------------------------------------------------------

    @abstractmethod
    def _read(
        self, X: Any, y: Any, *, grid_points: Any, reset: bool, least: int = 1
    ) -> HeldRecords:
        """Private rows as numbers; errors depend on their form only.

        Args:
            X: as in `fit`.
            y: as in `fit`.
            grid_points: as in `fit`.
            reset: whether these rows define the form of all rows.
            least: smallest number of rows.
        """

    @abstractmethod
    def _conversation(self, read: HeldRecords, n: int) -> Any:
        """The queries about n such records, from public parameters."""

    def _records(self, asked: Any, read: HeldRecords) -> Records:
        """The records in the form that the queries need, computed row by row."""
        return read.rows

    def _conclude(
        self,
        asked: Any,
        read: HeldRecords,
        result: Any,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        """Set the fitted attributes from the public result and the public facts of `read`."""
        return self._keep(asked, read, replace(result, guarantee=guarantee))

    def _keep(self, asked: Any, read: HeldRecords, found: Any) -> Self:
        """Set the fitted attributes from a release with its guarantee."""
        self.release_: Release = self._stamped(asked, read, found)
        return self

    def _names_of_y(self) -> Sequence[Any] | None:
        """The public labels of y, or None if y has no labels.

        They must be given, because no process sees the rows of all blocks or sites.
        """
        return None

    # -- helpers of subclasses -----------------------------------------------------------------

    @property
    def _budget(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit}

    def _form(self, X: Any, y: Any, *, grid_points: Any) -> HeldRecords:
        """The public facts of rows like these, which depend on their shape only."""
        read = self._read(X, y, grid_points=grid_points, reset=True)
        return read._replace(rows=tuple(part[:0] for part in read.rows))

    def _one_each(self, rows: Records, groups: Any) -> Records:
        """One row of each person, chosen by public randomness."""
        kept = one_row_each(groups, seed=self._public_seed(), rows=len(rows[0]))
        return tuple(part[kept] for part in rows)

    def _stamped(self, asked: Any, read: HeldRecords, found: Any) -> Any:
        """The release with all public parameters, and with the verdict among its warnings."""
        parameters = {"n": asked.n, **read.public, **found.parameters}
        self.guarantee_: Guarantee = found.guarantee
        known = replace(found, parameters=parameters)
        warnings = known.verdict.added_to(known.warnings)
        self._warn(warnings, known.verdict.sentences)
        return replace(known, warnings=warnings)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._fills_gaps
        return tags

    # -- rows in several places ----------------------------------------------------------------

    def _fit_blocks(self, blocks: Blocks, *, grid_points: Any) -> Self:
        """Fit to blocks of rows, which this process or workers read."""
        names = None if isinstance(blocks, InTurn) else self._names_of_y()
        X, y = blocks.first()
        if X is None:
            raise InvalidParameter("chunks", "a function that starts a pass over rows", "no row")
        if names is not None:
            y = np.array([names[0]] * 2)
        if count_rows(X) == 1:  # two rows define the form; their values are not used
            X, y = (None if part is None else take(part, np.zeros(2, int)) for part in (X, y))
        form = self._form(X, y, grid_points=grid_points)
        work = Summing(self._reader(), grid_points=grid_points)

        def read() -> int:
            """Read all rows, so that invalid rows raise an error before the budget is spent."""
            return merge(blocks.gather(work))[0]

        n = read() if blocks.rows is None else blocks.rows
        asked, source = self._conversation(form, n), self._source()

        def sums(query: AdditiveQuery) -> Any:
            return merge(blocks.gather(replace(work, conversation=asked, query=query)))

        first = None if blocks.rows is None else read
        result, holder = gather(asked, sums, n=n, first=first, source=source, ledger=self.ledger)
        promise = asked.guarantee.drawn_from(source)
        return self._conclude(asked, form, result, holder.transcript, promise)

    def _reader(self) -> Self:
        """A copy for workers, which can only read rows."""
        reader = copy.copy(self)
        reader.ledger, reader.random_state = None, 0 if self._is_simulation else None
        return reader

    def _file(self, target: str | None) -> FileBlock:
        """A template of files with the columns of the public ranges."""
        ranges = getattr(self, "feature_ranges", None)
        public = PublicColumns.of(ranges) if isinstance(ranges, Mapping) else None
        return FileBlock(Path(), target, public, None if target is None else self._names_of_y())


def _cluster() -> Any:
    """The module that needs dask, loaded on first use."""
    return import_module("dpfda.estimators.cluster")
