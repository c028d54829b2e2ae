import math
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.errors import InvalidParameter, MissingExtra, UnknownEvent
from dpfda.privacy.accountant import (
    SumAccountant,
    compose,
    total,
)
from dpfda.privacy.calibration import gaussian_sigma
from dpfda.privacy.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpfda.privacy.price import exact, rounded_down, rounded_up


@dataclass(frozen=True, kw_only=True)
class StrangeEvent(Event, name="strange"):
    """Registered, but without a price."""


# Exact sums


def test_numbers_mean_what_was_written():
    assert exact(0.1) == Fraction(1, 10)
    assert total([PureEvent(epsilon=0.1)] * 10) == (1.0, 0.0)
    assert sum([0.1] * 10) != 1.0  # which floats alone would miss


@given(st.fractions(0, 1000))
def test_rounding_encloses(number):
    up, down = rounded_up(number), rounded_down(number)
    assert exact(down) <= number <= exact(up)
    assert up <= math.nextafter(down, math.inf)


@given(st.lists(st.floats(1e-6, 10), max_size=20))
def test_pure_totals_are_never_below_the_sum_of_the_floats_as_written(values):
    epsilon, delta = total([PureEvent(epsilon=value) for value in values])
    assert exact(epsilon) >= sum(map(exact, values))
    assert epsilon == pytest.approx(math.fsum(values), rel=1e-15)
    assert delta == 0


def test_repetitions_multiply_without_being_listed():
    event = ComposedEvent(events=(ComposedEvent(events=(PureEvent(epsilon=0.1),), repeated=10**9),))
    assert total([event] * 10) == (1e9, 0.0)


def test_deltas_of_releases_add_up():
    assert total([ApproximateEvent(epsilon=0.5, delta=1e-6)] * 3, delta=0.5)[0] <= 1.5
    assert SumAccountant().epsilon(
        compose([ApproximateEvent(epsilon=0.5, delta=1e-6)] * 3), delta=3e-6
    ) == pytest.approx(1.5)


def test_without_delta_only_pure_releases_have_an_epsilon():
    assert total([GaussianEvent(multiplier=10.0)]) == (math.inf, 0.0)
    assert total([ApproximateEvent(epsilon=1.0, delta=1e-9)])[0] == math.inf


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan])
def test_refuses_delta(delta):
    with pytest.raises(InvalidParameter, match="delta must be strictly between 0 and 1"):
        total([PureEvent(epsilon=1.0)], delta=delta)


@pytest.mark.parametrize("stranger", [StrangeEvent(), "pure", 0.5, None, [], {}])
def test_refuses_what_is_not_a_known_event(stranger):
    with pytest.raises(UnknownEvent):
        compose([stranger])


# Tight composition


def test_gaussian_parts_of_a_budget_cost_the_budget():
    multiplier = gaussian_sigma(epsilon=1.0, delta=1e-5) * math.sqrt(7)
    epsilon, delta = total([GaussianEvent(multiplier=multiplier)] * 7, delta=1e-5)
    assert 1 - 1e-8 < epsilon <= 1
    assert delta == 1e-5


def test_categories_are_cheaper_than_the_worst_pure_release():
    many = total([RandomizedResponseEvent(epsilon=1.0, categories=50)] * 8, delta=1e-4)[0]
    pure = total([PureEvent(epsilon=1.0)] * 8, delta=1e-4)[0]
    assert many < pure < 8


@pytest.mark.parametrize("delta", [1e-14, 1e-9, 1e-4])
def test_a_bound_is_never_above_the_sum(delta):
    for event in (PureEvent(epsilon=0.1), PureEvent(epsilon=500.0), LaplaceEvent(ratio=0.00012345)):
        epsilon = SumAccountant().epsilon(compose([event]), delta=delta)
        assert total([event], delta=delta)[0] <= epsilon


def test_hardly_any_noise_is_no_protection():
    assert total([GaussianEvent(multiplier=1e-200), PureEvent(epsilon=1.0)], delta=1e-6)[0] > 1e100


# Without the extra


@pytest.fixture
def no_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)


@pytest.mark.usefixtures("no_extra")
def test_names_the_missing_extra():
    with pytest.raises(MissingExtra, match=r"dpfda\[accounting\]"):
        total([LaplaceEvent(ratio=0.5)], delta=1e-6)


@pytest.mark.usefixtures("no_extra")
def test_pure_and_gaussian_totals_need_no_extra():
    assert total([PureEvent(epsilon=0.5)]) == (0.5, 0.0)
    assert total([GaussianEvent(multiplier=4.0)], delta=1e-5)[0] < 1


def test_pure_path_does_not_load_the_extra():
    code = (
        "import sys; from dpfda.privacy.ledger import Ledger;"
        "from dpfda.privacy.events import PureEvent;"
        "Ledger(1.0).spend(PureEvent(epsilon=0.5), label='x');"
        "Ledger(9.0, limit_delta=1e-6).spend(PureEvent(epsilon=0.5), label='x');"
        "assert not {'dp_accounting', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
