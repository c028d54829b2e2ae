"""The share of a budget that one query may spend, as an exact fraction."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from dpfda import _validate
from dpfda._registry import Portable
from dpfda.errors import InvalidParameter
from dpfda.privacy.calibration import gaussian_mu
from dpfda.privacy.events import Event, GaussianEvent, PureEvent
from dpfda.privacy.price import Price, exact, rounded_down

SPEND_LESS = (
    "Choose a smaller ε; if nothing is left, these data cannot be used for further releases"
)
DELTA = 1e-6
"""The default δ of every release that can use one; 0 means pure ε. A release whose noise is smaller
with pure ε spends pure ε, so a δ never increases the noise."""

# Half of the margin that `gaussian_mu` subtracts from μ: rounded parts fit into the limit, and the
# limit fits into a ledger with the same (ε, δ).
_ROOM = 1 + Fraction(1, 2 * 10**10)
_FRACTION = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?")


@dataclass(frozen=True, kw_only=True)
class Cost(Portable):
    """A share of an (ε, δ) budget: of ε if δ = 0, of μ² if δ > 0.

    Shares are fractions and prices are rounded down, so that parts of 1 never cost more than 1.

    Examples:
        >>> whole = Cost(epsilon=0.7)
        >>> first, second = whole.part(0.2), whole.part(1 - exact(0.2))
        >>> first.epsilon_spent, second.epsilon_spent
        (0.14, 0.56)
    """

    epsilon: float
    delta: float = 0.0
    share: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon)
        _validate.delta("delta", self.delta)
        if isinstance(self.share, str):  # the exact form in JSON
            object.__setattr__(self, "share", _fraction(self.share))
        if not isinstance(self.share, Fraction) or not 0 < self.share <= 1:
            raise InvalidParameter("share", "above 0 and at most 1", self.share)

    @property
    def pure(self) -> bool:
        """Whether δ = 0."""
        return not self.delta

    @property
    def epsilon_spent(self) -> float:
        """share · ε, rounded down."""
        return rounded_down(exact(self.epsilon) * self.share)

    @property
    def mu(self) -> float:
        """√share · μ, where Gaussian noise with μ is exactly (ε, δ)-DP."""
        if self.pure:
            raise InvalidParameter("delta", "above 0 for Gaussian noise", self.delta)
        return gaussian_mu(epsilon=self.epsilon, delta=self.delta) * math.sqrt(self.share)

    @property
    def event(self) -> Event:
        """The privacy event of this cost."""
        if self.pure:
            return PureEvent(epsilon=self.epsilon_spent)
        return GaussianEvent(multiplier=1 / self.mu)

    def part(self, share: Fraction | float) -> Cost:
        """The cost that is this share of the present one."""
        given = share if isinstance(share, Fraction) else exact(share)
        return replace(self, share=self.share * given)

    def rest(self, *parts: Cost) -> Cost:
        """The cost that remains when parts of it are spent."""
        return replace(self, share=self.share - sum(part.share for part in parts))


def _fraction(text: str) -> Fraction:
    # decimals are refused: a large exponent would give a huge fraction
    if not _FRACTION.fullmatch(text):
        raise InvalidParameter("share", "a fraction", text[:40])
    return Fraction(text)


@lru_cache(maxsize=64)
def limit(*, epsilon: float, delta: float) -> Price:
    """The limit on the cost of a conversation, fixed before its first question.

    Pure ε, δ and μ² are added up separately, each with its own limit. Sums with limits that are
    fixed in advance bound the cost of adaptive questions, too (Rogers et al. 2016; Smith & Thakurta
    2022 for μ²). A conversation with δ > 0 is Gaussian: its whole (ε, δ) is expressed as μ².
    """
    if not delta:
        return Price(epsilon=exact(epsilon))
    return Price(precision=(Fraction(gaussian_mu(epsilon=epsilon, delta=delta)) * _ROOM) ** 2)


def within(price: Price, most: Price) -> bool:
    """Whether no sum exceeds its limit, in exact arithmetic."""
    return (
        price.epsilon <= most.epsilon
        and price.delta <= most.delta
        and price.precision <= most.precision
    )
