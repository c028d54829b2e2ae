"""A weighted vote of base learners (SAMME), and the sample weights that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.model import BoostedModel
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.rules import Rule
from dpfda.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble(BoostedModel, name="ensemble"):
    """argmax_k Σ_m α_m 1{T_m(x) = k} on rows scaled into [-1, 1]^d by public bounds.

    Attributes:
        classes: K.
        centre: middle of the public range of each feature.
        half_range: half its width.
        rules: the base learners T_m.
        alphas: their weights α_m > 0.

    Example:
        >>> from dpfda.boosting.rules import StumpRule
        >>> vote = Ensemble.empty([(0.0, 10.0)], classes=2)
        >>> vote = vote.joined(StumpRule(feature=0, threshold=0.0, below=0, above=1), alpha=1.0)
        >>> vote.decide(np.array([[2.0], [8.0]]))
        array([0, 1])
    """

    classes: int
    centre: FloatArray
    half_range: FloatArray
    rules: tuple[Rule, ...] = ()
    alphas: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("centre", "half_range"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if not (self.half_range > 0).all():
            raise InvalidParameter(
                "feature_bounds", "pairs (low, high) with low < high", "no range"
            )
        made = (Rule.from_dict(rule) if isinstance(rule, Mapping) else rule for rule in self.rules)
        object.__setattr__(self, "rules", tuple(made))
        object.__setattr__(self, "alphas", tuple(map(float, self.alphas)))

    @classmethod
    def empty(cls, bounds: Any, *, classes: int) -> Ensemble:
        """No base learner yet; `bounds` are the public (low, high) of each feature."""
        low, high = np.asarray(bounds, dtype=np.float64).T
        return cls(classes=classes, centre=(low + high) / 2, half_range=(high - low) / 2)

    def joined(self, rule: Rule, *, alpha: float) -> Ensemble:
        """The vote with one more base learner."""
        return replace(self, rules=(*self.rules, rule), alphas=(*self.alphas, alpha))

    def scaled(self, rows: FloatArray) -> FloatArray:
        """Rows inside the box; what lies outside the public bounds is clipped."""
        return np.asarray(np.clip((rows - self.centre) / self.half_range, -1.0, 1.0))

    def scores(self, rows: FloatArray) -> FloatArray:
        """Votes for each class."""
        inside = self.scaled(np.asarray(rows))
        votes = np.zeros((len(inside), self.classes))
        for rule, alpha in zip(self.rules, self.alphas, strict=True):
            votes[np.arange(len(inside)), rule.decide(inside)] += alpha
        return votes

    def weights(self, inside: FloatArray, labels: IntArray) -> FloatArray:
        """w = e^{-Σ α_m 1{T_m right}} in (0, 1]: SAMME's weights over their public bound (C16).

        Args:
            inside: scaled rows (..., d).
            labels: label numbers (...).
        """
        exponent = np.zeros(labels.shape)
        for rule, alpha in zip(self.rules, self.alphas, strict=True):
            exponent -= alpha * (rule.decide(inside) == labels)
        return np.exp(exponent)

    def prepared(self, rows: OwnerRows, *, cap: float) -> tuple[FloatArray, FloatArray]:
        """Scaled rows and weights min(w/cap, 1) of owners; 0 where there is no row."""
        inside = self.scaled(rows.features)
        weights = np.minimum(self.weights(inside, rows.labels) / cap, 1.0)
        return inside, weights * rows.present

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "classes": self.classes,
            "centre": self.centre.tolist(),
            "half_range": self.half_range.tolist(),
            "rules": [rule.to_dict() for rule in self.rules],
            "alphas": list(self.alphas),
        }
