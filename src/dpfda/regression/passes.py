"""A regression about rows that come in chunks: a pass over all of them for every question."""

from __future__ import annotations

from dpfda._validate import FloatArray
from dpfda.errors import InvalidData
from dpfda.protocol.holder import Stream
from dpfda.protocol.query import Query
from dpfda.regression.fixed_point import MOST_ROWS
from dpfda.regression.methods import Fitted, Regression


class Passes:
    """One fit in progress: the question that is open, and the stream that adds up its sums.

    Holds sums of private rows between `add` and `release`, so it can be neither printed nor pickled
    in a useful way: a half-finished fit never leaves the process.
    """

    def __init__(self, regression: Regression, stream: Stream) -> None:
        self.regression, self.stream = regression, stream
        self.fitted: Fitted | None = None  # until every question is answered
        self._questions = regression.questions()
        self._open(next(self._questions))

    def _open(self, query: Query) -> None:
        self.stream.open(query)
        self._query, self._n = query, 0

    def add(self, rows: FloatArray, targets: FloatArray) -> None:
        """Add a chunk of rows to the open question's sums; one pass, O(m D²)."""
        self._n += len(rows)
        if self._n > MOST_ROWS:
            raise InvalidData("X", f"at most {MOST_ROWS} rows")
        self.stream.add((rows, targets))

    def release(self) -> None:
        """Answer the open question with noise and go on to the next."""
        number = len(self.stream.transcript)
        answer = self.stream.answer(self._query, number=number)
        try:
            self._open(self._questions.send(answer))
        except StopIteration as end:
            self.fitted = end.value

    def __repr__(self) -> str:
        return f"Passes({self.stream!r})"

    def __reduce__(self) -> str:
        raise TypeError("a fit in progress holds private sums and cannot be pickled")
