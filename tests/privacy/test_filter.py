"""Limits hold for analysts who choose the next release by earlier answers: counted out exactly.

An analyst is a function of what was seen so far, and of what the ledger would accept, to the next
release. `leaked` enumerates every answer of the releases at their worst neighbors and adds up the
smallest δ for which everything together is (ε, δ)-DP.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
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
from dpfda.privacy.filter import Budget, Filter, GaussianFilter, SumFilter, chosen
from dpfda.privacy.gaussian_dp import laplace_mu, pure_mu, response_mu
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import Price, compose

# Rules under attack


@dataclass(frozen=True)
class Rule:
    """A limit and what it accepts, as a list of releases in order."""

    epsilon: float
    delta: float
    composition: str | None = None

    def accepts(self, events: list[Event]) -> bool:
        ledger = Ledger(self.epsilon, limit_delta=self.delta, composition=self.composition)
        try:
            for event in events:
                ledger.spend(event, label="release")
        except BudgetExceeded:
            return False
        return True


class ExactCost(Rule):
    """Broken twin, once the ledger's own rule: go on while the exact cost so far stays within."""

    def accepts(self, events: list[Event]) -> bool:
        return all(
            exact_delta(events[: k + 1], self.epsilon) <= self.delta for k in range(len(events))
        )


class BetterOfTwo(Rule):
    """Broken twin: go on while one of two valid filters would."""

    def accepts(self, events: list[Event]) -> bool:
        rules = [Rule(self.epsilon, self.delta, name) for name in ("sum", "gaussian")]
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
    ("composition", "analyst"),
    [
        ("gaussian", second_chance),
        ("gaussian", pressing),
        ("gaussian", stopping),
        ("gaussian", gambling),
        ("gaussian", dividing),
        ("sum", second_chance),
        ("sum", pressing),
        ("sum", stopping),
        ("sum", failing),
    ],
)
def test_limit_holds_for_adaptive_analysts(epsilon, delta, composition, analyst):
    assert leaked(Rule(epsilon, delta, composition), analyst) <= delta


def test_the_default_with_delta_is_a_filter():
    assert leaked(Rule(1.0, 0.01), second_chance) <= 0.01


def test_limits_are_used_up():
    """Enumeration sees what there is: the same analysts come close to δ: 5 % more would show."""
    assert leaked(Rule(1.0, 0.05, "gaussian"), dividing) > 0.96 * 0.05
    assert leaked(Rule(1.0, 0.01, "sum"), failing) > 0.65 * 0.01


def test_pure_limit_is_never_crossed_by_a_bit():
    for analyst in (pressing, stopping):
        assert leaked(Rule(1.0, 0.0), analyst) == 0


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
    rule = GaussianFilter(Budget(epsilon=5.0, delta=1e-5))
    once = rule.charge(compose([event])).precision
    many = compose([ComposedEvent(events=(event,) * 2, repeated=3)])
    assert rule.charge(many).precision == 6 * once


@given(st.floats(1e-6, 50), st.floats(1e-6, 50))
def test_parts_of_an_epsilon_never_cost_more_than_the_whole(one, two):
    assert pure_mu(one) ** 2 + pure_mu(two) ** 2 <= pure_mu(one + two) ** 2 * (1 + 1e-12)


@given(st.floats(1e-9, 1e6), st.integers(2, 10**18))
def test_mu_is_ordered(epsilon, categories):
    whole = pure_mu(epsilon)
    assert 0 < whole <= math.sqrt(math.pi / 2) * epsilon * (1 + 1e-8)
    assert 0 < laplace_mu(epsilon) <= whole * (1 + 1e-8)
    assert 0 < response_mu(epsilon, categories) <= whole * (1 + 1e-8)
    assert pure_mu(epsilon * 1.001) > whole


# One conversation, and what is left


@given(
    st.floats(0.05, 5),
    st.sampled_from([1e-9, 1e-6, 1e-3, 0.05]),
    st.lists(st.integers(1, 20), min_size=1, max_size=6),
)
def test_a_ledger_takes_one_conversation_of_its_limit_and_no_second(epsilon, delta, weights):
    for kept in (delta, 0.0):
        ledger, most = Ledger(epsilon, limit_delta=kept), limit(epsilon=epsilon, delta=kept)
        whole = Cost(epsilon=epsilon, delta=kept)
        assert not ledger.refusal(most)
        for weight in weights:
            event = whole.part(Fraction(weight, sum(weights))).event
            assert not ledger.refusal(event)
            ledger.spend(event, label="look")
        assert within(compose(entry.event for entry in ledger.entries), most)
        assert ledger.refusal(most)
        assert ledger.refusal(whole.part(0.001).event)
        assert ledger.remaining.epsilon <= 1e-4 * epsilon
        assert epsilon * (1 - 1e-8) <= ledger.spent.epsilon <= epsilon


@given(st.floats(0.05, 5), st.sampled_from([1e-9, 1e-6, 1e-3, 0.05]), st.floats(0.01, 0.99))
def test_what_remains_can_be_announced_and_hardly_more(epsilon, delta, share):
    ledger = Ledger(epsilon, limit_delta=delta)
    ledger.spend(Cost(epsilon=epsilon, delta=delta).part(share).event, label="look")
    left = ledger.remaining
    assert left.delta == delta
    assert not ledger.refusal(limit(epsilon=left.epsilon, delta=delta))
    assert ledger.refusal(limit(epsilon=left.epsilon * (1 + 1e-6) + 1e-8, delta=delta))


def test_a_pure_conversation_fits_into_a_gaussian_ledger_and_pays_less_in_parts():
    ledger = Ledger(3.0, limit_delta=1e-5)
    assert not ledger.refusal(limit(epsilon=0.5, delta=0.0))
    assert ledger.refusal(limit(epsilon=0.7, delta=0.0))
    for _ in range(5):
        ledger.spend(PureEvent(epsilon=0.1), label="fifth")
    assert 0 < ledger.spent.epsilon < 1.2
    mixed = limit(epsilon=0.3, delta=0.0) + limit(epsilon=1.0, delta=1e-5)
    assert not ledger.refusal(mixed)
    assert ledger.refusal(mixed + limit(epsilon=2.5, delta=1e-5))


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


def test_a_refusal_names_the_rule_to_choose():
    with pytest.raises(BudgetExceeded, match="limit_delta above 0 and composition='gaussian'"):
        Ledger(1.0).spend(GaussianEvent(multiplier=100.0), label="x")
    with pytest.raises(BudgetExceeded, match="composition='gaussian'"):
        Ledger(1.0, limit_delta=0.1, composition="sum").spend(
            GaussianEvent(multiplier=100.0), label="x"
        )
    with pytest.raises(BudgetExceeded, match="needs a ledger with composition='sum'"):
        Ledger(1.0, limit_delta=0.1).spend(ApproximateEvent(epsilon=0.1, delta=1e-9), label="x")
    with pytest.raises(
        BudgetExceeded, match=r"ε = 1 counts as Gaussian noise, and μ = 1\.23.* \(of"
    ):
        Ledger(1.0, limit_delta=1e-5).spend(PureEvent(epsilon=1.0), label="x")


def test_the_rule_is_named_and_known():
    assert set(Filter.members()) == {"sum", "gaussian"}
    assert isinstance(chosen(1.0, 0), SumFilter)
    assert isinstance(chosen(1.0, 1e-6), GaussianFilter)
    assert isinstance(chosen(1.0, 1e-6, "sum"), SumFilter)
    with pytest.raises(InvalidParameter, match="composition must be one of 'gaussian', 'sum'"):
        Ledger(1.0, composition="best")
    with pytest.raises(InvalidParameter, match="limit_delta must be strictly between 0 and 1"):
        Ledger(1.0, composition="gaussian")
    with pytest.raises(InvalidParameter, match="limit_epsilon must be at most"):
        Ledger(1e101, limit_delta=1e-6)


@pytest.mark.parametrize("composition", ["sum", "gaussian"])
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
def test_huge_releases_are_refused_like_others(composition, event):
    ledger = Ledger(1e100, limit_delta=0.5, composition=composition)
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


def test_gaussian_rule_agrees_with_the_exact_curve():
    rule = GaussianFilter(Budget(epsilon=1.0, delta=1e-5))
    mu = brentq(lambda mu: gaussian_delta(epsilon=1.0, multiplier=1 / mu) - 1e-5, 0.1, 0.5)
    assert rule.allows(Price(), rule.charge(compose([gaussian(mu * (1 - 1e-8))])))
    assert not rule.allows(Price(), rule.charge(compose([gaussian(mu * (1 + 1e-8))])))
