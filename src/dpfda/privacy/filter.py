"""Privacy filters: how a ledger adds up releases of all kinds.

The size and the kind of the next release may depend on earlier answers. Two simple rules are not
valid for an adaptive analyst: the exact cost for sizes that are fixed in advance, and the better of
two valid rules that each use all of δ. With either rule the true δ can be nearly twice as large
(`tests/privacy/test_filter.py` enumerates both). The following rule is valid.

    Let L be the privacy loss log p/q of everything released when the analyst stops. All of it is
    (ε, δ)-DP if E (1 - e^{ε-L})_+ ≤ δ. A *branch* is a condition on sums over releases that, once
    false, stays false. Suppose that a branch is valid with δ_b for analysts who stay in it. Then E
    (1 - e^{ε-L})_+ 1{ends in it} ≤ δ_b for all analysts, because every analyst can be stopped
    before leaving the branch. So releases that end in one of several branches are (ε, Σδ_b)-DP.

A ledger with δ > 0 accepts releases while one of three branches holds:

| branch | condition | δ_b |
|---|---|---|
| pure | Σε ≤ ε, and no Gaussian noise: then L ≤ ε with certainty | 0 |
| Gaussian noise, small releases | Σμ² ≤ μ²(ε, δ/2), exact for Gaussian noise | 8/16 δ |
| releases of any size | two exponential moments of L (`composition`) | 7/16 δ |

The last sixteenth of δ bounds Σδ_i over releases for which only (ε_i, δ_i) is known: each of them
is an ε_i-DP release that fails with probability δ_i (Kairouz, Oh & Viswanath 2015).

Before the first release there is no answer that a choice could depend on. So if the first
announcement does not fit otherwise, it may permanently choose another use of δ: ``gaussian`` uses
all of δ for Σμ² ≤ μ²(ε, δ); ``sums`` uses all of δ for Σδ_i and requires Σε_i ≤ ε (Rogers et al.
2016). Therefore a budget of (ε, δ) pays for one release of exactly (ε, δ), of either kind.

Σμ² is a valid branch by Smith & Thakurta 2022, Koskela et al. 2022 and Whitehouse et al. 2023;
`composition` derives the μ of releases that are not Gaussian.

Sequences of 5, 20 and 100 random pure, Laplace and Gaussian releases need a limit ε of at most 1.2
times that of their exact composition with sizes known in advance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache

from dpfda import _validate
from dpfda.errors import BudgetExceeded, InvalidParameter
from dpfda.privacy.calibration import gaussian_epsilon
from dpfda.privacy.composition import Budget, log_delta, moment, mu, orders, total
from dpfda.privacy.cost import limit
from dpfda.privacy.events import Event, GaussianEvent, PureEvent
from dpfda.privacy.price import Price, exact, parts, rounded_down, rounded_up

WAYS = ("shared", "gaussian", "sums")
"""The possible uses of δ. The first one that accepts the first announcement is chosen."""

_SQUARES, _MOMENTS, _PLAIN = Fraction(8, 16), Fraction(7, 16), Fraction(1, 16)
"""Parts of δ for the two branches that need it, and for Σδ_i. With a larger part for Σμ², Gaussian
noise would cost less and mixed sequences more; one half of δ costs Gaussian noise 3 % of ε at δ =
1e-5."""

# of a limit: keeps μ² far below the value that `price` assigns to almost no noise
_MOST_EPSILON = 1e100
_LEAST_EPSILON = 1e-8  # below, the remainder is treated as 0
_HUGE = 1e150  # largest contribution of one release: above every limit, and a finite float


@dataclass(frozen=True)
class Sums:
    """The sums over all releases.

    Attributes:
        epsilon: Σε of releases that have an ε.
        delta: Σδ of releases for which only ε and δ are known.
        noise: Σμ² of Gaussian noise.
        squares: Σμ² of all releases (`composition.mu`).
        low: ΣK(λ) for the lower order (`composition.moment`).
        high: the same for the higher order.
    """

    epsilon: Fraction = Fraction()
    delta: Fraction = Fraction()
    noise: Fraction = Fraction()
    squares: Fraction = Fraction()
    low: Fraction = Fraction()
    high: Fraction = Fraction()

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __mul__(self, times: int) -> Sums:
        return Sums(*(getattr(self, f.name) * times for f in fields(self)))


@dataclass(frozen=True)
class Filter:
    """Keeps adaptively chosen releases within a limit.

    Privacy:
        Releases that were all accepted under the same use of δ (`WAYS`) are (ε, δ)-DP together: see
        the top of this file. The use is a function of the announcement before the first release.

    Attributes:
        limit: the total that may be spent.

    Examples:
        >>> from dpfda.privacy.price import compose
        >>> rule = Filter(Budget(epsilon=3.0, delta=1e-4))
        >>> pure = rule.charge(compose([PureEvent(epsilon=1.0)] * 3))
        >>> rule.allows("shared", pure), rule.allows("gaussian", pure), rule.allows("sums", pure)
        (True, True, True)
    """

    limit: Budget

    @cached_property
    def orders(self) -> tuple[float, ...]:
        """λ of the two moments, from the limit."""
        return orders(epsilon=self.limit.epsilon, delta=self.limit.delta)

    def charge(self, price: Price) -> Sums:
        """The contribution of releases to the sums.

        An announced ε that is not yet divided counts as one release. Its parts together never cost
        more, because they are post-processing of one randomized response with the whole ε.
        """
        undivided, noise = price.epsilon, price.precision
        found = Sums(delta=price.delta)
        for event, times in price.counts.items():
            if not isinstance(event, GaussianEvent):
                undivided -= times * parts(event)[0]
                found += self._one(event) * times
        if undivided:
            found += self._one(PureEvent(epsilon=min(rounded_up(undivided), 1e300)))
        # Computed exactly, because a float could be infinite.
        found += Sums(epsilon=price.epsilon - found.epsilon, noise=noise, squares=noise)
        if self.limit.delta and noise:
            low, high = (noise * _up(order * (order + 1) / 2) for order in self.orders)
            found += Sums(low=low, high=high)
        return found

    def _one(self, event: Event) -> Sums:
        """The contribution of one release with an ε."""
        if not self.limit.delta:
            return Sums(epsilon=parts(event)[0])
        return _added(event, self.orders)

    def way(self, whole: Sums) -> str | None:
        """The accounting rule of an empty ledger for an announcement; None if it does not fit."""
        return next((way for way in WAYS if self.allows(way, whole)), None)

    def allows(self, way: str | None, sums: Sums) -> bool:
        """Whether all releases together fit; `way` is None before the first one."""
        if way is None:
            return self.way(sums) is not None
        epsilon, delta = exact(self.limit.epsilon), exact(self.limit.delta)
        pure = not sums.noise and sums.epsilon <= epsilon
        if way == "sums":
            return pure and sums.delta <= delta
        if not delta:
            return False
        if way == "gaussian":
            return not sums.delta and (pure or sums.squares <= self._most_squares)
        return sums.delta <= delta * _PLAIN and (
            pure or sums.squares <= self._shared_squares or self._moments(sums)
        )

    def _moments(self, sums: Sums) -> bool:
        totals = [float(min(one, Fraction(_HUGE))) for one in (sums.low, sums.high)]
        allowed = math.log(self.limit.delta) + math.log(_MOMENTS)
        return log_delta(self.limit.epsilon, self.orders, totals) <= allowed

    @cached_property
    def _most_squares(self) -> Fraction:
        """The limit on Σμ² that corresponds to (ε, δ)."""
        return limit(epsilon=self.limit.epsilon, delta=self.limit.delta).precision

    @cached_property
    def _shared_squares(self) -> Fraction:
        """The limit on Σμ² for its part of δ."""
        delta = rounded_down(exact(self.limit.delta) * _SQUARES)
        return limit(epsilon=self.limit.epsilon, delta=delta).precision

    def spent(self, price: Price) -> Budget:
        """The cost of all releases if their sizes were fixed in advance, rounded up."""
        if price.precision and not self.limit.delta:
            raise BudgetExceeded(_NO_DELTA)
        rest = exact(self.limit.delta) - price.delta
        found = total(price, delta=rounded_down(rest) if rest > 0 else 0.0)
        return found if found.epsilon <= self.limit.epsilon else self.limit

    def remaining(self, way: str | None, sums: Sums) -> Budget:
        """The largest cost that a conversation may announce, rounded down."""
        if way is None:
            return self.limit
        if way == "sums":
            epsilon = rounded_down(max(exact(self.limit.epsilon) - sums.epsilon, Fraction()))
            delta = rounded_down(max(exact(self.limit.delta) - sums.delta, Fraction()))
            return Budget(epsilon=epsilon, delta=delta)
        most = float(self._most_squares)
        precision = self._largest(way, sums, lambda x: Price(precision=Fraction(x)), most)
        delta = self.limit.delta
        if precision:
            epsilon = gaussian_epsilon(delta=delta, multiplier=1 / math.sqrt(precision))
            epsilon *= 1 - 1e-9
            announced = epsilon > _LEAST_EPSILON and limit(epsilon=epsilon, delta=delta)
            if announced and self.allows(way, sums + self.charge(announced)):
                return Budget(epsilon=epsilon, delta=delta)
        return Budget(epsilon=0.0)

    def remaining_pure(self, way: str | None, sums: Sums) -> float:
        """The largest ε of one further release without δ, rounded down."""
        exactly = exact(self.limit.epsilon) - sums.epsilon if not sums.noise else Fraction()
        found = self._largest(way, sums, lambda x: Price(epsilon=exact(x)), self.limit.epsilon)
        return max(found, rounded_down(max(exactly, Fraction())))

    def _largest(
        self, way: str | None, sums: Sums, priced: Callable[[float], Price], most: float
    ) -> float:
        """The largest size of a release that fits, to 9 digits."""
        good, bad = 0.0, most
        if self.allows(way, sums + self.charge(priced(most))):
            return most
        while bad - good > 1e-10 * most:
            middle = (good + bad) / 2
            if self.allows(way, sums + self.charge(priced(middle))):
                good = middle
            else:
                bad = middle
        return good

    def refusal(self, way: str | None, sums: Sums, price: Price) -> str:
        """Why releases do not fit, and what would fit; an empty string if they fit."""
        if self.allows(way, sums + self.charge(price)):
            return ""
        if price.precision and not self.limit.delta:
            return _NO_DELTA
        if price.precision and way == "sums":
            return (
                f"Gaussian noise does not fit into {self.limit}: the ledger began with a release"
                " for which only ε and δ are known, and all of δ is for such releases; begin"
                " another ledger"
            )
        if price.delta:
            share = Fraction(way != "gaussian") * (_PLAIN if way == "shared" else 1)
            left = rounded_down(max(exact(self.limit.delta) * share - sums.delta, Fraction()))
            epsilon = self.remaining_pure(way, sums)
            said = Budget(epsilon=rounded_up(price.epsilon), delta=rounded_up(price.delta))
            return (
                f"{said} does not fit into {self.limit}: ε = {epsilon:.6g}, δ = {left:.6g} is left"
                " for releases for which only ε and δ are known"
            )
        if price.precision:
            said, left_over = self.spent_alone(price), self.remaining(way, sums)
            return f"{said} does not fit into {self.limit}: {left_over} is left"
        epsilon, left = rounded_up(price.epsilon), self.remaining_pure(way, sums)
        return f"ε = {epsilon:g} does not fit into {self.limit}: ε = {left:.6g} is left"

    def spent_alone(self, price: Price) -> Budget:
        """The cost of releases on their own, even if it exceeds the limit."""
        return total(price, delta=self.limit.delta)


_NO_DELTA = (
    "Gaussian noise needs a δ, and the budget has none: pass delta=0 for pure ε, or begin a budget "
    "with a δ (limit_delta)"
)


def chosen(limit_epsilon: object, limit_delta: object) -> Filter:
    """The filter of a limit."""
    epsilon = _validate.positive("limit_epsilon", limit_epsilon)
    if epsilon > _MOST_EPSILON:
        raise InvalidParameter("limit_epsilon", f"at most {_MOST_EPSILON:g}", limit_epsilon)
    delta = _validate.delta("limit_delta", limit_delta)
    return Filter(Budget(epsilon=epsilon, delta=delta))


@lru_cache(maxsize=1 << 12)
def _added(event: Event, orders: tuple[float, ...]) -> Sums:
    """The contribution of one release with an ε, rounded up to floats so that sums stay exact."""
    low, high = (_up(moment(event, order)) for order in orders)
    root = min(mu(event), _HUGE)
    return Sums(
        epsilon=parts(event)[0],
        squares=_up(root * root),
        low=low,
        high=high,
    )


def _up(number: float) -> Fraction:
    """A float above `number`; 0 stays 0."""
    number = min(number, _HUGE * _HUGE)
    return Fraction(math.nextafter(number, math.inf)) if number else Fraction()
