"""How far one person can move the moments: closed forms, found by hand and checked by search.

Rows lie in the unit ball, targets in [-1, 1]. Replacing (x, y) by (x', y') moves
(P Σ xy, Q Σ xxᵀ) by h = (P (xy - x'y'), Q (xxᵀ - x'x'ᵀ)); matrices are measured by the Frobenius
norm, which is the Euclidean norm of `svec`. For unit rows at angle cosine t and opposite signs,
|h|² = P²(2 + 2t) + Q²(2 - 2t²), the largest at t = P²/(2Q²), or t = 1 where that exceeds 1 (C7).
"""

from __future__ import annotations

import math

from dpfda import _validate


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
    """Sum-of-absolutes sensitivity of (P Σ xy, Q times all D² entries of Σ xxᵀ), an upper bound.

    |xy - x'y'|₁ ≤ √D |·|₂ and |xxᵀ - x'x'ᵀ|₁ ≤ D |·|_F; the two Euclidean norms trade off as above:
    with a = P√D, b = QD and u = √(1 - t) the sum is √(4 - 2u²) (a + bu), the largest where
    2bu² + au = 2b.

    Examples:
        >>> round(joint_l1(1.0, 1.0, dimension=1), 4)
        2.9696
    """
    root = math.sqrt(_validate.whole("dimension", dimension))
    a, b = linear * root, quadratic * root**2
    u = 4 * b / (a + math.hypot(a, 4 * b))
    return math.sqrt(4 - 2 * u**2) * (a + b * u)


def best_weight(linear: float, quadratic: float, *, dimension: int) -> float:
    """w2/w1 that minimizes the noise reaching w: (D/w1² + D(D+1)/(2 w2²)) S(w)² (C7).

    With r = P²/Q², w² = rt and e = (D+1)/2r, beyond the free ride (t = ½) its derivative in t has
    the sign of (2t + 1)(t² - t/2 - e).

    Examples:
        >>> round(best_weight(2.0, 1.0, dimension=1), 3)
        1.799
    """
    ratio = (linear / quadratic) ** 2
    return math.sqrt(ratio * (0.25 + math.sqrt(0.0625 + (dimension + 1) / (2 * ratio))))


def eigenvalue_l2(linear: float, quadratic: float) -> float:
    """Euclidean sensitivity of (λ_min(Σ xxᵀ), P Σ xy, Q svec Σ xxᵀ).

    Let M = xxᵀ - x'x'ᵀ, r = |x|² ≥ s = |x'|², k = cosine · √s. Weyl: λ_min moves by no more than
    M's largest eigenvalue λ, which like |xy - x'y'| and |M|_F grows with r, so r = 1. Then
    λ² = (1 - s)λ + (s - k²) ≤ 1 - k² because λ ≤ 1, and in all
    |h|² ≤ P²(1 + s + 2k) + Q²(1 + s² - 2k²) + 1 - k², which grows with s: at s = 1 it is
    P²(2 + 2k) + (Q² + ½)(2 - 2k²), the joint sensitivity of moments with a larger weight.

    Examples:
        >>> round(eigenvalue_l2(0.5, math.sqrt(0.5)) ** 2, 6)
        2.53125
    """
    return joint_l2(linear, math.hypot(quadratic, math.sqrt(0.5)))


LOCATION_WEIGHT = 1.6
"""Weight g of |z|² beside z: (z, g|z|²) has sensitivity 2, as z alone, for every g ≤ 1.665."""


def location_l1(dimension: int) -> float:
    """Sum-of-absolutes sensitivity of (z, g|z|²), g = 1.6, z in the unit ball of R^D.

    |z - z'|₁ ≤ √D (|z| + |z'|), with equality for opposite z, z' along a diagonal. The rest,
    √D (r + s) + g |r² - s²|, is largest at r = 1, and there at s = √D/2g or s = 1.

    Examples:
        >>> round(location_l1(1), 3), location_l1(16)
        (2.756, 8.0)
    """
    root = math.sqrt(_validate.whole("dimension", dimension))
    other = min(1.0, root / (2 * LOCATION_WEIGHT))
    return root * (1 + other) + LOCATION_WEIGHT * (1 - other**2)


NEWTON_L2 = math.sqrt(8.0)
"""Euclidean sensitivity of (r x, r, 2c), r = p - y, c = p(1 - p): that of (r x, r) alone.

With a = |r|, b = |r'| in [0, 1], c = a(1 - a), and (r x, r) moves by at most √2 (a + b):
|h|² ≤ 2u² + 4(a - b)²(1 - u)² with u = a + b. To come near √8 both residuals must be near 1, and
there the curvature is near 0 on both sides: it rides free. Exactly: |a - b| ≤ min(u, 2 - u). For
u ≤ 1, |h|² ≤ 2 + 4u²(1 - u)² ≤ 2.25. For u = 2 - w ≥ 1, |h|² ≤ 2(2 - w)² + 4w²(1 - w)²
= 8 - w (8 - 2w - 4w(1 - w)²) ≤ 8, because the bracket is at least 8 - 2 - 4."""
