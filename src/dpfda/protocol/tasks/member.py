"""Say whether one of several candidate classifiers is right on you (000 and 001, step 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from dpfda._validate import IntArray
from dpfda.protocol.fields import array
from dpfda.protocol.tasks.evaluation import EvaluationTask, example_fields


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberTask(EvaluationTask, name="member"):
    """An evaluation that also tells which candidate the person judges.

    Privacy:
        That of `EvaluationTask`: ε-LDP for curve and label together, one randomized bit.

    Attributes:
        member: the candidate's number, shape (n,); groups are chosen before anybody answers.

    Example:
        >>> task = MemberTask(
        ...     epsilon=1.0, people=1, intercept=[[0.1]], coefficients=[[[1.0, -1.0]]],
        ...     centers=[[[0.0, 0.0]]], scales=[[[1.0, 1.0]]], member=[7],
        ... )
        >>> task.member.tolist()
        [7]
    """

    member: IntArray = array("whole", "people", least=0)

    @classmethod
    def examples(cls) -> list[Self]:
        """A line with a number."""
        return [cls(**example_fields(1), member=[7])]  # type: ignore[arg-type]
