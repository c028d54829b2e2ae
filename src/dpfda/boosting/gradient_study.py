"""Gradient reports: a Bayesian Newton step a round (methods 8.8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.boosting.design import BoostingDesign, BoostingProgress
from dpfda.boosting.feature_map import FeatureMap
from dpfda.boosting.logistic import most_likely, prior_precision
from dpfda.boosting.model import LogisticModel
from dpfda.boosting.posterior import Posterior, absorb, best_view, report_slope
from dpfda.boosting.requests.gradient import GradientRequest, mean_variance, report_gain
from dpfda.protocol.design import Terms
from dpfda.protocol.fields import array, number, part, whole
from dpfda.protocol.findings import Step
from dpfda.protocol.plan import StudyPlan

_LEAST_SLOPE = 1e-50  # its square does not underflow
_MANY = 64  # directions: with fewer, a report tells a little more


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientDesign(BoostingDesign, name="gradient_boosting"):
    """Learns a logistic model from one codeword an owner; needs no labels of its own.

    Attributes:
        features: how a row becomes φ.
        reference: the data user's own rows, unlabeled; they are used, not protected.
        owners_per_round: by default all owners are shared evenly among the rounds.
        radius: gradients are cut at radius · √(k/n).
        typical_rows: how many rows an owner has on average, to plan with; N by default.
        typical_epsilon: what an owner spends, to plan with; the plan's ε by default.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(50, 2))
        >>> GradientDesign(features=FeatureMap.learnt(rows), reference=rows, n_rows=4).columns
        2
    """

    features: FeatureMap = part(lambda: FeatureMap)
    reference: FloatArray = array("real", "reference", "columns")
    owners_per_round: int | None = whole(optional=True, default=None)
    radius: float = number(least=1e-6, most=1e6, default=0.5)
    typical_rows: float | None = number(least=1e-3, most=1e6, optional=True, default=None)
    typical_epsilon: float | None = number(least=1e-6, most=1e6, optional=True, default=None)

    @property
    def columns(self) -> int:
        """d."""
        return int(np.shape(self.reference)[1])

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """One codeword near a gradient, in any number of directions."""
        slopes = (plan.n_classes - 1) * self.features.size
        lengths = {"scores": plan.n_classes - 1, "size": self.features.size, "slopes": slopes}
        directions = range(1, slopes + 1)
        terms = self.terms(plan, radius=self.radius, directions=directions, **lengths)
        return {"gradient": terms}


class GradientProgress(BoostingProgress, name="gradient_boosting"):
    """A belief about θ, sharpened by the mean report of each round."""

    def __init__(self, design: GradientDesign, plan: StudyPlan) -> None:
        self.design = design
        self._epsilon = _given(design.typical_epsilon, plan.epsilon)
        self._rows = _given(design.typical_rows, design.n_rows)
        self._phi = design.features(design.reference)
        self._generator = np.random.default_rng(plan.seed)
        classes = plan.n_classes
        precision = prior_precision(design.features.prior_variance, classes=classes)
        theta = np.zeros((classes - 1) * design.features.size)
        if len(design.labels):
            phi = design.features(design.labeled)
            fit = most_likely(phi, design.labels, precision=precision, classes=classes)
            theta, precision = fit[0].ravel(), fit[1]
        self._belief = Posterior(precision, precision @ theta, classes)
        used = plan.n_people
        if design.owners_per_round is not None:
            used = min(used, design.owners_per_round * design.n_rounds)
        shares = np.diff(np.linspace(0, used, design.n_rounds + 1).astype(np.int64))
        super().__init__(plan, [Step("gradient", int(share)) for share in shares if share])
        self._look()

    def _look(self) -> None:
        """Choose directions for the present phase."""
        if self.finished:
            return
        self._view = best_view(
            self._belief,
            self._phi,
            owners=self.quota,
            rows=self._rows,
            gain=report_gain(self._epsilon, directions=_MANY),
        )

    def tasks(self, start: int, people: int) -> GradientRequest:
        """Everybody in a round is asked the same."""
        asked = self._ask(
            "gradient",
            people,
            features=self.design.features,
            coefficients=self._belief.coefficients,
            projection=self._view.projection,
        )
        assert isinstance(asked, GradientRequest)
        return asked

    @property
    def boosted(self) -> LogisticModel:
        """The posterior mean."""
        return LogisticModel(features=self.design.features, coefficients=self._belief.coefficients)

    def close(self) -> None:
        """One Newton step, and the next view."""
        super().close()
        self._look()

    def _learn(self) -> None:
        """One Newton step towards what the owners say, as far as they can be believed."""
        request = self.tasks(0, 1)
        replies = self._collected(request.width)
        if not len(replies):
            return
        estimates = request.estimates(replies)
        # Reports of an owner with gain m have variance about 1/m²: weigh them by m².
        epsilons, kind = np.unique(request.spent(replies), return_inverse=True)
        gains = [report_gain(float(each), directions=request.directions) for each in epsilons]
        weights = np.array(gains)[kind] ** 2
        weights /= weights.sum()
        mean = weights @ estimates
        # Not their own spread: a few owners say too little about it, and one alone says 0.
        variance = mean_variance(mean, weights, epsilons, kind)
        slope = report_slope(
            request, self._phi, sizes=self._sizes(len(replies)), generator=self._generator
        )
        said = slope > _LEAST_SLOPE  # public: below, no report of this round says anything
        if said:
            self._belief = absorb(
                self._belief, self._view, mean=mean, variance=variance, slope=slope
            )
        self.history.append(
            {
                "round": len(self.history) + 1,
                "owners": len(replies),
                "directions": request.directions,
                "step": float(np.linalg.norm(mean) / slope) if said else 0.0,
            }
        )

    def _sizes(self, owners: int) -> Any:
        """Whole numbers of rows with the typical mean."""
        low = int(self._rows)
        return np.maximum(low + (np.arange(owners) < (self._rows - low) * owners), 1)

    def state(self) -> dict[str, Any]:
        """The belief, and where the public randomness is."""
        words = self._generator.bit_generator.state["state"]
        return super().state() | {
            "precision": self._belief.precision.tolist(),
            "shift": self._belief.shift.tolist(),
            "generator": {name: str(word) for name, word in words.items()},  # 128 bits each
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().restore(state)
        precision, shift = np.asarray(state["precision"]), np.asarray(state["shift"])
        self._belief = Posterior(precision, shift, self.plan.n_classes)
        words = {name: int(word) for name, word in state["generator"].items()}
        bits = self._generator.bit_generator
        bits.state = dict(bits.state) | {"state": words}
        self._look()


def _given(value: float | None, default: float) -> float:
    return default if value is None else value
