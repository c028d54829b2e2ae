"""`PrivateLogisticRegression`: two or more classes of the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpfda.central.regression.problem import Link
from dpfda.curves.ranges import FeatureRanges
from dpfda.estimators.regression_base import PrivateRegression
from dpfda.estimators.regression_rows import TableRows
from dpfda.estimators.weights import weighted


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLogisticRegression(PrivateRegression):
    """Linear classification of the rows of a table, with differential privacy.

    The method is logistic regression for two classes. For more classes it is discriminant analysis
    from one joint release of class means, class sizes and the covariance within classes. The whole
    budget is then used for all classes at once, and log-odds are linear in the features as well.
    `PrivateCurveClassifier` is for curves.

    Privacy:
        As for `PrivateLinearRegression`; labels are private as well. With real noise, a label that
        is not among `classes` counts as the first class.

    Args:
        epsilon, delta, feature_ranges: as in `PrivateLinearRegression`, like all parameters that
            are not listed here.
        classes: the public labels. The set of labels in the data is private; only a seeded
            simulation may read it, and its guarantee says so.
        mechanism, fit_intercept, weight_bound: for two classes only.

    Attributes:
        coef_, intercept_: coefficients of the log-odds of `classes_[1]`, inside the clipping ball;
            for more than two classes one row and one number per class.
        model_: as in `PrivateLinearRegression`; its coefficients have no intervals.
        classes_: the labels, sorted.
        guarantee_: the privacy guarantee of the fit.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(20, 60, (20_000, 3))
        >>> y = (X @ [1.0, -1.0, 0.0] > 4).astype(int)
        >>> model = PrivateLogisticRegression(
        ...     epsilon=1.0, feature_ranges=(20, 60), classes=(0, 1), random_state=0
        ... ).fit(X, y)
        >>> bool(model.score(X, y) > 0.95)
        True
    """

    _link: ClassVar[Link] = "logistic"

    feature_ranges: FeatureRanges | None = None
    feature_norm_bound: float | None = None
    feature_center: Any = None
    classes: Sequence[Any] | None = None
    weight_bound: float | None = None

    def fit(  # type: ignore[override]  # the base class takes no weights
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        grid_points: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit privately, as `PrivateRegression.fit`, with optional weights of rows.

        Args:
            X: private rows (n, D) or a DataFrame.
            y: private labels.
            sample_weight: private weights, such as survey weights, in [0, `weight_bound`]. The
                weight of a person must not depend on other records, as normalized weights do.
            grid_points: None, because rows of a table have no points.
            groups: the person of each row, if people have several rows.
        """
        y = weighted(self, y, sample_weight)
        return super().fit(X, y, grid_points=grid_points, groups=groups)

    @property
    def _rows(self) -> TableRows:
        return TableRows.of(self)

    def _target_range(self) -> tuple[float, float]:
        return 0.0, 1.0
