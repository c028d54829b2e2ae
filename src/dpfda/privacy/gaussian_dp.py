"""The μ of releases that are not Gaussian, so that all kinds add up in one currency, Σμ².

A release is μ-GDP if its trade-off curve f (the smallest type II error at type I error α) lies
nowhere below that of N(0, 1) against N(μ, 1), G(α) = Φ(Φ⁻¹(1 - α) - μ) (Dong, Roth & Su 2022).
G is convex, so where f is linear between corners it lies above G as soon as its corners do, and a
corner (α, β) does so for μ ≥ h(α) + h(β), with h = -Φ⁻¹. As log Φ is concave, h(e^u) is concave in
u. Hence, exactly:

* Any ε-DP release: the corner is α = β = 1/(1 + e^ε), so μ = 2 h(α). This is at most √(π/2) ε,
  because the slope of ε over μ/2 is the sum of the normal hazards at ±μ/2, and the hazard is convex
  (Sampford 1953), so that its sum is smallest at 0.
* Randomized response among K: the corners are (q, 1 - e^ε q) and its mirror image with
  q = 1/(e^ε + K - 1), so μ = h(q) - h(e^ε q); by concavity smaller the larger K is.
* Laplace noise of ratio r: αβ = e^{-r}/4 between two lines. By concavity h(α) + h(β) is largest at
  α = β, so μ = 2 h(e^{-r/2}/2). On a lattice of s steps to a scale αβ is smaller by a factor of
  1 - 1/4s²; for s ≥ 2^20 the 1e-9 of μ added here is more.

Examples:
    >>> round(pure_mu(1.0), 3), round(laplace_mu(1.0), 3), round(response_mu(1.0, 100), 3)
    (1.232, 1.03, 0.401)
"""

from __future__ import annotations

import math
from statistics import NormalDist

from dpfda.privacy.events import Event, LaplaceEvent, RandomizedResponseEvent
from dpfda.privacy.price import parts

_UP = 1 + 1e-9  # rounding of Φ⁻¹, and the lattice of Laplace noise
_SMALL = 1e-3  # below, differences of Φ⁻¹ lose digits, and √(π/2) ε is as good
_LARGE = 700.0  # above, e^ε overflows
_MOST_CATEGORIES = 10**15  # as many as floats tell apart; more are never dearer


def mu(event: Event) -> float:
    """μ of a release with an ε, rounded up; a δ that it brings is counted elsewhere."""
    epsilon = float(parts(event)[0])
    match event:
        case LaplaceEvent():
            return laplace_mu(epsilon)
        case RandomizedResponseEvent(categories=categories):
            return response_mu(epsilon, categories)
    return pure_mu(epsilon)


def pure_mu(epsilon: float) -> float:
    """The smallest μ for which every ε-DP release is μ-GDP, rounded up."""
    if epsilon < _SMALL:
        return math.sqrt(math.pi / 2) * epsilon * _UP
    if epsilon > _LARGE:  # Φ(-x) ≤ e^{-x²/2}/2 ≤ 1/(1 + e^ε) at x = √(2ε)
        return 2 * math.sqrt(2) * math.sqrt(epsilon) * _UP
    return 2 * _h(1 / (1 + math.exp(epsilon))) * _UP


def response_mu(epsilon: float, categories: int) -> float:
    """The same for randomized response among K categories."""
    if not _SMALL <= epsilon <= _LARGE or categories == 2:
        return pure_mu(epsilon)
    others = min(categories, _MOST_CATEGORIES) - 1
    change = 1 / (math.exp(epsilon) + others)
    keep, lose = math.exp(epsilon) * change, others * change
    # The smaller of the two has all its digits.
    return (_h(change) + (-_h(keep) if keep < lose else _h(lose))) * _UP


def laplace_mu(ratio: float) -> float:
    """The same for one number with Laplace noise of scale sensitivity/ratio."""
    if not _SMALL <= ratio <= _LARGE:
        return pure_mu(ratio)
    return 2 * _h(math.exp(-ratio / 2) / 2) * _UP


def _h(probability: float) -> float:
    return -NormalDist().inv_cdf(probability)
