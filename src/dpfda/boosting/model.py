"""Finished classifiers of rows: public, portable."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.feature_map import FeatureMap
from dpfda.boosting.logistic import probabilities


class BoostedModel(Registered, family="boosted model"):
    """Scores rows, one score a class; the largest wins (for two classes, ties go to class 1)."""

    @abstractmethod
    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores of rows (n, d), shape (n, K)."""

    def decide(self, rows: FloatArray) -> IntArray:
        """Label numbers."""
        scores = self.scores(rows)
        if scores.shape[1] == 2:
            return (scores[:, 1] >= scores[:, 0]).astype(np.int64)
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticModel(BoostedModel, name="logistic"):
    """A logistic model of φ(x); scores are logarithms of probabilities up to a constant.

    Attributes:
        features: how a row becomes φ.
        coefficients: θ, shape (K - 1, D).
    """

    features: FeatureMap
    coefficients: FloatArray

    def __post_init__(self) -> None:
        if isinstance(self.features, Mapping):
            object.__setattr__(self, "features", FeatureMap.from_dict(self.features))
        object.__setattr__(self, "coefficients", np.asarray(self.coefficients, dtype=np.float64))

    def scores(self, rows: FloatArray) -> FloatArray:
        """0 for class 0, θ_k·φ for class k."""
        scores = self.features(np.asarray(rows)) @ self.coefficients.T
        return np.concatenate([np.zeros((len(scores), 1)), scores], axis=1)

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """P(y = k), shape (n, K)."""
        chances = probabilities(self.features(np.asarray(rows)), self.coefficients)
        return np.concatenate([1 - chances.sum(axis=1, keepdims=True), chances], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "features": self.features.to_dict(),
            "coefficients": self.coefficients.tolist(),
        }
