"""A covariance surface, and principal components: queries for a center, a radius and products."""

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

_FEW = 1000  # nε below which the first center is inaccurate, so that its error is queried as well
_FIRST, _SEARCH, _REST = 0.25, 0.15, 0.25
"""Budget shares of the center, of the search for a radius and, for small nε, of the error of the
center. The products contain the square of this error, which should be smaller than their noise."""
LEFT_OUTSIDE = 0.01
"""Smallest share of the curves to leave outside the radius, for pure and Gaussian noise. For curves
with heavy tails, the bias of twice this share exceeded the gain of the smaller noise."""
_OFFSETS = 64  # number of draws of the center's error
_ROUGH = 0.02
"""If the error variance of the center exceeds this share of the squared radius, its error is also
queried. The products contain the square of this error, and the variance of the curves is about a
tenth of the squared radius."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CovarianceRelease(CurveConversation[Release], name="covariance"):
    """A release of the covariance of n curves with √∫X² ≤ bound.

    Privacy:
        For residuals u with ‖u/a‖₂ ≤ R, two products uuᵀ differ by at most √2 R² in the norm with
        axes a_j a_k; only the entries j ≤ k are released (C23). The budgets of the center, the
        radius, the error of the center (if it is queried) and the products add up.

    Attributes:
        basis: the functions of the coefficients.
    """

    summary: ClassVar[str] = "covariance"

    basis: FunctionBasis

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """The budget with less noise, taking failures of the search into account."""
        return min(pure, gaussian, key=self._noise)

    def _noise(self, whole: Cost) -> float:
        """Noise variance of an entry, divided by the probability that the search succeeds."""
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
        """Axes of the clipping region, one for each coefficient that is used."""
        size = min(self.basis.size, math.ceil(1.2 * self.strength**0.25))
        return np.arange(1, size + 1, dtype=np.float64) ** -0.5

    def questions(self) -> Questions[Release]:
        """Center and radius; the error of the center if it is inaccurate; products."""
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
        # The mean of clipped residuals is inside the radius, even if the radius contains no curve.
        offsets = clip_rows(offsets, query.radius, axes=query.axes)
        estimate = surface_posterior(
            answer.values,
            law.variance,
            min(self.bound, query.radius),
            triangle=triangle,
            offsets=offsets,
        )
        cleaned = triangle.vector(floored(triangle.matrix(estimate.mean)))
        noisy = answer.values - triangle.vector(offsets.T @ offsets / _OFFSETS)
        shift = posterior(off.mean, off.variance, query.radius).mean
        surface = FunctionBasis(
            self.basis.grid * 2,
            triangle.products(self.basis.functions[: triangle.size]),
            np.ones(noisy.size),
        )
        unit = norm_bound(1.0, self.basis.grid)  # converts to the norm of public bounds
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
            doubt=estimate.doubt,
        )

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One curve at the border of the ball, and the same curve turned by a right angle."""
        (here,), (there,) = far_apart(n, np.ones(self.basis.size), self.reach)
        there[0] *= np.where(np.arange(self.basis.size) % 2, -1.0, 1.0) * -1.0
        return (here,), (there,)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Two and eight functions with a bound; eight functions without one."""
        grid = as_grid(np.linspace(0.0, 1.0, 9))
        return [
            cls(epsilon=epsilon, delta=delta, n=n, bound=bound, basis=spline_basis(grid, size=size))
            for size, bound in ((2, 1.0), (8, 1.0), (8, math.inf))
        ]
