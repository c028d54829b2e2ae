import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.errors import InvalidParameter, UnknownName
from dpfda.privacy.events import ComposedEvent, Event, GaussianEvent, LaplaceEvent, PureEvent

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
