"""Releases with few answers, enumerated exactly, and random sequences of them."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import laplace, norm

from dpfda.privacy.composition import Budget
from dpfda.privacy.events import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
)
from dpfda.privacy.filter import Filter
from dpfda.privacy.price import compose


@dataclass(frozen=True)
class Rule:
    """A limit and what it accepts, as a list of releases in order.

    Without a way: as a ledger does that nothing is announced to.
    """

    epsilon: float
    delta: float
    way: str | None = None

    def accepts(self, events: list[Event]) -> bool:
        rule = Filter(Budget(epsilon=self.epsilon, delta=self.delta))
        way = self.way or rule.way(rule.charge(compose(events[:1])))
        return way is not None and rule.allows(way, rule.charge(compose(events)))


@cache
def outcomes(event: Event) -> list[tuple[float, float]]:
    """Probability and privacy loss of every answer, at the worst neighbors."""
    match event:
        case ApproximateEvent(epsilon=epsilon, delta=delta):  # Kairouz, Oh & Viswanath 2015
            fair = [((1 - delta) * p, loss) for p, loss in outcomes(PureEvent(epsilon=epsilon))]
            return [(delta, math.inf), *fair]
        case GaussianEvent(multiplier=multiplier):  # loss ~ N(μ²/2, μ²), on a fine grid
            mu = 1 / multiplier
            edges = np.linspace(-6, 6, 161)
            mass = np.diff(norm.cdf(edges))
            # Each cell's loss as its likelihood ratio: coarser answers are post-processing.
            other = np.diff(norm.cdf(edges + mu))
            return list(zip(mass.tolist(), np.log(mass / other).tolist(), strict=True))
        case LaplaceEvent(ratio=ratio):
            edges = np.concatenate([[-math.inf], np.linspace(-ratio, 0, 41), [math.inf]])
            mass, other = np.diff(laplace.cdf(edges)), np.diff(laplace.cdf(edges + ratio))
            return list(zip(mass.tolist(), np.log(mass / other).tolist(), strict=True))
    categories = getattr(event, "categories", 2)
    other = 1 / (math.exp(event.epsilon) + categories - 1)
    found = [(math.exp(event.epsilon) * other, event.epsilon), (other, -event.epsilon)]
    return found + [((categories - 2) * other, 0.0)] * (categories > 2)


def exact_delta(events: list[Event], epsilon: float) -> float:
    """The smallest δ at this ε of releases fixed in advance."""
    losses, chances = np.zeros(1), np.ones(1)
    for event in events:
        chance, loss = np.array(outcomes(event)).T
        losses, chances = np.add.outer(losses, loss), np.multiply.outer(chances, chance)
    return float(np.sum(chances * -np.expm1(np.minimum(epsilon - losses, 0))))


@cache
def most(rule: Rule, before: tuple[Event, ...], make, low: float, high: float) -> Event | None:
    """The release nearest to ``make(high)`` that the rule accepts."""
    if not rule.accepts([*before, make(low)]):
        return None
    for _ in range(40):
        middle = (low + high) / 2
        if rule.accepts([*before, make(middle)]):
            low = middle
        else:
            high = middle
    return make(low)


def pure(epsilon: float) -> Event:
    return PureEvent(epsilon=epsilon)


def gaussian(mu: float) -> Event:
    return GaussianEvent(multiplier=1 / mu)


def sequence(rng: np.random.Generator, length: int) -> list[Event]:
    """Pure, Laplace and Gaussian releases, few or many of each, alike or very different in size."""
    kinds = rng.choice(3, length, p=rng.dirichlet([1, 1, 1]))
    sizes = rng.exponential(size=length) if rng.random() < 0.5 else rng.uniform(0.2, 1, length)
    sizes *= math.exp(rng.uniform(math.log(0.3), math.log(6))) / math.sqrt(sizes @ sizes)
    made = (pure, lambda size: LaplaceEvent(ratio=size), gaussian)
    return [made[kind](max(float(size), 1e-3)) for kind, size in zip(kinds, sizes, strict=True)]
