"""Base learners: the weak rules that boosting votes with. They look at rows scaled into the box."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray, IntArray


class Rule(Registered, family="rule"):
    """Names a class for each row."""

    @abstractmethod
    def decide(self, rows: FloatArray) -> IntArray:
        """Label numbers of rows (..., d), shape (...)."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}
        return {"name": self.name} | plain


@dataclass(frozen=True, kw_only=True, eq=False)
class CentroidRule(Rule, name="centroid"):
    """The class with the nearest centroid.

    Example:
        >>> CentroidRule(centroids=np.array([[-1.0], [1.0]])).decide(np.array([[0.3], [-2.0]]))
        array([1, 0])
    """

    centroids: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "centroids", np.asarray(self.centroids, dtype=np.float64))

    def decide(self, rows: FloatArray) -> IntArray:
        """|x|² is the same for all centroids."""
        scores = rows @ self.centroids.T - (self.centroids**2).sum(axis=1) / 2
        return np.asarray(scores.argmax(axis=-1), dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class StumpRule(Rule, name="stump"):
    """One feature, one threshold, one class on each side (Eq. (1) of 004).

    Example:
        >>> rule = StumpRule(feature=0, threshold=0.5, below=1, above=0)
        >>> rule.decide(np.array([[0.3], [0.5]]))
        array([1, 0])
    """

    feature: int
    threshold: float
    below: int
    above: int

    def decide(self, rows: FloatArray) -> IntArray:
        """The leaf of each row."""
        return np.where(rows[..., self.feature] >= self.threshold, self.above, self.below)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearRule(Rule, name="linear"):
    """The sign of one score (0 counts as class 1), or the largest of K scores.

    Example:
        >>> rule = LinearRule(coefficients=np.array([[1.0]]), intercepts=np.array([-0.5]))
        >>> rule.decide(np.array([[0.3], [0.7]]))
        array([0, 1])
    """

    coefficients: FloatArray
    intercepts: FloatArray

    def __post_init__(self) -> None:
        for name in ("coefficients", "intercepts"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))

    def decide(self, rows: FloatArray) -> IntArray:
        """Scores of all classes at once."""
        scores = rows @ self.coefficients.T + self.intercepts
        if scores.shape[-1] == 1:
            return (scores[..., 0] >= 0).astype(np.int64)
        return np.asarray(scores.argmax(axis=-1), dtype=np.int64)
