"""`PrivateCurveClassifier`: two or more classes of curves, or of rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpfda.central.regression.base import RegressionMechanism
from dpfda.central.regression.problem import Link
from dpfda.curves import CurveEncoder
from dpfda.curves.ranges import FeatureRanges
from dpfda.estimators.regression_base import PrivateRegression
from dpfda.estimators.regression_rows import CurveRows, TableRows


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateCurveClassifier(PrivateRegression):
    """Classify curves of a curator with differential privacy.

    The method is discriminant analysis from one joint release of class means, class sizes and the
    covariance within classes. A covariance that noise would hide is not released.

    Privacy:
        (ε, δ)-DP (pure ε for δ = 0) for replacing one person, including curve and label. Ranges and
        classes are public arguments. With real noise, a label that is not among the classes counts
        as the first class.

    Args:
        epsilon, delta: the budget of the whole fit.
        value_range: public range (low, high) of x(t), or one pair per channel. If None, it is found
            privately with a share of the budget; this requires one channel and n·ε ≥ 500 (1000 with
            δ = 0).
        classes: the public labels; only a seeded simulation may read them from the data.
        domain_range: public range of t, if the data do not contain it.
        feature_ranges: if X is a table, public ranges instead of `value_range`, as in
            `PrivateLinearRegression`.
        encoder: for experts, a `CurveEncoder` instead of `value_range`.
        feature_norm_bound, feature_center: for experts, as in `PrivateLogisticRegression`.
        mechanism, fit_intercept: for two classes, a mechanism of logistic regression instead of
            discriminant analysis, such as ``moments``.
        unit, ledger, random_state: as in `PrivateLinearRegression`.

    Attributes:
        model_: a public `RegressionModel` that can be saved.
        classes_: the labels, sorted.
        guarantee_: the privacy guarantee of the fit.

    Examples:
        >>> import numpy as np
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

    _link: ClassVar[Link] = "logistic"

    mechanism: str | RegressionMechanism = "discriminant"
    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    encoder: CurveEncoder | None = None
    feature_ranges: FeatureRanges | None = None
    feature_norm_bound: float | None = None
    feature_center: Any = None
    classes: Sequence[Any] | None = None

    @property
    def _rows(self) -> TableRows | CurveRows:
        of_curves = self.feature_ranges is None and self.feature_norm_bound is None
        return CurveRows.of(self) if of_curves else TableRows.of(self)

    def _target_range(self) -> tuple[float, float]:
        return 0.0, 1.0
