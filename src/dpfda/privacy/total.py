"""What releases cost together, sizes fixed in advance: the smallest of several true bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpfda.privacy.calibration import LATTICE_RESERVE, gaussian_epsilon
from dpfda.privacy.events import Event, PureEvent
from dpfda.privacy.gaussian_dp import mu
from dpfda.privacy.moments import moment
from dpfda.privacy.price import Price, parts, rounded_up

_ORDERS = [0.01 * 1.2**step for step in range(110)]  # λ, up to 5·10^6
_HUGE = 1e150  # beyond every limit, and its square a finite float
_UP = 1 + 1e-9  # of ε: rounding, and the lattice of Gaussian noise
_SIMPLER = 1.01  # of ε: so much more is said where no δ is needed then


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
    """(ε, δ) of releases about the same unit, none of which depended on another's answer.

    Sums are always true; with a δ so are those of μ² (`gaussian_dp`) and of Rényi divergences of
    every order (`moments`). The smallest ε is taken; or Σε, which needs no `delta`, if it is about
    as small. The δ_i of releases of which only (ε_i, δ_i) is known come on top.

    Args:
        price: the releases.
        delta: for the part that needs one; above 0 where there is Gaussian noise.

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
