"""Runs a method's conversation for a curator who holds all rows, at once or in chunks."""

from __future__ import annotations

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.noise import SecureSource, SimulationSource, Source
from dpfda.regression.fixed_point import MOST_ROWS
from dpfda.regression.methods import Conversation, Fitted, Method
from dpfda.regression.problem import Problem
from dpfda.regression.stage import Noisy, Stage, WholeStage


class Fitting:
    """One fit in progress: the current stage, its exact sums so far, and the noise source.

    Holds sums of private rows between `add` and `release`, so it can be neither printed nor pickled
    in a useful way: a half-finished fit never leaves the process.

    Example:
        >>> problem = Problem(task="linear", epsilon=1.0, delta=1e-5, center=np.zeros(2))
        >>> fitting = Fitting(Method.named("moments")(), problem, SimulationSource(0))
        >>> rows, targets = np.full((500, 2), 0.1), np.full(500, 0.5)
        >>> while not fitting.done:
        ...     fitting.add(rows, targets)
        ...     fitting.release()
        >>> fitting.fitted.slope.shape
        (2,)
    """

    def __init__(self, method: Method, problem: Problem, source: Source) -> None:
        self._source = source
        self._conversation: Conversation = method.converse(problem)
        self._fitted: Fitted | None = None
        self.answers: list[Noisy] = []
        self._open(next(self._conversation))

    def _open(self, stage: Stage) -> None:
        self.stage = stage
        self._n = 0
        self._totals: IntArray = np.zeros(stage.size, dtype=np.int64)

    @property
    def done(self) -> bool:
        """Whether every stage has been answered."""
        return self._fitted is not None

    @property
    def fitted(self) -> Fitted:
        """The predictor."""
        if self._fitted is None:
            raise ProtocolError("the fit is not finished: a stage still waits for its rows")
        return self._fitted

    def add(self, rows: FloatArray, targets: FloatArray) -> None:
        """Add a chunk of rows to the current stage's sums; one pass, O(m D²)."""
        if self._n + len(rows) > MOST_ROWS:
            raise InvalidData("X", f"at most {MOST_ROWS} rows")
        self._totals += self.stage.sums(rows, targets)
        self._n += len(rows)

    def release(self) -> None:
        """Answer the current stage with noise and go on to the next."""
        if self._n == 0:
            raise ProtocolError("no rows were added to this stage")
        self._answer(self.stage.release(self._totals, n=self._n, source=self._source))

    def whole(self, rows: FloatArray, targets: FloatArray) -> Fitted:
        """Run all stages on rows that are held at once."""
        while not self.done:
            if isinstance(self.stage, WholeStage):
                self._answer(self.stage.answer(rows, targets, self._source))
            else:
                self.add(rows, targets)
                self.release()
        return self.fitted

    def _answer(self, noisy: Noisy) -> None:
        self.answers.append(noisy)
        try:
            self._open(self._conversation.send(noisy))
        except StopIteration as end:
            self._fitted = end.value
            del self._totals

    def __repr__(self) -> str:
        return f"Fitting(done={self.done})"

    def __reduce__(self) -> str:
        raise TypeError("a fit in progress holds private sums and cannot be pickled")


def source_for(random_state: object) -> Source:
    """None: exact noise from OS entropy. An integer: a seeded simulation. A source: itself."""
    if random_state is None:
        return SecureSource()
    if isinstance(random_state, (SecureSource, SimulationSource)):
        return random_state
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return SimulationSource(_validate.whole("random_state", random_state, least=0))
    if isinstance(random_state, np.random.RandomState):
        return SimulationSource(int(random_state.randint(0, 2**31)))
    raise InvalidParameter("random_state", "None, a whole number or a Source", random_state)
