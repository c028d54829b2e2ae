"""Reading private input: X as curves, y as labels of public classes or as numbers.

Estimators that predict labels or numbers: which of the two follows from their parameters.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils import ClassifierTags, RegressorTags

from dpfda._validate import AnyArray
from dpfda.curves.observations import depth, own_grids
from dpfda.errors import InvalidParameter
from dpfda.estimators.base import PrivateEstimator, check_numbers
from dpfda.estimators.reading import (
    count_channels,
    count_rows,
    no_grid,
    read_labels,
    read_targets,
    take,
    value_ranges,
)

__all__ = [
    "CurveReader",
    "LabelsOrNumbers",
    "classifies",
    "count_channels",
    "count_rows",
    "no_grid",
    "public_classes",
    "take",
    "value_ranges",
]


class CurveReader(PrivateEstimator):
    """An estimator that reads curves, labels, or both; no value of a person is shown."""

    value_range: Any
    classes: Any
    classes_: AnyArray
    _classes_given: bool
    grid_points_: Any
    n_features_in_: int

    def _read_curves(self, X: Any, *, reset: bool, own_points: bool = False) -> Any:
        """Arrays are checked as scikit-learn does; curves with their own grids pass.

        `own_points`: new curves come with their own grid, so their number of points is free.
        Arrays (n, T, C) are curves of C channels.
        """
        # scikit-fda's curves on a basis; a common grid of private points would show them all
        if hasattr(X, "to_grid") and not hasattr(X, "start_indices"):
            X = X.to_grid()
        if own_grids(X):
            return X
        # With real noise, what a person holds decides nothing: infinities are encoded as 0.
        gaps = "allow-nan" if getattr(self, "feature_ranges", None) is None else True
        finite = gaps if self._is_simulation else False
        rules: dict[str, Any] = {"ensure_all_finite": finite, "allow_nd": depth(X) == 3}
        return check_numbers(X, **rules) if own_points else self._numbers(X, reset=reset, **rules)

    def _value_ranges(self, X: Any) -> list[Any]:
        """The range of each channel; one pair is used for all."""
        return value_ranges(self.value_range, count_channels(X))


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
        if self._classifies:
            return read_labels(y, count, strict=self._is_simulation)
        return read_targets(y, count)

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
        raise InvalidParameter("classes", "given: no step sees the labels of all rows", None)
    names: Sequence[Any] = estimator.classes
    return names


def classifies(estimator: Any) -> bool:
    """For methods that only classifiers have."""
    return bool(estimator._classifies)
