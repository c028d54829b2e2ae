"""The covariance of curves held by a curator, released with differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.covariance import CovarianceRelease
from dpfda.central.functions import spline_basis
from dpfda.central.release import Release
from dpfda.curves.matrices import Triangle
from dpfda.estimators.central_base import CentralEstimator, HeldRecords
from dpfda.estimators.curve_reader import CurveReader, bound_in_norm
from dpfda.protocol.query import Records


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateCovariance(CentralEstimator):
    """Release the covariance surface of curves of a trusted curator, and its eigenfunctions.

    The first queries release a center and a clipping radius about it. If the center is inaccurate,
    for example for nε < 1000, its error is released as well. The last query releases mean products
    of coefficients.

    Privacy:
        (ε, δ)-DP for replacing one curve. For residuals u with ‖u/a‖₂ ≤ R, two products uuᵀ differ
        by at most √2 R² in the norm with axes a_j a_k; only entries with j ≤ k are released (C23).
        The budgets of all queries add up. Eigenfunctions are post-processing.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        value_range: public range (low, high) of X(t), or None to find it privately, as for
            `PrivateMean`.
        domain_range: public range of t, if the data do not contain it.
        bound, center: for experts, an alternative to a range: as for `PrivateMean`.
        unit: the protected unit to which one row belongs.
        ledger: budget of the data over all releases; every query spends before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    The error is about (R²/nε)² times the fourth power of the number of functions. A few hundred
    curves determine little more than the leading component. To judge a release, compare
    ``release_.parameters["noise"]``, the root mean squared norm of the noise, with the expected
    variance of the curves.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> curves = rng.normal(size=(5000, 1)) * np.sin(np.pi * np.linspace(0, 1, 30))
        >>> fitted = PrivateCovariance(epsilon=2.0, value_range=(-3, 3), random_state=0).fit(curves)
        >>> fitted.covariance_.shape, bool(fitted.explained_variance_[0] > 0.3)
        ((30, 30), True)
    """

    _fills_gaps = True

    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    bound: float | None = None
    center: Any = None

    @property
    def _curves(self) -> CurveReader:
        return CurveReader.of(self, finds_range=True)

    def _read(
        self, X: Any, y: Any, *, grid_points: Any, reset: bool, least: int = 1
    ) -> HeldRecords:
        return self._curves.read(self, X, grid_points, reset=reset, least=least)

    def _conversation(self, read: HeldRecords, n: int) -> CovarianceRelease:
        basis = spline_basis(read.grid, size=read.grid[0].size)
        bound = bound_in_norm(self, read.bounds[0], read.grid, n=n)
        return CovarianceRelease(**self._budget, n=n, bound=bound, basis=basis, either=True)

    def _records(self, asked: CovarianceRelease, read: HeldRecords) -> Records:
        return (asked.basis.project(read.rows[0]),)

    @property
    def mean_(self) -> FloatArray:
        """The noisy mean curve that was subtracted, on the grid of the data."""
        rough = np.array(self.release_.parameters["mean"])
        return np.asarray(rough @ self._functions[: rough.size] + self._middle)

    def _keep(self, asked: Any, read: HeldRecords, found: Release) -> Self:
        self._functions, self._middle = asked.basis.functions, read.center
        triangle = Triangle(asked.axes)
        values, vectors = np.linalg.eigh(triangle.matrix(found.coefficients))
        self.explained_variance_: FloatArray = np.maximum(values[::-1], 0.0)
        self.components_: FloatArray = vectors[:, ::-1].T @ asked.basis.functions[: triangle.size]
        return super()._keep(asked, read, found)

    @property
    def covariance_(self) -> FloatArray:
        """The released surface on the grid of the data, (T, T)."""
        return self.release_.values()
