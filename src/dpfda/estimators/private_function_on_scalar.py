"""Function-on-scalar regression under differential privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.adaptive import MeanPlan
from dpfda.central.function_on_scalar import FunctionOnScalarRelease
from dpfda.central.functions import norm_bound, spline_basis
from dpfda.central.records import read_records
from dpfda.central.release import Release
from dpfda.curves.observations import own_grids, points_of, with_own_grids
from dpfda.curves.ranges import FeatureRanges
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.central_base import CentralEstimator, HeldRecords
from dpfda.estimators.curve_reader import CurveReader
from dpfda.privacy.cost import Cost
from dpfda.protocol.query import Records


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateFunctionOnScalar(CentralEstimator):
    """Release β(t) in Y_i(t) = x_iᵀ β(t) + error, from curves Y and vectors x of a trusted curator.

    Two moments are released and then solved: T1 = mean of x xᵀ with γε, T2 = mean of x Y(t) with
    the rest (003, Appendix C.2).

    Privacy:
        (ε, δ)-DP for replacing (x, Y) of one person. Covariates are clipped to `feature_ranges` and
        mapped to [-1, 1], so that ‖x‖₂ ≤ B; curves are clipped to ‖Y‖ ≤ τ. Replacing a row changes
        T1 by at most √2B²/n (Frobenius) and T2 by at most 2τB/n. After the release, eigenvalues of
        T1 below its noise level are raised to it (C9, C23).

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        feature_ranges: public ranges of the covariates: one for all, one per column, or a mapping
            from columns to (low, high) or categories. If there is an intercept, the first category
            is the reference; the coefficients of other categories are differences from it.
        feature_norm_bound: for experts, instead of ranges: public bound on ‖x‖₂, without the 1 of
            the intercept.
        value_range, domain_range, bound, center: public facts of the curves, as for `PrivateMean`.
        gamma: share of the budget for T1.
        fit_intercept: add a constant covariate.
        unit: the protected unit to which one row (or group) belongs.
        ledger: budget of the data over all releases; every query spends before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    Attributes:
        release_: β, with one row for each of `release_.names`: covariates, categories (gender=male)
            except for the first one of each column, and the intercept. Bands cover the coefficients
            that least squares without noise finds for these people, if curves are projected on
            `components` functions.
        coef_, intercept_: the rows of β on the grid.
        coef_names_: names of the rows of `coef_`.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> x, t = rng.uniform(20, 60, size=(4000, 1)), np.linspace(0, 1, 25)
        >>> model = PrivateFunctionOnScalar(
        ...     epsilon=2.0, feature_ranges=(20, 60), value_range=(-1, 3), random_state=0
        ... ).fit(x, (x - 40) / 20 * np.sin(3 * t) + 1)
        >>> bool(np.abs(model.predict([[60.0]]) - np.sin(3 * t) - 1).mean() < 0.2)
        True
    """

    feature_ranges: FeatureRanges | None = None
    feature_norm_bound: float | None = None
    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    bound: float | None = None
    center: Any = None
    gamma: float = 0.3
    fit_intercept: bool = True

    @property
    def _curves(self) -> CurveReader:
        return CurveReader.of(self, counts_outside=True)

    def _read(
        self, X: Any, y: Any, *, grid_points: Any, reset: bool, least: int = 1
    ) -> HeldRecords:
        """Scaled covariates, and curves."""
        rows, self.coef_names_, self._shift, self._unit_of = self._covariates(X, reset=reset)
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None")
        points = points_of(y, grid_points)
        read = self._curves.read_curves(_with_points(y), points, least=least)
        if len(rows) != len(read.rows[0]):
            raise InvalidData("X", "one row for each curve", f"{len(rows)} rows")
        return read._replace(rows=((rows - self._shift) / self._unit_of, *read.rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags

    def _covariates(
        self, X: Any, *, reset: bool
    ) -> tuple[FloatArray, tuple[str, ...], FloatArray, FloatArray]:
        """Rows of numbers in the user's units; name, public middle and unit of each column."""
        if (self.feature_ranges is None) == (self.feature_norm_bound is None):
            rule = "given: public ranges of the covariates; or else feature_norm_bound"
            raise InvalidParameter("feature_ranges", rule, self.feature_ranges)
        if self.feature_ranges is None:
            rows = self._numbers(X, reset=reset)
            names = self._column_names(rows.shape[1])
            return rows, names, np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        table, rows = self._table(self.feature_ranges, X, reset=reset)
        names = tuple(table.names) if table.named else self._column_names(rows.shape[1])
        shift, unit = table.scaling(centered=bool(self.fit_intercept))
        kept = table.contrasts if self.fit_intercept else list(range(len(names)))
        return rows[:, kept], tuple(names[place] for place in kept), shift[kept], unit[kept]

    def _column_names(self, width: int) -> tuple[str, ...]:
        """Names of the columns; without names, numbers from 1 on."""
        known = getattr(self, "feature_names_in_", None)
        if known is not None and len(known) == width:
            return tuple(map(str, known))
        return tuple(f"covariate {place + 1}" for place in range(width))

    def _conversation(self, read: HeldRecords, n: int) -> FunctionOnScalarRelease:
        covariates = read.rows[0].shape[1]
        left = 1 - _validate.fraction("gamma", self.gamma)
        given = {Cost(epsilon=self.epsilon, delta=delta).part(left) for delta in (0.0, self.delta)}
        rows = covariates + bool(self.fit_intercept)
        points = read.rows[1].shape[1]
        plan = MeanPlan.of_rows(tuple(given), n=n, most=points, rows=max(rows, 2))
        reach = math.sqrt(covariates)
        if self.feature_norm_bound is not None:
            reach = _validate.positive("feature_norm_bound", self.feature_norm_bound)
        return FunctionOnScalarRelease(
            **self._budget,
            n=n,
            bound=norm_bound(read.bounds[0], read.grid),
            limit=None if self.value_range is None else read.bounds[0],
            covariate_bound=reach,
            covariates=covariates,
            basis=spline_basis(read.grid, size=plan.size),
            gamma=self.gamma,
            intercept=bool(self.fit_intercept),
            shift=self._shift,
            unit_of=self._unit_of,
            names=self.coef_names_,
            either=True,
        )

    def _records(self, asked: FunctionOnScalarRelease, read: HeldRecords) -> Records:
        return read.rows[0], asked.basis.project(read.rows[1])

    def _keep(self, asked: Any, read: HeldRecords, found: Release) -> Self:
        self._width, self._center = asked.covariates, read.center
        center = np.zeros((len(found.names), read.center.size))
        center[self._width :] = (
            read.center
        )  # only for the intercept: the other rows are differences
        return super()._keep(asked, read, replace(found, center=center))

    @property
    def coef_(self) -> FloatArray:
        """β_k(t) on the grid, (p, T), without the intercept."""
        return self._functions(None)[0]

    @property
    def intercept_(self) -> FloatArray:
        """The intercept function on the grid, including the public center."""
        return self._functions(None)[1]

    def predict(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Expected curves for covariates (n, p), on the grid of the fit or on another one."""
        check_is_fitted(self, "release_")
        rows, *_ = self._covariates(X, reset=False)
        slopes, intercept = self._functions(grid_points)
        return np.asarray(rows @ slopes + intercept)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, grid_points: Any = None) -> float:
        """R² of the predicted curves over all points; not private."""
        check_is_fitted(self, "release_")
        curves, points = with_own_grids(_with_points(y), points_of(y, grid_points))
        if points is None and not own_grids(curves):
            points = self.release_.grid_points
        truth, grid = read_records(curves, points, domain_range=self.domain_range)
        predicted = self.predict(X, grid_points=grid[0])
        if len(predicted) != len(truth):
            raise InvalidData("X", "one row for each curve", f"{len(predicted)} rows")
        weights = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight)
        spread = weights @ (truth - np.average(truth, axis=0, weights=weights)) ** 2
        missed = weights @ (truth - predicted) ** 2
        return float(1 - missed.sum() / max(float(spread.sum()), 1e-300))

    def _functions(self, grid_points: Any) -> tuple[FloatArray, FloatArray]:
        """Slopes (p, T) and intercept (T,) at these points."""
        values = self.release_.values(grid_points)
        if self.fit_intercept:
            return values[: self._width], values[self._width]
        center = self._center  # the model without intercept is Y - center = xᵀβ
        if grid_points is not None:
            center = np.interp(grid_points, np.asarray(self.release_.grid_points), center)
        return values, center


def _with_points(y: Any) -> Any:
    """The curves y; single numbers become constant curves."""
    if getattr(y, "shape", (0,))[1:] == (1,):
        return np.repeat(np.asarray(y), 2, axis=1)
    return y
