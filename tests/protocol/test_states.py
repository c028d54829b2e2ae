"""A study that is stored and taken up again, at any person, is the same study to the last bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from small_studies import answer_one, replies, small_studies

from dpfda.protocol.plan import Design
from dpfda.protocol.server import Server
from dpfda.protocol.study import studies

FOUND = ("phases", "features", "centers", "intercepts", "error", "notes")
every_study = pytest.mark.parametrize("name", small_studies())


def test_every_design_has_a_small_study() -> None:
    designs = {plan.design["name"] for plan in small_studies().values()}
    assert designs == set(Design.members()) == set(studies())


def go_on(server: Server, crowd: str) -> None:
    """The next person answers, lies or never will."""
    phase, ticket = server.phase, server.issued
    if crowd == "honest" or (crowd == "half of them" and ticket % 2):
        answer_one(server)
    elif crowd == "liars":
        task = server.issue(1)
        reply = replies(task, phase, ticket)
        if task.boxed and not task.bits:  # a label stays one
            reply = np.where(np.abs(reply) == 1, reply, -1e300 * np.sign(reply))
        server.receive(reply, start=ticket)
    else:
        server.issue(1)
    if not server.finished and server.phase == phase and server.wanted == 0:
        server.close_phase()


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        value = list(value.values())
    if type(value) is list:
        for entry in value:
            yield from leaves(entry)
    else:
        yield value


def stored(server: Server) -> bytes:
    """The state as a collector keeps it; JSON has no word for infinity but in an estimate's."""
    state = server.state()
    for leaf in leaves(state):
        assert type(leaf) in (int, float, str, bool, type(None)), type(leaf)
        assert type(leaf) is not float or leaf == math.inf or math.isfinite(leaf)
    return msgspec.json.encode(state)


@every_study
@pytest.mark.parametrize(
    ("crowd", "block"),
    [("honest", 3), ("half of them", 3), ("nobody", 4096), ("liars", 4096)],
)
def test_a_stored_study_goes_on_as_if_nothing_had_happened(
    name: str, crowd: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at every place of a block of replies, and at most 40 times in all."""
    monkeypatch.setattr("dpfda.protocol.server.BLOCK", block)
    plan = small_studies()[name]
    untouched, taken_up = Server(plan), Server(plan)
    step = plan.n_people // 40 * 3 + 1  # not a multiple of 3, the size of a block
    person = 0
    while not untouched.finished:
        for server in (untouched, taken_up):
            go_on(server, crowd)
        person += 1
        if person % step and untouched.issued:  # a phase has just begun where nobody was asked
            continue
        text = stored(taken_up)
        again = Server.resume(plan, msgspec.json.decode(text))
        assert stored(again) == text
        found, expected = again.findings, taken_up.findings
        assert all(getattr(found, what) == getattr(expected, what) for what in FOUND)
        assert again.model.to_json() == taken_up.model.to_json() == untouched.model.to_json()
        taken_up = again
    assert taken_up.finished
    assert stored(taken_up) == stored(untouched)
    assert taken_up.model.to_json() == untouched.model.to_json()


def test_an_endless_study_carries_no_more_from_round_to_round() -> None:
    plan, sizes = small_studies()["mrma_stream"], []
    for _ in range(12):
        server = Server(plan)
        while not server.finished:
            answer_one(server)
        assert server.findings.following is not None
        plan = replace(plan, design=server.findings.following.to_dict(), seed=plan.seed + 1)
        sizes.append(len(msgspec.json.encode(plan.to_dict())))
    assert len(plan.design["carried"]["intercept"]) == 3, "as many members as may be kept"
    assert max(sizes[6:]) < 1.1 * max(sizes[:6])


@every_study
def test_what_is_stored_between_phases_is_small(name: str) -> None:
    """Neither people nor rounds make it grow: sums and estimates, of a few features here."""
    server = Server(small_studies()[name])
    while not server.finished:
        kind = server.kind
        searching = kind == "location"  # counts on a grid, and a prior on its cells
        assert server.issued or len(stored(server)) < (45_000 if searching else 8_000), kind
        answer_one(server)


@every_study
def test_a_phase_that_nobody_answers_stops_no_study(name: str) -> None:
    """A deadline may pass at any phase, whatever came before and comes after."""
    plan = small_studies()[name]
    for silent in range(len(Server(plan).findings.phases)):
        server = Server(plan)
        while not server.finished:
            go_on(server, "nobody" if server.phase == silent else "honest")
        predict = getattr(server.model, "decide", None) or server.model.values
        assert np.isfinite(predict(np.zeros((1, plan.encoder.n_features)))).all()
