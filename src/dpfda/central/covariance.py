"""A covariance surface, and principal components: a center, a radius, products."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.ball_search import BallSearch
from dpfda.central.conversation import CurveConversation, far_apart
from dpfda.central.functions import FunctionBasis, as_grid, norm_bound, spline_basis
from dpfda.central.queries import BallMean, BallProducts
from dpfda.central.release import Release
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.curves.matrices import floored
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Answer, Records

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
        scouting = BallSearch(
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
        self, query: BallProducts, answer: Answer, shift: FloatArray, warnings: tuple[str, ...]
    ) -> Release:
        triangle, law = query.triangle, answer.noise
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
            sensitivity=query.sensitivity,
            warnings=warnings,
            components=triangle.size,
            radius=query.radius / unit,
            noise=math.sqrt(noise) / unit**2,
            mean=tuple((query.center + shift).tolist()),
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
