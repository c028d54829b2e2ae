"""The phases of a regression that use the target."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.linear import regression_fit
from dpfda.linear.features import FeatureMap
from dpfda.linear.labels import NO_CUT, LabelPhases
from dpfda.linear.regression_fit import Belief, Round
from dpfda.linear.regression_schedule import RegressionSchedule


class TargetPhases(LabelPhases):
    """E[u ψ] of the standardized target u, then rounds on its residuals.

    Args:
        target: u, in one row.
        others: as of `LabelPhases`.
    """

    constant = regression_fit.CONSTANT
    schedule: RegressionSchedule

    def __init__(
        self,
        schedule: RegressionSchedule,
        features: FeatureMap,
        *,
        target: FeatureMap,
        **others: Any,
    ) -> None:
        super().__init__(schedule, features, **others)
        self.target = target
        self.belief = self._first_look()

    def ask(self, kind: str) -> dict[str, Any]:
        """A vector of target or residual times features."""
        if kind == "gradient" and self.refines:
            asked = self._round()
            seen = self._beside(self.belief.mean, asked.turn)
            cut = {"weights": asked.weights, "reach": asked.reach, "limit": asked.limit}
        else:
            seen = self._beside(np.zeros(self.q + 1), np.eye(self.q))
            limit, _ = regression_fit.first_cut(self.weights)
            cut = {"weights": self.weights, "reach": NO_CUT, "limit": limit}
        return seen.public() | {"statistic": "cross"} | cut

    def _beside(self, theta: FloatArray, turn: FloatArray) -> FeatureMap:
        """The residual at θ in the first row, then ψ in these directions."""
        into, offset = self.features.matrix, self.features.offset
        residual = self.target.matrix - theta[None, 1:] @ into
        off = self.target.offset - theta[0] - theta[1:] @ offset
        return replace(
            self.features,
            matrix=np.vstack([residual, turn @ into]),
            offset=np.r_[off, turn @ offset],
        )

    def learn(self, kind: str, total: FloatArray, people: int) -> None:
        """A first look, or a step of the fit."""
        if kind == "gradient" and self.refines:
            if people:
                asked = self._round()
                unit = asked.limit / asked.weights
                noise = self._noise(self.q + 1) * unit**2 / people
                self.belief = regression_fit.update(
                    self.belief, asked, total / people * unit, noise
                )
        else:
            self._gather(total, people)
            self.belief = self._first_look()

    def _first_look(self) -> Belief:
        limit, part = regression_fit.first_cut(self.weights)
        read = self._mean_vector(self.total, self.people, limit, part)
        return regression_fit.first_look(*read, self.importance)

    def _round(self) -> Round:
        people = sum(phase.people for phase in self.schedule.phases() if phase.kind == "gradient")
        return regression_fit.prepare(
            self.belief, noise=self._noise(self.q + 1) / people, patience=self.schedule.patience
        )

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """θ."""
        theta = self.belief.mean
        return theta[:1], theta[None, 1:]

    def _spread(self) -> FloatArray:
        return self.belief.covariance[None, 1:, 1:]

    def state(self) -> dict[str, Any]:
        """First sums and the posterior of θ."""
        return {
            "total": self.total.tolist(),
            "people": self.people,
            "belief": {k: v.tolist() for k, v in asdict(self.belief).items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.total, self.people = np.asarray(state["total"]), state["people"]
        self.belief = Belief(**{k: np.asarray(v) for k, v in state["belief"].items()})
