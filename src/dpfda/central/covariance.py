"""A covariance surface, and principal components, under differential privacy."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfda._validate import FloatArray
from dpfda.central.covariance_release import USEFUL, CovarianceRelease
from dpfda.central.functions import spline_basis
from dpfda.central.quadrature import norm_bound
from dpfda.central.records import public_centre, read_records
from dpfda.central.symmetric import Triangle
from dpfda.errors import InvalidParameter
from dpfda.noise.source import source_for
from dpfda.privacy.ledger import BaseLedger


class PrivateCovariance(BaseEstimator):  # type: ignore[misc]
    """Release the covariance surface of curves held by a trusted curator; private FPCA for free.

    Products of coefficients are averaged about a centre that is released first, and clipped at a
    radius that is released too; below nε = 1000 the rest of the mean is released as well.

    Privacy:
        (ε, δ)-DP for replacing one curve. With residuals u in ‖u/a‖₂ ≤ R two products uuᵀ differ
        by at most √2 R² in the norm with axes a_j a_k; j ≤ k only is released (C23). The budgets of
        centre, radius and products add up. Eigenfunctions are post-processing.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        bound: public bound τ on the norm √(average of X(t)² over the domain) of a curve minus the
            centre.
        centre: public curve (or number) to subtract first.
        unit: whose data one row is.
        ledger: budget of the data over all releases: spent look by look, before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    The error is about (R²/nε)² times the fourth power of the number of functions: with a few
    hundred curves expect little more than the leading component, and compare
    ``release_.parameters["noise"]`` (root mean squared norm of the noise) with the variance
    expected.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> curves = rng.normal(size=(5000, 1)) * np.sin(np.pi * np.linspace(0, 1, 30))
        >>> fitted = PrivateCovariance(epsilon=2.0, bound=2.0, random_state=0).fit(curves)
        >>> fitted.covariance_.shape, bool(fitted.explained_variance_[0] > 0.3)
        ((30, 30), True)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bound: float | None = None,
        delta: float = 0.0,
        centre: Any = 0.0,
        domain_range: tuple[float, float] | None = None,
        unit: str = "person",
        ledger: BaseLedger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bound = bound
        self.delta = delta
        self.centre = centre
        self.domain_range = domain_range
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Missing points are welcome: they are filled along the curve."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, curves: Any, y: Any = None, *, grid_points: Any = None) -> Self:
        """Release the covariance of `curves`, (n, T), an ``FDataGrid`` or pairs (t, x)."""
        if self.bound is None:
            raise InvalidParameter("bound", "given: a public bound on the norm of a curve", None)
        records, grid = read_records(curves, grid_points, domain_range=self.domain_range)
        if len(grid) != 1:
            raise InvalidParameter("grid_points", "of one variable", f"{len(grid)} variables")
        basis = spline_basis(grid, size=grid[0].size)
        covariance = CovarianceRelease(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            n=len(records),
            bound=norm_bound(self.bound, grid),
            basis=basis,
        )
        if covariance.strength < USEFUL:
            warnings.warn(
                f"n·epsilon is below {USEFUL}: a surface of zeros may be as close",
                stacklevel=2,
            )
        source = source_for(self.random_state)
        rows = basis.project(records - public_centre(self.centre, records.shape[1]))
        self.release_ = covariance.ask((rows,), source=source, ledger=self.ledger)
        self.guarantee_ = self.release_.guarantee
        self.n_features_in_ = records.shape[1]
        triangle = Triangle(covariance.axes)
        values, vectors = np.linalg.eigh(triangle.matrix(self.release_.coefficients))
        self.explained_variance_: FloatArray = np.maximum(values[::-1], 0.0)
        self.components_: FloatArray = vectors[:, ::-1].T @ basis.functions[: triangle.size]
        return self

    @property
    def covariance_(self) -> FloatArray:
        """The released surface on the grid of the data, (T, T)."""
        check_is_fitted(self, "release_")
        return self.release_.values()
