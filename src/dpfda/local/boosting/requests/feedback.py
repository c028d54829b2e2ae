"""Feedback: was the new rule right on one of your rows? It replaces a clean validation set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.owner_rows import OwnerRows
from dpfda.local.boosting.requests.share import VoteRequest
from dpfda.local.boosting.weak_rules import StumpRule, WeakRule
from dpfda.mechanisms.categorical_response import CategoricalResponse
from dpfda.noise import Source
from dpfda.noise.uniform import below
from dpfda.protocol.fields import part
from dpfda.protocol.query import Records

_COIN = 1 << 30


@dataclass(frozen=True, kw_only=True, eq=False)
class FeedbackRequest(VoteRequest, name="feedback"):
    """An owner draws one of their rows; it counts with probability w: right, wrong or not counted.

    Of many owners, P(wrong)/(P(right) + P(wrong)) is the weighted error of the rule.

    Privacy:
        ε-LDP for everything the owner holds: one of three answers through randomized response.

    Attributes:
        rule: the new weak rule.
    """

    sent = 1  # one category

    rule: WeakRule = part(lambda: WeakRule)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rule.fits(columns=self.dimension, classes=self.n_classes):
            raise InvalidParameter("rule", "about these features and classes", "others")

    @cached_property
    def mechanism(self) -> CategoricalResponse:
        """Randomized response on three categories."""
        return CategoricalResponse(epsilon=self.epsilon, categories=3)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """0: wrong, 1: right, 2: the row did not count."""
        rows = OwnerRows(*records)
        inside, weights = self.ensemble.prepared(rows, cap=self.cap)
        right = self.rule.decide(inside) == rows.labels
        # Any choice of the row is private; a word modulo N is uniform to one part in 2^60.
        chosen = (source.words(rows.owners) % rows.sizes.astype(np.uint64)).astype(np.int64)
        weight = np.take_along_axis(weights, chosen[:, None], axis=1)[:, 0]
        counts = below(_COIN, rows.owners, source) < (weight * _COIN).astype(np.uint64)
        verdict = np.take_along_axis(right, chosen[:, None], axis=1)[:, 0].astype(np.float64)
        return np.where(counts, verdict, 2.0)

    def possible(self, sent: FloatArray) -> npt.NDArray[np.bool_]:
        """One of three categories."""
        return np.isin(sent[:, 0], (0.0, 1.0, 2.0))

    def decode(self, sent: FloatArray) -> FloatArray:
        """Unbiased indicators of wrong, right and not counted, shape (H, 3)."""
        return self.mechanism.debias(sent[:, 0])

    @classmethod
    def examples(cls) -> list[Self]:
        """A rule that is often wrong."""
        rule: Any = StumpRule(feature=1, threshold=0.0, below=1, above=0)
        return [cls(**cls.example_fields(rule=rule))]
