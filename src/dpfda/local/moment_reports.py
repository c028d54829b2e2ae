"""Moment reports: everybody sends y z* once (docs/methods/moment-reports.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.protocol.design import Design, Terms
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.study import Phase, Result, Study, Summary, study
from dpfda.protocol.task import Task, box_mechanisms
from dpfda.protocol.tasks.vector import MomentTask


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
        _validate.one_of("mechanism", self.mechanism, box_mechanisms())

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Label times curve, as one noisy vector."""
        asked = {"dimension": plan.encoder.n_features, "positive": plan.positives}
        return {"moment": asked | {"mechanism_name": self.mechanism}}


@study("moments")
def moments(design: MomentDesign, plan: StudyPlan) -> Study:
    """Everybody reports the same, about one class in turn if there are more than two."""
    scores = plan.n_scores

    def tasks(start: int, people: int) -> Task:
        turns = np.arange(start, start + people, dtype=np.int64) % scores
        return plan.ask("moment", people, positive=turns if scores > 1 else turns + 1)

    def count(task: MomentTask, reply: FloatArray) -> Summary:
        score = task.positive if scores > 1 else np.zeros(len(reply))
        each = [reply[score == m] for m in range(scores)]
        return {
            "total": np.array([own.sum(axis=0) for own in each]),
            "square": np.array([(own**2).sum(axis=0) for own in each]),
            "people": np.array([float(len(own)) for own in each]),
        }

    asked = Phase(
        "moments",
        plan.n_people,
        tasks,
        count,
        lambda: _concluded(plan, asked.nobody),
        averaged=scores == 1,  # with several scores, several means
    )
    return _concluded(plan, (yield asked))


def _concluded(plan: StudyPlan, summary: Summary) -> Result:
    """E y z* for each score and feature, with standard errors, and the rule that it is."""
    people = np.maximum(summary["people"], 1)[:, None]
    mean = summary["total"] / people
    error = np.sqrt(np.maximum(summary["square"] / people - mean**2, 0) / people)
    features = [
        [Estimate(float(a), float(b), int(n)) for a, b in zip(*rows, strict=True)]
        for *rows, n in zip(mean, error, summary["people"], strict=True)
    ]
    return Result(
        CurveModel.linear(intercept=np.zeros(plan.n_scores), coefficients=mean, **plan.stamp),
        Findings(
            classes=plan.classes,
            learnt="moment",
            title="mean of label times feature",
            features=features,
        ),
    )
