"""Answer k yes/no questions about how sure the finished classifier may be of you."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.noise import Source
from dpfda.protocol.fields import array, number
from dpfda.protocol.linear_scores import NUMBERS, class_chances, decided
from dpfda.protocol.query import Records
from dpfda.protocol.tasks.evaluation import RuleTask, example_fields
from dpfda.protocol.tasks.stump import QuestionsTask


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfidenceTask(QuestionsTask, RuleTask, name="confidence"):
    """Answer sgn(v - U) for public U, v = 1{the classifier is right on me} - its largest chance.

    Where the mean of v is 0, probabilities are as large as they should be
    (docs/methods/probabilities.md).

    Privacy:
        ε-LDP for curve and label together: all k answers go through one k-question response.

    Attributes:
        variances: what is open of intercept and coefficients, shape (n, m, 1 + d), as in a model.
        damping: what scores are multiplied by before they become chances.
        dithers: the U, shape (n, k).

    Examples:
        >>> task = ConfidenceTask(
        ...     epsilon=2.0, people=1, intercept=[[0.0]], coefficients=[[[1.0]]],
        ...     centers=[[[0.0]]], scales=[[[0.5]]], variances=[[[0.0, 0.1]]], damping=0.8,
        ...     dithers=[[0.3, -0.2]],
        ... )
        >>> task.mechanism.questions
        2
    """

    variances: FloatArray = array("real", "people", "m", "known", least=0)
    damping: float = number(least=1e-6, most=1e6)
    dithers: FloatArray = array("real", "people", "k", least=-1, most=1)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """True answers, ±1."""
        z, y = records
        rule: dict[str, Any] = {name: getattr(self, name) for name in NUMBERS}
        rule |= {"clipped": self.clipped, "variances": self.variances, "damping": self.damping}
        sure = class_chances(z, **rule).max(axis=1)
        off = (decided(self.scores(z)) == y) - sure
        return np.where(off[:, None] > self.dithers, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """One question about a line, two about three scores."""
        more: dict[str, Any] = {"damping": 0.7, "epsilon": 2.0}
        return [
            cls(
                **example_fields(scores) | more,
                variances=np.full((1, scores, 3), 0.1),
                dithers=np.linspace(-0.6, 0.3, questions)[None],
            )
            for scores, questions in ((1, 1), (3, 2))
        ]
