"""What releases cost: exact sums, and what a ledger says was spent against exact curves."""

import math
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.errors import UnknownEvent
from dpfda.privacy.calibration import gaussian_epsilon, gaussian_sigma
from dpfda.privacy.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import compose, exact, rounded_down, rounded_up


@dataclass(frozen=True, kw_only=True)
class StrangeEvent(Event, name="strange"):
    """Registered, but without a price."""

    epsilon: float = 0.1


# Exact sums


def test_numbers_mean_what_was_written():
    assert exact(0.1) == Fraction(1, 10)
    assert compose([PureEvent(epsilon=0.1)] * 10).epsilon == 1
    assert sum([0.1] * 10) != 1.0  # which floats alone would miss


@given(st.fractions(0, 1000))
def test_rounding_encloses(number):
    up, down = rounded_up(number), rounded_down(number)
    assert exact(down) <= number <= exact(up)
    assert up <= math.nextafter(down, math.inf)


@given(st.lists(st.floats(1e-6, 10), max_size=20))
def test_pure_totals_are_never_below_the_sum_of_the_floats_as_written(values):
    price = compose([PureEvent(epsilon=value) for value in values])
    epsilon = rounded_up(price.epsilon)
    assert exact(epsilon) >= sum(map(exact, values))
    assert epsilon == pytest.approx(math.fsum(values), rel=1e-15)
    assert price.delta == price.precision == 0


def test_repetitions_multiply_without_being_listed():
    event = ComposedEvent(events=(ComposedEvent(events=(PureEvent(epsilon=0.1),), repeated=10**9),))
    assert compose([event] * 10).epsilon == 10**9


def test_deltas_of_releases_add_up():
    price = compose([ApproximateEvent(epsilon=0.5, delta=1e-6)] * 3)
    assert (price.epsilon, price.delta) == (Fraction(3, 2), Fraction(3, 10**6))


@pytest.mark.parametrize("stranger", [StrangeEvent(), "pure", 0.5, None, [], {}])
def test_refuses_what_is_not_a_known_event(stranger):
    with pytest.raises(UnknownEvent):
        compose([stranger])


def test_refuses_a_stranger_inside_a_known_event():
    with pytest.raises(UnknownEvent, match="StrangeEvent"):
        compose([ComposedEvent(events=(PureEvent(epsilon=0.1), StrangeEvent()), repeated=2)])


def test_gaussian_parts_of_a_budget_cost_the_budget():
    multiplier = gaussian_sigma(epsilon=1.0, delta=1e-5) * math.sqrt(7)
    whole = compose([GaussianEvent(multiplier=multiplier)] * 7).multiplier
    assert 1 - 1e-8 < gaussian_epsilon(delta=1e-5, multiplier=whole) <= 1


def test_hardly_any_noise_is_no_protection():
    assert compose([GaussianEvent(multiplier=1e-200)]).precision > 1e100


def test_ledgers_need_no_scipy():
    code = (
        "import sys; from dpfda.privacy.ledger import Ledger;"
        "from dpfda.privacy.events import PureEvent;"
        "Ledger(1.0).spend(PureEvent(epsilon=0.5), label='x');"
        "Ledger(9.0, limit_delta=1e-6).spend(PureEvent(epsilon=0.5), label='x');"
        "assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.floats(1e-90, 1e90))
def test_precision_is_never_rounded_down(multiplier):
    exactly = 1 / Fraction(multiplier) ** 2
    found = compose([GaussianEvent(multiplier=multiplier)]).precision
    assert exactly < found < exactly * (1 + Fraction(1, 10**15))


# What a ledger says was spent


epsilons = st.floats(0.01, 3).map(lambda x: round(x, 3))
single_events = st.one_of(
    epsilons.map(lambda x: PureEvent(epsilon=x)),
    epsilons.map(lambda x: LaplaceEvent(ratio=x)),
    st.builds(RandomizedResponseEvent, epsilon=epsilons, categories=st.integers(2, 10)),
    st.floats(0.5, 20).map(lambda x: GaussianEvent(multiplier=x)),
)
few = settings(max_examples=20)
event_lists = st.lists(single_events, min_size=1, max_size=4)


def spent(events: list[Event], *, delta: float) -> float:
    ledger = Ledger(1e6, limit_delta=delta)
    for event in events:
        ledger.spend(event, label="release")
    return ledger.spent.epsilon


def laplace_delta(epsilon: float, ratio: float) -> float:
    """The exact curve of Laplace noise, for any real ε."""
    if epsilon >= ratio:
        return 0.0
    return 1 - math.exp((epsilon - ratio) / 2 if epsilon > -ratio else epsilon)


def local_report_delta(epsilon: float, *, ratio: float, response: float) -> float:
    """The exact curve of one Laplace number and one randomized bit, both replaced."""
    keep = 1 / (1 + math.exp(-response))
    return keep * laplace_delta(epsilon - response, ratio) + (1 - keep) * laplace_delta(
        epsilon + response, ratio
    )


def test_nothing_costs_nothing():
    assert spent([], delta=1e-6) == 0


@few
@given(epsilon=epsilons, delta=st.sampled_from([1e-8, 1e-5, 1e-2]))
def test_never_below_the_exact_curve_of_randomized_response(epsilon, delta):
    # δ(ε') = (e^ε - e^ε')/(1 + e^ε), solved for ε'.
    exact = math.log(max(1.0, math.exp(epsilon) - delta * (1 + math.exp(epsilon))))
    for event in (RandomizedResponseEvent(epsilon=epsilon), PureEvent(epsilon=epsilon)):
        assert spent([event], delta=delta) >= exact - 1e-12


@few
@given(ratio=epsilons, response=epsilons, delta=st.sampled_from([1e-8, 1e-5, 1e-2, 0.1]))
def test_never_below_the_exact_curve_of_a_local_report(ratio, response, delta):
    bound = spent(
        [LaplaceEvent(ratio=ratio), RandomizedResponseEvent(epsilon=response)], delta=delta
    )
    assert local_report_delta(bound + 1e-12, ratio=ratio, response=response) <= delta


@few
@given(multiplier=st.floats(0.5, 50), times=st.integers(1, 20))
def test_never_below_the_exact_gaussian(multiplier, times):
    exact = gaussian_epsilon(delta=1e-5, multiplier=multiplier / math.sqrt(times))
    assert spent([GaussianEvent(multiplier=multiplier)] * times, delta=1e-5) >= exact * (1 - 1e-9)


@few
@given(events=event_lists, more=single_events)
def test_more_releases_never_cost_less(events, more):
    before = spent(events, delta=1e-5)
    assert spent([*events, more], delta=1e-5) >= before * (1 - 1e-9)


@few
@given(events=event_lists)
def test_more_delta_never_costs_more_epsilon(events):
    strict, loose = (spent(events, delta=delta) for delta in (1e-6, 1e-4))
    assert loose <= strict


@few
@given(events=event_lists, repeated=st.integers(1, 3))
def test_nesting_does_not_change_the_price(events, repeated):
    nested = ComposedEvent(events=(ComposedEvent(events=tuple(events)),), repeated=repeated)
    flat = spent(events * repeated, delta=1e-5)
    assert spent([nested], delta=1e-5) == pytest.approx(flat, rel=1e-12)


@few
@given(events=event_lists)
def test_order_does_not_matter(events):
    backwards = spent(events[::-1], delta=1e-5)
    assert backwards == pytest.approx(spent(events, delta=1e-5), rel=1e-9)
