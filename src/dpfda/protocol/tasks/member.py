"""Say whether one of several candidate classifiers is right on you (000 and 001, step 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.noise import Source
from dpfda.protocol.fields import array
from dpfda.protocol.linear_scores import decided
from dpfda.protocol.query import Records
from dpfda.protocol.tasks.evaluation import EvaluationTask, example_fields


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberTask(EvaluationTask, name="member"):
    """An evaluation that also tells which candidate the person judges, and on which classes.

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
