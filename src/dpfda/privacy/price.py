"""The price of releases about the same unit: the quantities that add up.

Sums of ε are exact. A number is read as its decimal form: 0.1 is one tenth, not the nearest binary
fraction, so ten releases at 0.1 fit into a limit of 1.0. (The difference is below one part in
10^16; mechanisms round their probabilities towards privacy by more.) Sums are rounded up when they
become floats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from dpfda.errors import UnknownEvent
from dpfda.privacy.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)

# limit of a precision: no protection is left, and a float is still finite
_HUGE = Fraction(10**300)


def exact(number: float) -> Fraction:
    """The exact value of the shortest decimal that represents this float.

    Examples:
        >>> exact(0.1)
        Fraction(1, 10)
    """
    return _as_written(float(number))


@lru_cache(maxsize=1 << 10)
def _as_written(number: float) -> Fraction:
    return Fraction(repr(number))


def rounded_up(number: Fraction) -> float:
    """The smallest float that is not below `number`.

    Examples:
        >>> rounded_up(sum([exact(0.1)] * 3, Fraction()))
        0.3
    """
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf
    return nearest if exact(nearest) >= number else math.nextafter(nearest, math.inf)


def rounded_down(number: Fraction) -> float:
    """The largest float that is not above `number`, which is 0 or more."""
    nearest = float(number)
    return nearest if exact(nearest) <= number else math.nextafter(nearest, -math.inf)


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price of several releases, before a δ is chosen.

    Attributes:
        counts: the single releases and the number of times each occurs.
        epsilon: exact sum of the ε of all releases that have one.
        delta: exact sum of the δ of releases with a stated δ.
        precision: sum of 1/multiplier² over Gaussian releases, which is μ².

    Examples:
        >>> price = compose([PureEvent(epsilon=0.1)] * 3)
        >>> price.epsilon, price.delta
        (Fraction(3, 10), Fraction(0, 1))
    """

    counts: Mapping[Event, int] = field(default_factory=dict)
    epsilon: Fraction = Fraction()
    delta: Fraction = Fraction()
    precision: Fraction = Fraction()

    def __add__(self, other: Price) -> Price:
        counts = dict(self.counts)
        for event, times in other.counts.items():
            counts[event] = counts.get(event, 0) + times
        return Price(
            counts=counts,
            epsilon=self.epsilon + other.epsilon,
            delta=self.delta + other.delta,
            precision=self.precision + other.precision,
        )

    def __sub__(self, other: Price) -> Price:
        """What remains of a limit after another price."""
        return Price(
            epsilon=self.epsilon - other.epsilon,
            delta=self.delta - other.delta,
            precision=self.precision - other.precision,
        )

    @property
    def multiplier(self) -> float:
        """The multiplier of one Gaussian release that equals all of them; infinite without any."""
        precision = float(min(self.precision, _HUGE))
        return 1 / math.sqrt(precision) if precision else math.inf


def compose(events: Iterable[Event]) -> Price:
    """The price of several releases about the same unit.

    Raises:
        UnknownEvent: a release is of a kind without a known price.

    Examples:
        >>> report = ComposedEvent(events=(LaplaceEvent(ratio=0.8), PureEvent(epsilon=0.2)))
        >>> compose([report]).epsilon
        Fraction(1, 1)
    """
    counts: Counter[Event] = Counter()
    for event in events:
        _count(event, 1, counts)
    sums = [Fraction()] * 3
    for event, times in counts.items():
        cost = zip(sums, parts(event), strict=True)
        sums = [total + times * part if part else total for total, part in cost]
    epsilon, delta, precision = sums
    return Price(counts=counts, epsilon=epsilon, delta=delta, precision=precision)


def _count(event: Event, times: int, counts: Counter[Event]) -> None:
    if isinstance(event, ComposedEvent):
        for part in event.events:
            _count(part, times * event.repeated, counts)
    else:
        parts(event)  # refuses events of an unknown kind first
        counts[event] += times


def parts(event: Event) -> tuple[Fraction, Fraction, Fraction]:
    """ε, δ and μ² of one single release; one that is not listed here is refused."""
    match event:
        case PureEvent(epsilon=epsilon) | RandomizedResponseEvent(epsilon=epsilon):
            return exact(epsilon), Fraction(), Fraction()
        case LaplaceEvent(ratio=ratio):
            return exact(ratio), Fraction(), Fraction()
        case ApproximateEvent(epsilon=epsilon, delta=delta):
            return exact(epsilon), exact(delta), Fraction()
        case GaussianEvent(multiplier=multiplier):
            return Fraction(), Fraction(), _precision(float(multiplier))
    raise UnknownEvent(f"no price is known for a release of type {type(event).__name__}")


@lru_cache(maxsize=1 << 10)
def _precision(multiplier: float) -> Fraction:
    """1/multiplier², rounded up to a float so that long sums stay short fractions."""
    multiplier = max(multiplier, 1e-100)  # keeps floats finite; so little noise protects nobody
    return Fraction(math.nextafter(float(1 / Fraction(multiplier) ** 2), math.inf))
