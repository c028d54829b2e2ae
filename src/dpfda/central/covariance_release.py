"""The questions behind a covariance surface: a centre, a radius, products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import Schedule
from dpfda.central.conversation import CentralConversation, checked_bound, far_apart
from dpfda.central.functions import FunctionBasis, spline_basis
from dpfda.central.looks import BallMean, BallProducts
from dpfda.central.quadrature import as_grid, norm_bound
from dpfda.central.radius import Place, find_radius
from dpfda.central.release import Release
from dpfda.central.shrinkage import monotone_shrinkage
from dpfda.central.symmetric import floored
from dpfda.protocol.answer import Answer
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Records

USEFUL = 200  # nε below which the surface is mostly noise, and is pulled towards zero as a whole
_FEW = 1000  # nε below which the first centre is so rough that its error must be released too


@dataclass(frozen=True, kw_only=True, eq=False)
class CovarianceRelease(CentralConversation, name="covariance"):
    """What is asked of the coefficients of n curves with √∫X² ≤ bound.

    Privacy:
        With residuals u in ‖u/a‖₂ ≤ R two products uuᵀ differ by at most √2 R² in the norm with
        axes a_j a_k; j ≤ k only is released (C23). The budgets of centre, radius, for few curves
        the rest of the mean, and products add up.

    Attributes:
        bound: public.
        basis: functions that the coefficients belong to.
    """

    bound: float
    basis: FunctionBasis

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_bound(self.bound)

    @property
    def axes(self) -> FloatArray:
        """Shape of the clipping region, one for each coefficient that is used."""
        size = min(self.basis.size, math.ceil(1.2 * self.strength**0.25))
        return np.arange(1, size + 1, dtype=np.float64) ** -0.5

    def questions(self) -> Questions[Release]:
        """Centre and radius, for few curves how far the mean still is from the centre; products."""
        axes = self.axes
        few = self.strength < _FEW
        shares = (0.25, 0.15, 0.15) if few else (0.2, 0.15)
        first, search, *more = (self.whole.part(share) for share in shares)
        flat: Place = {
            "unit": self.unit,
            "n": self.n,
            "centre": np.zeros(axes.size),
            "axes": np.ones(axes.size),
        }
        look = yield BallMean(cost=first, **flat, radius=self.bound)
        centre = monotone_shrinkage(look.values, look.noise.variance) * look.values
        place: Place = {"unit": self.unit, "n": self.n, "centre": centre, "axes": axes}
        plan = Schedule.of(self.whole, n=self.n, most=self.basis.size)
        radius = yield from find_radius(
            search, place, bound=self.bound, outside=plan.outside, steepness=plan.steepness
        )
        shift = np.zeros(axes.size)
        for cost in more:
            step = yield BallMean(cost=cost, **place, radius=radius)
            shift = monotone_shrinkage(step.values, step.noise.variance) * step.values
        products = BallProducts(cost=self.whole.rest(first, search, *more), **place, radius=radius)
        return self._release(products, (yield products), shift)

    def _release(self, look: BallProducts, answer: Answer, shift: FloatArray) -> Release:
        triangle, law = look.triangle, answer.noise
        # The products are about the released centre: take off the rest of the mean.
        noisy = answer.values - triangle.vector(np.outer(shift, shift))
        shrunk = monotone_shrinkage(noisy, law.variance) * noisy
        cleaned = triangle.vector(floored(triangle.matrix(shrunk)))
        noise = float(law.variance.sum())
        if self.strength < USEFUL:
            # James & Stein: without it a radius that came out too large would be taken at its word.
            cleaned *= max(0.0, 1 - noise / max(float(cleaned @ cleaned), noise))
        surface = FunctionBasis(
            self.basis.grid * 2,
            triangle.products(self.basis.functions[: triangle.size]),
            np.ones(noisy.size),
        )
        unit = norm_bound(1.0, self.basis.grid)  # everything in the norm that bounds are given in
        return Release(
            summary="covariance",
            coefficients=cleaned,
            noisy=noisy,
            noise=(law,),
            basis=surface,
            centre=np.zeros(surface.weights.size),
            guarantee=self.guarantee,
            sensitivity=look.reach / self.n,
            parameters={
                "n": self.n,
                "bound": self.bound / unit,
                "components": triangle.size,
                "radius": look.radius / unit,
                "noise": math.sqrt(noise) / unit**2,
            },
        )

    def neighbours(self, n: int) -> tuple[Records, Records]:
        """One curve turned by a right angle, as far out as allowed."""
        (here,), (there,) = far_apart(n, np.ones(self.basis.size), self.bound)
        there[0] *= np.where(np.arange(self.basis.size) % 2, -1.0, 1.0) * -1.0
        return (here,), (there,)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Two functions, and several."""
        grid = as_grid(np.linspace(0.0, 1.0, 9))
        return [
            cls(epsilon=epsilon, delta=delta, n=n, bound=1.0, basis=spline_basis(grid, size=size))
            for size in (2, 8)
        ]
