"""A covariance surface, and principal components: a center, a radius, products."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.conversation import CurveConversation, far_apart
from dpfda.central.estimator import CuratedCurveEstimator, HeldRecords
from dpfda.central.functions import FunctionBasis, spline_basis
from dpfda.central.looks import BallMean, BallProducts
from dpfda.central.quadrature import as_grid, norm_bound
from dpfda.central.release import Release
from dpfda.central.scouting import Scouting
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.curves.symmetric import Triangle, floored
from dpfda.protocol.answer import Answer
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Records

_USEFUL = 200  # nε below which the surface is mostly noise, and is pulled towards zero as a whole
_FEW = 1000  # nε below which the first center is so rough that its error must be released too
_ROUGH = 0.02
"""Of the squared radius: a center that is less exact than that is mended, too. The square of its
error is in the products, and the variance of curves is a tenth of the squared radius or so."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CovarianceRelease(CurveConversation[Release], name="covariance"):
    """What is asked of the coefficients of n curves with √∫X² ≤ bound.

    Privacy:
        With residuals u in ‖u/a‖₂ ≤ R two products uuᵀ differ by at most √2 R² in the norm with
        axes a_j a_k; j ≤ k only is released (C23). The budgets of center, radius, for few curves
        the rest of the mean, and products add up.

    Attributes:
        basis: functions that the coefficients belong to.
    """

    summary: ClassVar[str] = "covariance"

    basis: FunctionBasis

    @property
    def finds_bound(self) -> bool:
        """By the search for a center and a radius."""
        return True

    @property
    def axes(self) -> FloatArray:
        """Shape of the clipping region, one for each coefficient that is used."""
        size = min(self.basis.size, math.ceil(1.2 * self.strength**0.25))
        return np.arange(1, size + 1, dtype=np.float64) ** -0.5

    def questions(self) -> Questions[Release]:
        """Center and radius, for few curves how far the mean still is from the center; products."""
        axes = self.axes
        few = self.strength < _FEW
        scouting = Scouting(
            axes=axes,
            first=0.25 if few else 0.2,
            search=0.15,
            coarse=axes.size,
        )
        found = yield from scouting.questions(self)
        place, radius = found.place, found.radius
        shift, left, vague = np.zeros(axes.size), found.left, found.vague
        if few or float((vague / axes**2).sum()) > _ROUGH * radius**2:
            rest = found.budget.part(0.15)
            left = left.rest(rest)
            step = yield BallMean(cost=rest, **place, radius=radius)
            vague = step.noise.variance
            shift = monotone_shrinkage(step.values, vague) * step.values
        products = BallProducts(cost=left, **place, radius=radius)
        release = self._release(products, (yield products), shift, found.warnings)
        known = {**release.parameters, "mean_noise": tuple(np.sqrt(vague).tolist())}
        return replace(release, parameters=known)

    def _release(
        self, look: BallProducts, answer: Answer, shift: FloatArray, warnings: tuple[str, ...]
    ) -> Release:
        triangle, law = look.triangle, answer.noise
        # The products are about the released center: take off the rest of the mean.
        noisy = answer.values - triangle.vector(np.outer(shift, shift))
        shrunk = monotone_shrinkage(noisy, law.variance) * noisy
        cleaned = triangle.vector(floored(triangle.matrix(shrunk)))
        noise = float(law.variance.sum())
        if self.strength < _USEFUL:
            # James & Stein: without it a radius that came out too large would be taken at its word.
            cleaned *= max(0.0, 1 - noise / max(float(cleaned @ cleaned), noise))
        surface = FunctionBasis(
            self.basis.grid * 2,
            triangle.products(self.basis.functions[: triangle.size]),
            np.ones(noisy.size),
        )
        unit = norm_bound(1.0, self.basis.grid)  # everything in the norm that bounds are given in
        return self.conclude(
            surface,
            noisy,
            law,
            shrunk=cleaned,
            sensitivity=look.sensitivity,
            warnings=warnings,
            components=triangle.size,
            radius=look.radius / unit,
            noise=math.sqrt(noise) / unit**2,
            mean=tuple((look.center + shift).tolist()),
        )

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One curve turned by a right angle, as far out as allowed."""
        (here,), (there,) = far_apart(n, np.ones(self.basis.size), self.reach)
        there[0] *= np.where(np.arange(self.basis.size) % 2, -1.0, 1.0) * -1.0
        return (here,), (there,)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Two functions, and several; no bound known."""
        grid = as_grid(np.linspace(0.0, 1.0, 9))
        return [
            cls(epsilon=epsilon, delta=delta, n=n, bound=bound, basis=spline_basis(grid, size=size))
            for size, bound in ((2, 1.0), (8, 1.0), (8, math.inf))
        ]


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateCovariance(CuratedCurveEstimator):
    """Release the covariance surface of curves held by a trusted curator; private FPCA for free.

    Products of coefficients are averaged about a center that is released first, and clipped at a
    radius that is released too; below nε = 1000 the rest of the mean is released as well.

    Privacy:
        (ε, δ)-DP for replacing one curve. With residuals u in ‖u/a‖₂ ≤ R two products uuᵀ differ
        by at most √2 R² in the norm with axes a_j a_k; j ≤ k only is released (C23). The budgets of
        center, radius and products add up. Eigenfunctions are post-processing.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        value_range: public range (low, high) of X(t), or None to find it privately: as for
            `PrivateMean`.
        domain_range: public range of t, where the data do not bring it.
        bound, center: instead of a range, for experts: as for `PrivateMean`.
        unit: whose data one row is.
        ledger: budget of the data over all releases: spent look by look, before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    The error is about (R²/nε)² times the fourth power of the number of functions: with a few
    hundred curves expect little more than the leading component, and compare
    ``release_.parameters["noise"]`` (root mean squared norm of the noise) with the variance
    expected.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> curves = rng.normal(size=(5000, 1)) * np.sin(np.pi * np.linspace(0, 1, 30))
        >>> fitted = PrivateCovariance(epsilon=2.0, value_range=(-3, 3), random_state=0).fit(curves)
        >>> fitted.covariance_.shape, bool(fitted.explained_variance_[0] > 0.3)
        ((30, 30), True)
    """

    _finds_range = True

    def _conversation(self, read: HeldRecords, n: int) -> CovarianceRelease:
        basis = spline_basis(read.grid, size=read.grid[0].size)
        bound = self._norm_bound(read.bounds[0], read.grid, n=n)
        return CovarianceRelease(**self._budget, n=n, bound=bound, basis=basis)

    def _records(self, asked: CovarianceRelease, read: HeldRecords) -> Records:
        return (asked.basis.project(read.rows[0]),)

    @property
    def mean_(self) -> FloatArray:
        """The rough mean curve that deviations were taken from, on the grid of the data."""
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
