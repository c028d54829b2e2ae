import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.errors import InvalidParameter, UnknownName
from dpfda.privacy.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.price import compose

numbers = st.floats(1e-6, 100)
event_lists = st.lists(
    st.builds(PureEvent, epsilon=numbers)
    | st.builds(LaplaceEvent, ratio=numbers)
    | st.builds(GaussianEvent, multiplier=numbers),
    max_size=3,
)


@given(event_lists, event_lists, st.integers(1, 5))
def test_nested_events_survive_json(outer, inner, repeated):
    event = ComposedEvent(events=(*outer, ComposedEvent(events=tuple(inner))), repeated=repeated)
    assert Event.from_dict(json.loads(json.dumps(event.to_dict()))) == event


def test_a_list_of_events_becomes_a_tuple():
    event = ComposedEvent(events=[PureEvent(epsilon=1.0)])  # type: ignore[arg-type]
    assert event.events == (PureEvent(epsilon=1.0),)
    hash(event)


def test_refuses_unknown_and_malformed_parts():
    with pytest.raises(UnknownName, match="unknown event"):
        Event.from_dict({"name": "composed", "events": [{"name": "os.system"}]})
    with pytest.raises(InvalidParameter, match="a sequence of events"):
        ComposedEvent(events=(0.5,))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        Event.from_dict({"name": "composed", "events": [{"name": "pure", "epsilon": -1}]})


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "pure",
        {},
        {"name": None},
        {"name": ["pure"]},
        {"name": "os.system"},
        {"name": "pure"},
        {"name": "pure", "epsilon": 1.0, "delta": 0.0},
        {"name": "pure", "epsilon": True},
        {"name": "pure", "epsilon": "1"},
        {"name": "pure", "epsilon": [1]},
        {"name": "pure", "epsilon": 10**400},
        {"name": "pure", "epsilon": math.nan},
        {"name": "laplace", "ratio": math.inf},
        {"name": "laplace", "ratio": 0},
        {"name": "gaussian", "multiplier": -math.inf},
        {"name": "gaussian", "multiplier": None},
        {"name": "approximate", "epsilon": 1.0, "delta": math.nan},
        {"name": "approximate", "epsilon": 1.0, "delta": 1},
        {"name": "approximate", "epsilon": 1.0, "delta": 10**400},
        {"name": "randomized_response", "epsilon": 1.0, "categories": 1},
        {"name": "randomized_response", "epsilon": 1.0, "categories": 2.0},
        {"name": "randomized_response", "epsilon": 1.0, "categories": 2**62 + 1},
        {"name": "composed"},
        {"name": "composed", "events": 5},
        {"name": "composed", "events": {"name": "pure", "epsilon": 1.0}},
        {"name": "composed", "events": "pure"},
        {"name": "composed", "events": [None]},
        {"name": "composed", "events": [], "repeated": 0},
        {"name": "composed", "events": [], "repeated": 2.0},
        {"name": "composed", "events": [], "repeated": 2**53 + 1},
    ],
)
def test_hostile_records_are_refused_in_our_words(data):
    with pytest.raises((InvalidParameter, UnknownName)):
        Event.from_dict(data)


def test_deep_nesting_is_refused_before_it_is_followed():
    data = {"name": "pure", "epsilon": 1.0}
    for _ in range(15):
        data = {"name": "composed", "events": [data]}
    assert compose([Event.from_dict(data)]).epsilon == 1
    for _ in range(100_000):
        data = {"name": "composed", "events": [data]}
    with pytest.raises(InvalidParameter, match="events must be nested at most 16 times"):
        Event.from_dict(data)
    while "events" in data:  # taken apart by hand: freeing it at once would recurse as deeply
        (data,) = data["events"]


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf])
def test_events_of_no_epsilon_are_refused(epsilon):
    for make in (
        lambda: PureEvent(epsilon=epsilon),
        lambda: ApproximateEvent(epsilon=epsilon, delta=0.1),
        lambda: RandomizedResponseEvent(epsilon=epsilon, categories=3),
        lambda: LaplaceEvent(ratio=epsilon),
        lambda: GaussianEvent(multiplier=epsilon),
    ):
        with pytest.raises(InvalidParameter):
            make()


def test_a_response_that_tells_nothing_is_no_response():
    with pytest.raises(InvalidParameter, match="epsilon"):
        RandomizedResponseEvent(epsilon=0.0, categories=3)


def test_a_guarantee_is_one():
    assert Guarantee(epsilon=1.0, assumptions=["n is public"]).assumptions == ("n is public",)
    for wrong in ({"epsilon": -1.0}, {"delta": 1.0}, {"delta": -1e-9}):
        with pytest.raises(InvalidParameter, match=next(iter(wrong))):
            Guarantee(**({"epsilon": 1.0} | wrong))
