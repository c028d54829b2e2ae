"""A weighted vote of weak rules (SAMME), and the sample weights that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.model import BoostedModel
from dpfda.local.boosting.owner_rows import OwnerRows
from dpfda.local.boosting.weak_rules import WeakRule
from dpfda.protocol.fields import array, parts, vector, whole


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble(BoostedModel, name="ensemble"):
    """argmax_k Σ_m α_m 1{T_m(x) = k} on rows scaled into [-1, 1]^d by public bounds.

    Attributes:
        classes: K.
        center: middle of the public range of each feature.
        half_range: half its width.
        rules: the weak rules T_m.
        alphas: their weights α_m > 0.

    Examples:
        >>> from dpfda.local.boosting.weak_rules import StumpRule
        >>> vote = Ensemble.empty([(0.0, 10.0)], classes=2)
        >>> vote = vote.joined(StumpRule(feature=0, threshold=0.0, below=0, above=1), alpha=1.0)
        >>> vote.decide(np.array([[2.0], [8.0]]))
        array([0, 1])
    """

    classes: int = whole(least=2, most=1 << 10)
    center: FloatArray = vector("columns")
    half_range: FloatArray = vector("columns", least=1e-100)
    rules: tuple[WeakRule, ...] = parts(lambda: WeakRule, default=())
    alphas: FloatArray = array("real", "rules", least=0, most=1e3, default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.rules) != len(self.alphas):
            raise InvalidParameter("alphas", "one for each rule", len(self.alphas))
        if not all(rule.fits(columns=self.columns, classes=self.classes) for rule in self.rules):
            raise InvalidParameter("rules", "about these features and classes", "others")

    @classmethod
    def empty(cls, bounds: Any, *, classes: int) -> Ensemble:
        """No rule yet; `bounds` are the public (low, high) of each feature."""
        low, high = np.asarray(bounds, dtype=np.float64).T
        return cls(classes=classes, center=(low + high) / 2, half_range=(high - low) / 2)

    @property
    def columns(self) -> int:
        """d."""
        return len(self.center)

    def joined(self, rule: WeakRule, *, alpha: float) -> Ensemble:
        """The vote with one more rule."""
        return replace(self, rules=(*self.rules, rule), alphas=np.append(self.alphas, alpha))

    def scaled(self, rows: FloatArray) -> FloatArray:
        """Rows inside the box; what lies outside the public bounds is clipped."""
        return np.asarray(np.clip((rows - self.center) / self.half_range, -1.0, 1.0))

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
