"""Function-on-scalar regression under differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.conversation import CurveConversation, checked_bound
from dpfda.central.estimator import CurveEstimator
from dpfda.central.functions import FunctionBasis, spline_basis
from dpfda.central.pair_looks import CovariateProducts, CrossProducts
from dpfda.central.quadrature import as_grid, norm_bound
from dpfda.central.release import Release
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.curves.symmetric import floored
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise.law import NoiseLaw
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Records


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionOnScalarRelease(CurveConversation, name="function_on_scalar"):
    """T1 = mean of x xᵀ with a share γ of the budget, T2 = mean of x Yᵀ with the rest; solved.

    Attributes:
        covariate_bound: of the vectors.
        covariates: how many numbers in a vector.
        basis: functions that curves are written in.
        gamma: γ.
        intercept: whether there is a constant covariate.
    """

    summary: ClassVar[str] = "function-on-scalar coefficients"

    covariate_bound: float
    covariates: int
    basis: FunctionBasis
    gamma: float = 0.3
    intercept: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive("covariate_bound", checked_bound(self.covariate_bound))
        _validate.fraction("gamma", self.gamma)

    def questions(self) -> Questions[Release]:
        """Two looks."""
        first = self.whole.part(self.gamma)
        shared: Any = {
            "unit": self.unit,
            "n": self.n,
            "covariates": self.covariates,
            "coefficients": self.basis.size,
            "covariate_bound": self.covariate_bound,
            "bound": self.bound,
            "intercept": self.intercept,
        }
        products = CovariateProducts(cost=first, **shared)
        pairs = CrossProducts(cost=self.whole.rest(first), **shared)
        one = yield products
        spread = math.sqrt(float(one.noise.variance.max()))
        # C9's floor, with c = 2.
        gram = floored(products.triangle.matrix(one.values), 2 * spread * math.sqrt(products.width))
        two = yield pairs
        shape = pairs.width, self.basis.size
        scale = np.ones(pairs.width)
        scale[: self.covariates] /= self.covariate_bound
        solve = scale[:, None] * np.linalg.inv(gram)
        noisy = solve @ two.values.reshape(shape)
        variance = solve**2 @ two.noise.variance.reshape(shape)
        factors = [monotone_shrinkage(*pair) for pair in zip(noisy, variance, strict=True)]
        return self.conclude(
            self.basis,
            noisy,
            # Sums of many terms with the released T1 taken as known: Gaussian to a good accuracy.
            NoiseLaw(law="gaussian", scales=np.sqrt(variance)),
            shrunk=np.stack(factors) * noisy,
            sensitivity=pairs.sensitivity,
            covariate_bound=self.covariate_bound,
            gamma=self.gamma,
            components=self.basis.size,
        )

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One pair with both turned round."""
        x = np.full((n, self.covariates), self.covariate_bound / math.sqrt(self.covariates))
        y = np.full((n, self.basis.size), 0.05 * self.bound / math.sqrt(self.basis.size))
        y[0] *= 20
        there = x.copy(), y.copy()
        there[0][0], there[1][0] = -x[0], -y[0]
        return (x, y), there

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """One covariate and one function, with a constant; several without."""
        grid = as_grid(np.linspace(0.0, 1.0, 9))
        return [
            cls(
                epsilon=epsilon,
                delta=delta,
                n=n,
                bound=1.0,
                covariate_bound=2.0,
                covariates=size,
                basis=spline_basis(grid, size=size),
                intercept=size == 1,
            )
            for size in (1, 3)
        ]


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateFunctionOnScalar(CurveEstimator):
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
            center.
        covariate_bound: public bound on ‖x‖₂, the intercept's 1 not counted.
        center: public curve subtracted from every Y first (it belongs to the intercept).
        gamma: share of the budget for T1.
        fit_intercept: add a constant covariate.
        ledger: budget of the data over all releases: spent look by look, before noise is drawn.
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

    gaps: ClassVar[bool] = False

    covariate_bound: float | None = None
    gamma: float = 0.3
    fit_intercept: bool = True

    def fit(self, X: Any, curves: Any, *, grid_points: Any = None) -> Self:
        """Release β(t) from covariates (n, p) and curves (n, T)."""
        if self.bound is None or self.covariate_bound is None:
            raise InvalidParameter("bound and covariate_bound", "given: public bounds", None)
        read, covariates = self._read(curves, grid_points), _validate.batch("X", X)
        if len(covariates) != len(read.rows):
            raise InvalidData("X", "one row a curve", f"{len(covariates)} rows")
        n = len(covariates)
        wanted = math.ceil((n * _validate.positive("epsilon", self.epsilon)) ** 0.4)
        regression = FunctionOnScalarRelease(
            **self._budget,
            n=n,
            bound=norm_bound(read.bound, read.grid),
            covariate_bound=_validate.positive("covariate_bound", self.covariate_bound),
            covariates=covariates.shape[1],
            basis=spline_basis(read.grid, size=min(read.rows.shape[1], wanted)),
            gamma=self.gamma,
            intercept=bool(self.fit_intercept),
        )
        pairs = covariates, regression.basis.project(read.rows)
        self._ask(regression, pairs, public={"bound": read.bound})
        self.n_features_in_ = covariates.shape[1]
        self._center = read.center
        return self

    @property
    def coef_(self) -> FloatArray:
        """β_k(t) on the grid, (p, T), without the intercept."""
        return self._values()[: self.n_features_in_]

    @property
    def intercept_(self) -> FloatArray:
        """The intercept function on the grid, public center included."""
        values = self._values()
        own = values[self.n_features_in_] if self.fit_intercept else np.zeros(values.shape[1])
        return np.asarray(own + self._center)

    def predict(self, X: Any) -> FloatArray:
        """Expected curves for covariates (n, p)."""
        check_is_fitted(self, "release_")
        rows = _validate.batch("X", X, columns=self.n_features_in_)
        return np.asarray(rows @ self.coef_ + self.intercept_)
