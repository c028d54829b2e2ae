"""Answer k yes/no questions about single coordinates (methods 8.2, phases 0 and 1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData
from dpfda.mechanisms.question_response import QuestionResponse
from dpfda.noise import Source
from dpfda.protocol.task import Task, check_answerer


@dataclass(frozen=True, kw_only=True, eq=False)
class StumpTask(Task, name="stump"):
    """Answer sgn(z_j - t) or, with `uses_label`, y sgn(z_j - t) ("is this stump right on you?").

    Privacy:
        ε-LDP for curve and label together: all k answers go through one k-question response.

    Attributes:
        coordinates: which z_j are asked about, shape (n, k).
        thresholds: the t, shape (n, k).
        positive: the label number that counts as y = +1, shape (n,).
        uses_label: whether the answer is multiplied by y.

    Example:
        >>> task = StumpTask(
        ...     epsilon=1.0, people=1, coordinates=[[2]], thresholds=[[0.1]], positive=[1]
        ... )
        >>> task.mechanism.questions
        1
    """

    coordinates: IntArray
    thresholds: FloatArray
    positive: IntArray
    uses_label: bool = True

    @classmethod
    def _arrays(cls) -> dict[str, str]:
        return {"coordinates": "whole", "thresholds": "real", "positive": "whole"}

    @cached_property
    def mechanism(self) -> QuestionResponse:
        """One response to all questions."""
        return QuestionResponse(epsilon=self.epsilon, questions=self.width)

    @property
    def width(self) -> int:
        """k."""
        return int(self.coordinates.shape[1])

    def answer(self, features: FloatArray, labels: IntArray, rng: Source) -> FloatArray:
        """Randomized ±1 answers."""
        z, y = check_answerer(self, features, labels)
        if self.people and self.coordinates.max() >= z.shape[1]:
            raise InvalidData("features", f"wider than {self.coordinates.max()} columns")
        asked = np.take_along_axis(z, self.coordinates, axis=1)
        answers = np.where(asked > self.thresholds, 1.0, -1.0)
        if self.uses_label:
            answers *= np.where(y == self.positive, 1.0, -1.0)[:, None]
        return self.mechanism.randomize(answers, rng)

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """A pattern of ±1."""
        return np.asarray((np.abs(reply) == 1).all(axis=1))
