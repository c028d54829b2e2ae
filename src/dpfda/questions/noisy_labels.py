"""Labels only: curves are public anyway, each person sends a randomized label once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.protocol.design import Design, Terms
from dpfda.protocol.findings import Step
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import VectorTask
from dpfda.questions.scores import ScoredProgress
from dpfda.questions.sizes import split_evenly


@dataclass(frozen=True, kw_only=True)
class NoisyLabelDesign(Design, name="noisy_labels"):
    """Least squares of the debiased label on the public features; all of ε goes to the label.

    Attributes:
        ridge: added to the features' second moments, relative to their scale of 1.

    Examples:
        >>> NoisyLabelDesign().ridge
        0.001
    """

    ridge: float = 1e-3

    def __post_init__(self) -> None:
        _validate.positive("ridge", self.ridge)

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Features in clear, a randomized label."""
        if plan.protects != "labels":
            raise InvalidParameter(
                "protects", "'labels' for the design noisy_labels", plan.protects
            )
        asked = {"dimension": plan.encoder.n_features, "positive": plan.positives, "positives": 1}
        return {"vector": asked | {"protects": "labels"}}


class NoisyLabelProgress(ScoredProgress, name="noisy_labels"):
    """Sums of products: for every score, one right-hand side and one matrix."""

    kept = ("products", "targets", "people")

    def __init__(self, design: NoisyLabelDesign, plan: StudyPlan) -> None:
        self.design = design
        scores, size = plan.n_scores, plan.encoder.n_features + 1
        self.products: FloatArray = np.zeros((scores, size, size))
        self.targets: FloatArray = np.zeros((scores, size))
        self.people: FloatArray = np.zeros(scores)
        super().__init__(plan, [Step("labels", n) for n in split_evenly(plan.n_people, scores)])

    def tasks(self, start: int, people: int) -> Task:
        """Features in clear, a randomized label: class number `phase` against the rest."""
        return self._ask("vector", people, positive=[1 if self.n_scores == 1 else self.phase])

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add to the present score's sums."""
        assert isinstance(task, VectorTask)
        design = np.column_stack([np.ones(len(reply)), np.clip(reply[:, :-1], -1, 1)])
        self.products[self.phase] += design.T @ design
        self.targets[self.phase] += design.T @ task.mechanism.parts[-1].debias(reply[:, -1])
        self.people[self.phase] += len(reply)

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        people = np.maximum(self.people, 1)[:, None]
        size = self.products.shape[1]
        matrices = self.products / people[..., None] + self.design.ridge * np.eye(size)
        solution = np.linalg.solve(matrices, (self.targets / people)[..., None])[..., 0]
        return CurveModel.linear(
            intercept=solution[:, 0],
            coefficients=solution[:, 1:],
            **self.plan.stamp,
        )
