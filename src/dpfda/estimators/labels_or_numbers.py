"""Estimators that predict labels or numbers: which of the two follows from their parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils import ClassifierTags, RegressorTags

from dpfda._validate import AnyArray
from dpfda.errors import InvalidParameter
from dpfda.estimators.curve_reader import CurveReader


class LabelsOrNumbers(CurveReader):
    """Reads what is to be predicted, scores predictions, and tells scikit-learn which it is."""

    @property
    @abstractmethod
    def _classifies(self) -> bool:
        """Whether labels are predicted."""

    @abstractmethod
    def predict(self, X: Any, *, grid_points: Any = None) -> AnyArray:
        """Labels or numbers of new rows."""

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, grid_points: Any = None) -> float:
        """R² of the predictions, or the part of labels that are predicted; not private."""
        predicted = self.predict(X, grid_points=grid_points)
        truth = self._values(y, len(predicted))
        if self._classifies:
            return float(np.average(predicted == truth, weights=sample_weight))
        return float(r2_score(truth, predicted, sample_weight=sample_weight))

    def _values(self, y: Any, count: int) -> AnyArray:
        """Private targets as numbers, or labels."""
        return self._read_labels(y, count) if self._classifies else self._read_targets(y, count)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # A hundred people, as in scikit-learn's checks, are too few for a private fit.
        if self._classifies:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags(poor_score=True)
        return tags


def public_classes(estimator: Any) -> Sequence[Any] | None:
    """The labels of a classifier, which must be given where nobody sees all rows together."""
    if not estimator._classifies:
        return None
    if estimator.classes is None:
        raise InvalidParameter("classes", "given: nobody sees the labels of all rows", None)
    names: Sequence[Any] = estimator.classes
    return names


def classifies(estimator: Any) -> bool:
    """For methods that only classifiers have."""
    return bool(estimator._classifies)
