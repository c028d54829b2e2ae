"""What a filter charges: μ of other than Gaussian noise, and costs beside exact composition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_loss import Loss
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm
from small_releases import exact_delta, gaussian, outcomes, pure, sequence

from dpfda.errors import BudgetExceeded, InvalidParameter
from dpfda.privacy.calibration import gaussian_delta
from dpfda.privacy.composition import Budget, laplace_mu, pure_mu, response_mu, total
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
from dpfda.privacy.filter import Filter
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import compose


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


def test_a_refusal_says_what_does_not_fit_and_what_would():
    with pytest.raises(
        BudgetExceeded, match=r"pass delta=0 for pure ε, or begin a budget with a δ \(limit_delta\)"
    ):
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
        " releases for which only ε and δ are known"
    )
    sums = Ledger(1.0, limit_delta=1e-5)
    sums.spend(ApproximateEvent(epsilon=0.5, delta=1e-5), label="x")
    assert "the ledger began with a release for which only" in sums.refusal(noise)


def test_limits_are_checked():
    with pytest.raises(InvalidParameter, match=r"limit_delta must be 0 .* between 0 and 1"):
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


def test_what_is_spent_is_stated_within_the_limit():
    """The δ of releases of which only (ε, δ) is known comes out of that of the limit."""
    ledger = Ledger(3.0, limit_delta=1e-4)
    for event in (ApproximateEvent(epsilon=0.5, delta=4e-6), GaussianEvent(multiplier=4.0)):
        ledger.spend(event, label="x")
    assert 0.5 < ledger.spent.epsilon < 3
    assert ledger.spent.delta <= 1e-4
    alone = total(compose([GaussianEvent(multiplier=4.0)]), delta=1e-4 - 4e-6)
    assert ledger.spent.epsilon == pytest.approx(0.5 + alone.epsilon, rel=1e-9)
