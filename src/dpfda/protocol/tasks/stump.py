"""Answer k yes/no questions about single coordinates (docs/methods/answers.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.question_response import QuestionResponse
from dpfda.noise import Source
from dpfda.protocol.fields import array, flag
from dpfda.protocol.folds import FoldedTask
from dpfda.protocol.query import Records
from dpfda.protocol.task import Task


class QuestionsTask(Task):
    """Yes/no questions, all k of them answered through one k-question response."""

    bits: ClassVar[bool] = True

    @cached_property
    def mechanism(self) -> QuestionResponse:
        """One response to all questions."""
        return QuestionResponse(epsilon=self.epsilon, questions=self.width)

    @property
    def width(self) -> int:
        """k."""
        return self.sizes["k"]


@dataclass(frozen=True, kw_only=True, eq=False)
class StumpTask(QuestionsTask, FoldedTask, name="stump"):
    """Answer sgn(z_j - t) or, with `uses_label`, y sgn(z_j - t) ("is this stump right on you?").

    Privacy:
        ε-LDP for curve and label together: all k answers go through one k-question response.

    Attributes:
        coordinates: which z_j are asked about, shape (n, k); `folded` ones where there are folds.
        thresholds: the t, shape (n, k).
        positive: the label number that counts as y = +1, shape (n,).
        uses_label: whether the answer is multiplied by y.

    Examples:
        >>> task = StumpTask(
        ...     epsilon=1.0, people=1, coordinates=[[2]], thresholds=[[0.1]], positive=[1]
        ... )
        >>> task.mechanism.questions
        1
    """

    coordinates: IntArray = array("whole", "people", "k", least=0, most=1 << 20)
    thresholds: FloatArray = array("real", "people", "k")
    positive: IntArray = array("whole", "people", least=0, most=1 << 20)
    uses_label: bool = flag(default=True)

    @property
    def looks_at(self) -> int:
        """Up to the last coordinate that is asked about."""
        return int(self.coordinates.max(initial=-1)) + 1

    def exact(self, records: Records, source: Source) -> FloatArray:
        """True answers, ±1."""
        z, y = records
        asked = np.take_along_axis(z, self.coordinates, axis=1)
        answers = np.where(asked > self.thresholds, 1.0, -1.0)
        if self.uses_label:
            answers *= np.where(y == self.positive, 1.0, -1.0)[:, None]
        return answers

    @classmethod
    def examples(cls) -> list[Self]:
        """One question and three, with and without the label, and about a distance."""
        three: dict[str, Any] = {
            "coordinates": [[0, 1, 2]],
            "thresholds": [[0.0, 0.3, -0.2]],
            "positive": [1],
        }
        return [
            cls(epsilon=1.0, people=1, coordinates=[[1]], thresholds=[[0.1]], positive=[1]),  # type: ignore[arg-type]
            cls(epsilon=2.0, people=1, **three, uses_label=False),
            cls(epsilon=1.0, people=1, **three, folds=[0.1, -0.3]),  # type: ignore[arg-type]
        ]
