"""A local linear study of classes under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from dpfda._validate import FloatArray
from dpfda.linear import spread
from dpfda.linear.design import LinearDesign
from dpfda.linear.directions import principal
from dpfda.linear.feature_progress import AFTER, FeatureProgress
from dpfda.linear.features import FeatureMap
from dpfda.linear.labels import ClassPhases, LabelPhases, ManyClasses, TwoClasses
from dpfda.linear.shapes import public_prior
from dpfda.protocol.estimate import accuracy_estimate
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.protocol.temperature import Temperature, asked, confidence_questions

_BELOW_ALL = -2.0  # a threshold below every feature: what is left of a stump is the label


class LinearProgress(FeatureProgress, name="linear"):
    """Two or more classes, told apart by a linear rule of whitened features."""

    design: LinearDesign

    def __init__(self, design: LinearDesign, plan: StudyPlan) -> None:
        self.temperature = Temperature()
        super().__init__(design, plan)

    def _expected(self, plan: StudyPlan) -> dict[str, FloatArray]:
        known = {"center_known": self.design.center_known, "loose": self.design.range_is_loose}
        return {"public": public_prior(curves=plan.encoder.basis.functional, **known)}

    def tasks(self, start: int, people: int) -> Task:
        """The question of some tickets of the present phase."""
        if self.kind == "rate":
            return self._stumps(
                people,
                coordinates=np.zeros((people, 1), dtype=np.int64),
                thresholds=np.full((people, 1), _BELOW_ALL),
                uses_label=True,
            )
        if self.kind == "temperature":
            uniforms = self._public(start, people, confidence_questions(self.plan))
            return self._ask("confidence", people, **asked(self.model, uniforms))
        if self.kind == "evaluation":
            return self._ask("evaluation", people, **self.model.rows(people))
        return super().tasks(start, people)

    @property
    def _asking(self) -> FloatArray:
        """Of ordered columns the first more often, as they will be used more."""
        return np.sqrt(self.design.favor(self.plan))

    def _told(self) -> tuple[FeatureMap, FloatArray]:
        """Distances too, where they count; normal features are uncorrelated with theirs."""
        features, covariance = super()._told()
        if not self.design.spread_differs:
            return features, covariance
        # Where a column is nearly constant, noise takes its middle out of the range of features.
        middle = np.clip(self.location + self.width * self.mean, -1, 1)
        deviation = self.width * self.deviation
        far = spread.distances_correlated(covariance)
        return (
            FeatureMap.with_distances(middle, deviation, self.schedule.clip),
            block_diag(covariance, far),
        )

    def _directions(self, covariance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        favor = self.design.favor(self.plan)
        return principal(covariance, np.tile(favor, len(covariance) // len(favor)))

    def _about_labels(self, features: FeatureMap, **chosen: FloatArray) -> LabelPhases:
        kind = TwoClasses if self.plan.n_classes == 2 else ManyClasses
        return kind(self.schedule, features, **chosen, share=self.design.class_share)

    @property
    def _learners(self) -> dict[str, Callable[[], None]]:
        return super()._learners | {"temperature": self._learn_temperature}

    def _learn_temperature(self) -> None:
        self.temperature = self.temperature.told(
            float(self.total[0]), people=self.people, plan=self.plan
        )

    def _learn_error(self) -> None:
        self.error_estimate = accuracy_estimate(
            total=float(self.total[0]), people=self.people, epsilon=self.plan.epsilon
        ).complement()

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        labels = self.labels
        intercepts, slopes, scale = labels.rule()
        rule = labels.features.rule(intercepts, slopes)
        variances = np.zeros((len(rule["intercept"]), 1 + rule["coefficients"].shape[1]))
        variances[:, 0] = scale**2 * labels.doubt()
        return CurveModel(
            **rule,
            folds=labels.features.folds,
            variances=variances,
            damping=self.temperature.factor,
            **self.plan.stamp,
        )

    def state(self) -> dict[str, Any]:
        """Phase, sums and estimates."""
        return super().state() | {"temperature": list(self.temperature)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().restore(state)
        self.temperature = Temperature(*state["temperature"])

    def findings(self) -> Findings:
        """Middles, weights of the standardized features, error."""
        return Findings(
            classes=self.plan.classes,
            phases=self.phases,
            **self._estimated(),
            error=self.error_estimate,
            folded=self.d if self.design.spread_differs else 0,
            **self._judged(),
        )

    def _judged(self) -> dict[str, Any]:
        """What a verdict on the finished model goes by."""
        labels = self.labels
        assert isinstance(labels, ClassPhases)
        if self.kind not in AFTER or not labels.people:
            return {}
        return {"evidence": labels.evidence, "constant": labels.constant_rule}

    @property
    def _unit_of_scores(self) -> float:
        return self.labels.rule()[2]
