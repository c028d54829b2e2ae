"""`PrivateLogisticRegression`: any number of classes of the rows of a table."""

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
    """Classification of a table's rows by private lines, with differential privacy.

    Two classes by logistic regression. More by discriminant analysis from one joint release of
    class means, class sizes and the covariance within classes: the whole budget serves all classes
    at once, and log-odds are linear in the features as well. `PrivateCurveClassifier` is for
    curves.

    Privacy:
        As `PrivateLinearRegression`; the label counts as private. With real noise a label that is
        not among `classes` counts as the first of them.

    Args:
        epsilon, delta, feature_ranges: as in `PrivateLinearRegression`, as are parameters that are
            not listed here.
        classes: the public labels. Which labels there are is private: only a seeded simulation
            may find them in the data, and its guarantee says so.
        mechanism, fit_intercept, weight_bound: of two classes only.

    Attributes:
        coef_, intercept_: of the log-odds of `classes_[1]`, inside the clipping ball; of more than
            two classes one row and one number for each.
        model_: as in `PrivateLinearRegression`; its coefficients have no intervals.
        classes_: the labels, sorted.
        guarantee_: what the fit promises.

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

    def fit(  # type: ignore[override]  # which takes no weights
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        grid_points: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit privately, as `PrivateRegression.fit`, with weights of rows where they are given.

        Args:
            X: private rows (n, D) or a DataFrame.
            y: private labels.
            sample_weight: private weights, such as survey weights, in [0, `weight_bound`]. None may
                depend on other people's records, as normalized weights do.
            grid_points: left out: rows are no curves.
            groups: the person behind each row, where people have several.
        """
        y = weighted(self, y, sample_weight)
        return super().fit(X, y, grid_points=grid_points, groups=groups)

    @property
    def _rows(self) -> TableRows:
        return TableRows.of(self)

    def _target_range(self) -> tuple[float, float]:
        return 0.0, 1.0
