"""What the scikit-learn faces of studies share: reading input, randomness, prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_is_fitted,
    column_or_1d,
)

from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.face.estimator import PrivateEstimator, check_numbers
from dpfda.noise import Source
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC, Guarantee
from dpfda.protocol.model import CurveModel
from dpfda.protocol.person import one_by_one


class CurveClassifierBase(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """A classifier of curves that holds a public `CurveModel` once it is fitted."""

    _stream = 1  # of a seed: simulated data may have been drawn from the plain one

    encoder: Any
    classes: Any
    classes_: Any
    grid_points_: Any
    model_: CurveModel

    @property
    def _account(self) -> dict[str, Any]:
        """Everybody in the data spends what they are promised, before anybody is asked."""
        return {"ledger": self.ledger, "label": type(self).__name__}

    def _encoder(self) -> CurveEncoder:
        if self.encoder is None:
            return CurveEncoder("bspline", n_basis=4)
        if not isinstance(self.encoder, CurveEncoder):
            raise InvalidParameter("encoder", "None or a CurveEncoder", self.encoder)
        return self.encoder

    # -- reading --------------------------------------------------------------------------------

    def _read_curves(self, curves: Any, *, reset: bool, own_points: bool = False) -> Any:
        """Arrays are checked as scikit-learn does; curves with their own grids pass.

        `own_points`: new curves come with their own grid, so their number of points is free.
        """
        if hasattr(curves, "to_grid"):  # scikit-fda's curves on a basis, or on a grid already
            curves = curves.to_grid()
        if _own_grids(curves):
            return curves
        # With real noise, what a person holds decides nothing: infinities are encoded as 0.
        finite = "allow-nan" if self._is_simulation else False
        if own_points:
            return check_numbers(curves, ensure_all_finite=finite)
        return self._numbers(curves, reset=reset, ensure_all_finite=finite)

    def _read_labels(self, labels: Any, count: int) -> np.ndarray[Any, np.dtype[Any]]:
        """Labels as a vector. With real noise none of them is refused: unknown ones are number 0.

        A simulation says what is wrong with them.
        """
        if labels is None:
            raise ValueError("This classifier requires y to be passed, but the target y is None")
        if not self._is_simulation:
            values = one_by_one(labels)
        else:
            values = np.asarray(column_or_1d(labels, warn=True))
            if values.dtype.kind == "O" and len({type(value) for value in values}) > 1:
                raise InvalidData("labels", "all of one kind (numbers or words), none missing")
        if len(values) != count:
            raise InvalidData("labels", f"{count} labels, one for each curve")
        if self._is_simulation:
            if values.dtype.kind == "f" and not np.all(np.isfinite(values)):
                raise ValueError("Input y contains NaN or infinity.")
            check_classification_targets(values)
        return values

    def _set_classes(self, labels: Any, classes: Any = None) -> None:
        """The public set of labels: given, or in a simulation those that occur."""
        given = self.classes if classes is None else classes
        if given is None and not self._is_simulation:
            rule = "given where random_state is None: a set read off private labels is not private"
            raise InvalidParameter("classes", rule, None)
        self._classes_given = given is not None
        self.classes_ = np.unique(labels if given is None else np.asarray(given))
        if len(self.classes_) < 2:
            rule = "of at least 2 classes, not one class only (or pass classes=)"
            raise InvalidData("labels" if given is None else "classes", rule)
        if len(self.classes_) != 2 and not self.__sklearn_tags__().classifier_tags.multi_class:
            raise ValueError(
                "Only binary classification is supported: a classifier that is wrong about one of "
                f"several classes is not right when reversed. There are {len(self.classes_)} "
                "classes."
            )
        self._check_labels(labels)

    def _check_labels(self, labels: Any) -> None:
        if self._is_simulation and not np.all(np.isin(labels, self.classes_)):
            raise InvalidData("labels", "among the given classes")

    def _promise(self, promise: Guarantee, source: Source) -> Guarantee:
        """What people were promised, stamped with what only this simulation knows."""
        stamped = promise.drawn_from(source)
        return stamped if self._classes_given else stamped.assuming(CLASSES_ARE_PUBLIC)

    # -- prediction -------------------------------------------------------------------------------

    def decision_function(self, curves: Any, grid_points: Any = None) -> FloatArray:
        """Scores of new curves: (n, K), or (n,) for two classes, ``classes_[1]`` from 0 on."""
        features = self._features(curves, grid_points)  # first: it refuses the unfitted
        scores = self.model_.scores(features)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, curves: Any, grid_points: Any = None) -> Any:
        """Labels of new curves."""
        features = self._features(curves, grid_points)
        return self.classes_[self.model_.decide(features)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Part of the labels that are predicted; not private."""
        predicted = self.predict(X)
        labels = self._read_labels(y, len(predicted))
        return float(np.average(predicted == labels, weights=sample_weight))

    def _features(self, curves: Any, grid_points: Any) -> FloatArray:
        check_is_fitted(self, "model_")
        read = self._read_curves(curves, reset=False, own_points=grid_points is not None)
        points = self.grid_points_ if grid_points is None and not _own_grids(read) else grid_points
        return self.model_.encoder.encode(read, points)

    def _require_fitted(self) -> None:
        check_is_fitted(self, "model_")

    def _label_numbers(self, labels: Any, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        values = self._read_labels(labels, count)
        return np.asarray(values == self.classes_[1], dtype=np.int64)

    # -- scikit-learn ------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # privacy costs accuracy on their small data sets
        tags.input_tags.allow_nan = True  # a missing point of a curve
        return tags


def plain_classes(classes: Any) -> tuple[Any, ...]:
    """Labels as plain Python values, for a plan."""
    return tuple(np.asarray(classes).tolist())


def stamped(model: CurveModel, guarantee: Guarantee) -> CurveModel:
    """The model with what its people were really promised."""
    return replace(model, guarantee=guarantee)


def count_rows(curves: Any) -> int:
    """How many people the input holds."""
    return int(curves.shape[0]) if hasattr(curves, "shape") else len(curves)


def _own_grids(curves: Any) -> bool:
    """Whether curves bring their own points: scikit-fda objects, or a list of pairs (t, x)."""
    if hasattr(curves, "grid_points") or hasattr(curves, "start_indices"):
        return True
    if not isinstance(curves, (list, tuple)) or not len(curves):
        return False
    first = curves[0]
    return isinstance(first, tuple) and len(first) == 2 and np.ndim(first[0]) == 1
