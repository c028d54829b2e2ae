"""How much small releases cost in the units of Gaussian noise: their variance, nearly.

`gaussian_dp` proves μ² ≈ 1.57 ε² for small ε-DP releases, which is all that can be said of every
test between neighbors. For tests as rare as δ their variance ε² is what counts, up to a factor of
about 1.6 in δ. This file proves that, for releases that may depend on earlier answers.

    With p, q the laws of an answer at two neighbors and L = log p/q, let r be the law √(pq)/Z,
    Z = ∫√(pq). Then E_p f(L) = Z E_r e^{L/2} f(L). Under r, L is symmetric:
      randomized response   ±ε,                          Z = 1/cosh(ε/2)
      Gaussian noise        N(0, μ²),                    Z = e^{-μ²/8}
      Laplace noise         ±ρ with 1/(2 + ρ) each,      Z = e^{-ρ/2}(1 + ρ/2)
                            else uniform between

    Lemma. If X is symmetric, X² ≤ s²N² in convex order (N normal) and g'' is convex, then
    E g(x + X) ≤ E g(x + sN). Proof: u(y) = (g(x + y) + g(x - y))/2 has a u'' that is even and
    convex, so it grows with |y|, so u'(y)/y = ∫_0^1 u''(ty) dt does, so u is a convex function of
    y². (For X = ±s this is Jensen's inequality; Eaton 1970, Pinelis 1994.)

    X = ±ε has s² = ε². For Laplace noise s² = ρ²(2 + ρ/3)/(2 + ρ), the variance: below ρ the law of
    |X| has the distribution function x/(2 + ρ), a line, and that of s|N| is concave, steeper at 0
    because s² ≤ (2/π)(2 + ρ)². So they cross once, and the means of X² and s²N² are equal.

    Take any g ≥ e^{x/2}(1 - e^{ε-x})_+ with g'' convex and g'' ≥ g/4, and
        V(x; v) = e^{-v/8} e^{-x/2} E g(x + √v N).
    (a) V grows with v, and V(x; 0) ≥ (1 - e^{ε-x})_+: both by g'' ≥ g/4.
    (b) y ↦ y V(log y; v) is convex, again by g'' ≥ g/4: no post-processing makes E_p V(x + L; v)
        larger, so any ε-DP release is no worse than randomized response, which it is made of.
    (c) E_p V(x + L; v - s²) ≤ e^c V(x; v) with c = log Z + s²/8, by the lemma. For Gaussian noise
        c = 0; otherwise c ≈ ε⁴/192.
    So e^{C - Σc} V(L_1 + ... + L_t; v - Σs²) is a supermartingale while Σs² ≤ v and Σc ≤ C, however
    releases are chosen, and E (1 - e^{ε-L})_+ ≤ e^C V(0; v) at the end: releases with Σs² ≤ v and
    Σc ≤ C are (ε, e^C V(0; v))-DP together.

    Here g(x) = 2A e^{ε/2} (sinh u - u)_+, u = (x - ε)/2 + b, for some b > 0. With y = u - b, it
    must exceed 2e^{ε/2} sinh y, so A = max_{y>0} sinh y/(sinh u - u). That is at least e^{-b}, so
    A(sinh u - u) - sinh y is convex in y > 0, and the ratio has a single peak.

Examples:
    >>> round(capacity(epsilon=1.0, delta=1e-5) / gaussian_mu(epsilon=1.0, delta=1e-5)**2, 2)
    0.94
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpfda._validate import FloatArray
from dpfda.privacy.calibration import LATTICE_RESERVE, gaussian_mu
from dpfda.privacy.events import Event, LaplaceEvent
from dpfda.privacy.price import parts

EXCESS = 0.05
"""C, what all releases together may add to log δ by not being Gaussian: a hundredth of ε."""

_SHIFT = 0.9  # b in units of v/ε, the scale on which the tail falls: near the best
_SMALL = 1e-3  # below, a lattice may have a few steps only, and Laplace noise counts as any ε-DP
_UP = 1 + 1e-9  # the lattice of Laplace noise, rounding, quadrature
_MOST_EPSILON = 1e3  # above, exponents cancel, and nothing is protected
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_REACH = (0.0, 8.0, 24.0, 80.0)  # of the integral, in units of v/ε or √v, whichever is shorter


def spread(event: Event) -> tuple[float, float]:
    """s² and c of a release with an ε, rounded up; a δ that it brings is counted elsewhere."""
    epsilon = float(parts(event)[0])
    return laplace_spread(epsilon) if isinstance(event, LaplaceEvent) else pure_spread(epsilon)


def pure_spread(epsilon: float) -> tuple[float, float]:
    """s² and c of any ε-DP release.

    Examples:
        >>> square, excess = pure_spread(1.0)
        >>> round(square, 3), round(excess, 4)
        (1.0, 0.0049)
    """
    half = min(epsilon, 1e150) / 2
    # log cosh = half - log 2 + log(1 + e^{-2 half}); for small ones by its series, from above.
    log_cosh = half - math.log(2) + math.log1p(math.exp(-2 * half))
    excess = half**4 / 12 if half < 0.05 else half * half / 2 - log_cosh
    return 4 * half * half * _UP, excess * _UP


def laplace_spread(ratio: float) -> tuple[float, float]:
    """The same for one number with Laplace noise of scale sensitivity/ratio."""
    square, excess = pure_spread(ratio)
    if not _SMALL <= ratio <= 1e100:
        return square, excess
    square = ratio * ratio * (2 + ratio / 3) / (2 + ratio)
    if ratio > 0.1:  # below, the excess of a pure release is larger by rounding only
        excess = (math.log1p(ratio / 2) - ratio / 2 + square / 8) * _UP
    return square * _UP, excess


@lru_cache(maxsize=256)
def capacity(*, epsilon: float, delta: float) -> float:
    """The largest v for which releases with Σs² ≤ v and Σc ≤ `EXCESS` are (ε, δ)-DP together."""
    if not 4 * LATTICE_RESERVE < epsilon <= _MOST_EPSILON:
        return 0.0
    exact = gaussian_mu(epsilon=epsilon, delta=delta) ** 2
    epsilon -= LATTICE_RESERVE
    shift = _shift(exact, epsilon)
    factor = _factor(shift)
    allowed = math.log(delta) - EXCESS
    good, bad = 0.0, exact
    while bad - good > 1e-12 * exact:
        middle = (good + bad) / 2
        if _log_value(middle, epsilon, shift, factor) <= allowed:
            good = middle
        else:
            bad = middle
    return good


def hockey_stick(*, epsilon: float, squares: float, excess: float) -> float:
    """e^c V(0; v): a δ that releases with Σs² = v and Σc = c have at this ε."""
    if not 4 * LATTICE_RESERVE < epsilon <= _MOST_EPSILON:
        return 1.0
    epsilon -= LATTICE_RESERVE
    shift = _shift(squares, epsilon)
    log_delta = excess + _log_value(squares, epsilon, shift, _factor(shift))
    return math.exp(min(log_delta, 0.0))


def _shift(v: float, epsilon: float) -> float:
    """b > 0: any is valid. At most ε/4, so that g begins above 0."""
    return min(_SHIFT * v, epsilon * epsilon / 4) / epsilon


def _log_value(v: float, epsilon: float, shift: float, factor: float) -> float:
    """log V(0; v): an integral of something positive, so that nothing cancels."""
    start = epsilon - 2 * shift  # g is 0 below
    scale = min(math.sqrt(v), v / epsilon)
    total = 0.0
    # Relative to the density where g begins: that alone may underflow.
    for low, high in pairwise(_REACH):
        x = scale * ((low + high) / 2 + _NODES * (high - low) / 2)
        weight = np.exp(-x * (x + 2 * start) / (2 * v))
        total += float(_WEIGHTS @ (_gap(x / 2) * weight)) * scale * (high - low) / 2
    if not total > 0 or not math.isfinite(total):
        return math.inf
    log_density = -start * start / (2 * v) - math.log(2 * math.pi * v) / 2
    return math.log(2 * factor * total * _UP) + epsilon / 2 - v / 8 + log_density


@lru_cache(maxsize=256)
def _factor(shift: float) -> float:
    """A = max_{y>0} sinh y/(sinh(y + b) - y - b), a single peak."""
    low, high = 0.0, 2 * shift + 50.0

    def ratio(y: float) -> float:
        # Divided by e^y above and below.
        u = y + shift
        if u < 30:
            return math.sinh(y) / float(_gap(np.array([u]))[0])
        return -math.expm1(-2 * y) / (math.exp(shift) - 2 * u * math.exp(-y) - math.exp(-u - y))

    while high - low > 1e-10 * high:
        left, right = low + (high - low) * 0.4, low + (high - low) * 0.6
        if ratio(left) < ratio(right):
            low = left
        else:
            high = right
    return max(ratio(high), math.exp(-shift)) * _UP


def _gap(u: FloatArray) -> FloatArray:
    """sinh u - u, to all digits."""
    square = u * u
    series = u * square / 6 * (1 + square / 20 * (1 + square / 42 * (1 + square / 72)))
    with np.errstate(over="ignore"):
        return np.where(u < 0.5, series, np.sinh(u) - u)
