"""A limit on releases of any size by two exponential moments of the privacy loss at once.

Let L be the privacy loss of everything released, and s_k the sum of K(λ_k) over releases
(`moments`). Each exp(λ_k L - s_k) is a nonnegative supermartingale of mean at most 1, however
releases are chosen, and so is their mean M(ℓ) = Σ_k w_k exp(λ_k ℓ - s_k), Σw_k = 1, if orders and
weights were fixed before the first release. If

    (1 - e^{ε-ℓ})_+ ≤ δ M(ℓ)   for all ℓ

at the sums of the last release, then E (1 - e^{ε-L})_+ ≤ δ E M ≤ δ: everything together is
(ε, δ)-DP. Choosing the better order along the way, each with all of δ, would not be a filter; the
mean of the orders is one. In x = ℓ - ε the difference of the logarithms is concave, so its maximum
is where 1/(e^x - 1) is the mean of the orders weighted by their terms of M.

The orders follow from the limit: one near λ, the best for Gaussian noise that uses the limit up,
and a larger one, which is better for few large releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpfda.privacy.calibration import LATTICE_RESERVE

_MULTIPLES, WEIGHTS = (0.8, 2.2), (0.85, 0.15)
"""The orders in units of λ, and their weights: the best found on random sequences of releases."""

_MOST_EPSILON = 1e6  # above, exponents lose their digits, and nothing is protected
_ROUNDING = 1e-9  # of log δ: sums of floats, and the lattice of Gaussian noise


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
        >>> from dpfda.privacy.moments import pure_moment
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
    return value + max(rise, 0.0) * (high - low) + _ROUNDING
