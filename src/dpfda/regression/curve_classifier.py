"""A curator's classifier of curves: a public encoder, then a private logistic regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.face.estimator import PrivateEstimator
from dpfda.protocol.public_randomness import one_row_each
from dpfda.regression.estimators import PrivateLogisticRegression
from dpfda.regression.model import RegressionModel

_LEAST, _MOST = 4, 16  # basis functions


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateCurveClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Tell two classes of curves apart, for a curator who holds all curves and labels.

    Privacy:
        (ε, δ)-DP for replacing one curve and its label, or with `groups` all of one person: one of
        a person's curves is used, chosen by public randomness. Curves become B-spline coefficients
        in a box by the public `value_range`; everything else is `PrivateLogisticRegression`.

    Args:
        epsilon: ε of the whole fit.
        value_range: public range (low, high) of the values of curves; what lies outside is moved
            to its ends.
        classes: the two public labels.
        delta: δ; 0 for pure ε.
        domain_range: public domain; by default that of the grid points, or (0, 1).
        n_basis: how many basis functions; by default from the number of curves and ε.
        unit: whose data one curve is.
        ledger: the data set's budget over all fits.
        random_state: None for exact noise; a seed for simulations.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 4000)
        >>> t = np.linspace(0, 1, 30)
        >>> curves = 5 + y[:, None] * np.sin(3 * t) + rng.normal(size=(4000, 30))
        >>> model = PrivateCurveClassifier(
        ...     epsilon=1.0, value_range=(0, 10), classes=(0, 1), random_state=0
        ... ).fit(curves, y, grid_points=t)
        >>> bool(model.score(curves, y) > 0.95)
        True
    """

    value_range: tuple[float, float] | None = None
    classes: Any = None
    delta: float = 1e-5
    domain_range: tuple[float, float] | None = None
    n_basis: int | None = None

    def fit(self, X: Any, y: Any, *, grid_points: Any = None, groups: Any = None) -> Self:
        """Fit privately to curves (n, T), an ``FDataGrid`` or pairs (t, x), and their labels."""
        labels = np.asarray(y)
        if groups is not None:
            keep = one_row_each(groups, seed=self._public_seed(), rows=len(labels))
            X = [X[row] for row in keep] if isinstance(X, list) else X[keep]
            labels = labels[keep]
        if len(labels) != len(X):
            raise InvalidData("y", f"{len(X)} labels, one for each curve", f"{len(labels)}")
        encoder = self._encoder(X, grid_points, len(labels))
        self.regression_ = PrivateLogisticRegression(
            self.epsilon,
            delta=self.delta,
            classes=self.classes,
            encoder=encoder,
            feature_norm_bound=None,
            unit=self.unit,
            ledger=self.ledger,
            random_state=self.random_state,
        ).fit(X, labels, grid_points)
        self.classes_ = self.regression_.classes_
        self.guarantee_ = self.regression_.guarantee_
        return self

    @property
    def model_(self) -> RegressionModel:
        """The classifier as a public model that can be saved."""
        check_is_fitted(self, "regression_")
        return self.regression_.model_

    def decision_function(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Log-odds of the second class."""
        return self.model_.decision_function(X, grid_points=grid_points)

    def predict(self, X: Any, *, grid_points: Any = None) -> Any:
        """Labels of new curves."""
        return self.model_.predict(X, grid_points=grid_points)

    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities of the two classes, shape (n, 2)."""
        return self.model_.predict_proba(X, grid_points=grid_points)

    def _encoder(self, X: Any, grid_points: Any, n: int) -> CurveEncoder:
        if self.value_range is None:
            raise InvalidParameter("value_range", "given: the public range of the values", None)
        span = _validate.interval("value_range", self.value_range)
        size = self.n_basis
        if size is None:
            strength = n * _validate.positive("epsilon", self.epsilon)
            size = int(np.clip(0.6 * math.sqrt(strength), _LEAST, _MOST))
        return CurveEncoder(
            "bspline", n_basis=size, domain_range=self._domain(X, grid_points), bounds=span
        )

    def _domain(self, X: Any, grid_points: Any) -> tuple[float, float]:
        if self.domain_range is not None:
            return _validate.interval("domain_range", self.domain_range)
        if hasattr(X, "domain_range"):  # FDataGrid: the domain is part of its public description
            low, high = X.domain_range[0]
            return float(low), float(high)
        if grid_points is None:
            return 0.0, 1.0
        points = np.asarray(grid_points, dtype=np.float64)
        return float(points.min()), float(points.max())
