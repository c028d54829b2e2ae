"""Moment reports: everybody sends y z* once, the server keeps its mean (methods 8.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.protocol.design import Design, Terms
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Findings, Step
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import BOX_MECHANISMS, Task
from dpfda.protocol.tasks.moment import MomentTask
from dpfda.questions.scores import ScoredProgress


@dataclass(frozen=True, kw_only=True)
class MomentDesign(Design, name="moments"):
    """Average y z* over everybody: the direction of a linear classifier through the public center.

    Attributes:
        mechanism: registered name of the mechanism of vectors.

    Examples:
        >>> MomentDesign().mechanism
        'piecewise'
    """

    mechanism: str = "piecewise"

    def __post_init__(self) -> None:
        _validate.one_of("mechanism", self.mechanism, BOX_MECHANISMS)

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Label times curve, as one noisy vector."""
        asked = {"dimension": plan.encoder.n_features, "positive": plan.positives}
        return {"moment": asked | {"mechanism_name": self.mechanism}}


class MomentProgress(ScoredProgress, name="moments"):
    """A moment study under way: two sums, whatever the number of people."""

    kept = ("total", "square", "people")

    def __init__(self, design: MomentDesign, plan: StudyPlan) -> None:
        self.total: FloatArray = np.zeros((plan.n_scores, plan.encoder.n_features))
        self.square: FloatArray = np.zeros_like(self.total)
        self.people: FloatArray = np.zeros(plan.n_scores)
        super().__init__(plan, [Step("moments", plan.n_people)])

    def tasks(self, start: int, people: int) -> Task:
        """Everybody is asked the same, for one class in turn if there are more than two."""
        return self._ask("moment", people, positive=self._positive(start, people))

    @property
    def averaged(self) -> bool:
        """With several scores, several means."""
        return self.n_scores == 1

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add to the sums."""
        assert isinstance(task, MomentTask)
        score = self._score(task.positive)
        for m in range(self.n_scores):
            own = reply[score == m]
            self.total[m] += own.sum(axis=0)
            self.square[m] += (own**2).sum(axis=0)
            self.people[m] += len(own)

    def add(self, other: MomentProgress) -> None:
        """Go on from other people's replies to the same question."""
        for name in self.kept:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def findings(self) -> Findings:
        """E y z* for each score and feature, with standard errors."""
        people = np.maximum(self.people, 1)[:, None]
        mean = self.total / people
        error = np.sqrt(np.maximum(self.square / people - mean**2, 0) / people)
        return Findings(
            classes=self.plan.classes,
            phases=self.phases,
            learnt="moment",
            title="mean of label times feature",
            features=[
                [Estimate(float(a), float(b), int(n)) for a, b in zip(*rows, strict=True)]
                for *rows, n in zip(mean, error, self.people, strict=True)
            ],
        )

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        return CurveModel.linear(
            intercept=np.zeros(self.n_scores),
            coefficients=self.total / np.maximum(self.people, 1)[:, None],
            **self.plan.stamp,
        )
