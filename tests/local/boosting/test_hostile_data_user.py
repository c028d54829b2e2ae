"""A data user who writes any request learns nothing from whether an owner answers it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.hostile.parties import HostileAsker, seeded

from dpfda.local.boosting.request import Owner
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.holder import Holder

OWNERS = (
    ([[0.2, 0.1], [0.5, -0.3]], [0, 1]),
    ([[0.2, 0.1], [0.5, -0.3]], [1, 1]),
    ([[1e300, -1e300], [float("nan"), float("inf")]], [0, 0]),
    ([[0.0, 0.0], [0.0, 0.0]], [1, 0]),
)


def owner(plan: Any, rows: Any, labels: Any, ledger: Ledger) -> Holder:
    return Owner(plan, curve=rows, label=labels, ledger=ledger, source=seeded())


@pytest.mark.parametrize("name", ["gradient", "sample", "statistic", "classifier", "feedback"])
def test_a_data_user_learns_nothing_from_refusals(name: str, request_of: Any, plan_of: Any) -> None:
    plan, user = plan_of(name), HostileAsker(request_of(name))
    victims = [partial(owner, plan, rows, labels) for rows, labels in OWNERS]
    answered = 0
    for told, body in user.messages():
        outcomes = {user.ask(victim, body) for victim in victims}
        assert len(outcomes) == 1, told
        outcome = outcomes.pop()
        assert outcome.spent == (outcome.seen[0] == "answer"), told
        answered += outcome.spent
    assert answered >= 1
