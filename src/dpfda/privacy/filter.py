"""How a ledger adds up, fixed when it is created: a privacy filter.

The size of the next release may depend on earlier answers. The exact cost of releases whose sizes
were fixed in advance, asked for along the way, gives an analyst nearly twice δ
(`tests/privacy/test_filter.py` counts it out), and so does the better of two valid rules. A filter
is one rule: sums of what every release adds, against limits that were fixed before the first. It is
the same comparison, `cost.within`, to which holders keep a conversation.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from dpfda import _validate
from dpfda._registry import Registered
from dpfda.errors import BudgetExceeded, InvalidParameter
from dpfda.privacy.calibration import gaussian_epsilon
from dpfda.privacy.cost import limit, within
from dpfda.privacy.events import Event, GaussianEvent, LaplaceEvent, RandomizedResponseEvent
from dpfda.privacy.gaussian_dp import laplace_mu, pure_mu, response_mu
from dpfda.privacy.price import Price, exact, parts, rounded_down, rounded_up

_MOST_EPSILON = 1e100  # of a limit: μ² stays far below what `price` makes of hardly any noise
_LEAST_EPSILON = 1e-8  # below, what is left is not worth a question


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


@dataclass(frozen=True)
class Filter(Registered, family="composition"):
    """One rule that keeps releases within a limit, whatever the analyst learns along the way.

    Attributes:
        limit: what may be spent in all.
        most: the same in the sums that the rule keeps.
    """

    limit: Budget

    @property
    @abstractmethod
    def most(self) -> Price: ...  # noqa: D102

    @abstractmethod
    def charge(self, price: Price) -> Price:
        """What releases add to the sums.

        Raises:
            BudgetExceeded: the rule has no place for such a release, whatever is left.
        """

    @abstractmethod
    def spent(self, charged: Price) -> Budget:
        """The sums as (ε, δ), rounded up."""

    @abstractmethod
    def remaining(self, charged: Price) -> Budget:
        """What may still be spent, rounded down."""

    def said(self, price: Price) -> str:
        """A release in words, for a refusal."""
        return f"ε = {rounded_up(price.epsilon):g}"

    def allows(self, charged: Price, more: Price) -> bool:
        """Whether a further charge fits."""
        return within(charged + more, self.most)


@dataclass(frozen=True)
class SumFilter(Filter, name="sum"):
    """ε adds up, and so does δ: for pure releases, and (ε, δ) ones of which no more is known.

    Privacy:
        (ε, δ)-DP for the sums fixed in advance (Rogers, Roth, Ullman & Vadhan 2016).

    Examples:
        >>> from dpfda.privacy.events import PureEvent
        >>> from dpfda.privacy.price import compose
        >>> rule = SumFilter(Budget(epsilon=1.0))
        >>> tenths = rule.charge(compose([PureEvent(epsilon=0.1)] * 10))
        >>> rule.allows(Price(), tenths), rule.remaining(tenths)
        (True, Budget(epsilon=0.0, delta=0.0))
    """

    @property
    def most(self) -> Price:
        """ε and δ as written."""
        return Price(epsilon=exact(self.limit.epsilon), delta=exact(self.limit.delta))

    def charge(self, price: Price) -> Price:
        """Σε and Σδ."""
        if price.precision:
            raise BudgetExceeded(
                f"Gaussian noise does not fit into {self.limit} counted by sums, as it has no ε of"
                " its own: it needs a ledger with limit_delta above 0 and composition='gaussian'"
            )
        return Price(epsilon=price.epsilon, delta=price.delta)

    def spent(self, charged: Price) -> Budget:
        """The sums themselves."""
        return Budget(epsilon=rounded_up(charged.epsilon), delta=rounded_up(charged.delta))

    def remaining(self, charged: Price) -> Budget:
        """The differences: a release of this (ε, δ) is accepted."""
        left = self.most - charged
        return Budget(epsilon=rounded_down(left.epsilon), delta=rounded_down(left.delta))


@dataclass(frozen=True)
class GaussianFilter(Filter, name="gaussian"):
    """μ² adds up: for Gaussian noise, and for many small releases of other kinds.

    Privacy:
        Σμ² ≤ μ² makes adaptive releases μ-GDP together (Smith & Thakurta 2022; Koskela, Tobaben &
        Honkela 2022; Whitehouse, Ramdas, Rogers & Wu 2023), which is (ε, δ)-DP for the μ of the
        limit (Balle & Wang 2018). Other releases count with the μ that `gaussian_dp` proves.

    Examples:
        >>> from dpfda.privacy.events import PureEvent
        >>> from dpfda.privacy.price import compose
        >>> rule = GaussianFilter(Budget(epsilon=3.5, delta=1e-5))
        >>> small = rule.charge(compose([PureEvent(epsilon=0.1)] * 40))
        >>> rule.allows(Price(), small), round(rule.spent(small).epsilon, 2)
        (True, 3.35)
    """

    def __post_init__(self) -> None:
        _validate.fraction("limit_delta", self.limit.delta)

    @property
    def most(self) -> Price:
        """As a conversation announces (ε, δ)."""
        return limit(epsilon=self.limit.epsilon, delta=self.limit.delta)

    def charge(self, price: Price) -> Price:
        """Σμ². An ε that was announced and not yet divided counts as one pure release.

        Parts of an ε never cost more μ² than the whole: pure_mu(ε)²/ε grows with ε.
        """
        if price.delta:
            raise BudgetExceeded(
                f"an (ε, δ) release of which no more is known does not fit into {self.limit}"
                " counted by Gaussian noise: it needs a ledger with composition='sum'"
            )
        undivided, squares = price.epsilon, price.precision
        for event, times in price.counts.items():
            undivided -= times * parts(event)[0]
            squares += times * _square(_mu(event))
        return Price(precision=squares + _square(pure_mu(rounded_up(undivided))))

    def said(self, price: Price) -> str:
        """Its μ, as ε alone would not explain why it is refused."""
        mu = 1 / self.charge(price).multiplier
        pure = f"ε = {rounded_up(price.epsilon):g} counts as Gaussian noise, and " * bool(
            price.epsilon
        )
        return f"{pure}μ = {mu:g} (of {1 / self.most.multiplier:g})"

    def spent(self, charged: Price) -> Budget:
        """So much Gaussian noise, at the δ of the limit."""
        if not charged.precision:
            return Budget(epsilon=0.0)
        delta = self.limit.delta
        return Budget(
            epsilon=gaussian_epsilon(delta=delta, multiplier=charged.multiplier), delta=delta
        )

    def remaining(self, charged: Price) -> Budget:
        """What a conversation may announce. Pure releases of this ε may cost more μ²."""
        if not charged.precision:
            return self.limit
        left = self.most - charged
        delta = self.limit.delta
        if math.isfinite(left.multiplier):
            epsilon = gaussian_epsilon(delta=delta, multiplier=left.multiplier)
            if epsilon > _LEAST_EPSILON and within(limit(epsilon=epsilon, delta=delta), left):
                return Budget(epsilon=epsilon, delta=delta)
        return Budget(epsilon=0.0)


def chosen(limit_epsilon: object, limit_delta: object, composition: object = None) -> Filter:
    """The rule for a limit: sums where δ = 0, Gaussian noise otherwise, unless named."""
    epsilon = _validate.positive("limit_epsilon", limit_epsilon)
    if epsilon > _MOST_EPSILON:
        raise InvalidParameter("limit_epsilon", f"at most {_MOST_EPSILON:g}", limit_epsilon)
    delta = _validate.fraction("limit_delta", limit_delta) if limit_delta != 0 else 0.0
    if composition is None:
        composition = "gaussian" if delta else "sum"
    rule = Filter.named(_validate.one_of("composition", composition, Filter.members()))
    return rule(Budget(epsilon=epsilon, delta=delta))


def _mu(event: Event) -> float:
    """Of a release with an ε; Gaussian noise is counted by its precision already."""
    match event:
        case GaussianEvent():
            return 0.0
        case LaplaceEvent(ratio=ratio):
            return laplace_mu(float(ratio))
        case RandomizedResponseEvent(epsilon=epsilon, categories=categories):
            return response_mu(float(epsilon), categories)
    return pure_mu(float(parts(event)[0]))


def _square(mu: float) -> Fraction:
    """μ², rounded up to a float so that long sums stay short fractions."""
    mu = min(mu, 1e150)  # beyond every limit, and its square a finite float
    return Fraction(math.nextafter(mu * mu, math.inf)) if mu else Fraction()
