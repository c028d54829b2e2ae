"""The base of estimators of a curator's rows: read, ask one conversation about sums, conclude.

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

    A person's record is one row of each of `rows`. Curves of several channels have rows, a bound
    and a center for each. Sparse curves have a public density of their times. What is `public` of
    them goes on the release's record.
    """

    rows: Records
    grid: Grid = ()
    bounds: tuple[float, ...] = (1.0,)
    center: FloatArray = np.zeros(1)
    density: FloatArray = np.zeros(0)
    public: Mapping[str, Any] = MappingProxyType({})


@dataclass(eq=False, repr=False, kw_only=True)
class CentralEstimator(PrivateEstimator):
    """Holds public parameters; `fit` reads data and asks one conversation about them.

    A subclass defines the steps `_read`, `_conversation`, `_records` and `_keep` (or `_conclude`).
    """

    _fills_gaps: ClassVar[bool] = False  # whether X are curves, whose missing points are filled in

    delta: float = DELTA
    n_features_in_: int = field(init=False)

    def fit(self, X: Any, y: Any = None, *, grid_points: Any = None, groups: Any = None) -> Self:
        """Release it from all records.

        Args:
            X: a row a record, in any form that this estimator reads.
            y: what belongs to each row, where the estimator needs it.
            grid_points: the points of curves given as an array; equidistant by default.
            groups: the person behind each row, where people have several: ε is per person.
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
        """Private rows as numbers, refused by their form alone.

        Args:
            X: as in `fit`.
            y: as in `fit`.
            grid_points: as in `fit`.
            reset: whether these rows show the form of all.
            least: the fewest rows.
        """

    @abstractmethod
    def _conversation(self, read: HeldRecords, n: int) -> Any:
        """The queries about n such records, from public parameters."""

    def _records(self, asked: Any, read: HeldRecords) -> Records:
        """One row at a time, as the questions need them."""
        return read.rows

    def _conclude(
        self,
        asked: Any,
        read: HeldRecords,
        result: Any,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        """Set the fitted attributes from a public result; of what was read, its public facts."""
        return self._keep(asked, read, replace(result, guarantee=guarantee))

    def _keep(self, asked: Any, read: HeldRecords, found: Any) -> Self:
        """Set the fitted attributes from a release with its guarantee."""
        self.release_: Release = self._stamped(asked, read, found)
        return self

    def _names_of_y(self) -> Sequence[Any] | None:
        """The public labels that y has, if it has labels; refused where they were to be found.

        Nobody sees the rows of all blocks or sites together.
        """
        return None

    # -- what they share -----------------------------------------------------------------------

    @property
    def _budget(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit}

    def _form(self, X: Any, y: Any, *, grid_points: Any) -> HeldRecords:
        """The public facts of rows like these: their shape, never a value."""
        read = self._read(X, y, grid_points=grid_points, reset=True)
        return read._replace(rows=tuple(part[:0] for part in read.rows))

    def _one_each(self, rows: Records, groups: Any) -> Records:
        """For each person one of their rows, chosen by public randomness."""
        kept = one_row_each(groups, seed=self._public_seed(), rows=len(rows[0]))
        return tuple(part[kept] for part in rows)

    def _stamped(self, asked: Any, read: HeldRecords, found: Any) -> Any:
        """A release with public parameters first on its record, and its verdict among warnings."""
        parameters = {"n": asked.n, **read.public, **found.parameters}
        self.guarantee_: Guarantee = found.guarantee
        known = replace(found, parameters=parameters)
        told = known.verdict.added_to(known.warnings)
        self._warn(told, known.verdict.sentences)
        return replace(known, warnings=told)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._fills_gaps
        return tags

    # -- rows in several places ----------------------------------------------------------------

    def _fit_blocks(self, blocks: Blocks, *, grid_points: Any) -> Self:
        """A fit to rows that this process reads one after the other, or does not see."""
        names = None if isinstance(blocks, InTurn) else self._names_of_y()
        X, y = blocks.first()
        if X is None:
            raise InvalidParameter("chunks", "a function that starts a pass over rows", "no row")
        if names is not None:
            y = np.array([names[0]] * 2)
        if count_rows(X) == 1:  # a form shows in two rows; of their values nothing is used
            X, y = (None if part is None else take(part, np.zeros(2, int)) for part in (X, y))
        form = self._form(X, y, grid_points=grid_points)
        work = Summing(self._reader(), grid_points=grid_points)

        def read() -> int:
            """Go through all rows, so that what is refused is refused before it is paid for."""
            return merge(blocks.gather(work))[0]

        n = read() if blocks.rows is None else blocks.rows
        asked, source = self._conversation(form, n), self._source()

        def sums(look: AdditiveQuery) -> Any:
            return merge(blocks.gather(replace(work, asked=asked, look=look)))

        first = None if blocks.rows is None else read
        result, holder = gather(asked, sums, n=n, first=first, source=source, ledger=self.ledger)
        promise = asked.guarantee.drawn_from(source)
        return self._conclude(asked, form, result, holder.transcript, promise)

    def _reader(self) -> Self:
        """A copy that can read rows and do nothing else: what a worker gets."""
        reader = copy.copy(self)
        reader.ledger, reader.random_state = None, 0 if self._is_simulation else None
        return reader

    def _file(self, target: str | None) -> FileBlock:
        """A file whose columns are those that public ranges name."""
        ranges = getattr(self, "feature_ranges", None)
        public = PublicColumns.of(ranges) if isinstance(ranges, Mapping) else None
        return FileBlock(Path(), target, public, None if target is None else self._names_of_y())


def _cluster() -> Any:
    """The module that needs dask, loaded on first use."""
    return import_module("dpfda.estimators.cluster")
