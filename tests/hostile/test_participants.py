"""One participant who lies changes little, and breaks nothing."""

from __future__ import annotations

import numpy as np
import pytest
from tests.hostile.parties import HostileParticipant

from dpfda.curves import CurveEncoder
from dpfda.errors import ProtocolError
from dpfda.noise import SimulationSource
from dpfda.protocol import Server, StudyPlan


def server(n_people: int = 40) -> Server:
    plan = StudyPlan(
        epsilon=1.0,
        n_people=n_people,
        encoder=CurveEncoder("identity", n_basis=3, rescale="clip", scale=1.0),
        classes=(0, 1),
        design={"name": "moments"},
    )
    return Server(plan)


def test_impossible_replies_are_refused_and_leave_no_trace() -> None:
    honest, attacked = server(), server()
    for one in (honest, attacked):
        one.issue(40)
    liar = HostileParticipant(width=3)
    for reply in liar.replies():
        with pytest.raises(ProtocolError):
            attacked.receive(reply, start=0)
    rng, source = np.random.default_rng(0), SimulationSource(0)
    task = server().issue(40)
    people = rng.uniform(-1, 1, (40, 3)), rng.integers(0, 2, 40)
    replies = task.answer(people, source).values
    for one in (honest, attacked):
        one.receive(replies, start=0)
    assert np.array_equal(honest.model.coefficients, attacked.model.coefficients)


def test_nobody_is_counted_twice() -> None:
    attacked = server()
    task = attacked.issue(40)
    people = np.zeros((40, 3)), np.zeros(40, dtype=np.int64)
    replies = task.answer(people, SimulationSource(0)).values
    attacked.receive(replies[:1], start=0)
    with pytest.raises(ProtocolError):
        attacked.receive(replies[:1], start=0)
    with pytest.raises(ProtocolError):
        attacked.receive(replies[:1], start=40)


def test_a_huge_reply_counts_as_the_largest_honest_one() -> None:
    results = []
    for size in (1e3, 1e300):
        one = server()
        task = one.issue(40)
        replies = task.answer(
            (np.zeros((40, 3)), np.zeros(40, dtype=np.int64)), SimulationSource(0)
        ).values
        replies[0] = size
        one.receive(replies, start=0)
        results.append(one.model.coefficients)
    assert np.array_equal(*results)
    assert np.isfinite(results[0]).all()
