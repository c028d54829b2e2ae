"""Limits hold for analysts who choose the next release by earlier answers: counted out exactly.

An analyst is a function of what was seen so far, and of what the ledger would accept, to the next
release. `leaked` enumerates every answer of the releases at their worst neighbors and adds up the
smallest δ for which everything together is (ε, δ)-DP; `best_analyst` does so for the best of all
analysts who ask from a menu.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from best_analyst import Item, best_analyst, plain, response
from best_analyst import gaussian as gaussian_item
from small_releases import Rule, exact_delta, gaussian, most, outcomes, pure, sequence

from dpfda.privacy.calibration import gaussian_delta, gaussian_mu
from dpfda.privacy.composition import WEIGHTS, Budget, log_delta, moment
from dpfda.privacy.events import (
    ApproximateEvent,
    Event,
    RandomizedResponseEvent,
)
from dpfda.privacy.filter import WAYS, Filter, Sums
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import compose


class ExactCost(Rule):
    """Broken twin, once the ledger's own rule: go on while the exact cost so far stays within."""

    def accepts(self, events: list[Event]) -> bool:
        return all(
            exact_delta(events[: k + 1], self.epsilon) <= self.delta for k in range(len(events))
        )


class BetterOfTwo(Rule):
    """Broken twin: go on while one of two valid filters would."""

    def accepts(self, events: list[Event]) -> bool:
        rules = [Rule(self.epsilon, self.delta, way) for way in ("sums", "gaussian")]
        return any(rule.accepts(events) for rule in rules)


def leaked(rule: Rule, analyst, seen: tuple[tuple[Event, float], ...] = ()) -> float:
    """The smallest δ of the whole adaptive conversation at the rule's ε."""
    before = tuple(event for event, _ in seen)
    loss = sum(loss for _, loss in seen)
    event = analyst(rule, before, loss)
    if event is None or loss == math.inf:
        return max(0.0, -math.expm1(rule.epsilon - loss))
    assert accepted(rule, (*before, event))
    return sum(
        probability * leaked(rule, analyst, (*seen, (event, loss)))
        for probability, loss in outcomes(event)
    )


@cache
def accepted(rule: Rule, events: tuple[Event, ...]) -> bool:
    return rule.accepts(list(events))


def start(logarithm: float) -> Event:
    """A rare answer that is nearly as telling as ε = 1 allows; mostly nothing."""
    return RandomizedResponseEvent(epsilon=0.9, categories=int(math.exp(logarithm)))


def rare(logarithm: float) -> Event:
    """Tells everything, or mostly nothing."""
    return RandomizedResponseEvent(epsilon=8.0, categories=int(math.exp(logarithm)))


def second_chance(rule, before, loss):
    """After a good start: press on. Otherwise δ was not touched yet: use all of it."""
    if not before:
        return most(rule, before, start, 30.0, math.log(30))
    if len(before) > 1:
        return None
    if loss > 0:
        return most(rule, before, pure, 0.0, 5.0)
    return most(rule, before, rare, 30.0, 1.0)


def pressing(rule, before, loss):
    """Half of what is left while the answers are good, everything once they are not."""
    if len(before) > 3:
        return None
    whole = most(rule, before, pure, 0.0, 5.0)
    if whole is None or whole.epsilon < 1e-6:
        return None
    return pure(whole.epsilon * (0.5 if loss >= 0 else 1.0))


def stopping(rule, before, loss):
    """Equal small steps until the limit is behind."""
    step = pure(rule.epsilon / 4)
    if loss > rule.epsilon or len(before) > 11 or not rule.accepts([*before, step]):
        return None
    return step


def gambling(rule, before, loss):
    """Gaussian noise; if that went well all of the rest, otherwise rare certainty."""
    if not before:
        return gaussian(0.7 * gaussian_mu(epsilon=rule.epsilon, delta=rule.delta))
    if len(before) > 1:
        return None
    if loss > 0.5 * rule.epsilon:
        return most(rule, before, gaussian, 1e-6, 20.0)
    return most(rule, before, rare, 42.0, 1.0)


def dividing(rule, before, loss):
    """Gaussian noise in parts whose sizes depend on the answers."""
    whole = gaussian_mu(epsilon=rule.epsilon, delta=rule.delta)
    if not before:
        return gaussian(0.6 * whole)
    if len(before) > 1:
        return None
    return most(rule, before, gaussian, 1e-6, 20.0) if loss > 0 else gaussian(0.79 * whole)


def failing(rule, before, loss):
    """Releases that may fail altogether: more of them where the first gave nothing."""
    if not before or (len(before) == 1 and loss < 0):
        return ApproximateEvent(epsilon=rule.epsilon / 3, delta=rule.delta / 2)
    return most(rule, before, pure, 0.0, 5.0) if len(before) < 3 else None


def switching(rule, before, loss):
    """Gaussian noise after a good start, otherwise a release that may fail."""
    if not before:
        return RandomizedResponseEvent(epsilon=0.95, categories=30)
    if len(before) > 1:
        return None
    if loss > 0:
        return most(rule, before, gaussian, 1e-6, 20.0)
    return ApproximateEvent(epsilon=0.05, delta=0.01)


LIMITS = [(1.0, 0.01), (1.0, 0.05), (2.0, 1e-3)]


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
def test_going_on_by_the_exact_cost_gives_away_nearly_twice_delta(epsilon, delta):
    """The attack that ledgers were open to, and the reason for filters."""
    assert leaked(ExactCost(epsilon, delta), second_chance) > 1.6 * delta


def test_the_better_of_two_filters_is_no_filter():
    assert leaked(BetterOfTwo(1.0, 0.01), switching) > 1.5 * 0.01


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
@pytest.mark.parametrize(
    "analyst", [second_chance, pressing, stopping, gambling, dividing, failing, switching]
)
@pytest.mark.parametrize("way", [None, *WAYS])
def test_limit_holds_for_adaptive_analysts(epsilon, delta, way, analyst):
    rule = Rule(epsilon, delta, way)
    if analyst(rule, (), 0.0) is not None and rule.accepts([analyst(rule, (), 0.0)]):
        assert leaked(rule, keeping(analyst)) <= delta


def keeping(analyst):
    """The same analyst, who stops when the ledger refuses."""

    def careful(rule, before, loss):
        event = analyst(rule, before, loss)
        return event if event is not None and accepted(rule, (*before, event)) else None

    return careful


def test_limits_are_used_up():
    """Enumeration sees what there is: the same analysts come close to δ: 5 % more would show."""
    assert leaked(Rule(1.0, 0.05, "gaussian"), dividing) > 0.96 * 0.05
    assert leaked(Rule(1.0, 0.01, "sums"), failing) > 0.65 * 0.01


def test_pure_limit_is_never_crossed_by_a_bit():
    for analyst in (pressing, stopping):
        assert leaked(Rule(1.0, 0.0), analyst) == 0


UNIT = 0.05


Admits = Callable[[tuple[int, ...]], bool]


def menus(epsilon: float, delta: float) -> dict[str, list[Item]]:
    small, noise = response(4, UNIT), gaussian_item(1, UNIT)
    crossing = round((epsilon + 1) / UNIT)
    return {
        "responses": [small, response(10, UNIT)],
        "noise": [response(5, UNIT), noise],
        "rare": [small, response(crossing, UNIT, int(math.exp(epsilon + 1) / delta)), noise],
        "half of δ": [small, plain(4, UNIT, delta / 2), noise],
        "little of δ": [response(5, UNIT), plain(4, UNIT, delta / 40), noise],
    }


def charged(rule: Filter, menu: list[Item], counts: tuple[int, ...]) -> Sums:
    each = [rule.charge(compose([item.event])) for item in menu]
    return sum((one * n for one, n in zip(each, counts, strict=True)), Sums())


def admitted(epsilon: float, delta: float, menu: list[Item], *ways: str) -> Admits:
    rule = Filter(Budget(epsilon=epsilon, delta=delta))
    return lambda counts: any(rule.allows(way, charged(rule, menu, counts)) for way in ways)


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
@pytest.mark.parametrize("name", menus(1.0, 0.01))
@pytest.mark.parametrize("way", WAYS)
def test_no_analyst_learns_more_than_the_limit(epsilon, delta, name, way):
    menu = menus(epsilon, delta)[name]
    admits = admitted(epsilon, delta, menu, way)
    found = best_analyst(menu, admits, epsilon=epsilon, unit=UNIT)
    assert found <= delta * (1 + 1e-9)


def test_the_best_analyst_uses_the_limit_up():
    """The programme above can fail: it finds all of δ where a way spends it."""
    menu = menus(2.0, 1e-3)["half of δ"]
    admits = admitted(2.0, 1e-3, menu, "sums")
    assert best_analyst(menu, admits, epsilon=2.0, unit=UNIT) > 0.99e-3


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.8, 0.05)])
def test_choosing_the_way_along_the_way_is_no_filter(epsilon, delta):
    """Broken twin: each way has all of δ, and the best is taken after every answer."""
    menu = menus(epsilon, delta)["half of δ"]
    found = best_analyst(menu, admitted(epsilon, delta, menu, *WAYS), epsilon=epsilon, unit=UNIT)
    assert found > 1.1 * delta


def test_the_better_order_along_the_way_is_no_filter():
    """Broken twin: some order of a Rényi bound with all of δ, whichever fits after every answer.

    With the mean of two orders that were fixed before, the same menu stays within δ.
    """
    epsilon, delta = 2.0, 0.0496
    menu = [response(size, UNIT, k) for size, k in ((12, 57), (50, 120), (4, 2), (36, 3))]
    orders = np.geomspace(0.03, 1000, 160)
    sums = np.array([[moment(item.event, order) for order in orders] for item in menu])
    peaks = -np.log1p(orders) - orders * np.log1p(1 / orders)

    def better(counts: tuple[int, ...]) -> bool:
        bounds = peaks + np.array(counts) @ sums - orders * epsilon
        return bool(bounds.min() <= math.log(delta))

    found = best_analyst(menu, better, epsilon=epsilon, unit=UNIT, longest=7)
    assert found > 1.2 * delta
    mean = admitted(epsilon, delta, menu, "shared")
    assert best_analyst(menu, mean, epsilon=epsilon, unit=UNIT, longest=7) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (3.0, 1e-4), (0.3, 0.01)])
def test_the_parts_of_delta_add_up(epsilon, delta):
    """What each branch accepts, at its edge, costs its own δ; all of them together cost no more."""
    rule = Filter(Budget(epsilon=epsilon, delta=delta))

    def edge(make: Callable[[float], Event], low: float, high: float, *more: Event) -> Event:
        for _ in range(60):
            middle = math.sqrt(low * high)
            fits = rule.allows("shared", rule.charge(compose([make(middle), *more])))
            low, high = (middle, high) if fits else (low, middle)
        return make(low)

    noise = edge(gaussian, 1e-4, 50.0)
    squares = gaussian_delta(epsilon=epsilon, multiplier=noise.multiplier)
    failing = edge(lambda share: ApproximateEvent(epsilon=0.0, delta=share), 1e-12, 0.5).delta
    assert squares == pytest.approx(delta / 2, rel=1e-6)
    assert failing == pytest.approx(delta / 16, rel=1e-6)
    # With a little Gaussian noise, two large responses need the moments.
    large = edge(pure, 1e-3, 50.0, pure(0.4 * epsilon), gaussian(1e-3 * epsilon)).epsilon
    sums = rule.charge(compose([pure(large), pure(0.4 * epsilon), gaussian(1e-3 * epsilon)]))
    moments = math.exp(log_delta(epsilon, rule.orders, [float(sums.low), float(sums.high)]))
    assert squares + failing + moments <= delta * (1 + 1e-6)
    assert moments == pytest.approx(7 / 16 * delta, rel=1e-4)
    assert sum(WEIGHTS) == 1


def test_a_ledger_accepts_what_its_filter_does():
    rng = np.random.default_rng(0)
    for _ in range(10):
        ledger, rule = Ledger(2.0, limit_delta=1e-3), Rule(2.0, 1e-3)
        events: list[Event] = []
        for event in sequence(rng, 12):
            accepts = rule.accepts([*events, event])
            assert accepts != bool(ledger.refusal(event))
            if accepts:
                ledger.spend(event, label="release")
                events.append(event)
        assert 0 < len(events) == len(ledger.entries)
