"""The server's side: tickets, phases, refusals, stopping and going on."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter, ProtocolError, UnknownName
from dpfda.noise import SecureSource, SimulationSource
from dpfda.protocol import Server, StudyPlan
from dpfda.protocol.server import report_bound


def plan(**changes) -> StudyPlan:
    design = {"name": "mrma", "learner": "logistic", "n_classifiers": 4, "member_size": 8}
    return StudyPlan(
        epsilon=2.0, n_people=60, encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
        classes=(0, 1), design=design | {"training_share": 0.5, **changes}, seed=1,
    )  # fmt: skip


def answer(server: Server, people: int, *, seed: int = 0):
    rng = np.random.default_rng(seed)
    task = server.issue(people)
    features = rng.uniform(-1, 1, (task.people, 2))
    return task.answer((features, (features[:, 0] > 0).astype(int)), SimulationSource(seed)).values


def test_moves_on_when_everybody_answered() -> None:
    server = Server(plan())
    assert (server.kind, server.wanted, server.issued) == ("report", 30, 0)
    reply = answer(server, 1000)
    assert (len(reply), server.wanted) == (30, 0)
    server.receive(reply[20:], start=20)  # any order
    assert server.kind == "report"
    server.receive(reply[:20], start=0)
    assert (server.kind, server.wanted) == ("evaluate", 30)
    server.receive(answer(server, 30), start=0)
    assert server.finished
    assert (server.kind, server.wanted) == ("finished", 0)
    with pytest.raises(ProtocolError, match="finished"):
        server.close_phase()


def test_a_ticket_is_answered_once() -> None:
    server = Server(plan())
    reply = answer(server, 10)
    server.receive(reply[:5], start=0)
    with pytest.raises(ProtocolError, match="before"):
        server.receive(reply[4:6], start=4)
    server.receive(reply[5:6], start=5)


def test_only_issued_tickets() -> None:
    server = Server(plan())
    reply = answer(server, 3)
    for start in (-1, 1, 3, 29):
        with pytest.raises(ProtocolError, match="issued"):
            server.receive(reply, start=start)
    with pytest.raises(ProtocolError, match="issued"):
        server.task(3)
    assert server.task(2).people == 1


def test_a_refused_reply_leaves_no_trace() -> None:
    server = Server(plan())
    reply = answer(server, 3)
    before = json.dumps(server.state())
    bad = reply.copy()
    bad[1, -1] = 0.5  # a label is ±1
    for wrong in (bad, reply[:, :2], reply * np.inf, [["x"] * 3] * 3, 5, None):
        with pytest.raises(ProtocolError):
            server.receive(wrong, start=0)
    assert json.dumps(server.state()) == before
    server.receive(reply, start=0)


def test_missing_people() -> None:
    server = Server(plan())
    reply = answer(server, 30)
    missing = np.zeros(30, dtype=bool)
    missing[[3, 7]] = True
    reply[3] = np.nan  # whatever stands in a missing row
    server.receive(reply, start=0, missing=missing)
    assert server.kind == "report"  # two may still answer
    server.receive(reply[7:8], start=7)
    server.close_phase()
    assert server.kind == "evaluate"
    with pytest.raises(ProtocolError):
        server.receive(reply[:1], start=0)


@pytest.mark.parametrize("design", [{"name": "moments"}, {}])
def test_a_liar_counts_no_more_than_a_few_honest_people(design) -> None:
    study = plan() if not design else replace(plan(), design=design)
    server, bound = Server(study), report_bound(Server(study).issue(1))
    absorbed = []
    server.run.absorb = lambda task, reply: absorbed.append(reply)  # type: ignore[method-assign]
    server.issue(1)
    server.receive(np.full((1, server.task(0).width), 1e9) if design else [[1e9, -1e9, 1]], start=0)
    server.close_phase()
    assert bound is not None
    assert np.abs(absorbed[0]).max() == bound


@pytest.mark.parametrize("design", [{"name": "moments"}, {}])
@pytest.mark.parametrize("median_group", [0, 5])
def test_the_order_of_arrival_changes_no_bit(design, median_group: int, monkeypatch) -> None:
    """However replies are split and whoever comes first, sums are taken in the order of tickets."""
    monkeypatch.setattr("dpfda.protocol.server.BLOCK", 8)
    study = plan() if not design else replace(plan(), design=design)
    rng, models = np.random.default_rng(0), []
    for split in (1, 7, 60):
        server = Server(study, median_group=median_group)
        while not server.finished:
            wanted, phase = server.wanted, server.phase
            task = server.issue(wanted)
            features = np.random.default_rng(phase).uniform(-1, 1, (wanted, 2))
            labels = (features[:, 0] > 0).astype(int)
            reply = task.answer((features, labels), SimulationSource(phase)).values
            starts = rng.permutation(np.arange(0, wanted, split))
            for start in starts[:-1] if split == 7 else starts:
                server.receive(reply[start : start + split], start=int(start))
                server = Server.resume(
                    study, json.loads(json.dumps(server.state())), median_group=median_group
                )
            if split == 7:
                last = int(starts[-1])
                server.receive(reply[last : last + split], start=last)
        models.append(server.model.to_json())
    assert len(set(models)) == 1


def test_a_server_does_not_claim_what_it_cannot_know() -> None:
    """Whether people's devices draw from the operating system: only they know."""
    server = Server(replace(plan(), design={"name": "moments"}))
    while not server.finished:
        start, task = server.issued, server.issue(server.wanted)
        reply = task.answer((np.zeros((task.people, 2)), np.zeros(task.people, dtype=int)),
                            SimulationSource(0))  # fmt: skip
        server.receive(reply.values, start=start)
    promise = server.model.guarantee
    assert promise.sampler == "unknown"
    assert "sampler = each person's own" in str(promise)
    for source in (SimulationSource(0), SecureSource()):
        assert promise.drawn_from(source).sampler == source.sampler


def test_missing_must_match() -> None:
    server = Server(plan())
    reply = answer(server, 5)
    with pytest.raises(ProtocolError, match="missing"):
        server.receive(reply, start=0, missing=[True])


def test_resuming_needs_the_same_plan() -> None:
    server = Server(plan())
    server.receive(answer(server, 7), start=0)
    state = json.loads(json.dumps(server.state()))
    assert Server.resume(plan(), state).wanted == server.wanted
    with pytest.raises(ProtocolError, match="plan"):
        Server.resume(plan(cutoff=0.7), state)


def test_unknown_designs_are_refused() -> None:
    with pytest.raises(UnknownName, match="design"):
        Server(plan(name="oracle"))
    with pytest.raises(InvalidParameter, match="backdoor"):
        Server(plan(backdoor=1))


def test_no_way_to_hand_over_a_curve() -> None:
    """Roles are separate: no argument of a public method of the server is private data."""
    private = {"curve", "curves", "features", "label", "labels", "x", "values"}
    methods = inspect.getmembers(Server, inspect.isroutine)
    for name, method in methods:
        if not name.startswith("_"):
            assert not private & set(inspect.signature(method).parameters), name
