"""A covariance surface, and principal components: a center, a radius, products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import lost_search, noise_in_ball
from dpfda.central.ball_search import BallSearch
from dpfda.central.conversation import CurveConversation, far_apart
from dpfda.central.functions import FunctionBasis, as_grid, norm_bound, spline_basis
from dpfda.central.queries import BallMean, BallProducts
from dpfda.central.records import clip_rows
from dpfda.central.release import Release
from dpfda.central.shrinkage import Posterior, posterior, surface_posterior
from dpfda.curves.matrices import floored
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Answer, Records

_FEW = 1000  # nε below which the first center is so rough that its error must be released too
_FIRST, _SEARCH, _REST = 0.25, 0.15, 0.25
"""Shares of the center, of the search for a radius and, for few curves, of the error of the center:
its square is in the products, which it should not blur more than their own noise does."""
LEFT_OUTSIDE = 0.01
"""Of the curves, left outside the radius at least, with a δ as without one: of heavy tails, twice
as many took more off the products than the smaller noise made up for."""
_OFFSETS = 64  # draws of that error
_ROUGH = 0.02
"""Of the squared radius: a center that is less exact than that is mended, too. The square of its
error is in the products, and the variance of curves is a tenth of the squared radius or so."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CovarianceRelease(CurveConversation[Release], name="covariance"):
    """A release of the covariance of n curves with √∫X² ≤ bound.

    Privacy:
        With residuals u in ‖u/a‖₂ ≤ R two products uuᵀ differ by at most √2 R² in the norm with
        axes a_j a_k; j ≤ k only is released (C23). The budgets of center, radius, for few curves
        the rest of the mean, and products add up.

    Attributes:
        basis: functions that the coefficients belong to.
    """

    summary: ClassVar[str] = "covariance"

    basis: FunctionBasis

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """The one that has less noise and a better search."""
        return min(pure, gaussian, key=self._noise)

    def _noise(self, whole: Cost) -> float:
        """Expected variance of the noise on an entry, over that of a search which never fails."""
        products = whole.part(1 - _FIRST - _SEARCH - _REST)
        entries = len(self.axes) * (len(self.axes) + 1) // 2
        found = 1 - lost_search(whole.part(_SEARCH), self.n)
        return noise_in_ball(products, self.n, entries) / max(found, 1e-300)

    @property
    def finds_bound(self) -> bool:
        """True: a search finds a center and a radius."""
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
            first=_FIRST if few else 0.2,
            search=_SEARCH,
            coarse=axes.size,
            some=LEFT_OUTSIDE,
        )
        found = yield from scouting.questions(self)
        place, radius = found.place, found.radius
        left, off = found.left, Posterior(np.zeros(axes.size), found.vague)
        if few or float((off.variance / axes**2).sum()) > _ROUGH * radius**2:
            rest = found.budget.part(_REST)
            left = left.rest(rest)
            step = yield BallMean(cost=rest, **place, radius=radius)
            off = Posterior(step.values, step.noise.variance)
        products = BallProducts(cost=left, **place, radius=radius)
        return self._release(products, (yield products), off, found.warnings)

    def _release(
        self, query: BallProducts, answer: Answer, off: Posterior, warnings: tuple[str, ...]
    ) -> Release:
        triangle, law, error = query.triangle, answer.noise, np.sqrt(off.variance)
        draws = np.random.default_rng(0).standard_normal((_OFFSETS // 2, error.size))
        offsets = off.mean + error * np.vstack([draws, -draws])
        # Of a radius that holds nobody the mean is at the edge.
        offsets = clip_rows(offsets, query.radius, axes=query.axes)
        believed = surface_posterior(
            answer.values,
            law.variance,
            min(self.bound, query.radius),
            triangle=triangle,
            offsets=offsets,
        )
        cleaned = triangle.vector(floored(triangle.matrix(believed.mean)))
        noisy = answer.values - triangle.vector(offsets.T @ offsets / _OFFSETS)
        shift = posterior(off.mean, off.variance, query.radius).mean
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
            sensitivity=query.mechanism.sensitivity,
            warnings=warnings,
            components=triangle.size,
            radius=query.radius / unit,
            noise=math.sqrt(float(law.variance.sum())) / unit**2,
            mean=tuple((query.center + shift).tolist()),
            mean_noise=tuple(error.tolist()),
            doubt=believed.doubt,
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
