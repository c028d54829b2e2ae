"""`PrivateCurveClassifier`: any number of classes of curves, or of a table's rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dpfda.central.moments.discriminant import Discriminant
from dpfda.central.regression.base import Fitted, in_features
from dpfda.estimators.curve_rows import CurveRows
from dpfda.estimators.private_regressions import PrivateLogisticRegression
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.holder import Exchange
from dpfda.protocol.person import label_numbers
from dpfda.protocol.query import Records


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateCurveClassifier(CurveRows, PrivateLogisticRegression):
    """Classify curves that a curator holds, with differential privacy.

    Two classes by logistic regression, more by discriminant analysis from one joint release of
    class means, class sizes and the covariance within classes.

    Privacy:
        (ε, δ)-DP (pure ε for δ = 0) for replacing one person, curve and label. Ranges and the set
        of classes are public arguments; with real noise a label that is not among them counts as
        the first.

    Args:
        epsilon, delta: the budget of the whole fit.
        value_range: public range (low, high) of x(t), or one pair a channel. None: found privately
            for a part of the budget, from n·ε = 500 on (1000 with δ = 0), of one channel.
        classes: the public labels; only a seeded simulation may find them in the data.
        domain_range: public range of t, where the data do not bring it.
        feature_ranges: instead of `value_range`, where X is a table: as in
            `PrivateLinearRegression`.
        encoder: instead of `value_range`, for experts: a `CurveEncoder`.
        feature_norm_bound, feature_center, mechanism, fit_intercept: for experts, as in
            `PrivateLogisticRegression`; the last two of two classes only.
        unit, ledger, random_state: as in `PrivateLinearRegression`.

    Attributes:
        model_: a public `RegressionModel` that can be saved.
        classes_: the labels, sorted.
        guarantee_: what the fit promises.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> t, y = np.linspace(0, 1, 50), rng.integers(3, size=6000)
        >>> shapes = np.stack([np.sin(3 * t), t, np.cos(3 * t)])
        >>> X = shapes[y] + 0.5 * rng.normal(size=(6000, 1))
        >>> model = PrivateCurveClassifier(
        ...     epsilon=1.0, value_range=(-3, 3), classes=(0, 1, 2), random_state=0
        ... ).fit(X, y)
        >>> bool(model.score(X, y) > 0.9)
        True
    """

    @property
    def _several(self) -> bool:
        return len(self.classes_) > 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    def _records(self, rows: Any, values: Any, outside: Any = None) -> Records:
        if not self._several:
            return super()._records(rows, values, outside)
        numbers = label_numbers(values, self.classes_)
        return (np.column_stack([self._in_units(rows) - self._bounds().center, numbers]),)

    def _regression(self, *, rows: int | None = None) -> Any:
        if not self._several:
            return super()._regression(rows=rows)
        bounds, n = self._bounds(), self._count(rows)
        if self._finds:
            self._enough(n)
        return Discriminant(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            n=n,
            bound=math.inf if self._finds else bounds.radius,
            groups=tuple(np.asarray(self.classes_).tolist()),
            features=bounds.dimension,
            found_classes=not self._classes_given,
        )

    def _finish(
        self,
        fitted: Fitted,
        regression: Any,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        if not self._several:
            return super()._finish(fitted, regression, transcript, guarantee)
        center = fitted.center + self._bounds().center
        fitted = replace(fitted, center=center)
        fitted = in_features(fitted) if self._finds else fitted
        return self._keep(fitted, "discriminant", regression.name, transcript, guarantee)
