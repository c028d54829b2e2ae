"""Limits hold for analysts who choose the next release by earlier answers: counted out exactly.

An analyst is a function of what was seen so far, and of what the ledger would accept, to the next
release. `leaked` enumerates every answer of the releases at their worst neighbors and adds up the
smallest δ for which everything together is (ε, δ)-DP; `best_analyst` does so for the best of all
analysts who ask from a menu.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from best_analyst import Item, best_analyst, plain, response
from best_analyst import gaussian as gaussian_item
from exact_loss import Loss
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import laplace, norm

from dpfda.errors import BudgetExceeded, InvalidParameter
from dpfda.privacy.calibration import gaussian_delta, gaussian_mu
from dpfda.privacy.cost import Cost, limit, within
from dpfda.privacy.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpfda.privacy.filter import WAYS, Filter, Sums
from dpfda.privacy.gaussian_dp import laplace_mu, pure_mu, response_mu
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.mixture import WEIGHTS, log_delta
from dpfda.privacy.moments import moment
from dpfda.privacy.price import compose
from dpfda.privacy.total import Budget, total

# Rules under attack


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


def start(logarithm: float) -> Event:
    """A rare answer that is nearly as telling as ε = 1 allows; mostly nothing."""
    return RandomizedResponseEvent(epsilon=0.9, categories=int(math.exp(logarithm)))


def rare(logarithm: float) -> Event:
    """Tells everything, or mostly nothing."""
    return RandomizedResponseEvent(epsilon=8.0, categories=int(math.exp(logarithm)))


# Analysts


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


# The best of all analysts

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


# μ of releases that are not Gaussian


def curve_of(event: Event, alpha):
    """Smallest type II error at type I error alpha, exactly."""
    match event:
        case LaplaceEvent(ratio=r):
            middle = math.exp(-r) / (4 * alpha)
            high = math.exp(-r) * (1 - alpha)
            low = 1 - math.exp(r) * alpha
            return np.where(alpha < math.exp(-r) / 2, low, np.where(alpha > 0.5, high, middle))
    found = sorted(outcomes(event), key=lambda pair: pair[1])  # most telling against it first
    first = np.cumsum([0.0] + [p for p, _ in found])
    second = 1 - np.cumsum([0.0] + [p * math.exp(-loss) for p, loss in found])
    return np.interp(alpha, first, second)


@pytest.mark.parametrize("size", [1e-3, 0.05, 0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("kind", ["pure", "laplace", 2, 3, 10, 1000])
def test_mu_lies_just_above_the_trade_off_curve(size, kind):
    event, mu = {
        "pure": (PureEvent(epsilon=size), pure_mu(size)),
        "laplace": (LaplaceEvent(ratio=size), laplace_mu(size)),
    }.get(kind) or (
        RandomizedResponseEvent(epsilon=size, categories=kind),
        response_mu(size, kind),
    )
    corners = np.cumsum([p for p, _ in sorted(outcomes(pure(size)), key=lambda x: x[1])])[:-1]
    if isinstance(event, LaplaceEvent):
        corners = np.array([math.exp(-size / 2) / 2])
    elif kind != "pure":
        corners = np.cumsum([p for p, _ in sorted(outcomes(event), key=lambda x: x[1])])[:-1]
    alpha = np.concatenate(
        [np.geomspace(1e-12, 0.5, 400), 1 - np.geomspace(1e-12, 0.5, 400), corners]
    )
    exact = curve_of(event, alpha)
    assert np.all(exact >= norm.cdf(norm.isf(alpha) - mu) - 1e-15)
    assert np.any(exact < norm.cdf(norm.isf(alpha) - mu * (1 - 1e-4)))  # and no smaller μ would do


@pytest.mark.parametrize("epsilon", [1e-5, 1e-4, 9.9e-4, 1.01e-3])
def test_small_sizes_cost_the_limit_of_the_curve(epsilon):
    """Where differences of quantiles would lose digits; 1e-9 is what both sides are rounded by."""
    tangent = math.sqrt(math.pi / 2) * epsilon
    assert tangent * (1 - 1e-7) <= pure_mu(epsilon) <= tangent * (1 + 1e-8)
    for other in (laplace_mu(epsilon), response_mu(epsilon, 2)):
        assert tangent * (1 - 3e-4) <= other <= tangent * (1 + 1e-8)


@pytest.mark.parametrize("event", [PureEvent(epsilon=0.1), LaplaceEvent(ratio=0.1)])
def test_repeated_releases_are_charged_as_often_as_they_happen(event):
    rule = Filter(Budget(epsilon=5.0, delta=1e-5))
    once = rule.charge(compose([event]))
    many = compose([ComposedEvent(events=(event,) * 2, repeated=3)])
    assert rule.charge(many) == once * 6


@given(st.floats(1e-6, 50), st.floats(1e-6, 50))
def test_parts_of_an_epsilon_never_cost_more_than_the_whole(one, two):
    rule = Filter(Budget(epsilon=5.0, delta=1e-5))
    whole = vars(rule.charge(compose([PureEvent(epsilon=one + two)])))
    for kind in (pure, lambda epsilon: LaplaceEvent(ratio=epsilon)):
        parts = vars(rule.charge(compose([kind(one), kind(two)])))
        for name in ("squares", "low", "high"):
            assert parts[name] <= whole[name] * (1 + Fraction(1, 10**8)) + Fraction(1, 10**13), name


@given(st.floats(1e-9, 1e6), st.integers(2, 10**18))
def test_mu_is_ordered(epsilon, categories):
    whole = pure_mu(epsilon)
    assert 0 < whole <= math.sqrt(math.pi / 2) * epsilon * (1 + 1e-8)
    assert 0 < laplace_mu(epsilon) <= whole * (1 + 1e-8)
    assert 0 < response_mu(epsilon, categories) <= whole * (1 + 1e-8)
    assert pure_mu(epsilon * 1.001) > whole


# What a budget pays for


def test_a_budget_pays_for_what_its_owner_expects():
    for times in (1, 3):
        ledger = Ledger(3.0, limit_delta=1e-4)
        for _ in range(times):
            ledger.spend(PureEvent(epsilon=1.0), label="release")
        assert ledger.spent == Budget(epsilon=float(times))
        assert ledger.remaining_pure >= 3 - times
    for event in (
        Cost(epsilon=1.0, delta=1e-5).event,
        ApproximateEvent(epsilon=1.0, delta=1e-5),
        PureEvent(epsilon=1.0),
    ):
        ledger = Ledger(1.0, limit_delta=1e-5)
        ledger.spend(event, label="all of it")
        assert 1 - 1e-8 <= ledger.spent.epsilon <= 1
        assert ledger.refusal(event)


def sequence(rng: np.random.Generator, length: int) -> list[Event]:
    """Pure, Laplace and Gaussian releases, few or many of each, alike or very different in size."""
    kinds = rng.choice(3, length, p=rng.dirichlet([1, 1, 1]))
    sizes = rng.exponential(size=length) if rng.random() < 0.5 else rng.uniform(0.2, 1, length)
    sizes *= math.exp(rng.uniform(math.log(0.3), math.log(6))) / math.sqrt(sizes @ sizes)
    made = (pure, lambda size: LaplaceEvent(ratio=size), gaussian)
    return [made[kind](max(float(size), 1e-3)) for kind, size in zip(kinds, sizes, strict=True)]


@pytest.mark.parametrize("delta", [1e-4, 1e-6])
@pytest.mark.parametrize(("length", "draws"), [(5, 100), (20, 50), (100, 15)])
def test_mixed_sequences_cost_little_more_than_their_exact_composition(length, draws, delta):
    rng = np.random.default_rng(length)
    for _ in range(draws):
        events = sequence(rng, length)
        exact = sum(Loss(events, up=up).epsilon(delta) for up in (False, True)) / 2
        rule = Filter(Budget(epsilon=1.2 * exact, delta=delta))
        assert rule.allows("shared", rule.charge(compose(events)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 30), st.sampled_from([1e-3, 1e-5, 1e-7]))
def test_a_total_is_never_below_the_exact_composition(seed, length, delta):
    events = sequence(np.random.default_rng(seed), length)
    found = total(compose(events), delta=delta)
    assert Loss(events, up=False).delta(found.epsilon) <= found.delta * (1 + 1e-6) + 1e-15
    assert found.epsilon <= 1.15 * Loss(events, up=True).epsilon(delta) + 0.01


# One conversation, and what is left


@given(
    st.floats(0.05, 5),
    st.sampled_from([1e-9, 1e-6, 1e-3, 0.05]),
    st.lists(st.integers(1, 20), min_size=1, max_size=6),
)
@settings(deadline=None)
def test_a_ledger_takes_one_conversation_of_its_limit_and_no_second(epsilon, delta, weights):
    for kept in (delta, 0.0):
        ledger, most = Ledger(epsilon, limit_delta=kept), limit(epsilon=epsilon, delta=kept)
        whole = Cost(epsilon=epsilon, delta=kept)
        assert not ledger.refusal(most)
        for weight in weights:
            event = whole.part(Fraction(weight, sum(weights))).event
            assert not ledger.refusal(event)
            ledger.spend(event, label="look", whole=most)
        assert within(compose(entry.event for entry in ledger.entries), most)
        assert ledger.refusal(most)
        assert ledger.refusal(whole.part(0.001).event)
        assert ledger.remaining.epsilon <= 1e-4 * epsilon
        assert epsilon * (1 - 1e-8) <= ledger.spent.epsilon <= epsilon


@given(st.floats(0.05, 5), st.sampled_from([1e-9, 1e-6, 1e-3]), st.floats(0.01, 0.8))
@settings(max_examples=40, deadline=None)
def test_what_remains_can_be_announced_and_hardly_more(epsilon, delta, share):
    ledger = Ledger(epsilon, limit_delta=delta)
    ledger.spend(Cost(epsilon=epsilon, delta=delta).part(share).event, label="look")
    left = ledger.remaining
    assert left.delta == delta
    assert not ledger.refusal(limit(epsilon=left.epsilon, delta=delta))
    assert ledger.refusal(limit(epsilon=left.epsilon * (1 + 1e-6) + 1e-8, delta=delta))
    assert not ledger.refusal(PureEvent(epsilon=ledger.remaining_pure))
    assert ledger.refusal(PureEvent(epsilon=ledger.remaining_pure * (1 + 1e-6) + 1e-8))


def test_a_pure_conversation_fits_into_a_ledger_with_delta_and_pays_less_in_parts():
    ledger = Ledger(3.0, limit_delta=1e-5)
    assert not ledger.refusal(limit(epsilon=3.0, delta=0.0))
    assert ledger.refusal(limit(epsilon=3.1, delta=0.0))
    for _ in range(40):
        ledger.spend(PureEvent(epsilon=0.1), label="fortieth")
    assert 0 < ledger.spent.epsilon < 3.1
    mixed = limit(epsilon=0.05, delta=0.0) + limit(epsilon=0.3, delta=1e-5)
    assert not ledger.refusal(mixed)
    assert ledger.refusal(mixed + limit(epsilon=2.5, delta=1e-5))


def test_the_announcement_decides_what_delta_is_for_and_only_the_first():
    ledger = Ledger(1.0, limit_delta=1e-5)
    half = Cost(epsilon=1.0, delta=1e-5).part(0.5).event
    ledger.spend(half, label="half", whole=limit(epsilon=1.0, delta=1e-5))
    ledger.spend(half, label="half")
    assert [entry.way for entry in ledger.entries] == ["gaussian", None]
    for first, way in (
        (PureEvent(epsilon=0.0), "shared"),
        (half, "shared"),
        (ApproximateEvent(epsilon=0.1, delta=1e-7), "shared"),
        (ApproximateEvent(epsilon=0.1, delta=1e-5), "sums"),
    ):
        ledger = Ledger(1.0, limit_delta=1e-5)
        ledger.spend(first, label="first")
        assert ledger.entries[0].way == way


releases = st.sampled_from(
    [
        PureEvent(epsilon=0.2),
        LaplaceEvent(ratio=0.3),
        RandomizedResponseEvent(epsilon=0.5, categories=5),
        GaussianEvent(multiplier=3.0),
    ]
)


@settings(max_examples=10)
@given(st.lists(releases, min_size=1, max_size=3))
def test_what_is_spent_is_never_understated(events):
    ledger = Ledger(50.0, limit_delta=1e-5)
    for event in events:
        ledger.spend(event, label="x")
    assert exact_delta(events, ledger.spent.epsilon) <= 1e-5


# Refusals


def test_a_refusal_says_what_does_not_fit_and_what_would():
    with pytest.raises(BudgetExceeded, match="begin a ledger with limit_delta above 0"):
        Ledger(1.0).spend(GaussianEvent(multiplier=100.0), label="x")
    ledger = Ledger(1.0)
    ledger.spend(PureEvent(epsilon=0.6), label="x")
    assert ledger.refusal(pure(1.0)) == "ε = 1 does not fit into ε = 1: ε = 0.4 is left"
    ledger = Ledger(1.0, limit_delta=1e-5)
    ledger.spend(PureEvent(epsilon=0.6), label="x")
    assert ledger.refusal(pure(1.0)).startswith("ε = 1 does not fit into ε = 1, δ = 1e-05: ε = 0.4")
    noise, both = Cost(epsilon=1.0, delta=1e-5).event, ApproximateEvent(epsilon=0.5, delta=1e-6)
    left = ledger.remaining
    assert ledger.refusal(noise) == f"{Budget(epsilon=1.0, delta=1e-5)} does not fit into " + (
        f"ε = 1, δ = 1e-05: {left} is left"
    )
    assert ledger.refusal(both) == (
        "ε = 0.5, δ = 1e-06 does not fit into ε = 1, δ = 1e-05: ε = 0.4, δ = 6.25e-07 is left for"
        " releases of which only ε and δ are known"
    )
    sums = Ledger(1.0, limit_delta=1e-5)
    sums.spend(ApproximateEvent(epsilon=0.5, delta=1e-5), label="x")
    assert "the ledger began with a release of which only" in sums.refusal(noise)


def test_limits_are_checked():
    with pytest.raises(InvalidParameter, match="limit_delta must be strictly between 0 and 1"):
        Ledger(1.0, limit_delta=2.0)
    with pytest.raises(InvalidParameter, match="limit_epsilon must be at most"):
        Ledger(1e101, limit_delta=1e-6)


@pytest.mark.parametrize("epsilon", [1.0, 1e100])
@pytest.mark.parametrize(
    "event",
    [
        PureEvent(epsilon=1e308),
        ComposedEvent(events=(PureEvent(epsilon=1e308),) * 20),
        ComposedEvent(events=(PureEvent(epsilon=1e300),), repeated=2**53),
        LaplaceEvent(ratio=1e308),
        RandomizedResponseEvent(epsilon=1e308, categories=10**18),
        GaussianEvent(multiplier=1e-300),
        ComposedEvent(events=(GaussianEvent(multiplier=1e-300),), repeated=2**53),
    ],
)
def test_huge_releases_are_refused_like_others(epsilon, event):
    ledger = Ledger(epsilon, limit_delta=0.5)
    assert ledger.refusal(event)
    with pytest.raises(BudgetExceeded):
        ledger.spend(event, label="huge")
    assert ledger.spent == Budget(epsilon=0.0)


def test_tiny_releases_cost_something():
    ledger = Ledger(1.0, limit_delta=1e-6)
    ledger.spend(GaussianEvent(multiplier=1e300), label="tiny")
    ledger.spend(PureEvent(epsilon=1e-300), label="tiny")
    assert ledger.spent.delta == 1e-6
    assert ledger.remaining.epsilon < 1.0
    ledger.spend(PureEvent(epsilon=0.0), label="nothing")


def test_the_gaussian_way_agrees_with_the_exact_curve():
    rule = Filter(Budget(epsilon=1.0, delta=1e-5))
    mu = brentq(lambda mu: gaussian_delta(epsilon=1.0, multiplier=1 / mu) - 1e-5, 0.1, 0.5)
    assert rule.allows("gaussian", rule.charge(compose([gaussian(mu * (1 - 1e-8))])))
    assert not rule.allows("gaussian", rule.charge(compose([gaussian(mu * (1 + 1e-8))])))
