"""A weighted vote of weak rules (SAMME), its sample weights, and the weak rules.

The rules accept rows that are scaled to the box [-1, 1]^d.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.model import BoostedModel
from dpfda.local.boosting.request import OwnerRows
from dpfda.protocol.fields import array, check_fields, number, parts, vector, whole
from dpfda.protocol.linear_scores import decided

_LARGEST = 1e9  # limit of the numbers in a rule: far outside of the box, without overflow
_MOST_CLASSES = 1 << 10


@dataclass(frozen=True, kw_only=True, eq=False)
class WeakRule(Registered, family="weak rule"):
    """Predicts a class for each row."""

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def decide(self, rows: FloatArray) -> IntArray:
        """Label numbers of rows (..., d), shape (...)."""

    @abstractmethod
    def fits(self, *, columns: int, classes: int) -> bool:
        """Whether the rule fits this number of features and predicts only these classes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CentroidRule(WeakRule, name="centroid"):
    """The class with the nearest centroid.

    Examples:
        >>> CentroidRule(centroids=[[-1.0], [1.0]]).decide(np.array([[0.3], [-2.0]]))
        array([1, 0])
    """

    centroids: FloatArray = array("real", "classes", "columns", least=-_LARGEST, most=_LARGEST)

    def decide(self, rows: FloatArray) -> IntArray:
        """Label numbers; |x|² is left out, because it is the same for all centroids."""
        return decided(rows @ self.centroids.T - (self.centroids**2).sum(axis=1) / 2)

    def fits(self, *, columns: int, classes: int) -> bool:
        """Whether there is one centroid per class, with this number of features."""
        return self.centroids.shape == (classes, columns)


@dataclass(frozen=True, kw_only=True, eq=False)
class StumpRule(WeakRule, name="stump"):
    """One feature, one threshold, one class on each side (Eq. (1) of 004).

    Examples:
        >>> rule = StumpRule(feature=0, threshold=0.5, below=1, above=0)
        >>> rule.decide(np.array([[0.3], [0.5]]))
        array([1, 0])
    """

    feature: int = whole(least=0)
    threshold: float = number(least=-_LARGEST, most=_LARGEST)
    below: int = whole(least=0, most=_MOST_CLASSES)
    above: int = whole(least=0, most=_MOST_CLASSES)

    def decide(self, rows: FloatArray) -> IntArray:
        """The class of each row's leaf."""
        return np.where(rows[..., self.feature] >= self.threshold, self.above, self.below)

    def fits(self, *, columns: int, classes: int) -> bool:
        """Whether the feature and the classes of the leaves exist."""
        return self.feature < columns and max(self.below, self.above) < classes


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearRule(WeakRule, name="linear"):
    """The sign of one score (0 counts as class 1), or the largest of K scores.

    Examples:
        >>> LinearRule(coefficients=[[1.0]], intercepts=[-0.5]).decide(np.array([[0.3], [0.7]]))
        array([0, 1])
    """

    coefficients: FloatArray = array("real", "scores", "columns", least=-_LARGEST, most=_LARGEST)
    intercepts: FloatArray = vector("scores", least=-_LARGEST, most=_LARGEST)

    def decide(self, rows: FloatArray) -> IntArray:
        """Label numbers from the scores."""
        return decided(rows @ self.coefficients.T + self.intercepts)

    def fits(self, *, columns: int, classes: int) -> bool:
        """Whether there is one score for two classes, or one per class."""
        return self.coefficients.shape == (1 if classes == 2 else classes, columns)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble(BoostedModel, name="ensemble"):
    """argmax_k Σ_m α_m 1{T_m(x) = k} on rows scaled into [-1, 1]^d by public bounds.

    Attributes:
        classes: K.
        center: center of the public range of each feature.
        half_range: half its width.
        rules: the weak rules T_m.
        alphas: their weights α_m > 0.

    Examples:
        >>> from dpfda.local.boosting.ensemble import StumpRule
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
            raise InvalidParameter(
                "rules", f"for {self.columns} columns and {self.classes} classes", "others"
            )

    @classmethod
    def empty(cls, bounds: ArrayLike, *, classes: int) -> Ensemble:
        """An ensemble without rules; `bounds` are the public (low, high) of each feature."""
        low, high = np.asarray(bounds, dtype=np.float64).T
        return cls(classes=classes, center=(low + high) / 2, half_range=(high - low) / 2)

    @property
    def columns(self) -> int:
        """The number of features d."""
        return len(self.center)

    def joined(self, rule: WeakRule, *, alpha: float) -> Ensemble:
        """The ensemble with one more rule."""
        return replace(self, rules=(*self.rules, rule), alphas=np.append(self.alphas, alpha))

    def scaled(self, rows: FloatArray) -> FloatArray:
        """Rows scaled to the box; values outside the public bounds are clipped."""
        return np.asarray(np.clip((rows - self.center) / self.half_range, -1.0, 1.0))

    def scores(self, rows: FloatArray) -> FloatArray:
        """The weighted votes for each class."""
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
        """Scaled rows and weights min(w/cap, 1) of owners; absent rows have weight 0."""
        inside = self.scaled(rows.features)
        weights = np.minimum(self.weights(inside, rows.labels) / cap, 1.0)
        return inside, weights * rows.present
