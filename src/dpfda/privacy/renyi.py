"""Rényi accounting, and the noise of private gradient descent.

A release is (α, R)-Rényi-DP when the Rényi divergence of order α between neighbours is at most R; R
adds up over releases. For Gaussian noise R = α μ²/2, for an ε-DP release R ≤ min(ε, α ε²/2).

Full-batch gradient descent is a plain composition of Gaussians: T steps are one Gaussian release
with μ √T, and `calibration` prices that one *exactly*. The Rényi route, which 002 uses, is a bound
and asks for some more noise; it is here for comparison, and the exact route is the default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.privacy._search import bisect
from dpfda.privacy.calibration import gaussian_sigma
from dpfda.privacy.price import Accountant, Price, exact, parts, rounded_down

Route = Literal["exact", "renyi"]

_ORDERS: FloatArray = 1 + np.geomspace(1e-4, 1e8, 6000)  # any order gives a valid bound


def gaussian_divergence(*, order: float, multiplier: float, steps: int = 1) -> float:
    """Rényi divergence of `steps` Gaussian releases with σ = multiplier · sensitivity.

    Example:
        >>> gaussian_divergence(order=2.0, multiplier=1.0, steps=3)
        3.0
    """
    _validate.positive("order minus 1", order - 1)
    _validate.positive("multiplier", multiplier)
    return order * _validate.whole("steps", steps) / (2 * multiplier**2)


def renyi_epsilon(*, delta: float, multiplier: float, steps: int = 1) -> float:
    """ε of `steps` Gaussian releases at δ, by the Rényi route.

    Example:
        >>> round(renyi_epsilon(delta=1e-5, multiplier=37.31, steps=100), 2)
        1.09
    """
    _validate.positive("multiplier", multiplier)
    squared_mu = _validate.whole("steps", steps) / multiplier**2
    return _converted(_ORDERS * (squared_mu / 2), delta)


def noisy_gradient_sigma(
    *, epsilon: float, delta: float, steps: int, sensitivity: float, route: Route = "exact"
) -> float:
    """Standard deviation of the noise on each of `steps` full-batch gradients.

    Args:
        epsilon: ε of the whole descent.
        delta: δ of the whole descent.
        steps: number of gradients, T.
        sensitivity: ℓ2 sensitivity of one gradient.
        route: ``exact`` (smaller σ) or ``renyi`` (as in 002).

    Privacy:
        (ε, δ)-DP for all steps together, however each depends on the earlier ones.

    Example:
        >>> exactly = noisy_gradient_sigma(epsilon=1.0, delta=1e-5, steps=100, sensitivity=0.1)
        >>> bound = noisy_gradient_sigma(
        ...     epsilon=1.0, delta=1e-5, steps=100, sensitivity=0.1, route="renyi"
        ... )
        >>> round(exactly, 2), round(bound, 2)
        (3.73, 4.05)
    """
    _validate.whole("steps", steps)
    _validate.positive("sensitivity", sensitivity)
    _validate.one_of("route", route, ["exact", "renyi"])
    multiplier = gaussian_sigma(epsilon=epsilon, delta=delta) * math.sqrt(steps)
    if route == "renyi":
        multiplier = _renyi_multiplier(epsilon, delta, steps, least=multiplier)
    return multiplier * sensitivity


def _renyi_multiplier(epsilon: float, delta: float, steps: int, *, least: float) -> float:
    def enough(multiplier: float) -> bool:
        return renyi_epsilon(delta=delta, multiplier=multiplier, steps=steps) <= epsilon

    good = 2 * least
    while not enough(good):
        good *= 2
    return bisect(enough, good=good, bad=least)


@dataclass(frozen=True)
class RenyiAccountant(Accountant, name="renyi"):
    """Composition by adding Rényi divergences; needs no extra, looser than loss distributions.

    Example:
        >>> from dpfda.privacy.events import GaussianEvent
        >>> from dpfda.privacy.price import compose
        >>> price = compose([GaussianEvent(multiplier=37.31)] * 100)
        >>> round(RenyiAccountant().epsilon(price, delta=1e-5), 2)
        1.09
    """

    def epsilon(self, price: Price, *, delta: float) -> float:
        """Smallest converted bound over a range of orders."""
        # A release with a δ of its own is an ε-DP one but for an event of probability δ.
        left = exact(delta) - price.delta
        if left <= 0:
            return math.inf
        divergence = _ORDERS * (float(price.precision) / 2)
        for event, times in price.counts.items():
            epsilon = float(parts(event)[0])
            divergence = divergence + times * np.minimum(epsilon, _ORDERS * epsilon**2 / 2)
        return _converted(divergence, rounded_down(left))


def _converted(divergence: FloatArray, delta: float) -> float:
    """From Rényi to (ε, δ): Canonne, Kamath & Steinke 2020, Proposition 12."""
    _validate.fraction("delta", delta)
    epsilon = (
        divergence + np.log1p(-1 / _ORDERS) - (math.log(delta) + np.log(_ORDERS)) / (_ORDERS - 1)
    )
    return max(0.0, float(epsilon.min()) * (1 + 1e-12))
