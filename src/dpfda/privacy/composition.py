"""Composition of releases whose sizes are fixed in advance: the smallest of several bounds.

*Exponential moments of the privacy loss* (Rényi differential privacy of one release).

The privacy loss L of a release is log p/q of its answer at two neighbors. K(λ) = log E_p exp(λL) is
λ times the Rényi divergence of order λ + 1 (Mironov 2017). K adds up over releases, even if each is
chosen after earlier answers. The exact values, with q the smallest probability of an answer, are:

* any ε-DP release: at most that of randomized response, log cosh((λ + ½)ε) - log cosh(ε/2), because
  every ε-DP release is post-processing of it (Kairouz, Oh & Viswanath 2015);
* randomized response among K: log q(e^{(λ+1)ε} + e^{-λε} + K - 2) with q = 1/(e^ε + K - 1);
* Laplace noise of ratio r: λr + log((λ + 1 + λe^{-(2λ+1)r})/(2λ + 1));
* Gaussian noise: μ²λ(λ + 1)/2.

No value exceeds that of an ε-DP release, which is at most ε²λ(λ + 1)/2.

*Two exponential moments at once limit releases of any size.*

Let L be the privacy loss of everything released, and s_k the sum of K(λ_k) over releases
(`moments`). Each exp(λ_k L - s_k) is a nonnegative supermartingale of mean at most 1, for any
choice of releases. So is their weighted mean M(ℓ) = Σ_k w_k exp(λ_k ℓ - s_k), Σw_k = 1, if the
orders and weights were fixed before the first release. If

    (1 - e^{ε-ℓ})_+ ≤ δ M(ℓ)   for all ℓ

at the sums of the last release, then E (1 - e^{ε-L})_+ ≤ δ E M ≤ δ: everything together is
(ε, δ)-DP. Choosing the better order adaptively, each with all of δ, would not be a valid filter;
the mean over the orders is. In x = ℓ - ε the difference of the logarithms is concave, so its
maximum is where 1/(e^x - 1) is the mean of the orders weighted by their terms of M.

The orders follow from the limit. One is near the best λ for Gaussian noise that uses up the limit;
the other is larger and better for a few large releases.

*The μ of releases that are not Gaussian*, which lets Σμ² cover all kinds of releases.

A release is μ-GDP if its trade-off curve f (the smallest type II error at type I error α) lies
nowhere below that of N(0, 1) against N(μ, 1), G(α) = Φ(Φ⁻¹(1 - α) - μ) (Dong, Roth & Su 2022).
G is convex, so a piecewise linear f lies above G if all its corners do. A corner (α, β) lies above
G if μ ≥ h(α) + h(β), with h = -Φ⁻¹. As log Φ is concave, h(e^u) is concave in u. The exact values
are:

* Any ε-DP release: the corner is α = β = 1/(1 + e^ε), so μ = 2 h(α). This is at most √(π/2) ε,
  because the slope of ε over μ/2 is the sum of the normal hazards at ±μ/2, and the hazard is convex
  (Sampford 1953), so that its sum is smallest at 0.
* Randomized response among K: the corners are (q, 1 - e^ε q) and its mirror image with
  q = 1/(e^ε + K - 1), so μ = h(q) - h(e^ε q), which decreases in K by concavity.
* Laplace noise of ratio r: between two linear pieces, αβ = e^{-r}/4. By concavity h(α) + h(β) is
  largest at α = β, so μ = 2 h(e^{-r/2}/2). On a lattice of s steps to a scale αβ is smaller by a
  factor of 1 - 1/4s²; for s ≥ 2^20 the 1e-9 of μ added here covers this.

Examples:
    >>> round(pure_moment(1.0, 4.0), 3), round(laplace_moment(1.0, 4.0), 3)
    (3.687, 3.412)

Examples:
    >>> round(pure_mu(1.0), 3), round(laplace_mu(1.0), 3), round(response_mu(1.0, 100), 3)
    (1.232, 1.03, 0.401)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from dpfda.privacy.calibration import LATTICE_RESERVE, gaussian_epsilon
from dpfda.privacy.events import Event, LaplaceEvent, PureEvent, RandomizedResponseEvent
from dpfda.privacy.price import Price, parts, rounded_up

# below, a lattice may have only a few steps, and Laplace noise is treated as any ε-DP release
_SMALL = 1e-3
_UP = 1 + 1e-9  # factor for the lattice of Laplace noise and for rounding
_ROUNDING = 1e-14  # error of logarithms that nearly cancel


def moment(event: Event, order: float) -> float:
    """K(λ) of a release with an ε, rounded up; its δ, if any, is counted elsewhere."""
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
    """K(λ) of one number with Laplace noise of scale sensitivity/ratio."""
    pure = pure_moment(ratio, order)
    if ratio < _SMALL:
        return pure
    inside = (order + 1 + order * math.exp(-(2 * order + 1) * ratio)) / (2 * order + 1)
    return min(pure, (order * ratio + math.log(inside)) * _UP + _ROUNDING)


def response_moment(epsilon: float, categories: int, order: float) -> float:
    """K(λ) of randomized response among K categories."""
    pure = pure_moment(epsilon, order)
    if categories == 2:
        return pure
    # e^ε is factored out of both sums.
    rest = categories - 2
    above = math.exp(-(2 * order + 1) * epsilon) + rest * math.exp(-(order + 1) * epsilon)
    exact = order * epsilon + math.log1p(above) - math.log1p((rest + 1) * math.exp(-epsilon))
    return min(pure, exact * _UP + _ROUNDING * (1 + order * epsilon))


def _softplus(x: float) -> float:
    """log(1 + e^x) for x ≤ 0."""
    return math.log1p(math.exp(x))


_MULTIPLES, WEIGHTS = (0.8, 2.2), (0.85, 0.15)
"""The orders in units of λ, and their weights, chosen for random sequences of releases."""

_MOST_EPSILON = 1e6  # above, exponents lose their digits, and there is no protection
_LOG_DELTA_ROUNDING = 1e-9  # error of log δ from sums of floats and the lattice of Gaussian noise


def orders(*, epsilon: float, delta: float) -> tuple[float, ...]:
    """The λ_k for a limit.

    Examples:
        >>> [round(order, 1) for order in orders(epsilon=1.0, delta=1e-5)]
        [18.8, 51.7]
    """
    tail = math.sqrt(-2 * math.log(delta))
    mu = 2 * epsilon / (tail + math.sqrt(tail * tail + 2 * epsilon))  # ε = μ²/2 + tail·μ
    return tuple(multiple * tail / mu for multiple in _MULTIPLES)


def log_delta(epsilon: float, orders: Sequence[float], sums: Sequence[float]) -> float:
    """Log of the smallest δ for which the condition holds, rounded up.

    Examples:
        >>> from dpfda.privacy.composition import pure_moment
        >>> sums = [10 * pure_moment(0.1, order) for order in (20.0, 40.0)]
        >>> math.exp(log_delta(0.9, (20.0, 40.0), sums)) < 1e-3
        True
    """
    if not 2 * LATTICE_RESERVE < epsilon <= _MOST_EPSILON:
        return 0.0
    epsilon -= LATTICE_RESERVE
    parts = [math.log(weight) for weight in WEIGHTS]

    def slope(x: float) -> tuple[float, float]:
        """The logarithm of (1 - e^{-x})/M and its derivative."""
        known = zip(parts, orders, sums, strict=True)
        terms = [part + order * (epsilon + x) - total for part, order, total in known]
        largest = max(terms)
        weights = [math.exp(term - largest) for term in terms]
        whole = sum(weights)
        mean = sum(w * order for w, order in zip(weights, orders, strict=True)) / whole
        value = math.log(-math.expm1(-x)) - largest - math.log(whole)
        return value, 1 / math.expm1(x) - mean

    low, high = math.log1p(1 / max(orders)), math.log1p(1 / min(orders))
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if slope(middle)[1] > 0:
            low = middle
        else:
            high = middle
    value, rise = slope(low)
    # Concave: the tangent at `low` lies above everything up to `high`.
    return value + max(rise, 0.0) * (high - low) + _LOG_DELTA_ROUNDING


_LARGE = 700.0  # above, e^ε overflows
_MOST_CATEGORIES = 10**15  # as many as floats can distinguish; more categories never cost more


def mu(event: Event) -> float:
    """μ of a release with an ε, rounded up; its δ, if any, is counted elsewhere."""
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
    """The smallest μ of randomized response among K categories, rounded up."""
    if not _SMALL <= epsilon <= _LARGE or categories == 2:
        return pure_mu(epsilon)
    others = min(categories, _MOST_CATEGORIES) - 1
    change = 1 / (math.exp(epsilon) + others)
    keep, lose = math.exp(epsilon) * change, others * change
    # The smaller of the two probabilities has full precision.
    return (_h(change) + (-_h(keep) if keep < lose else _h(lose))) * _UP


def laplace_mu(ratio: float) -> float:
    """The smallest μ of one number with Laplace noise of scale sensitivity/ratio, rounded up."""
    if not _SMALL <= ratio <= _LARGE:
        return pure_mu(ratio)
    return 2 * _h(math.exp(-ratio / 2) / 2) * _UP


def _h(probability: float) -> float:
    return -NormalDist().inv_cdf(probability)


_ORDERS = [0.01 * 1.2**step for step in range(110)]  # λ, up to 5·10^6
_HUGE = 1e150  # beyond every limit, and its square a finite float
_SIMPLER = 1.01  # factor: ε may be this much larger if the total then needs no δ


@dataclass(frozen=True, kw_only=True)
class Budget:
    """An amount of privacy.

    Examples:
        >>> print(Budget(epsilon=1.0, delta=1e-6))
        ε = 1, δ = 1e-06
    """

    epsilon: float
    delta: float = 0.0

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")


def total(price: Price, *, delta: float) -> Budget:
    """(ε, δ) of releases about the same unit that did not depend on earlier answers.

    Σε is always valid. With a δ, the sums of μ² (`mu`) and of Rényi divergences of every order
    (`moment`) are valid, too. The smallest ε is returned, or Σε, which needs no `delta`, if it is
    about as small. For releases with only (ε_i, δ_i) known, Σδ_i is added.

    Args:
        price: the releases.
        delta: δ of the sums that need one; must be above 0 if there is Gaussian noise.

    Examples:
        >>> from dpfda.privacy.price import compose
        >>> print(total(compose([PureEvent(epsilon=0.1)] * 100), delta=1e-6))
        ε = 5.08577, δ = 1e-06
        >>> print(total(compose([PureEvent(epsilon=0.1)] * 10), delta=1e-6))
        ε = 1
    """
    plain = Budget(epsilon=rounded_up(price.epsilon), delta=rounded_up(price.delta))
    if not price.precision and (not delta or not price.epsilon):
        return plain
    counts = [(event, times) for event, times in price.counts.items() if parts(event)[0]]
    undivided = price.epsilon - sum(times * parts(event)[0] for event, times in counts)
    if undivided:
        counts.append((PureEvent(epsilon=min(rounded_up(undivided), 1e300)), 1))
    noise = float(min(price.precision, Fraction(_HUGE)))
    apart = plain.epsilon + _by_squares([], noise, delta)  # (ε, 0) and (ε', δ)
    epsilon = min(apart, _by_squares(counts, noise, delta), _by_moments(counts, noise, delta))
    epsilon *= _UP
    if not price.precision and plain.epsilon <= _SIMPLER * epsilon:
        return plain
    return Budget(epsilon=epsilon, delta=rounded_up(price.delta + Fraction(repr(delta))))


Counts = list[tuple[Event, int]]


def _by_squares(counts: Counts, noise: float, delta: float) -> float:
    squares = noise + sum(times * min(mu(event), _HUGE) ** 2 for event, times in counts)
    if not squares:
        return 0.0
    return gaussian_epsilon(delta=delta, multiplier=1 / math.sqrt(min(squares, _HUGE)))


def _by_moments(counts: Counts, noise: float, delta: float) -> float:
    """min over λ of (log 1/δ + log max_x (1 - e^{-x})e^{-λx} + ΣK(λ))/λ."""
    found = math.inf
    for order in _ORDERS:
        whole = noise * order * (order + 1) / 2
        whole += sum(times * moment(event, order) for event, times in counts)
        peak = -math.log1p(order) - order * math.log1p(1 / order)
        found = min(found, (-math.log(delta) + peak + whole) / order)
    return max(found, 0.0) + LATTICE_RESERVE
