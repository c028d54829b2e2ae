"""What several releases cost together, when the list of them is fixed in advance.

`compose` adds releases up into a `Price`; an `Accountant` turns a price into ε for a given δ;
`total` asks the accountants and takes the smallest answer. Pure ε adds up exactly and needs no
extra. An unknown kind of release is refused.

What is asked may depend on earlier answers; kinds, sizes and number of releases may not. For those
that do there is a `filter`, which ledgers use: to ask `total` along the way and to go on while it
stays below a limit gives away nearly twice δ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpfda import _validate
from dpfda.privacy.calibration import gaussian_epsilon
from dpfda.privacy.events import Event
from dpfda.privacy.loss_distribution import LossDistributionAccountant
from dpfda.privacy.price import Accountant, Price, compose, exact, rounded_down, rounded_up
from dpfda.privacy.renyi import RenyiAccountant

__all__ = [
    "Accountant",
    "LossDistributionAccountant",
    "Price",
    "RenyiAccountant",
    "SumAccountant",
    "compose",
    "total",
]


@dataclass(frozen=True)
class SumAccountant(Accountant, name="sum"):
    """Basic composition: ε and δ add up; Gaussian releases are first merged into one, exactly.

    Example:
        >>> from dpfda.privacy.events import PureEvent
        >>> SumAccountant().epsilon(compose([PureEvent(epsilon=0.1)] * 10), delta=0.0)
        1.0
    """

    def epsilon(self, price: Price, *, delta: float) -> float:
        """Σε, plus the Gaussian's ε at what is left of δ."""
        left = exact(delta) - price.delta
        if left < 0:
            return math.inf
        if not price.precision:
            return rounded_up(price.epsilon)
        slack = rounded_down(left)
        if not slack:
            return math.inf
        merged = gaussian_epsilon(delta=slack, multiplier=price.multiplier)
        return rounded_up(price.epsilon + Fraction(merged))


def total(events: Iterable[Event] | Price, *, delta: float = 0.0) -> tuple[float, float]:
    """The smallest known (ε, δ) of releases fixed in advance, with at most the given δ.

    Args:
        events: the releases, or their composed price.
        delta: what δ may be. With 0 only pure releases have a finite ε.

    Returns:
        ε and the δ it needs: 0 where the plain sum of pure releases was the best bound.

    Raises:
        MissingExtra: δ is above 0, and the releases need the loss-distribution accountant, which
            is in the extra ``accounting``.

    Example:
        >>> from dpfda.privacy.events import GaussianEvent, PureEvent
        >>> total([PureEvent(epsilon=0.1)] * 10)
        (1.0, 0.0)
        >>> epsilon, _ = total([GaussianEvent(multiplier=7.462)] * 4, delta=1e-5)
        >>> round(epsilon, 2)
        1.0
    """
    price = events if isinstance(events, Price) else compose(events)
    if delta:
        _validate.fraction("delta", delta)
    summed = SumAccountant().epsilon(price, delta=delta)
    if delta and price.epsilon:  # otherwise the sum is exact
        members = Accountant.members().values()
        tight = min(accountant().epsilon(price, delta=delta) for accountant in members)
        if tight < summed:
            return tight, delta
    return summed, delta if price.precision else rounded_up(price.delta)
