"""Answer k yes/no questions about how far a candidate is off on you (methods 8.2, phase 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.noise import Source
from dpfda.protocol.fields import array
from dpfda.protocol.query import Records
from dpfda.protocol.tasks.evaluation import RuleTask, example_fields
from dpfda.protocol.tasks.stump import QuestionsTask


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrationTask(QuestionsTask, RuleTask, name="calibration"):
    """Answer sgn(v - U) for public U uniform on [-1, 1], v = (y - tanh(score/2))/2.

    The score is the first of the rule; the mean of an answer is v, so the answers together say on
    which side the intercept errs.

    Privacy:
        ε-LDP for curve and label together: all k answers go through one k-question response.

    Attributes:
        dithers: the U, shape (n, k).
        positive: the label number that counts as y = +1, shape (n,).

    Examples:
        >>> task = CalibrationTask(
        ...     epsilon=2.0, people=1, intercept=[[0.0]], coefficients=[[[1.0]]],
        ...     centers=[[[0.0]]], scales=[[[0.5]]], dithers=[[0.3, -0.2]], positive=[1],
        ... )
        >>> task.mechanism.questions
        2
    """

    dithers: FloatArray = array("real", "people", "k", least=-1, most=1)
    positive: IntArray = array("whole", "people", least=0, most=1 << 20)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """True answers, ±1."""
        z, y = records
        signs = np.where(y == self.positive, 1.0, -1.0)
        off = (signs - np.tanh(self.scores(z)[:, 0] / 2)) / 2
        return np.where(off[:, None] > self.dithers, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """Two questions about a line through one feature."""
        line = example_fields(1) | {"epsilon": 2.0}
        return [cls(**line, dithers=[[0.3, -0.2]], positive=[1])]  # type: ignore[arg-type]
