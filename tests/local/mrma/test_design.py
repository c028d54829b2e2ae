"""An MRMA study through the protocol: phases, groups, resuming, what is protected."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.errors import InvalidParameter, ProtocolError, UnknownName
from dpfda.local.mrma.designs import MRMADesign
from dpfda.noise import SimulationSource
from dpfda.protocol import Server
from dpfda.protocol.tasks.questions import EvaluationTask, MemberTask
from dpfda.protocol.tasks.vector import VectorTask


def run(server: Server, features, numbers, *, seed: int = 0, stop: int | None = None, first=0):
    """Ask people one by one batch at a time; returns how many were asked."""
    source, person = SimulationSource(seed), first
    while not server.finished and (stop is None or person < stop):
        wanted = server.wanted if stop is None else min(server.wanted, stop - person)
        start = server.issued
        task = server.issue(wanted)
        who = slice(person, person + task.people)
        server.receive(task.answer((features[who], numbers[who]), source).values, start=start)
        person += task.people
    return person


def test_finds_the_right_classifier(make_plan, crowd) -> None:
    server = Server(make_plan(3000, epsilon=8.0, evaluation_share=0.2))
    assert run(server, *crowd(3000, seed=1)) == 3000
    features, numbers = crowd(5000, seed=2)
    error = np.mean(server.model.decide(features) != numbers)
    best = np.mean((features[:, 0] > 0) != numbers)
    assert error < best + 0.05
    estimate = server.findings.error
    assert estimate.people == 600
    # The model's error on new people, five standard errors of the private estimate either way.
    assert abs(estimate.value - error) < 5 * estimate.standard_error


def test_phases_and_group_sizes(make_plan, crowd) -> None:
    plan = make_plan(103, n_classifiers=7, member_size=10, training_share=0.3, evaluation_share=0.1)
    server = Server(plan)
    assert [(p.kind, p.people) for p in server.findings.phases] == [
        ("report", 31), ("evaluate", 62), ("check", 10),
    ]  # fmt: skip
    assert isinstance(server.issue(1), VectorTask)
    server.close_phase()
    task = server.run.tasks(0, 62)
    assert isinstance(task, MemberTask)
    counts = np.bincount(task.member.ravel())
    assert len(counts) == 7
    assert counts.max() - counts.min() == 1  # 62 = 7 · 8 + 6
    server.close_phase()
    assert type(server.run.tasks(0, 10)) is EvaluationTask


def test_several_members_each(make_plan, crowd) -> None:
    """Everybody judges three members with ε/3 each, and all members are judged equally often."""
    plan = make_plan(3000, epsilon=9.0, n_classifiers=7, classifiers_per_person=3)
    server = Server(plan)
    assert run(server, *crowd(3000, seed=1)) == 3000
    features, numbers = crowd(5000, seed=2)
    members, judgement = server.findings.judged
    assert members.people.sum() == 3 * 2500
    assert np.ptp(members.people) <= 1
    scores = features @ members.coefficients.T + members.intercept
    right = np.mean((scores >= 0) == (numbers == 1)[:, None], axis=0)
    # Five standard errors of the estimates, which include randomized response at ε/3.
    apart = np.abs(judgement.accuracy.value - right) / judgement.accuracy.standard_error
    assert apart.max() < 5
    assert np.mean(server.model.decide(features) != numbers) < 0.2


def test_more_members_each_than_there_are_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="classifiers_per_person"):
        MRMADesign(n_classifiers=3, classifiers_per_person=4)


def test_the_same_ticket_gets_the_same_task(make_plan, crowd) -> None:
    server = Server(make_plan(200, n_classifiers=5, member_size=20))
    features, numbers = crowd(200, seed=3)
    run(server, features, numbers, stop=33)
    whole = server.run.tasks(0, 20)
    part = server.run.tasks(13, 4)
    np.testing.assert_array_equal(whole.coefficients[13:17], part.coefficients)


@pytest.mark.parametrize("stop", [0, 20, 60, 110, 195])
def test_resumes_anywhere(make_plan, crowd, stop: int) -> None:
    plan = make_plan(200, n_classifiers=5, member_size=20, training_share=0.4, evaluation_share=0.1)
    features, numbers = crowd(200, seed=4)
    server = Server(plan)
    run(server, features, numbers, seed=5, stop=stop)
    resumed = Server.resume(plan, server.state())
    for half in (server, resumed):
        run(half, features, numbers, seed=6, first=stop)
    np.testing.assert_array_equal(server.model.coefficients, resumed.model.coefficients)
    assert server.findings.error == resumed.findings.error


def test_members_are_public_randomness(make_plan, crowd) -> None:
    """Whoever knows the plan and the reports makes the same members."""
    features, numbers = crowd(200, seed=7)
    models = []
    for _ in range(2):
        server = Server(make_plan(200, n_classifiers=5, member_size=20))
        run(server, features, numbers, seed=8)
        models.append(server.findings.candidates.coefficients)
    np.testing.assert_array_equal(*models)


def test_nobody_answers(make_plan) -> None:
    server = Server(make_plan(100, n_classifiers=5, evaluation_share=0.1))
    assert server.model.coefficients.tolist() == [[0.0, 0.0]]
    while not server.finished:
        server.close_phase()
    assert np.isfinite(server.model.coefficients).all()
    assert not server.findings.judgement.weight.survived
    assert server.findings.error is None


def test_more_members_than_judges(make_plan, crowd) -> None:
    server = Server(make_plan(60, n_classifiers=50, member_size=10, training_share=0.5))
    run(server, *crowd(60, seed=9))
    judgement = server.findings.judgement
    assert judgement.accuracy.people.sum() == 30
    assert (judgement.weight.value[judgement.accuracy.people == 0] == 0).all()


def test_what_is_protected(make_plan, crowd) -> None:
    features, numbers = crowd(300, seed=12)
    for protects in ("features", "labels"):
        server = Server(make_plan(1800, epsilon=1.0, protects=protects))
        task = server.issue(300)
        reply = task.answer((features, numbers), SimulationSource(0)).values
        labels_clear = np.array_equal(reply[:, -1], np.where(numbers == 1, 1.0, -1.0))
        curves_clear = np.array_equal(reply[:, :-1], features)
        assert (labels_clear, curves_clear) == (protects == "features", protects == "labels")
        assert len(server.plan.guarantee.assumptions) == 1


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"n_classifiers": 0}, "n_classifiers"),
        ({"member_size": 1}, "member_size"),
        ({"training_share": 1.0}, "training_share"),
        ({"verdict_share": 0.0}, "verdict_share"),
        ({"cutoff": 0.3}, "cutoff"),
        ({"classifiers_per_person": 0}, "classifiers_per_person"),
        ({"strictness": -1.0}, "strictness"),
        ({"evaluation_share": 0.9}, "evaluation_share"),
    ],
)
def test_bad_designs_are_refused(parameters, name: str) -> None:
    with pytest.raises(InvalidParameter, match=name):
        MRMADesign(**parameters)


def test_unknown_parts_are_refused_before_anybody_reports(make_plan) -> None:
    with pytest.raises(UnknownName, match="learner"):
        Server(make_plan(100, learner="oracle"))
    with pytest.raises(InvalidParameter, match="mechanism"):
        Server(make_plan(100, mechanism="nothing"))


def test_made_up_replies_are_refused(make_plan) -> None:
    server = Server(make_plan(100, training_share=0.2))
    server.issue(1)
    for reply in ([[0.1, 0.2, 0.5]], [[np.nan, 0, 1.0]], [[0.1, 1.0]], [["a", 0, 1]]):
        with pytest.raises(ProtocolError):
            server.receive(reply, start=0)
