"""Every registered conversation, whatever its numbers: what it asks is what it announced."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.checks.conversations import check_price
from dpfda.protocol.conversation import Conversation

NAMES = sorted(Conversation.members())


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 1 << 20),
    epsilon=st.floats(0.05, 20.0),
    delta=st.sampled_from([0.0, 1e-9, 1e-5, 1e-2]),
    seed=st.integers(0, 5),
)
def test_questions_cost_what_was_announced(
    name: str, n: int, epsilon: float, delta: float, seed: int
) -> None:
    for conversation in Conversation.named(name).examples(n=n, epsilon=epsilon, delta=delta):
        check_price(conversation, n, seed=seed)
