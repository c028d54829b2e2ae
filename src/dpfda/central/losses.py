"""Convex, smooth losses of kernel machines, with bounds on the effect of one pair on the minimizer.

For the minimizer f = ⟨w, r(·)⟩ of mean L(y, f(x)) + ψ‖w‖² let s = ∂L/∂f. Replacing (x, y) by
(x', y') changes the gradient at w by (s' r(x') - s r(x))/n. Because the objective is 2ψ-strongly
convex, the two minimizers are at most ‖s' r(x') - s r(x)‖/(2ψn) apart. `widest` bounds this norm
over all pairs of grid points, given their features r and a bound on ‖w‖. Distances are computed
from differences of features: ‖r‖² + ‖r'‖² - 2⟨r, r'⟩ would lose half of its digits for a kernel
with a long range, whose features are nearly equal.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit

from dpfda._registry import Registered
from dpfda._validate import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Loss(Registered, family="loss"):
    """L(y, f), with its derivative in f."""

    classification: ClassVar[bool] = True
    smoothness: ClassVar[float]
    """Largest ∂²L/∂f²."""

    @abstractmethod
    def slope(self, y: float, f: FloatArray) -> FloatArray:
        """∂L/∂f."""

    @abstractmethod
    def at_zero(self, target_bound: float) -> float:
        """Largest L(y, 0)."""

    @abstractmethod
    def widest(self, features: FloatArray, *, psi: float, target_bound: float) -> float:
        """Bound on ‖s' r(x') - s r(x)‖ at a minimizer, for grid points with features r."""

    def total_slopes(self, f: FloatArray, totals: FloatArray) -> FloatArray:
        """Sum of the slopes at each grid point, from the numbers of -1 and +1, (2, points)."""
        return np.asarray(totals[0] * self.slope(-1.0, f) + totals[1] * self.slope(1.0, f))

    def tally(self, places: IntArray, y: FloatArray, *, count: int, units: float) -> IntArray:
        """The integer sums that `total_slopes` needs: counts of -1 and +1 at each grid point."""
        return np.concatenate(
            [np.bincount(places[side], minlength=count) for side in (y < 0, y >= 0)]
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """The one instance."""
        return [cls()]


@dataclass(frozen=True, kw_only=True)
class Squared(Loss, name="squared"):
    """(y - f)² with |y| ≤ Y.

    ⟨w, ∇⟩ = 0 gives 2ψ‖w‖² = mean of 2(yf - f²) ≤ Y²/2, thus ‖w‖ ≤ Y/(2√ψ). If κ² < ψ, then
    |f| ≤ κ‖w‖ gives the smaller bound ‖w‖ ≤ Yκ/(ψ + κ²).
    """

    classification: ClassVar[bool] = False
    smoothness: ClassVar[float] = 2.0

    def slope(self, y: float, f: FloatArray) -> FloatArray:
        """2(f - y)."""
        return 2 * (f - y)

    def total_slopes(self, f: FloatArray, totals: FloatArray) -> FloatArray:
        """Total slopes from counts and sums of targets."""
        return np.asarray(2 * (totals[0] * f - totals[1]))

    def tally(self, places: IntArray, y: FloatArray, *, count: int, units: float) -> IntArray:
        """Counts, and sums of the targets, rounded to multiples of 1/`units`."""
        sums = np.zeros(count, dtype=np.int64)
        np.add.at(sums, places, np.rint(y * units).astype(np.int64))
        return np.concatenate([np.bincount(places, minlength=count), sums])

    def at_zero(self, target_bound: float) -> float:
        """Y²."""
        return target_bound**2

    def widest(self, features: FloatArray, *, psi: float, target_bound: float) -> float:
        """2‖(r'r'ᵀ - rrᵀ)w - (y'r' - yr)‖ ≤ 2(‖r'r'ᵀ - rrᵀ‖ ‖w‖ + Y max ‖r' ± r‖).

        The norm of the operator r'r'ᵀ - rrᵀ is (|‖r'‖² - ‖r‖²| + ‖r' - r‖ ‖r' + r‖)/2.
        """
        squares = (features**2).sum(axis=1)
        largest = float(squares.max())
        few = largest < psi
        length = math.sqrt(largest) / (psi + largest) if few else 1 / (2 * math.sqrt(psi))
        between, across = cdist(features, features), cdist(features, -features)
        operator = (np.abs(squares[:, None] - squares) + between * across) / 2
        targets = np.maximum(between, across)
        return 2 * target_bound * float((length * operator + targets).max())


@dataclass(frozen=True, kw_only=True)
class Logistic(Loss, name="logistic"):
    """log(1 + e^{-yf}), y = ±1.

    ⟨w, ∇⟩ = 0 gives 2ψ‖w‖² = mean of mσ(-m) with m = yf. This is at most 0.27847 and at most
    κ‖w‖/2, thus ‖w‖ ≤ A = min(√(0.27847/(2ψ)), κ/(4ψ)).
    """

    smoothness: ClassVar[float] = 0.25

    def slope(self, y: float, f: FloatArray) -> FloatArray:
        """-y σ(-yf)."""
        return np.asarray(-y * expit(-y * f))

    def at_zero(self, target_bound: float) -> float:
        """log 2."""
        return math.log(2)

    def widest(self, features: FloatArray, *, psi: float, target_bound: float) -> float:
        """The largest ‖p r ± q r'‖ over a polygon of slopes p, q.

        Each slope is at most σ(A‖r‖). With opposite labels also p + q ≤ 2σ(A‖r - r'‖/2), because f
        differs by at most A‖r - r'‖ between the points. The norm is convex, so its maximum is at a
        corner.
        """
        gram, diagonal = features @ features.T, (features**2).sum(axis=1)
        length = min(math.sqrt(0.27847 / (2 * psi)), math.sqrt(float(diagonal.max())) / (4 * psi))
        a, b = diagonal[:, None], diagonal[None, :]
        most = expit(length * np.sqrt(diagonal))
        p, other = most[:, None], most[None, :]
        apart = cdist(features, features)
        q = np.minimum(other, 2 * expit(length * apart / 2) - p)
        corners = (
            p**2 * a + 0 * b,
            p**2 * a + q**2 * b + 2 * p * q * gram,  # opposite labels; the other corner by symmetry
            p**2 * a + other**2 * b - 2 * p * other * gram,  # equal labels
        )
        return math.sqrt(max(float(corner.max()) for corner in corners))


@dataclass(frozen=True, kw_only=True)
class SmoothedHinge(Loss, name="smoothed_hinge"):
    """The support vector loss (1 - yf)₊, rounded by a parabola on |1 - yf| < ½."""

    smoothness: ClassVar[float] = 1.0

    def slope(self, y: float, f: FloatArray) -> FloatArray:
        """-y clip(1 - yf + ½, 0, 1)."""
        return np.asarray(-y * np.clip(1.5 - y * f, 0.0, 1.0))

    def at_zero(self, target_bound: float) -> float:
        """1."""
        return 1.0

    def widest(self, features: FloatArray, *, psi: float, target_bound: float) -> float:
        """2κ, because |s| ≤ 1; it is attained by a change of label where |f| ≤ ½."""
        return 2 * math.sqrt(float((features**2).sum(axis=1).max()))
