"""scikit-learn estimators: private linear and logistic regression for a trusted curator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise import SecureSource
from dpfda.regression import fixed_point
from dpfda.regression.private_regression import PrivateRegression
from dpfda.regression.problem import Task


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLinearRegression(RegressorMixin, PrivateRegression):  # type: ignore[misc]
    """Least squares of a bounded target on bounded features, with differential privacy.

    Privacy:
        (ε, δ)-DP (pure ε for δ = 0, where the method allows it) for replacing one row; the unit is
        `unit` if everybody has one row. All bounds are public arguments; none is taken from the
        data. Each method states its own proof (`dpfda.regression.methods`).

    Args:
        epsilon, delta: the budget of the whole fit.
        method: ``moments`` (default), ``gaussian_fm``, ``adassp``, ``fm``, ``relaxed_fm``,
            ``objective_perturbation``, ``noisy_gradient``, ``output_perturbation``, or a `Method`.
        fit_intercept: allow a constant term.
        feature_norm_bound: public bound on |x - feature_center|₂. None with an encoder: √d.
        feature_center: public center, one number or one for each feature.
        target_bound: public bound on |y - target_center|.
        target_center: public center of the target.
        clip: shorten rows and targets to the bounds instead of refusing them.
        encoder: a `CurveEncoder`, for curves or for features with public ranges. Encoders move
            features into their ranges by design, whatever `clip` says.
        unit: whom one row stands for.
        ledger: the data set's budget over all fits; spent before noise is drawn, and refused
            before anything is spent where it cannot pay for the whole fit.
        random_state: None for exact noise; a seed for simulations.

    Attributes:
        coef_, intercept_: of the line inside the clipping ball; `predict` clips as in training.
            ``moments`` shortens rows, so its `coef_` is too large as a statement about unclipped
            rows: use it to predict, and ``gaussian_fm`` (clips at the public bounds only) where
            coefficients are the question.
        clipping_inflation_: how many times too large, about; 1.0 where nothing is clipped. A
            warning, not a correction: single coefficients differ.
        coef_standard_error_: from the known privacy noise alone, to first order; None where it has
            no simple form, and None where clipping may bias `coef_`. The intercept has none.
        guarantee_: what the fit promises.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-0.5, 0.5, (20_000, 3))
        >>> y = X @ [0.8, -0.4, 0.0] + 0.1
        >>> model = PrivateLinearRegression(epsilon=1.0, random_state=0).fit(X, y)
        >>> np.abs(model.predict(X) - y).mean() < 0.05
        np.True_
        >>> print(model.guarantee_)  # doctest: +ELLIPSIS
        ε = 1, δ = 1e-05, central, unit = person, sampler = simulation (seeded), assuming ...
    """

    _task: ClassVar[Task] = "linear"

    target_bound: float = 1.0
    target_center: float = 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a hundred people are too few for a private fit
        return tags

    def predict(self, X: Any) -> FloatArray:
        """Predicted targets, inside the public bounds."""
        low, high = self.target_center - self.target_bound, self.target_center + self.target_bound
        return np.clip(self._linear(X), low, high)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions; not private."""
        targets = _validate.vector("y", _one_column(y))
        return float(r2_score(targets, self.predict(X), sample_weight=sample_weight))

    def _targets(self, y: Any) -> FloatArray:
        targets = _validate.vector("y", _one_column(y))
        if not self.clip:
            center, radius = self._segment()
            fixed_point.require_segment(targets, center=center, radius=radius)
        return targets

    def _segment(self) -> tuple[float, float]:
        return self.target_center, _validate.positive("target_bound", self.target_bound)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLogisticRegression(ClassifierMixin, PrivateRegression):  # type: ignore[misc]
    """Two-class classification by a private line, with differential privacy.

    Privacy:
        As `PrivateLinearRegression`; the label counts as private.

    Args:
        epsilon, delta, method, fit_intercept, feature_norm_bound, feature_center, clip, encoder,
            unit, ledger, random_state: as in `PrivateLinearRegression`.
        classes: the two public labels; the second is the one whose log-odds are modeled. Which
            labels there are is private: only a seeded simulation may find them in the data, and
            its guarantee says so.

    Attributes:
        coef_, intercept_: of the log-odds inside the clipping ball.
        clipping_inflation_: as in `PrivateLinearRegression`.
        classes_: the two labels.
        guarantee_: what the fit promises.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-0.5, 0.5, (20_000, 3))
        >>> y = (X @ [1.0, -1.0, 0.0] > 0.1).astype(int)
        >>> model = PrivateLogisticRegression(epsilon=1.0, random_state=0).fit(X, y)
        >>> bool(model.score(X, y) > 0.95)
        True
    """

    _task: ClassVar[Task] = "logistic"

    classes: tuple[Any, Any] | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # a hundred people are too few for a private fit
        tags.classifier_tags.multi_class = False
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Part of the labels that are predicted; not private."""
        predicted, labels = self.predict(X), self._labels(y)
        if len(labels) != len(predicted):
            raise InvalidData("y", f"of length {len(predicted)}", f"length {len(labels)}")
        return float(np.average(predicted == labels, weights=sample_weight))

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the second class."""
        return self._linear(X)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The likelier label of each row."""
        return np.asarray(self.classes_[(self._linear(X) >= 0).astype(int)])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the two classes, shape (n, 2)."""
        likely = np.asarray(1 / (1 + np.exp(-np.clip(self._linear(X), -500, 500))), np.float64)
        return np.asarray(np.stack([1 - likely, likely], axis=1), np.float64)

    def _targets(self, y: Any) -> FloatArray:
        labels = self._labels(y)
        self.classes_ = self._two_classes(labels)
        first, second = self.classes_
        positive = labels == second
        if not np.all(positive | (labels == first)):
            rule = f"made of the two public labels only: classes=({first!s}, {second!s})"
            raise InvalidData("y", rule + "; pass classes=(..., ...) for others")
        return np.asarray(positive, dtype=np.float64)

    def _labels(self, y: Any) -> np.ndarray[Any, Any]:
        labels = np.asarray(_one_column(y))
        if labels.ndim != 1:
            raise InvalidData("y", "a one-dimensional array (n,)", f"shape {labels.shape}")
        return labels

    def _two_classes(self, labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.classes is not None:
            classes = np.asarray(self.classes)
            if classes.shape != (2,) or classes[0] == classes[1]:
                raise InvalidParameter("classes", "two different labels", self.classes)
            return classes
        if self.random_state is None or isinstance(self.random_state, SecureSource):
            raise InvalidParameter("classes", "given: which labels there are is private", None)
        try:
            found = np.unique(labels)
        except TypeError:
            raise InvalidData("y", "made of labels of one type") from None
        if len(found) != 2:
            raise InvalidData("y", "made of two classes", f"{len(found)} class(es)")
        return found

    def _segment(self) -> tuple[float, float]:
        return 0.5, 0.5  # from 0 to 1


def _one_column(y: Any) -> Any:
    """Targets of shape (n, 1) as (n,), with scikit-learn's warning; anything else unchanged."""
    try:
        shape = np.asarray(y).shape
    except ValueError:  # ragged: whoever checks y says so
        return y
    if len(shape) != 2 or shape[1] != 1:
        return y
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples,), for example using ravel().",
        DataConversionWarning,
        stacklevel=2,
    )
    return np.asarray(y)[:, 0]
