"""What the scikit-learn faces of studies share: reading input, randomness, prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.face.curves import CurveReader, own_grids
from dpfda.noise import Source
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC, Guarantee
from dpfda.protocol.model import CurveModel


class CurveClassifierBase(ClassifierMixin, CurveReader):  # type: ignore[misc]
    """A classifier of curves that holds a public `CurveModel` once it is fitted."""

    _stream = 1  # of a seed: simulated data may have been drawn from the plain one

    encoder: Any
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
        points = self.grid_points_ if grid_points is None and not own_grids(read) else grid_points
        return self.model_.encoder.encode(read, points)

    def _require_fitted(self) -> None:
        check_is_fitted(self, "model_")

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
