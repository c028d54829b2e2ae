"""`PrivateLinearRegression`: least squares for the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpfda.central.regression.problem import Link
from dpfda.curves.ranges import FeatureRanges
from dpfda.estimators.regression_base import PrivateRegression, stated_range
from dpfda.estimators.regression_rows import TableRows
from dpfda.estimators.weights import weighted


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLinearRegression(PrivateRegression):
    """Least squares of a bounded target on bounded features, with differential privacy.

    This class is for tables; `PrivateCurveRegression` predicts from curves.

    Privacy:
        (ε, δ)-DP (pure ε for δ = 0, if the mechanism allows it) for replacing one row, or with
        `groups` all rows of one person. All ranges are public arguments, never taken from the data;
        values outside are moved to the nearest end. Mechanisms whose queries are sums over rows
        also count the people outside the ranges, with 1 % to 5 % of the budget, and a warning says
        if they are more than a few. Each mechanism states its own proof
        (`dpfda.central.regression`).

    Args:
        epsilon, delta: the budget of the whole fit.
        feature_ranges: public ranges of a table: (low, high) for all columns, one pair per column,
            or, for a DataFrame X, a mapping from columns to (low, high) or categories. If there is
            an intercept, the first category is the reference; the coefficients of other categories
            are differences from it.
        target_range: public range (low, high) of y.
        mechanism: the method: ``moments`` (default), ``gaussian_fm``, ``adassp``,
            ``objective_perturbation``, ``noisy_gradient``, ``output_perturbation``, or a
            `RegressionMechanism`.
        fit_intercept: whether to fit a constant term.
        feature_norm_bound, feature_center: for experts, instead of ranges: public bound on
            |x - feature_center|₂, where the center is one number (default 0) or one for each
            feature.
        weight_bound: public bound on the private weights `sample_weight` of rows in `fit`, for
            ``mechanism="gaussian_fm"``; weights are clipped to [0, weight_bound]. For survey
            weights it follows from the design of the survey; the largest weight in the data is not
            public. The fit estimates the weighted least-squares line, which minimizes
            Σ w (y - line)². If weights are inverse sampling probabilities, it is that of the
            population. The guarantee is the same as without weights, and also covers the weight of
            a person. The noise is proportional to weight_bound over the mean weight.
        unit: the protected unit to which one row (or group) belongs.
        ledger: the budget of the data over all fits, which is spent before noise is drawn. If it
            does not cover the whole fit, an error is raised and nothing is spent.
        random_state: None for exact noise; a seed for simulations.

    Attributes:
        coef_, intercept_: coefficients in the units of X, for rows inside the clipping ball;
            `predict` clips rows as in the fit. With ``moments``, clipping makes coefficients larger
            than those of unclipped rows, and shrinkage reduces them. With collinear features, the
            coefficients may therefore differ much, even in sign. Use ``moments`` to predict, and
            ``gaussian_fm``, which clips at the public ranges only, to estimate coefficients.
        model_: the fit as a public `RegressionModel` that can be saved. ``model_.interval()``
            covers the coefficients that least squares without noise finds for these rows; it is
            available for ``gaussian_fm`` and ``adassp``, and for ``moments`` if rows are clipped at
            the public ranges only. ``model_.warnings`` names features hidden by noise.
        guarantee_: the privacy guarantee of the fit.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(20, 60, (20_000, 3))
        >>> y = X @ [0.8, -0.4, 0.0] + 10
        >>> model = PrivateLinearRegression(
        ...     epsilon=1.0, feature_ranges=(20, 60), target_range=(0, 50), random_state=0
        ... ).fit(X, y)
        >>> np.abs(model.predict(X) - y).mean() < 1.5
        np.True_
        >>> print(model.guarantee_)  # doctest: +ELLIPSIS
        ε = 1, δ = 1e-06, central, unit = person, sampler = simulation (seeded), assuming ...
    """

    _link: ClassVar[Link] = "linear"

    feature_ranges: FeatureRanges | None = None
    feature_norm_bound: float | None = None
    feature_center: Any = None
    target_range: tuple[float, float] | None = None
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
            y: private targets.
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
        return stated_range(self.target_range)
