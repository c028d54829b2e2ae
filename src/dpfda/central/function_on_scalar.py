"""Function-on-scalar regression under differential privacy."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.basis import spline_basis
from dpfda.central.function_mechanism import Task, ellipsoid_noise, noise_law
from dpfda.central.quadrature import norm_bound
from dpfda.central.records import clip_rows, exact_mean, public_centre, read_records
from dpfda.central.release import Release
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.central.sources import source_for
from dpfda.central.symmetric import Triangle, floored
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise import Source
from dpfda.noise.law import NoiseLaw


class PrivateFunctionOnScalar(BaseEstimator):  # type: ignore[misc]
    """Release β(t) in Y_i(t) = x_iᵀ β(t) + error, from curves Y and vectors x of a trusted curator.

    Two moments are released and then solved: T1 = mean of x xᵀ with γε, T2 = mean of x Y(t) with
    the rest (003, Appendix C.2).

    Privacy:
        (ε, δ)-DP for replacing one row (x, Y). Vectors are pulled into ‖x‖₂ ≤ covariate_bound =: B,
        curves into ‖Y‖ ≤ bound =: τ; replacing a row moves T1 by at most √2B²/n (Frobenius) and T2
        by at most 2τB/n. T1's eigenvalues are floored at its noise level after release (C9, C23).

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        bound: public bound on the norm √(average of Y(t)² over the domain) of a curve minus the
            centre.
        covariate_bound: public bound on ‖x‖₂, the intercept's 1 not counted.
        centre: public curve subtracted from every Y first (it belongs to the intercept).
        gamma: share of the budget for T1.
        fit_intercept: add a constant covariate.
        random_state: None for exact noise, or a seed for simulations.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, t = rng.uniform(-1, 1, size=(4000, 1)), np.linspace(0, 1, 25)
        >>> model = PrivateFunctionOnScalar(
        ...     epsilon=2.0, bound=2.0, covariate_bound=1.0, random_state=0
        ... ).fit(x, x * np.sin(3 * t) + 1)
        >>> bool(np.mean((model.coef_[0] - np.sin(3 * t)) ** 2) < 0.1 * np.mean(np.sin(3 * t) ** 2))
        True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bound: float | None = None,
        covariate_bound: float | None = None,
        delta: float = 0.0,
        centre: Any = 0.0,
        gamma: float = 0.3,
        fit_intercept: bool = True,
        domain_range: tuple[float, float] | None = None,
        unit: str = "person",
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bound = bound
        self.covariate_bound = covariate_bound
        self.delta = delta
        self.centre = centre
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.domain_range = domain_range
        self.unit = unit
        self.random_state = random_state

    def fit(self, X: Any, curves: Any, *, grid_points: Any = None) -> Self:
        """Release β(t) from covariates (n, p) and curves (n, T)."""
        if self.bound is None or self.covariate_bound is None:
            raise InvalidParameter("bound and covariate_bound", "given: public bounds", None)
        reach = _validate.positive("covariate_bound", self.covariate_bound)
        gamma = _validate.fraction("gamma", self.gamma)
        records, grid = read_records(curves, grid_points, domain_range=self.domain_range)
        covariates = _validate.batch("X", X)
        if len(covariates) != len(records):
            raise InvalidData("X", "one row a curve", f"{len(covariates)} rows")
        bound = norm_bound(self.bound, grid)
        task = Task(
            n=len(records), bound=bound, epsilon=self.epsilon, delta=self.delta, unit=self.unit
        )
        source = source_for(self.random_state)
        centre = public_centre(self.centre, records.shape[1])
        size = min(records.shape[1], math.ceil((task.n * task.epsilon) ** 0.4))
        basis = spline_basis(grid, size=size)
        # x/B lies in the unit ball; the intercept's column adds a known 1.
        x = clip_rows(covariates, reach) / reach
        if self.fit_intercept:
            x = np.hstack([x, np.ones((len(x), 1))])
        radius = math.sqrt(2) if self.fit_intercept else 1.0
        y = clip_rows(basis.project(records - centre), task.bound)
        gram = _gram(x, radius, task.part(gamma), source)
        cross, variance = _cross(x, y, radius, task.part(1 - gamma), source)
        scale = np.array([1 / reach] * covariates.shape[1] + [1.0] * bool(self.fit_intercept))
        solve = scale[:, None] * np.linalg.inv(gram)
        noisy, spread = solve @ cross, solve**2 @ variance
        factors = np.stack([monotone_shrinkage(*pair) for pair in zip(noisy, spread, strict=True)])
        self.release_ = Release(
            summary="function-on-scalar coefficients",
            coefficients=factors * noisy,
            noisy=noisy,
            # Sums of many terms with the released T1 taken as known: Gaussian to a good accuracy.
            noise=(NoiseLaw(law="gaussian", scales=np.sqrt(spread)),),
            basis=basis,
            centre=np.zeros(basis.weights.size),
            guarantee=task.guarantee.drawn_from(source),
            sensitivity=2 * radius * task.bound / task.n,
            parameters={
                "n": task.n,
                "bound": float(self.bound),
                "covariate_bound": reach,
                "gamma": gamma,
                "components": size,
            },
        )
        self.guarantee_ = self.release_.guarantee
        self.n_features_in_ = covariates.shape[1]
        self._centre = centre
        return self

    @property
    def coef_(self) -> FloatArray:
        """β_k(t) on the grid, (p, T), without the intercept."""
        check_is_fitted(self, "release_")
        return self.release_.values()[: self.n_features_in_]

    @property
    def intercept_(self) -> FloatArray:
        """The intercept function on the grid, public centre included."""
        check_is_fitted(self, "release_")
        values = self.release_.values()
        own = values[self.n_features_in_] if self.fit_intercept else np.zeros(values.shape[1])
        return np.asarray(own + self._centre)

    def predict(self, X: Any) -> FloatArray:
        """Expected curves for covariates (n, p)."""
        check_is_fitted(self, "release_")
        rows = _validate.batch("X", X, columns=self.n_features_in_)
        return np.asarray(rows @ self.coef_ + self.intercept_)


def _gram(x: FloatArray, radius: float, task: Task, source: Source) -> FloatArray:
    """T1 = mean of x xᵀ: ‖xxᵀ - x'x'ᵀ‖_F ≤ √2 r² for ‖x‖ ≤ r; noisy, eigenvalues floored."""
    triangle = Triangle(np.ones(x.shape[1]))
    most = math.sqrt(2) * radius**2
    mean = exact_mean(triangle.vector(x[:, :, None] * x[:, None, :]), bound=most)
    mechanism = ellipsoid_noise(task, axes=np.ones(mean.size), radius=most / task.n)
    noisy = triangle.matrix(mechanism.randomize(mean[None, :], source)[0])
    spread = math.sqrt(float(noise_law(mechanism).variance.max()))
    return floored(noisy, 2 * spread * math.sqrt(x.shape[1]))  # C9's floor, with c = 2


def _cross(
    x: FloatArray, y: FloatArray, radius: float, task: Task, source: Source
) -> tuple[FloatArray, FloatArray]:
    """T2 = mean of x Yᵀ with ‖x Yᵀ‖_F ≤ r τ: noisy, (p, J), and its variances."""
    most = radius * task.bound
    products = (x[:, :, None] * y[:, None, :]).reshape(len(x), -1)
    mean = exact_mean(products, bound=most)
    mechanism = ellipsoid_noise(task, axes=np.ones(mean.size), radius=2 * most / task.n)
    noisy = mechanism.randomize(mean[None, :], source)[0]
    shape = x.shape[1], y.shape[1]
    return noisy.reshape(shape), noise_law(mechanism).variance.reshape(shape)
