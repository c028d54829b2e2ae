"""A regression of people under way."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dpfda._validate import FloatArray
from dpfda.linear import regression_fit
from dpfda.linear.directions import principal
from dpfda.linear.feature_progress import FeatureProgress
from dpfda.linear.features import FeatureMap
from dpfda.linear.regression_design import RegressionDesign
from dpfda.linear.regression_phases import TargetPhases
from dpfda.linear.regression_schedule import RegressionSchedule
from dpfda.linear.shapes import public_prior
from dpfda.protocol.curve_regression import CurveRegression
from dpfda.protocol.estimate import Estimate, accuracies_behind
from dpfda.protocol.findings import Findings, Step
from dpfda.protocol.linear_scores import NUMBERS
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.reach import ReachTask
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.questions.ranging import RANGING, Ranging

_FREE = 0.0  # how likely columns are very narrow, or near an end of their range
_NARROWEST = 0.02  # of a width, in units of the reach
_LEAST_ERROR = 0.5  # in units of what the target varies
_TARGET_REACH = 5.4  # three standard deviations of a logistic law, in units of its scale
_ERRORS = 3.0  # standard deviations of a residual that are looked at in the end


class RegressionProgress(FeatureProgress, name="local_regression"):
    """The first column is the target; the others are features."""

    targets: ClassVar[int] = 1
    design: RegressionDesign
    schedule: RegressionSchedule
    mean_alone: Estimate
    """What the mean of the target would leave: the standard deviation of people's targets."""

    def __init__(self, design: RegressionDesign, plan: StudyPlan) -> None:
        super().__init__(design, plan)
        self._learn_location()  # what is expected, in case that nobody tells

    def _phases(self, plan: StudyPlan) -> list[Step]:
        self.ranging = Ranging(self.design.channels(plan), k=self.k, alpha=self.where.alpha)
        first = self.ranging.phases(self.design.ranged(plan))
        return [phase for phase in first if phase.people] + super()._phases(plan)

    def tasks(self, start: int, people: int) -> Task:
        """The question of some tickets of the present phase."""
        if self.kind in RANGING:
            uniforms = self._public(start, people, 2 * self.k)
            asked = self.ranging.questions(self.kind, start, uniforms)
            if self.kind == "reach":
                return self._ask("reach", people, **asked)
            return self._stumps(people, **asked, uses_label=False)
        if self.kind == "evaluation":
            return self._how_near(start, people)
        return super().tasks(start, people)

    def _expected(self, plan: StudyPlan) -> dict[str, FloatArray]:
        curves = plan.encoder.basis.functional
        target = public_prior(curves=True, free_share=_FREE)
        known = {"center_known": self.design.center_known}
        if not curves:
            known["loose"] = self.design.range_is_loose
        features = public_prior(curves=curves, free_share=_FREE if curves else None, **known)
        return {"public": features, "alone": target[None]}

    @property
    def _asking(self) -> FloatArray:
        features = self.design.favor(self.plan) ** 2
        return np.asarray(np.r_[np.sqrt(features.sum()), features])

    def _directions(self, covariance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        favor = self.design.favor(self.plan)
        if not self.design.settled(self.plan.encoder).ordered:
            return principal(covariance, favor)
        # Each feature without what earlier ones say: the first stay the first.
        return np.ones(len(favor)), np.linalg.inv(np.linalg.cholesky(covariance)), favor

    def _weights(self, values: FloatArray, favor: FloatArray, people: float) -> FloatArray:
        return regression_fit.weights(values, favor, people=people, epsilon=self.plan.epsilon)

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Add the replies to the present phase's sums."""
        if self.kind not in RANGING:
            super().absorb(task, reply)
            return
        assert isinstance(task, (StumpTask, ReachTask))
        counts = self.ranging.counted(self.kind, task, reply)
        self.total = self.total + counts if self.people else counts
        self.people += len(reply)

    def _learn(self) -> None:
        if self.kind in RANGING and self.people:
            self.ranging.learn(self.kind, self.total)
            self._learn_range()
            self.total, self.people = np.zeros(0), 0
        elif self.kind not in RANGING:
            super()._learn()

    def _learn_range(self) -> None:
        """Look where target and curves lie; columns of a table keep their ranges."""
        centers, scales, _ = self.ranging.found()
        scales[0] = _TARGET_REACH * self.ranging.level(0).scale
        for number, place in enumerate(self.ranging.levels):
            scales[place] = np.hypot(scales[place], self.ranging.level(number).margin)
        told = slice(min(len(centers), self.d))
        self.middle[told], self.reach[told] = centers[told], np.minimum(scales[told], 1.0)
        self._learn_location()

    def _learn_location(self) -> None:
        super()._learn_location()
        # Narrower than thresholds are apart, all people may lie at one end of what is looked at.
        self.width = np.maximum(self.width, _NARROWEST * self.reach)
        unit, (mean, doubt) = 2 * self.reach[0] * self._half, self.where.widths()
        known = float(unit * doubt[0]) if self.people else math.inf
        self.mean_alone = Estimate(float(unit * mean[0]), known, self.people)

    def _about_labels(self, features: FeatureMap, **chosen: FloatArray) -> TargetPhases:
        target = self._standardized().then(np.eye(self.d)[:1])
        return TargetPhases(self.schedule, features, target=target, **chosen)

    def _how_near(self, start: int, people: int) -> Task:
        """Is your target within h of what is predicted? h is public, and h² uniform.

        Of three scores h, r and -r the first is the largest where |r| ≤ h.
        """
        rule = self._rule()
        near = self._farthest * np.sqrt(self._public(start, people, 1)[:, 0])
        residual = -rule["coefficients"][0]
        residual[0] = 1.0
        centers, scales = rule["centers"][0].copy(), rule["scales"][0].copy()
        centers[0], scales[0] = 0.0, 1.0  # as it is: its place is in [-1, 1]
        off = np.full(people, rule["intercept"][0])
        shape = (people, 3, self.d)
        return self._ask(
            "evaluation",
            people,
            intercept=np.column_stack([near, -off, off]),
            coefficients=np.broadcast_to(np.stack([0 * residual, residual, -residual]), shape),
            centers=np.broadcast_to(centers, shape),
            scales=np.broadcast_to(scales, shape),
        )

    @property
    def _farthest(self) -> float:
        """Errors beyond it count as such: three times what is expected of them."""
        expected = max(self.target_phases.belief.residual, _LEAST_ERROR)
        return float(min(_ERRORS * self._unit * expected, 2.0))

    def _learn_error(self) -> None:
        """E r² = H² (1 - P(|r| ≤ h)) for h² uniform on [0, H²]."""
        near, error = accuracies_behind(self.total[0], self.people, epsilon=self.plan.epsilon)
        square = (self._farthest * self._half) ** 2
        doubt = square * float(error)
        root = max(square * (1 - float(near)), doubt) ** 0.5
        self.error_estimate = Estimate(root, doubt / (2 * root), self.people)

    @property
    def model(self) -> CurveRegression:
        """The regression as it is now."""
        rule = self._rule()
        assert self.plan.target_range is not None
        rule["intercept"] = sum(self.plan.target_range) / 2 + self._half * rule["intercept"]
        rule["coefficients"] = self._half * rule["coefficients"]
        for name in NUMBERS[1:]:
            rule[name] = rule[name][:, 1:]
        return CurveRegression(**rule, **self.plan.stamp)

    def _rule(self) -> dict[str, Any]:
        """The linear rule for the target's place in [-1, 1], its own coefficient being 0."""
        phases = self.target_phases
        rule = phases.features.rule(*phases.scores())
        middle = self.location[0] + self.width[0] * self.mean[0]
        rule["intercept"] = middle + self._unit * rule["intercept"]
        rule["coefficients"] = self._unit * rule["coefficients"]
        return rule

    @property
    def target_phases(self) -> TargetPhases:
        """The phases about the target."""
        assert isinstance(self.labels, TargetPhases)
        return self.labels

    @property
    def _unit(self) -> float:
        """What the target is thought to vary, in units of half its range."""
        return float(self.width[0] * self.deviation[0])

    @property
    def _half(self) -> float:
        """Of the target's range."""
        assert self.plan.target_range is not None
        low, high = self.plan.target_range
        return (high - low) / 2

    def state(self) -> dict[str, Any]:
        """And where target and curves were found to lie."""
        return super().state() | {
            "middle": self.middle.tolist(),
            "reach": self.reach.tolist(),
            "ranging": self.ranging.state() if self.kind in RANGING else None,
            "mean_alone": self.mean_alone.to_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.middle, self.reach = np.asarray(state["middle"]), np.asarray(state["reach"])
        super().restore(state)
        self.mean_alone = Estimate(**state["mean_alone"])
        if state["ranging"] is not None:
            self.ranging.restore(state["ranging"])

    def findings(self) -> Findings:
        """Middles, weights of the standardized features, error."""
        return Findings(
            classes=(),
            phases=self.phases,
            **(self._estimated() | {"guessing": self.mean_alone}),
            error=self.error_estimate,
            seen=self.target_phases.belief.seen if self.target_phases.people else None,
        )

    @property
    def _unit_of_scores(self) -> float:
        return self._half * self._unit
