"""A study is a generator: phases, summaries, replay, and what is refused on the way."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from small_studies import replies, small_studies

from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.errors import ChangedStudy, InvalidParameter, ProtocolError
from dpfda.protocol.findings import Findings, Step
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.study import (
    Phase,
    Result,
    Run,
    Study,
    Summary,
    _rounded,
    _studies,
    studies,
    study,
)
from dpfda.protocol.task import Task

PLAN = StudyPlan(
    epsilon=2.0,
    n_people=40,
    encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
    classes=("no", "yes"),
    design={"name": "exchange", "intercepts": [0.0], "coefficients": [[1.0, 0.0]]},
)


def adaptive(design: Any, plan: StudyPlan, *, first: float = 0.0, step: float = 0.5) -> Study:
    """Walks towards where people are, and asks fewer the nearer it is."""
    place, sizes = np.full(2, first), [8]

    def so_far() -> Result:
        model = CurveModel.linear(intercept=np.zeros(1), coefficients=place[None], **plan.stamp)
        return Result(model, Findings(classes=plan.classes, notes=[f"{len(sizes)} batches"]))

    while len(sizes) < 5:
        summary = yield _batch(plan, place.copy(), sizes[-1], so_far)
        right = float(summary["total"]) / max(float(summary["people"]), 1)
        place = place + step * np.array([right, 1.0])
        sizes.append(0 if len(sizes) == 2 else round(8 - 4 * right))
    return so_far()


def _batch(plan: StudyPlan, place: FloatArray, people: int, so_far: Any) -> Phase:
    def tasks(start: int, people: int) -> Task:
        row = np.tile(place, (people, 1))[:, None, :]
        free = {"centers": 0 * row, "scales": 0 * row + 1, "intercept": row[:, :, 0]}
        member = np.zeros((people, 1), dtype=np.int64)
        positive = np.ones((people, 1, 1), dtype=np.int64)
        return plan.ask(
            "member", people, coefficients=row, member=member, positive=positive, **free
        )

    def count(task: Task, reply: FloatArray) -> Summary:
        return {"total": reply.sum(), "people": np.array(len(reply))}

    return Phase("walk", people, tasks, count, so_far, then=[Step("walk", 1)])


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The adaptive study in the place of another."""
    studies()
    monkeypatch.setitem(_studies, "exchange", adaptive)


def answer(server: Server, people: int = 1) -> None:
    phase, start = server.phase, server.issued
    task = server.issue(people)
    rows = [replies(server.task(start + k), phase, start + k) for k in range(task.people)]
    server.receive(np.concatenate(rows), start=start)


def ended(server: Server) -> Server:
    while not server.finished:
        answer(server)
    return server


def kept(server: Server) -> Any:
    return msgspec.json.decode(msgspec.json.encode(server.state()))


@pytest.mark.usefixtures("registered")
def test_sizes_of_phases_follow_from_answers_and_empty_ones_are_passed_over() -> None:
    server = Server(PLAN)
    assert server.run.steps == [Step("walk", 8), Step("walk", 1)]
    ended(server)
    people = [step.people for step in server.findings.phases]
    assert people[0] == 8
    assert people[2] == 0
    assert len(people) == 4
    assert server.phase == 4
    assert server.findings.notes == ["5 batches"]
    assert (server.kind, server.quota, server.wanted) == ("finished", 0, 0)


@pytest.mark.usefixtures("registered")
def test_a_killed_server_goes_on_as_if_nothing_had_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After every block, of 3 people here, and between."""
    monkeypatch.setattr("dpfda.protocol.server.BLOCK", 3)
    whole, server = ended(Server(PLAN)), Server(PLAN)
    while not server.finished:
        answer(server)
        server = Server.resume(PLAN, kept(server))
    assert server.model.to_json() == whole.model.to_json()
    assert kept(server) == kept(whole)


def test_what_is_stored_of_a_finished_phase_is_its_summary() -> None:
    plan = small_studies()["mrma"]
    server = Server(plan)
    while server.kind == "report":
        answer(server)
    (passed,) = server.state()["run"]["passed"]
    assert set(passed["summary"]) == {"intercept", "coefficients"}
    assert server.state()["waiting"] == {}


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("change", "people", "phase"),
    [({"first": 1e-6}, 3, 0), ({"first": 1e-6}, 30, 0), ({"step": 0.5 + 1e-6}, 30, 1)],
)
def test_changed_code_is_refused(
    change: dict[str, float], people: int, phase: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However far the study is, at the first phase that would have asked something else."""
    server = Server(PLAN)
    while people and not server.finished:
        answer(server)
        people -= 1
    state = kept(server)
    Server.resume(PLAN, state)
    monkeypatch.setitem(_studies, "exchange", partial(adaptive, **change))
    with pytest.raises(ChangedStudy, match=rf"phase {phase} .* asked something else .* \(walk\)"):
        Server.resume(PLAN, state)


@pytest.mark.usefixtures("registered")
def test_a_study_that_ends_sooner_or_later_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    state = kept(ended(Server(PLAN)))

    def shorter(design: Any, plan: StudyPlan) -> Study:
        original = adaptive(design, plan)
        yield next(original)
        return Result(None, Findings(classes=plan.classes))

    def longer(design: Any, plan: StudyPlan) -> Study:
        result = yield from adaptive(design, plan)
        yield _batch(plan, np.ones(2), 3, lambda: result)
        return result

    for changed in (shorter, longer):
        monkeypatch.setitem(_studies, "exchange", changed)
        with pytest.raises(ChangedStudy, match="asked something else"):
            Server.resume(PLAN, state)


@pytest.mark.parametrize("name", small_studies())
def test_another_version_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = small_studies()[name]
    server = Server(plan)
    answer(server)
    state = kept(server)
    monkeypatch.setattr("dpfda.protocol.server.__version__", "99.0")
    with pytest.raises(ChangedStudy, match=r"began with dpfda .*, and this is 99\.0, .* go on"):
        Server.resume(plan, state)
    with pytest.raises(ChangedStudy, match="began with dpfda an earlier version"):
        Server.resume(plan, {key: state[key] for key in state if key != "version"})


@pytest.mark.parametrize("name", small_studies())
def test_every_design_compares_what_it_asks_in_every_phase(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small_studies()[name]
    server = Server(plan)
    while not server.finished:
        state = kept(server)
        with monkeypatch.context() as patched:
            patched.setattr(Phase, "hash", "of another question")
            with pytest.raises(ChangedStudy, match="asked something else"):
                Server.resume(plan, state)
        answer(server, server.wanted)


def test_a_hash_covers_kind_people_and_tasks_but_not_the_last_bits() -> None:
    def result() -> Result:
        raise AssertionError("nobody looked")

    place = np.array([1.0, -0.25])
    known = _batch(PLAN, place, 9, result).hash
    assert _batch(PLAN, place * (1 + 1e-15), 9, result).hash == known
    others = (_batch(PLAN, place + 1e-6, 9, result), _batch(PLAN, place, 8, result))
    assert all(other.hash != known for other in others)


def test_rounding_has_no_edge_at_round_numbers() -> None:
    for exact in (1.0, 0.5, 2.0, 1024.0, 1 / 3):
        for numbers in (np.array([exact, -0.3]), np.array([[exact, 0.0]]), np.array(exact)):
            assert _rounded(numbers * (1 - 2e-16)) == _rounded(numbers)
            assert _rounded(numbers * (1 + 1e-8)) != _rounded(numbers)
        assert _rounded(exact * (1 - 2e-16)) == _rounded(exact)
    near, zero = (np.array([1.0, tiny]) for tiny in (1e-17, -0.0))
    assert _rounded(near) == _rounded(zero)
    assert _rounded(np.zeros((1, 2))) != _rounded(np.zeros((2, 1)))
    assert _rounded({"a": ["x", 2, True, None]}) == {"a": ["x", 2, True, None]}
    assert _rounded(np.array([2**40 + 1])) != _rounded(np.array([2**40]))


def test_replies_that_are_counted_at_once_are_counted_once() -> None:
    run = Run(small_studies()["mrma"])
    task = run.tasks(0, run.quota)
    rows = replies(task, 0, 0)
    run.absorb(task, rows)
    with pytest.raises(ProtocolError, match="all at once"):
        run.absorb(task, rows)


def test_a_summary_must_be_finite() -> None:
    def endless(design: Any, plan: StudyPlan) -> Study:
        def count(task: Task, reply: FloatArray) -> Summary:
            return {"total": np.array(np.inf)}

        phase = _batch(plan, np.zeros(2), 2, lambda: Result(None, Findings(classes=plan.classes)))
        yield Phase(phase.kind, phase.people, phase.tasks, count, phase.so_far)
        raise AssertionError("it goes on")

    run = Run(PLAN, endless)
    with pytest.raises(ProtocolError, match="finite"):
        run.close()


def test_a_name_is_registered_once() -> None:
    assert {"exchange", "mrma", "mrma_stream"} <= set(studies())
    with pytest.raises(InvalidParameter, match="unused by another study"):
        study("mrma")(adaptive)


def test_a_finished_study_asks_nothing() -> None:
    server = ended(Server(small_studies()["exchange"]))
    for ask in (server.close_phase, lambda: server.run.tasks(0, 1)):
        with pytest.raises(ProtocolError, match="finished"):
            ask()


@pytest.mark.parametrize("classes", [("no", "yes"), ("low", "middle", "high")])
def test_studies_of_one_phase_are_joined_by_their_sums(classes: tuple[str, ...]) -> None:
    plan = replace(small_studies()["moments"], n_people=12, classes=classes)
    runs, replied, asked = [], [], []
    for seed in range(3):
        run, generator = Run(plan), np.random.default_rng(seed)
        task = run.tasks(0, 12)
        reply = generator.normal(size=(12, task.width))
        run.absorb(task, reply)
        run.close()
        runs.append(run)
        replied.append(reply)
        asked.append(task.positive if len(classes) > 2 else np.zeros(12))
    before = runs[2].result.model.to_json()
    whole = runs[2].joined_by(runs[1].joined_by(runs[0].summaries).summaries)
    every, score = np.concatenate(replied), np.concatenate(asked)
    for m, row in enumerate(whole.result.model.coefficients):
        np.testing.assert_allclose(row, every[score == m].mean(axis=0), rtol=1e-12)
        assert whole.result.findings.features[m][0].people == (score == m).sum()
    assert runs[2].result.model.to_json() == before
    with pytest.raises(ValueError, match="argument"):  # another number of phases
        whole.joined_by([])


@pytest.mark.usefixtures("registered")
def test_a_study_whose_answers_decide_what_is_asked_is_not_joined() -> None:
    run = ended(Server(PLAN)).run
    others = [
        {"total": 3 - summary["total"], "people": summary["people"]} for summary in run.summaries
    ]
    with pytest.raises(ChangedStudy, match="asked something else"):
        run.joined_by(others)
