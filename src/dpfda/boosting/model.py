"""Finished classifiers of rows: public, portable."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.feature_map import FeatureMap
from dpfda.boosting.logistic import probabilities
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.declared import Declared
from dpfda.protocol.fields import array, part
from dpfda.protocol.plan import Label


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostedModel(Declared, family="boosted model"):
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

    features: FeatureMap = part(lambda: FeatureMap)
    coefficients: FloatArray = array("real", "scores", "size", least=-1e50, most=1e50)

    def scores(self, rows: FloatArray) -> FloatArray:
        """0 for class 0, θ_k·φ for class k."""
        scores = self.features(np.asarray(rows)) @ self.coefficients.T
        return np.concatenate([np.zeros((len(scores), 1)), scores], axis=1)

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """P(y = k), shape (n, K)."""
        chances = probabilities(self.features(np.asarray(rows)), self.coefficients)
        return np.concatenate([1 - chances.sum(axis=1, keepdims=True), chances], axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowModel:
    """What a study of owners ends with: a boosted model, its labels and its guarantee.

    Example:
        >>> from dpfda.boosting.ensemble import Ensemble
        >>> model = RowModel(boosted=Ensemble.empty([(0, 1)], classes=2), classes=("no", "yes"),
        ...                  guarantee=Guarantee(epsilon=1.0, model="local", unit="owner"))
        >>> RowModel.from_json(model.to_json()).predict([[0.5]]).tolist()
        ['yes']
    """

    boosted: BoostedModel
    classes: tuple[Label, ...]
    guarantee: Guarantee

    def decide(self, rows: FloatArray) -> IntArray:
        """Label numbers of rows (n, d)."""
        return self.boosted.decide(rows)

    def predict(self, curves: Any) -> Any:
        """Labels of rows (n, d)."""
        return np.asarray(self.classes)[self.decide(np.asarray(curves, dtype=np.float64))]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "boosted": self.boosted.to_dict(),
            "classes": list(self.classes),
            "guarantee": self.guarantee.to_dict(),
        }

    def to_json(self) -> bytes:
        """The model as a JSON document."""
        return msgspec.json.encode(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`."""
        promise = dict(data["guarantee"])
        promise["assumptions"] = tuple(promise["assumptions"])
        return cls(
            boosted=BoostedModel.from_dict(data["boosted"]),
            classes=tuple(data["classes"]),
            guarantee=Guarantee(**promise),
        )

    @classmethod
    def from_json(cls, document: bytes | str) -> Self:
        """Rebuild from `to_json`."""
        return cls.from_dict(msgspec.json.decode(document))
