"""The weak rules that boosting votes with. They look at rows scaled into the box [-1, 1]^d."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray, IntArray
from dpfda.protocol.fields import Declared, array, number, vector, whole
from dpfda.protocol.linear_scores import decided

_LARGEST = 1e9  # of any number in a rule: far beyond the box, far from overflow
_MOST_CLASSES = 1 << 10


@dataclass(frozen=True, kw_only=True, eq=False)
class WeakRule(Registered, Declared, family="weak rule"):
    """Names a class for each row."""

    @abstractmethod
    def decide(self, rows: FloatArray) -> IntArray:
        """Label numbers of rows (..., d), shape (...)."""

    @abstractmethod
    def fits(self, *, columns: int, classes: int) -> bool:
        """Whether it looks at that many features and names none but these classes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CentroidRule(WeakRule, name="centroid"):
    """The class with the nearest centroid.

    Examples:
        >>> CentroidRule(centroids=[[-1.0], [1.0]]).decide(np.array([[0.3], [-2.0]]))
        array([1, 0])
    """

    centroids: FloatArray = array("real", "classes", "columns", least=-_LARGEST, most=_LARGEST)

    def decide(self, rows: FloatArray) -> IntArray:
        """|x|² is the same for all centroids."""
        return decided(rows @ self.centroids.T - (self.centroids**2).sum(axis=1) / 2)

    def fits(self, *, columns: int, classes: int) -> bool:
        """One centroid a class."""
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
        """The leaf of each row."""
        return np.where(rows[..., self.feature] >= self.threshold, self.above, self.below)

    def fits(self, *, columns: int, classes: int) -> bool:
        """Its feature and its leaves exist."""
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
        """Scores of all classes at once."""
        return decided(rows @ self.coefficients.T + self.intercepts)

    def fits(self, *, columns: int, classes: int) -> bool:
        """One score for two classes, else one a class."""
        return self.coefficients.shape == (1 if classes == 2 else classes, columns)
