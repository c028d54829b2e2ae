"""The data user of gradient reports: a Bayesian Newton step a round (methods 8.8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.feature_map import FeatureMap
from dpfda.boosting.logistic import most_likely, prior_precision
from dpfda.boosting.model import LogisticModel
from dpfda.boosting.posterior import Posterior, absorb, best_view, report_slope
from dpfda.boosting.requests.gradient import GradientRequest
from dpfda.boosting.roles import DataUser, Replies


class GradientUser(DataUser):
    """Learns a logistic model from one codeword an owner; needs no labels of its own.

    Args:
        study: name of the study.
        features: how a row becomes φ.
        reference: the data user's own rows, unlabelled; they are used, not protected.
        classes: K.
        owners: how many owners take part in all, shared evenly among the rounds.
        epsilon: typical ε of an owner, to plan with.
        rows: typical number of rows of an owner, to plan with.
        rounds: how many rounds.
        labelled: the data user's labelled rows and their label numbers, if there are any.
        radius: gradients are cut at radius · √(k/N).
        seed: of the public randomness.
    """

    def __init__(
        self,
        study: str,
        *,
        features: FeatureMap,
        reference: FloatArray,
        classes: int,
        owners: int,
        epsilon: float,
        rows: float,
        rounds: int = 10,
        labelled: tuple[FloatArray, IntArray] | None = None,
        radius: float = 0.5,
        seed: int = 0,
    ) -> None:
        super().__init__(study)
        self._features, self._phi = features, features(reference)
        self._epsilon, self._rows = epsilon, rows
        self._radius = _validate.positive("radius", radius)
        self._generator = np.random.default_rng(seed)
        shares = np.diff(np.linspace(0, owners, rounds + 1).astype(np.int64))
        self._quotas = [int(share) for share in shares if share]
        precision = prior_precision(features.prior_variance, classes=classes)
        theta = np.zeros((classes - 1) * features.size)
        if labelled is not None and len(labelled[1]):
            fitted, precision = most_likely(
                features(labelled[0]), labelled[1], precision=precision, classes=classes
            )
            theta = fitted.ravel()
        self._belief = Posterior(precision, precision @ theta, classes)
        self._look()

    def _look(self) -> None:
        """Choose directions and write the next request."""
        if not self._quotas:
            return
        gain = GradientRequest.gain(self._epsilon)
        self._view = best_view(
            self._belief, self._phi, owners=self._quotas[0], rows=self._rows, gain=gain
        )
        self._request = GradientRequest(
            features=self._features,
            coefficients=self._belief.coefficients,
            projection=self._view.projection,
            radius=self._radius,
        )

    @property
    def wanted(self) -> int:
        """The next round's share of the owners."""
        return self._quotas[0] if self._quotas else 0

    @property
    def request(self) -> GradientRequest:
        """The present request."""
        return self._request

    @property
    def model(self) -> LogisticModel:
        """The posterior mean."""
        return LogisticModel(features=self._features, coefficients=self._belief.coefficients)

    def absorb(self, replies: Replies) -> None:
        """One Newton step towards what the owners say, as far as they can be believed."""
        estimates = replies.decoded(self._request)
        # Reports of an owner with gain m have variance about 1/m²: weigh them by m².
        epsilons, kind = np.unique(replies.epsilons, return_inverse=True)
        gains = np.array([GradientRequest.gain(float(epsilon)) for epsilon in epsilons])
        weights = gains[kind] ** 2
        weights /= weights.sum()
        mean = weights @ estimates
        spread = float((weights**2 @ (estimates - mean) ** 2).mean())
        slope = report_slope(
            self._request, self._phi, sizes=replies.sizes, generator=self._generator
        )
        self._belief = absorb(
            self._belief, self._view, mean=mean, variance=max(spread, 1e-12), slope=slope
        )
        step = float(np.linalg.norm(mean) / slope)
        self.history.append(self._row(len(estimates), step))
        self._quotas.pop(0)
        self._look()

    def _row(self, owners: int, step: float) -> dict[str, Any]:
        return {
            "round": len(self.history) + 1,
            "owners": owners,
            "directions": self._request.directions,
            "step": step,
        }
