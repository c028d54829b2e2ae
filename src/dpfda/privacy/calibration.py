"""The exact Gaussian noise that a budget requires (Balle & Wang 2018).

All formulas use μ = sensitivity/σ, which composes: releases with μ_1, μ_2, ... together are one
Gaussian release with μ² = Σ μ_i². The *multiplier* of an event is 1/μ.

With a = ε/μ - μ/2 and b = ε/μ + μ/2 the smallest δ is Φ(-a) - e^ε Φ(-b) (Theorem 8 there). Because
e^ε φ(b) = φ(a), it equals φ(a) (m(a) - m(b)) with Mills' ratio m = Φ(-·)/φ. This form neither
overflows nor cancels, and is computed here.

The library draws *discrete* Gaussian noise with s = 2^24 lattice steps per standard deviation. If
sites share the noise, their parts add up to this distribution, up to one part in e^(10^12)
(Kairouz, Liu & Steinke 2021). Its concentrated-privacy parameter is that of the continuous one
(Canonne, Kamath & Steinke 2020); its (ε, δ) curve may lie on either side of the continuous curve,
at a distance of order 1/s². The continuous curve can still be used safely:

    Let d(k) be the discrete and r(k) the rounded continuous probability of the integer k, p the
    continuous density, u uniform on (-½, ½). Then r(k) = p(k) E[e^{-u²/2s²} cosh(uk/s²)], hence
        d(k) ≤ p(k) ≤ e^{1/24s²} r(k)   (Poisson summation: d's normalizer is ≥ 1; Jensen)
        r(k) ≤ e^{k²/24s⁴} Z d(k)       (u is sub-Gaussian; Z ≤ 1 + 3e^{-2π²s²})
    Rounded continuous noise is post-processing of continuous noise. Combining the three: if J
    coordinates of continuous noise are (ε, δ)-DP, discrete ones are
    (ε + η, e^{J/24s²} (δ + e^ε τ))-DP with
        η = (J + R²)/(24s²) + J log Z,   τ = P(J standard normals leave the ball of radius R).
    For R² = 3J + 500, τ ≤ e^{-150} (Laurent & Massart 2000).

J counts the coordinates of all releases together. All functions here reserve 1e-10 of ε and one
part in 10^9 of δ, which covers the part 500/(24s²) of η, e^ε τ and rounding. The terms that grow
with J are subtracted from the μ of each release (`lattice_charge`). This covers any number of
coordinates, for ε ≤ 60 and 1e-15 ≤ δ ≤ ½:

    ∂δ/∂μ = φ(a), -∂δ/∂ε = φ(a) m(b) and δ ≤ φ(a) m(a); in that range a, b ≥ -1, so m < 3.5, and
    μ < 12. Raising μ by 3.5(η + J/24s²) ≤ 4.4η with η = J/6s² thus makes up for both. Release i,
    whose noise is made for μ_i - d_i, d_i = 20 J_i/(s² μ_i) ≥ 2·12·4.4 η_i/μ_i, does this:
    Σμ_i² - Σ(μ_i - d_i)² ≥ Σ μ_i d_i ≥ 2·12·4.4 η, and so the root grows by 4.4η.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dpfda import _validate
from dpfda.errors import InvalidParameter

LATTICE_RESERVE = 1e-10
"""The part of ε that is reserved for the lattice."""

_INFLATE = 1 + 1e-9  # factor of δ for the lattice and for rounding in this file
_MARGIN = 1e-10  # relative reduction of μ, so that the parts of a split budget still fit together
_ROOT = math.sqrt(2 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def gaussian_delta(*, epsilon: float, multiplier: float) -> float:
    """The smallest δ for which Gaussian noise of σ = multiplier · sensitivity is (ε, δ)-DP.

    Examples:
        >>> round(gaussian_delta(epsilon=1.0, multiplier=1.0), 4)
        0.1269
    """
    _validate.non_negative("epsilon", epsilon)
    return _delta(epsilon, 1 / _validate.positive("multiplier", multiplier))


@lru_cache(maxsize=4096, typed=True)  # typed, because True equals 1 and is not a valid argument
def gaussian_epsilon(*, delta: float, multiplier: float) -> float:
    """The smallest ε for which Gaussian noise of σ = multiplier · sensitivity is (ε, δ)-DP.

    Examples:
        >>> round(gaussian_epsilon(delta=1e-5, multiplier=3.73), 3)
        1.0
    """
    _validate.fraction("delta", delta)
    mu = 1 / _validate.positive("multiplier", multiplier)
    if _delta(0.0, mu) <= delta:
        return 0.0
    # At a = √(2 log 1/δ) already Φ(-a) < δ.
    high = mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)) + 2 * LATTICE_RESERVE
    return _bisect(lambda epsilon: _delta(epsilon, mu) <= delta, good=2 * high, bad=0.0)


@lru_cache(maxsize=4096, typed=True)  # typed, because True equals 1 and is not a valid argument
def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """The largest μ = sensitivity/σ that an (ε, δ) budget allows.

    Examples:
        >>> round(gaussian_mu(epsilon=1.0, delta=1e-5), 4)
        0.2681
    """
    _validate.positive("epsilon", epsilon)
    _validate.fraction("delta", delta)
    if epsilon <= 2 * LATTICE_RESERVE:
        raise InvalidParameter("epsilon", f"above {2 * LATTICE_RESERVE:g}", epsilon)
    tail = math.sqrt(-2 * math.log(delta))
    good = epsilon / (tail + math.sqrt(tail * tail + 2 * epsilon)) / 2  # half of a μ that suffices
    bad = 2 * good
    while _delta(epsilon, bad) <= delta:
        bad *= 2
    return _bisect(lambda mu: _delta(epsilon, mu) <= delta, good=good, bad=bad) * (1 - _MARGIN)


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest standard deviation that makes Gaussian noise (ε, δ)-DP, for any ε > 0.

    Privacy:
        Exact (Balle & Wang 2018, Algorithm 1), rounded up by one part in 10^10. The classic σ = √(2
        ln(1.25/δ))/ε is larger and valid for ε < 1 only.

    Examples:
        >>> round(gaussian_sigma(epsilon=1.0, delta=1e-5), 2)
        3.73
    """
    _validate.positive("sensitivity", sensitivity)
    return sensitivity / gaussian_mu(epsilon=epsilon, delta=delta)


def lattice_charge(*, coordinates: int, steps: int, mu: float) -> float:
    """Reduction of μ that covers the discrete noise of a release with this many coordinates.

    Examples:
        >>> lattice_charge(coordinates=1000, steps=2**24, mu=0.1) < 1e-9
        True
    """
    return 20 * coordinates / (float(steps) ** 2 * mu)


def _bisect(holds: Callable[[float], bool], *, good: float, bad: float) -> float:
    """The point nearest to `bad` at which `holds` is true, to 13 digits.

    The returned point itself was tested, so a calibration never uses an extrapolated root.
    """
    while abs(bad - good) > 1e-13 * abs(good):
        middle = (good + bad) / 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


def _delta(epsilon: float, mu: float) -> float:
    epsilon -= LATTICE_RESERVE  # the formula holds for negative ε too
    low, high = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    density = math.exp(-low * low / 2) / _ROOT
    if low >= -5:
        value = density * _mills_drop(low, high)
    elif high >= -5:  # m(a) would overflow; δ is near 1, so the difference does not cancel
        value = _upper_tail(low) - density * _mills(high)
    else:  # hardly any loss; ε lies within the reserve
        value = _upper_tail(low) - math.exp(epsilon) * _upper_tail(high)
    # Never 0: after underflow, δ = 0 would claim pure differential privacy.
    return min(1.0, max(value * _INFLATE, sys.float_info.min))


def _mills_drop(low: float, high: float) -> float:
    """m(low) - m(high) for -5 ≤ low < high."""
    if high - low > 0.1:
        return _mills(low) - _mills(high)
    # m' = x m - 1. Integrated, because the difference of two close values would cancel.
    nodes = (low + high) / 2 + _NODES * (high - low) / 2
    slopes = [1 - x * _mills(x) for x in nodes.tolist()]
    return float(_WEIGHTS @ slopes) * (high - low) / 2


# Implemented here because importing scipy.special takes longer than importing all of dpfda.


def _mills(x: float) -> float:
    """Mills' ratio m(x) = Φ(-x)/φ(x), for x ≥ -5, to 13 digits."""
    if x < 4:
        return _upper_tail(x) * _ROOT * math.exp(x * x / 2)
    value = x  # Laplace's continued fraction x + 1/(x + 2/(x + 3/(x + ...)))
    for k in range(80, 0, -1):
        value = x + k / value
    return 1 / value


def _upper_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2
