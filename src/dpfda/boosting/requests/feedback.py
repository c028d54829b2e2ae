"""Feedback: was the new rule right on one of your rows? It replaces a clean validation set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.ensemble import Ensemble
from dpfda.boosting.model import BoostedModel
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.requests.base import Request, owner_guarantee
from dpfda.boosting.rules import Rule
from dpfda.errors import ProtocolError
from dpfda.mechanisms.categorical_response import CategoricalResponse
from dpfda.noise import Source
from dpfda.noise.uniform import below
from dpfda.privacy.guarantee import Guarantee

_COIN = 1 << 30


@dataclass(frozen=True, kw_only=True, eq=False)
class FeedbackRequest(Request, name="feedback"):
    """An owner draws one of their rows; it counts with probability w: right, wrong or not counted.

    Of many owners, P(wrong)/(P(right) + P(wrong)) is the weighted error of the rule.

    Privacy:
        ε-LDP for everything the owner holds: one of three answers through randomized response.

    Attributes:
        ensemble: the vote so far; it gives the weights.
        rule: the new base learner.
        cap: weights are divided by this public number and cut at 1.
    """

    ensemble: Ensemble
    rule: Rule
    cap: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.ensemble, Mapping):
            object.__setattr__(self, "ensemble", BoostedModel.from_dict(self.ensemble))
        if isinstance(self.rule, Mapping):
            object.__setattr__(self, "rule", Rule.from_dict(self.rule))
        _validate.positive("cap", self.cap)

    @property
    def width(self) -> int:
        """One category."""
        return 1

    @property
    def columns(self) -> int:
        """d."""
        return len(self.ensemble.centre)

    @property
    def classes(self) -> int:
        """K."""
        return self.ensemble.classes

    def answer(self, rows: OwnerRows, *, epsilon: float, rng: Source) -> FloatArray:
        """0: wrong, 1: right, 2: the row did not count."""
        inside, weights = self.ensemble.prepared(rows, cap=self.cap)
        right = self.rule.decide(inside) == rows.labels
        # Any choice of the row is private; a word modulo N is uniform to one part in 2^60.
        chosen = (rng.words(len(rows)) % rows.sizes.astype(np.uint64)).astype(np.int64)
        place = np.argsort(~rows.present, axis=1, kind="stable")
        row = np.take_along_axis(place, chosen[:, None], axis=1)
        weight = np.take_along_axis(weights, row, axis=1)[:, 0]
        counts = below(_COIN, len(rows), rng) < (weight * _COIN).astype(np.uint64)
        verdict = np.take_along_axis(right, row, axis=1)[:, 0].astype(np.float64)
        truth = np.where(counts, verdict, 2.0)
        return CategoricalResponse(epsilon=epsilon, categories=3).randomize(truth, rng)[:, None]

    def decode(self, replies: FloatArray, *, epsilon: float, sizes: IntArray) -> FloatArray:
        """Unbiased indicators of wrong, right and not counted, shape (H, 3)."""
        values = self.check(replies)
        if not np.isin(values, [0.0, 1.0, 2.0]).all():
            raise ProtocolError("a reply must be 0, 1 or 2")
        return CategoricalResponse(epsilon=epsilon, categories=3).debias(values[:, 0])

    def guarantee(self, epsilon: float) -> Guarantee:
        """ε for the owner."""
        return owner_guarantee(epsilon)
