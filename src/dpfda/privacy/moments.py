"""Exponential moments of the privacy loss: Rényi differential privacy of one release.

The privacy loss L of a release is log p/q of its answer at two neighbors. K(λ) = log E_p exp(λL) is
λ times the Rényi divergence of order λ + 1 (Mironov 2017). It adds up over releases, also where
each is chosen by earlier answers. Exactly, with q the smallest probability of an answer:

* any ε-DP release: at most that of randomized response, log cosh((λ + ½)ε) - log cosh(ε/2), because
  every ε-DP release is post-processing of it (Kairouz, Oh & Viswanath 2015);
* randomized response among K: log q(e^{(λ+1)ε} + e^{-λε} + K - 2) with q = 1/(e^ε + K - 1);
* Laplace noise of ratio r: λr + log((λ + 1 + λe^{-(2λ+1)r})/(2λ + 1));
* Gaussian noise: μ²λ(λ + 1)/2.

None exceeds that of an ε-DP release, and that is at most ε²λ(λ + 1)/2.

Examples:
    >>> round(pure_moment(1.0, 4.0), 3), round(laplace_moment(1.0, 4.0), 3)
    (3.687, 3.412)
"""

from __future__ import annotations

import math

from dpfda.privacy.events import Event, LaplaceEvent, RandomizedResponseEvent
from dpfda.privacy.price import parts

_SMALL = 1e-3  # below, a lattice may have a few steps only, and Laplace noise counts as any ε-DP
_UP = 1 + 1e-9  # the lattice of Laplace noise, and rounding
_ROUNDING = 1e-14  # of logarithms that nearly cancel


def moment(event: Event, order: float) -> float:
    """K(λ) of a release with an ε, rounded up; a δ that it brings is counted elsewhere."""
    epsilon = float(parts(event)[0])
    match event:
        case LaplaceEvent():
            return laplace_moment(epsilon, order)
        case RandomizedResponseEvent(categories=categories):
            return response_moment(epsilon, categories, order)
    return pure_moment(epsilon, order)


def pure_moment(epsilon: float, order: float) -> float:
    """K(λ) of any ε-DP release."""
    exact = order * epsilon + _softplus(-(2 * order + 1) * epsilon) - _softplus(-epsilon)
    return min(epsilon * epsilon * order * (order + 1) / 2 * _UP, exact * _UP + _ROUNDING)


def laplace_moment(ratio: float, order: float) -> float:
    """The same for one number with Laplace noise of scale sensitivity/ratio."""
    pure = pure_moment(ratio, order)
    if ratio < _SMALL:
        return pure
    inside = (order + 1 + order * math.exp(-(2 * order + 1) * ratio)) / (2 * order + 1)
    return min(pure, (order * ratio + math.log(inside)) * _UP + _ROUNDING)


def response_moment(epsilon: float, categories: int, order: float) -> float:
    """The same for randomized response among K categories."""
    pure = pure_moment(epsilon, order)
    if categories == 2:
        return pure
    # e^ε taken out of both sums.
    rest = categories - 2
    above = math.exp(-(2 * order + 1) * epsilon) + rest * math.exp(-(order + 1) * epsilon)
    exact = order * epsilon + math.log1p(above) - math.log1p((rest + 1) * math.exp(-epsilon))
    return min(pure, exact * _UP + _ROUNDING * (1 + order * epsilon))


def _softplus(x: float) -> float:
    """log(1 + e^x) for x ≤ 0."""
    return math.log1p(math.exp(x))
