"""Labels only: curves are public anyway, each person sends a randomized label once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.protocol.design import Design, Terms
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.progress import Phase, Progress
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import VectorTask


@dataclass(frozen=True, kw_only=True)
class NoisyLabelDesign(Design, name="noisy_labels"):
    """Least squares of the debiased label on the public features; all of ε goes to the label.

    Attributes:
        ridge: added to the features' second moments, relative to their scale of 1.

    Example:
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
        asked = {"dimension": plan.encoder.n_features, "positive": plan.positives}
        return {"vector": asked | {"protects": "labels"}}


class NoisyLabelProgress(Progress, name="noisy_labels"):
    """Sums of products: for every score, one right-hand side and one matrix."""

    def __init__(self, design: NoisyLabelDesign, plan: StudyPlan) -> None:
        self.design = design
        self.n_scores = plan.n_scores
        size = plan.encoder.n_features + 1
        self.products: FloatArray = np.zeros((self.n_scores, size, size))
        self.targets: FloatArray = np.zeros((self.n_scores, size))
        self.people: FloatArray = np.zeros(self.n_scores)
        phases = [
            Phase("labels", plan.n_people // self.n_scores + (m < plan.n_people % self.n_scores))
            for m in range(self.n_scores)
        ]
        super().__init__(plan, phases)

    def tasks(self, start: int, people: int) -> Task:
        """Features in clear, a randomized label: class number `phase` against the rest."""
        return self._ask("vector", people, positive=1 if self.n_scores == 1 else self.phase)

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add to the present score's sums."""
        assert isinstance(task, VectorTask)
        design = np.column_stack([np.ones(len(reply)), np.clip(reply[:, :-1], -1, 1)])
        self.products[self.phase] += design.T @ design
        self.targets[self.phase] += design.T @ task.mechanism.parts[-1].debias(reply[:, -1])
        self.people[self.phase] += len(reply)

    def _learn(self) -> None:
        """The sums say everything."""

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        people = np.maximum(self.people, 1)[:, None]
        size = self.products.shape[1]
        matrices = self.products / people[..., None] + self.design.ridge * np.eye(size)
        solution = np.linalg.solve(matrices, (self.targets / people)[..., None])[..., 0]
        return CurveModel.linear(
            encoder=self.plan.encoder,
            classes=self.plan.classes,
            intercept=solution[:, 0],
            coefficients=solution[:, 1:],
            guarantee=self.plan.guarantee,
        )

    _KEPT = ("products", "targets", "people")

    def state(self) -> dict[str, Any]:
        """The sums."""
        return {"phase": self.phase} | {name: getattr(self, name).tolist() for name in self._KEPT}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.phase = state["phase"]
        for name in self._KEPT:
            setattr(self, name, np.asarray(state[name]))
