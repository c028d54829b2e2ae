"""`PrivateLinearRegression`: a number predicted from the rows of a table."""

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

    For tables; `PrivateCurveRegression` predicts from curves.

    Privacy:
        (ε, δ)-DP (pure ε for δ = 0, where the mechanism allows it) for replacing one row, or with
        `groups` all rows of one person. All ranges are public arguments; none is taken from the
        data, and what lies outside is moved to the nearest end. People outside their ranges are
        counted, for 1 % to 5 % of the budget, by mechanisms that add up over rows; a warning says
        if they are more than a few. Each mechanism states its own proof
        (`dpfda.central.regression`).

    Args:
        epsilon, delta: the budget of the whole fit.
        feature_ranges: public ranges of a table: (low, high) for all columns, one pair a column, or
            a mapping column → (low, high) or its categories (then X is a DataFrame). Beside an
            intercept the first category is the reference: a coefficient of another one is its
            difference from the first.
        target_range: public range (low, high) of y.
        mechanism: how the budget is spent: ``moments`` (default), ``gaussian_fm``, ``adassp``,
            ``objective_perturbation``, ``noisy_gradient``, ``output_perturbation``, or a
            `RegressionMechanism`.
        fit_intercept: allow a constant term.
        feature_norm_bound, feature_center: instead of ranges, for experts: public bound on
            |x - feature_center|₂, the center one number (0) or one for each feature.
        weight_bound: public bound on the private weights `sample_weight` of rows in `fit`, for
            ``mechanism="gaussian_fm"``; weights are moved into [0, weight_bound]. Survey weights
            have one in the design of the survey; the largest weight in the data is not public. The
            weighted least-squares line is estimated, Σ w (y - line)² being smallest: that of the
            population, if weights are inverse probabilities of being in the sample. The guarantee
            is the same as without weights, and holds for a person's weight, too. Noise grows with
            weight_bound over the mean weight.
        unit: whom one row (or group) stands for.
        ledger: the data set's budget over all fits; spent before noise is drawn, and refused
            before anything is spent where it cannot pay for the whole fit.
        random_state: None for exact noise; a seed for simulations.

    Attributes:
        coef_, intercept_: in the units of X. They are those of the line inside the clipping ball;
            `predict` clips as in training. ``moments`` shortens rows, which makes coefficients
            larger than those of unclipped rows, and shrinks them against the noise, so that of
            features that vary together one may stand for another, with either sign: use it to
            predict, and ``gaussian_fm`` (clips at the public ranges only) where coefficients are
            the question.
        model_: the same as a public `RegressionModel` that can be saved. ``model_.interval()``
            holds the coefficients of these rows that least squares without noise finds; for
            ``gaussian_fm`` and ``adassp``, and for ``moments`` where it shortens no row.
            ``model_.warnings`` names features that noise hides.
        guarantee_: what the fit promises.

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
            y: private targets.
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
        return stated_range(self.target_range)
