"""The public facts of a regression (link and bounds), exact row arithmetic and sensitivities.

Rows are converted to integers, so that sums over any number of people are exact. Every row is
clipped to a public ball and truncated to a grid of 2^-18 of its radius before it is added. Products
of two such numbers are multiples of 2^-36, so a block of 2^16 rows sums to an integer below 2^53. A
float64 matrix product is then exact for any order of additions, and blocks are added as 64-bit
integers. The sensitivity therefore holds in exact arithmetic (C20: records are rounded before the
sum).

Sensitivities of the moments have closed forms, which tests compare with a numerical search. Rows
are in the unit ball and targets in [-1, 1]. Replacing (x, y) by (x', y') changes (P Σ xy, Q Σ xxᵀ)
by h = (P (xy - x'y'), Q (xxᵀ - x'x'ᵀ)). The norm of matrices is the Frobenius norm, which is the
Euclidean norm of `svec`. For unit rows with cosine t between them and targets of opposite signs,
|h|² = P²(2 + 2t) + Q²(2 - 2t²). The maximum is at t = P²/(2Q²), or at t = 1 if that exceeds 1 (C7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.protocol.fields import Declared, choice, flag, number, part, vector, whole

ONE = float(1 << 18)
"""The ball's radius in grid steps."""

SQUARE = 1 / ONE**2
"""The value of a product of two grid steps."""

BLOCK = 1 << 16
"""Largest number of rows of one exact float64 sum: sums of 2^16 products below 2^36 are below 2^53.
"""

MOST_ROWS = (1 << 27) - 1
"""Largest number of rows of one fit: a sum of this many products of at most 2^36 is below 2^63."""

MOST_FEATURES = 1 << 12
"""Largest number of features: the rounding error of a float norm is then covered by `_INWARD`."""

_INWARD = 1.0 - 2.0**-40  # factor that covers the rounding error of a float norm


def ball(rows: FloatArray, *, center: FloatArray, radius: float) -> FloatArray:
    """(row - center)/radius, clipped to the unit ball, times 2^18, truncated to whole floats.

    Examples:
        >>> ball(np.array([[3.0, 4.0]]), center=np.zeros(2), radius=1.0) / ONE
        array([[0.59999847, 0.79999924]])
    """
    shifted = rows - center
    norms = np.sqrt(np.einsum("ij,ij->i", shifted, shifted))
    factors = (ONE * _INWARD) / np.maximum(norms, radius)
    shifted *= factors[:, None]
    return np.trunc(shifted, out=shifted)


def kept(rows: FloatArray, *, center: FloatArray, radius: float) -> FloatArray:
    """The factor by which `ball` scales each row; 1 for rows inside the ball."""
    shifted = rows - center
    return np.asarray(radius / np.maximum(np.sqrt(np.einsum("ij,ij->i", shifted, shifted)), radius))


def segment(values: FloatArray, *, center: float, radius: float) -> FloatArray:
    """(value - center)/radius, clipped to [-1, 1], times 2^18, truncated to whole floats."""
    scaled = np.clip((values - center) / radius, -1.0, 1.0)
    return np.trunc(scaled * ONE)


def with_constant(x: FloatArray) -> FloatArray:
    """(x, 1)/√2, truncated to the grid; it is again in the unit ball."""
    return np.asarray(np.trunc(np.column_stack([x, np.full(len(x), ONE)]) / np.sqrt(2.0)))


def clip_to_ball(rows: FloatArray, *, center: FloatArray, radius: float) -> FloatArray:
    """row - center, clipped to length `radius`: the input of a fitted model."""
    shifted = rows - center
    norms = np.sqrt(np.einsum("ij,ij->i", shifted, shifted))
    return np.asarray(shifted * (radius / np.maximum(norms, radius))[:, None])


Link = Literal["linear", "logistic"]
_LEAST = 1e-100  # smallest radius, so that no quotient by a radius overflows
_RADII, _FURTHEST = (1e-98, 1e98), 1e99
"""Limits of public radii and centers. The radius of the second stage is at least a fifteenth of the
public one and at most five times as large, so no query is invalid after the first one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounds(Declared):
    """The public ball to which rows are clipped, and the public range of targets.

    Attributes:
        center, radius: the ball of the rows.
        target_center, target_radius: center and half-width of the range of the targets.

    Examples:
        >>> import numpy as np
        >>> Bounds(center=np.zeros(2)).rows(np.array([[3.0, 4.0]])) / 2**18
        array([[0.59999847, 0.79999924]])
    """

    center: FloatArray = vector("features")
    radius: float = number(least=_LEAST, default=1.0)
    target_center: float = number(default=0.0)
    target_radius: float = number(least=_LEAST, default=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.center) <= MOST_FEATURES:
            raise InvalidParameter("center", f"1 to {MOST_FEATURES} numbers", len(self.center))

    @property
    def dimension(self) -> int:
        """Number of features D."""
        return len(self.center)

    def rows(self, rows: FloatArray) -> FloatArray:
        """Rows in the unit ball, as whole numbers of 2^-18."""
        return ball(rows, center=self.center, radius=self.radius)

    def kept(self, rows: FloatArray) -> FloatArray:
        """The factor by which each row is scaled; 1 for rows inside the ball."""
        return kept(rows, center=self.center, radius=self.radius)

    def targets(self, targets: FloatArray) -> FloatArray:
        """Targets in [-1, 1], as whole numbers of 2^-18."""
        return segment(targets, center=self.target_center, radius=self.target_radius)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(Declared):
    """The public facts of a regression, before any row is read.

    Attributes:
        link: ``linear`` (targets within their bounds) or ``logistic`` (0/1).
        bounds: the bounds to which rows and targets are clipped.
        fit_intercept: whether predictions may have a constant term.
        rows: number of rows (public), or None if it is not known beforehand.

    Examples:
        >>> import numpy as np
        >>> problem = Problem(link="linear", bounds=Bounds(center=np.zeros(3)))
        >>> problem.dimension, problem.size
        (3, 4)
    """

    link: Link = choice("linear", "logistic")
    bounds: Bounds = part(lambda: Bounds)
    fit_intercept: bool = flag(default=True)
    rows: int | None = whole(optional=True, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        ball, (least, most) = self.bounds, _RADII
        for name in ("radius", "target_radius"):
            if not least <= getattr(ball, name) <= most:
                raise InvalidParameter(name, f"from {least:g} to {most:g}", getattr(ball, name))
        if max(float(np.abs(ball.center).max()), abs(ball.target_center)) > _FURTHEST:
            raise InvalidParameter("center", f"at most {_FURTHEST:g} from 0", "one further away")

    @property
    def dimension(self) -> int:
        """Number of features D."""
        return self.bounds.dimension

    @property
    def size(self) -> int:
        """Number of coefficients, including the intercept if there is one."""
        return self.dimension + self.fit_intercept

    def unit_rows(self, rows: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows (x, 1)/√2 or x, and targets in [-1, 1], as whole numbers of 2^-18."""
        x = self.bounds.rows(rows)
        return with_constant(x) if self.fit_intercept else x, self.bounds.targets(targets)


def joint_l2(linear: float, quadratic: float) -> float:
    """Euclidean sensitivity of (P Σ xy, Q svec Σ xxᵀ).

    Examples:
        >>> joint_l2(2.0, 1.0), round(joint_l2(1.0, 1.0) ** 2, 6)
        (4.0, 4.5)
    """
    p, q = (
        _validate.positive("linear", linear) ** 2,
        _validate.positive("quadratic", quadratic) ** 2,
    )
    return math.sqrt(4 * p if q <= p / 2 else 2 * p + 2 * q + p * p / (2 * q))


def joint_l1(linear: float, quadratic: float, *, dimension: int) -> float:
    """Upper bound on the ℓ1 sensitivity of (P Σ xy, Q times all D² entries of Σ xxᵀ).

    It uses |xy - x'y'|₁ ≤ √D |·|₂ and |xxᵀ - x'x'ᵀ|₁ ≤ D |·|_F. The two Euclidean norms depend on
    the cosine t as in the docstring of the module. With a = P√D, b = QD and u = √(1 - t) the sum is
    √(4 - 2u²) (a + bu), which is largest where 2bu² + au = 2b.

    Examples:
        >>> round(joint_l1(1.0, 1.0, dimension=1), 4)
        2.9696
    """
    root = math.sqrt(_validate.whole("dimension", dimension))
    a, b = linear * root, quadratic * root**2
    u = 4 * b / (a + math.hypot(a, 4 * b))
    return math.sqrt(4 - 2 * u**2) * (a + b * u)


def best_weight(linear: float, quadratic: float, *, dimension: int) -> float:
    """The w2/w1 that minimizes the noise of w: (D/w1² + D(D+1)/(2 w2²)) S(w)² (C7).

    Let r = P²/Q², w² = rt and e = (D+1)/2r. For t ≤ ½ the sensitivity does not depend on w2. For
    t > ½ the derivative of this noise in t has the sign of (2t + 1)(t² - t/2 - e).

    Examples:
        >>> round(best_weight(2.0, 1.0, dimension=1), 3)
        1.799
    """
    ratio = (linear / quadratic) ** 2
    return math.sqrt(ratio * (0.25 + math.sqrt(0.0625 + (dimension + 1) / (2 * ratio))))


def eigenvalue_l2(linear: float, quadratic: float) -> float:
    """Euclidean sensitivity of (λ_min(Σ xxᵀ), P Σ xy, Q svec Σ xxᵀ).

    Let M = xxᵀ - x'x'ᵀ, r = |x|² ≥ s = |x'|², k = cosine · √s. By Weyl's inequality, λ_min changes
    by at most the largest eigenvalue λ of M. Like |xy - x'y'| and |M|_F, λ increases with r, so let
    r = 1. Then λ² = (1 - s)λ + (s - k²) ≤ 1 - k² because λ ≤ 1, and together
    |h|² ≤ P²(1 + s + 2k) + Q²(1 + s² - 2k²) + 1 - k². This increases with s. At s = 1 it is
    P²(2 + 2k) + (Q² + ½)(2 - 2k²), the joint sensitivity of moments with a larger weight.

    Examples:
        >>> round(eigenvalue_l2(0.5, math.sqrt(0.5)) ** 2, 6)
        2.53125
    """
    return joint_l2(linear, math.hypot(quadratic, math.sqrt(0.5)))


LOCATION_WEIGHT = 1.6
"""Weight g of |z|² in (z, g|z|²). For every g ≤ 1.665 the sensitivity is 2, as for z alone."""


def location_l1(dimension: int) -> float:
    """ℓ1 sensitivity of (z, g|z|²) with g = 1.6, for z in the unit ball of R^D.

    |z - z'|₁ ≤ √D (|z| + |z'|), with equality for opposite z, z' along a diagonal. With r = |z| and
    s = |z'|, the sum √D (r + s) + g |r² - s²| is largest at r = 1 and s = √D/2g or s = 1.

    Examples:
        >>> round(location_l1(1), 3), location_l1(16)
        (2.756, 8.0)
    """
    root = math.sqrt(_validate.whole("dimension", dimension))
    other = min(1.0, root / (2 * LOCATION_WEIGHT))
    return root * (1 + other) + LOCATION_WEIGHT * (1 - other**2)


NEWTON_L2 = math.sqrt(8.0)
"""Euclidean sensitivity of (r x, r, 2c) with r = p - y and c = p(1 - p), the same as of (r x, r).

Let a = |r| and b = |r'|, both in [0, 1]. Then c = a(1 - a), and (r x, r) changes by at most
√2 (a + b), so |h|² ≤ 2u² + 4(a - b)²(1 - u)² with u = a + b, and |a - b| ≤ min(u, 2 - u). For
u ≤ 1, |h|² ≤ 2 + 4u²(1 - u)² ≤ 2.25. For u = 2 - w ≥ 1, |h|² ≤ 2(2 - w)² + 4w²(1 - w)²
= 8 - w (8 - 2w - 4w(1 - w)²) ≤ 8, because the bracket is at least 8 - 2 - 4."""
