"""Studies with one report per person: moments of curve and label, or the label only.

Moment reports: each person sends y z* (docs/methods/moment-reports.md). Noisy labels: curves are
public, and each person sends a randomized label (docs/methods/label-only-reports.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Findings, Step
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import Design, StudyPlan, Terms
from dpfda.protocol.study import Phase, Result, Study, Summary, study
from dpfda.protocol.task import Task, box_mechanisms
from dpfda.protocol.tasks.vector import MomentTask, VectorTask


@dataclass(frozen=True, kw_only=True)
class MomentDesign(Design, name="moments"):
    """The average of y z* over all people defines a linear classifier through the public center.

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
        """The product of label and curve, as one noisy vector."""
        asked = {"dimension": plan.encoder.n_features, "positive": plan.positives}
        return {"moment": asked | {"mechanism_name": self.mechanism}}


@study("moments")
def moments(design: MomentDesign, plan: StudyPlan) -> Study:
    """All people send the same report; with more than two classes, each reports about one class."""
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
        lambda: _mean_model(plan, asked.nobody),
        averaged=scores == 1,  # several scores need several means
    )
    return _mean_model(plan, (yield asked))


def _mean_model(plan: StudyPlan, summary: Summary) -> Result:
    """Estimates of E y z* for each score and feature with standard errors, and the linear rule."""
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


@dataclass(frozen=True, kw_only=True)
class NoisyLabelDesign(Design, name="noisy_labels"):
    """Least squares regression of the debiased label on public features; ε protects the label.

    Attributes:
        ridge: penalty, added to the second moments of the features, whose scale is 1.

    Examples:
        >>> NoisyLabelDesign().ridge
        0.001
    """

    ridge: float = 1e-3

    def __post_init__(self) -> None:
        _validate.positive("ridge", self.ridge)

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Features without noise, and a randomized label."""
        if plan.protects != "labels":
            raise InvalidParameter(
                "protects", "'labels' for the design noisy_labels", plan.protects
            )
        asked = {"dimension": plan.encoder.n_features, "positive": plan.positives, "positives": 1}
        return {"vector": asked | {"protects": "labels"}}


@study("noisy_labels")
def noisy_labels(design: NoisyLabelDesign, plan: StudyPlan) -> Study:
    """Two classes: all people. Several classes: separate people for each class against the rest."""
    scores = plan.n_scores
    steps = [
        Step("labels", plan.n_people // scores + (score < plan.n_people % scores))
        for score in range(scores)
    ]
    summaries: list[Summary] = []

    def tasks(start: int, people: int) -> Task:
        positive = 1 if scores == 1 else len(summaries)
        return plan.ask("vector", people, positive=[positive])

    def so_far() -> Result:
        nobody = _count(tasks(0, 0), np.zeros((0, plan.encoder.n_features + 1)))
        return _label_model(design, plan, [*summaries, *[nobody] * (scores - len(summaries))])

    for number, step in enumerate(steps):
        then = steps[number + 1 :]
        summary = yield Phase(step.kind, step.people, tasks, _count, so_far, then=then)
        summaries.append(summary)
    return so_far()


def _count(task: Task, reply: FloatArray) -> Summary:
    """Sums of products of the features, and of features and debiased labels."""
    assert isinstance(task, VectorTask)
    rows = np.column_stack([np.ones(len(reply)), np.clip(reply[:, :-1], -1, 1)])
    return {
        "products": rows.T @ rows,
        "targets": rows.T @ task.mechanism.parts[-1].debias(reply[:, -1]),
        "people": np.array(float(len(reply))),
    }


def _label_model(design: NoisyLabelDesign, plan: StudyPlan, summaries: Sequence[Summary]) -> Result:
    """The model with one regression per score."""
    people = np.maximum([sentence["people"] for sentence in summaries], 1)[:, None]
    products = np.array([sentence["products"] for sentence in summaries])
    matrices = products / people[..., None] + design.ridge * np.eye(products.shape[1])
    targets = np.array([sentence["targets"] for sentence in summaries]) / people
    solution = np.linalg.solve(matrices, targets[..., None])[..., 0]
    model = CurveModel.linear(intercept=solution[:, 0], coefficients=solution[:, 1:], **plan.stamp)
    return Result(model, Findings(classes=plan.classes))
