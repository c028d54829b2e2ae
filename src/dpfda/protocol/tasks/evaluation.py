"""Evaluation: report whether a candidate classifier is right about the person (000, 001).

The candidate is the same for all (`EvaluationTask`), or one of several (`MemberTask`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import Source
from dpfda.protocol.fields import array, flag
from dpfda.protocol.folds import FoldedTask
from dpfda.protocol.linear_scores import NUMBERS, decided, linear_scores
from dpfda.protocol.query import Records


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleTask(FoldedTask):
    """Asks about a public linear rule: a `CurveModel` in rows, one for each person.

    Attributes:
        intercept: shape (n, m), m scores.
        coefficients: shape (n, m, d), for the first d features, `folded` if there are folds.
        centers: shape (n, m, d).
        scales: shape (n, m, d).
        clipped: whether centered and scaled features are clipped to ±1.
    """

    bits: ClassVar[bool] = True

    intercept: FloatArray = array("real", "people", "m")
    coefficients: FloatArray = array("real", "people", "m", "dimension")
    centers: FloatArray = array("real", "people", "m", "dimension")
    scales: FloatArray = array("real", "people", "m", "dimension", least=1e-50)
    clipped: bool = flag(default=False)

    def scores(self, features: FloatArray) -> FloatArray:
        """Scores of encoded curves, one row per person."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return linear_scores(features, **numbers, clipped=self.clipped)


class EvaluationTask(RuleTask, name="evaluation"):
    """Answer whether a candidate's label is mine, through randomized response.

    Of m scores the largest wins; one score tells label 1 from label 0 by its sign.

    Privacy:
        ε-LDP for curve and label together: the reply is one randomized bit.

    Examples:
        >>> task = EvaluationTask(
        ...     epsilon=1.0, people=1, intercept=[[0.1]], coefficients=[[[1.0, -1.0]]],
        ...     centers=[[[0.0, 0.0]]], scales=[[[1.0, 1.0]]],
        ... )
        >>> task.width
        1
    """

    @cached_property
    def mechanism(self) -> RandomizedResponse:
        """Randomized response on one bit."""
        return RandomizedResponse(epsilon=self.epsilon)

    @property
    def width(self) -> int:
        """One bit."""
        return 1

    def exact(self, records: Records, source: Source) -> FloatArray:
        """+1: the candidate is right on me; -1: it is wrong."""
        z, y = records
        return np.where(decided(self.scores(z)) == y, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """A line, three scores, and a line of a feature and a distance."""
        scored = [cls(**example_fields(scores)) for scores in (1, 3)]
        return [*scored, cls(**example_fields(1), folds=[0.2])]  # type: ignore[arg-type]


def example_fields(scores: int) -> dict[str, Any]:
    """A small candidate with as many scores, for examples."""
    return {
        "epsilon": 1.0,
        "people": 1,
        "intercept": np.linspace(-0.1, 0.1, scores)[None],
        "coefficients": np.linspace(-1.0, 1.0, 2 * scores).reshape(1, scores, 2),
        "centers": np.zeros((1, scores, 2)),
        "scales": np.ones((1, scores, 2)),
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberTask(EvaluationTask, name="member"):
    """An evaluation that also reports the candidate and the classes it is about.

    The candidate has one score, which says by its sign whether a label is among `positive`.

    Privacy:
        That of `EvaluationTask`: ε-LDP for curve and label together, one randomized bit.

    Attributes:
        member: the candidate's number, shape (n,); groups are chosen before anybody answers.
        positive: the label numbers that it tells from the others, shape (n, p).

    Examples:
        >>> task = MemberTask(
        ...     epsilon=1.0, people=1, intercept=[[0.1]], coefficients=[[[1.0, -1.0]]],
        ...     centers=[[[0.0, 0.0]]], scales=[[[1.0, 1.0]]], member=[7], positive=[[1]],
        ... )
        >>> task.member.tolist()
        [7]
    """

    member: IntArray = array("whole", "people", least=0)
    positive: IntArray = array("whole", "people", "positives", least=0, most=1 << 20)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """+1: the candidate is right on me; -1: it is wrong."""
        z, y = records
        mine = (y[:, None] == self.positive).any(axis=1)
        return np.where(decided(self.scores(z)) == mine, 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """A line with a number, for one class and for two."""
        return [
            cls(**example_fields(1), member=[7], positive=half)  # type: ignore[arg-type]
            for half in ([[1]], [[0, 2]])
        ]
