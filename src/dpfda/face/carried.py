"""The contract of every estimator whose fit is one conversation, whoever holds the records.

    sums(block) ── merge, in any order ──> release: noise once, in the process that asked

| rows are | carrier | noise |
|---|---|---|
| in memory | `fit` (`curate`) | the caller's |
| in chunks, files, dask blocks | `fit_stream` (`face.blocks`) | the caller's |
| at sites, rehearsed in one process | `dpfda.rehearse` | a share of each site |

Sums are whole numbers, so that every split of the rows gives the same bits.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from dpfda.curate import gather
from dpfda.errors import InvalidParameter
from dpfda.face.blocks import Block, Blocks, InTurn, Summing, merge
from dpfda.face.curves import count_rows, take
from dpfda.face.estimator import PrivateEstimator
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.holder import Exchange
from dpfda.protocol.query import AdditiveLook, Records


class Carried(PrivateEstimator):
    """An estimator in steps: the form of rows, what is asked, records, what is concluded."""

    def fit_stream(self, chunks: Block, *, grid_points: Any = None) -> Self:
        """Fit from chunks X, or (X, y), in little memory, to the same bits as `fit`.

        Args:
            chunks: a function that starts a new pass, of which there is one for every question;
                rows are read and counted in the first one, their number is public.
            grid_points: as in `fit`.
        """
        return self._fit_blocks(InTurn([chunks]), grid_points=grid_points)

    def _fit_blocks(self, blocks: Blocks, *, grid_points: Any) -> Self:
        X, y = blocks.first()
        if X is None:
            raise InvalidParameter("chunks", "a function that starts a pass over rows", "no row")
        if count_rows(X) == 1:  # a form shows in two rows; of their values nothing is used
            X, y = (None if part is None else take(part, np.zeros(2, int)) for part in (X, y))
        form = self._form(X, y, grid_points=grid_points)
        work = Summing(self._reader(), grid_points=grid_points)
        n = merge(blocks.gather(work))[0] if blocks.rows is None else blocks.rows
        asked, source = self._asks(form, rows=n), self._source()

        def sums(look: AdditiveLook) -> Any:
            return merge(blocks.gather(replace(work, asked=asked, look=look)))

        result, holder = gather(asked, sums, n=n, source=source, ledger=self.ledger)
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
        """What is public of rows like these: their shape, never a value."""

    @abstractmethod
    def _asks(self, form: Any, *, rows: int) -> Conversation[Any]:
        """What so many rows of that form are asked: from public parameters alone."""

    @abstractmethod
    def _chunk(self, X: Any, y: Any, *, grid_points: Any) -> Any:
        """Private rows of that form as numbers, refused by their form alone."""

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
        """What a fit leaves, from a public result."""

    def _require_names(self) -> None:
        """Refuse to find names of classes or groups in rows that nobody sees together."""
