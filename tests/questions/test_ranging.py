"""Ranges that are far too wide: the first people say where curves lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from question_plan import question_plan

from dpfda import Ledger, Person, SimulationSource, plan_study
from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.mechanisms.question_response import effective_answers
from dpfda.protocol import Server, StudyPlan
from dpfda.protocol.tasks.reach import ReachTask
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.questions import estimation, sizes
from dpfda.questions.progress import QuestionProgress
from dpfda.questions.ranging import Ranging, channels
from dpfda.simulate import people_from, simulate

LOOSE = (-30.0, 90.0)  # ten times as wide as the curves' (-6, 6), and shifted
CURVES: dict[str, Any] = {"value_range": LOOSE, "classes": (-1, 1), "spread_differs": True}


def studied(epsilon: float, **facts: Any) -> tuple[float, Server]:
    people, others = simulate_001(3000, 0), simulate_001(3000, 1)
    plan = question_plan(3000, epsilon, **CURVES, **facts)
    server = simulate(plan, people_from(plan, people.X, people.y), source=SimulationSource(0))
    return float(np.mean(server.model.predict(others.X) != others.y)), server


def test_a_loose_range_ruins_a_study_that_is_not_told() -> None:
    error, server = studied(1.0, range_is_loose=True)
    assert error < 0.15  # Bayes: 0.10
    assert studied(1.0, n_features=3)[0] > 0.3
    progress = server.progress
    assert isinstance(progress, QuestionProgress)
    # The level is 0 ± 1: half a range below the middle of the loose one, whose half-width is 60.
    assert abs(60 * (progress.centers[0] + 0.5)) < 0.5
    # A fitting range of ±6 would make the first scale 6/3 = 2.
    assert 0.5 < 60 * progress.scales[0] < 8


def test_labels_are_not_asked_for_and_phases_add_up() -> None:
    plan = question_plan(3000, 0.5, **CURVES, range_is_loose=True)
    server = Server(plan)
    phases = server.progress.phases
    located = int(sizes.range_share(effective_answers(3000, 0.5)) * 3000)
    asked = {kind: sum(p.people for p in phases if p.kind == kind) for kind in ("reach", "level")}
    assert asked == {"reach": located // 4, "level": located - located // 4}
    assert [p.kind for p in phases[:14]] == ["reach"] * 6 + ["level"] * 8
    assert sum(phase.people for phase in phases) == 3000
    task = server.issue(server.wanted)
    assert isinstance(task, ReachTask)
    assert task.coordinates.shape == (task.people, 1, 7)  # all waves, though four features are used
    assert set(task.coordinates.ravel().tolist()) == set(range(1, 8))
    rng = np.random.default_rng(0)
    while server.kind == "reach":
        told = np.where(rng.random((task.people, 1)) < 0.5, 1.0, -1.0)
        server.receive(told, start=server.issued - task.people)
        task = server.issue(server.wanted)
    assert isinstance(task, StumpTask)
    assert task.uses_label is False
    assert not task.coordinates.any()


def test_more_channels_take_more_people() -> None:
    assert sizes.range_share(2000.0) == pytest.approx(0.08)
    assert sizes.range_share(1000.0) == pytest.approx(0.1)
    assert sizes.range_share(1000.0, channels=3) == pytest.approx(0.3)
    assert sizes.range_share(300.0, channels=3) == pytest.approx(0.45)


def curves_of(*sizes: int) -> CurveEncoder:
    return CurveEncoder.side_by_side([CurveEncoder("cosine", n_basis=n) for n in sizes])


def truthful(ranging: Ranging, z: Any) -> None:
    """Everybody of z answers the truth, in ten batches of each kind."""
    rng = np.random.default_rng(0)
    for kind in ("reach", "level"):
        for part in np.array_split(np.asarray(z), 10):
            asked = ranging.questions(kind, 0, rng.random((len(part), 2)))
            positive = np.ones(len(part), dtype=np.int64)
            label = {} if kind == "reach" else {"positive": positive, "uses_label": False}
            kinds: Any = {"reach": ReachTask, "level": StumpTask}
            task = kinds[kind](epsilon=1.0, people=len(part), **asked, **label)
            told = task.exact((part, positive), SimulationSource(0))
            ranging.learn(kind, ranging.counted(kind, task, told))


def test_every_channel_is_found_by_itself() -> None:
    """Features in turns: the first of three channels has one wave, the second none."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1500, 6)) * [0.02, 0.004, 0.1, 0.01, 0.01, 0.01]
    z += [0.4, -0.6, 0.0, 0.05, 0.2, 0.1]  # levels, then waves of channels 0, 2 and 2
    ranging = Ranging(channels(curves_of(2, 1, 3)), k=1, alpha=1.0)
    assert [own.tolist() for own in ranging.channels] == [[0, 3], [1], [2, 4, 5]]
    assert ranging.waves.tolist() == [[3, 3], [4, 5]]
    truthful(ranging, z)
    centers, _, doubt = ranging.found()
    levels = ranging.levels
    np.testing.assert_allclose(centers[levels], [0.4, -0.6, 0.0], atol=0.03)
    assert not centers[np.setdiff1d(np.arange(6), levels)].any()
    assert np.all(np.sqrt(doubt[levels]) < 0.03)


def test_widths_follow_from_ups_and_downs() -> None:
    rng = np.random.default_rng(0)
    z = np.abs(rng.normal(size=(2000, 4))) * [0, 1e-3, 1e-3, 1e-3]
    z[:, 2] = -0.02 * np.exp(rng.normal(0, 0.2, 2000))  # whatever its sign
    z[:, 0] = 0.3 + rng.normal(0, 0.01, 2000)
    ranging = Ranging(channels(curves_of(4)), k=1, alpha=1.0)
    truthful(ranging, z)
    _, scales, doubt = ranging.found()
    np.testing.assert_allclose(scales, 2.7 * 0.02 / np.array([1, 1, 2, 3]), rtol=0.1)
    np.testing.assert_allclose(doubt[1:], (scales[1:] / 2) ** 2)
    assert doubt[0] < 0.002**2


def test_how_large_waves_are_says_how_far_levels_vary() -> None:
    """Answers about waves alone narrow down the scale of the level."""
    ranging = Ranging(channels(curves_of(2)), k=1, alpha=1.0)
    before = ranging._search("level", 0).scale
    told = np.zeros_like(ranging.counts["reach"])
    told[0, 20, 1] = told[0, 24, 0] = 200.0
    ranging.learn("reach", told)
    after = ranging._search("level", 0).scale
    wave = float(np.exp(np.linspace(np.log(1 / 2000), 0, 77)[22]))
    assert abs(np.log(after / (0.5 * wave))) < 0.25 < abs(np.log(before / (0.5 * wave)))


def test_levels_that_were_located_move_by_what_is_not_known_of_them() -> None:
    given: dict[str, Any] = {
        "center": np.zeros(2),
        "uncertainty": np.array([0.01, 0.01]),
        "total": np.array([50.0, 50.0]),
        "asked": np.array([100.0, 100.0]),
        "width": np.ones(2),
        "alpha": 1.0,
    }
    certain = 0.01 / (0.01 + 1 / 100)
    pooled = (0.25 - 0.01) / 0.25
    center, left = estimation.shift_center(**given, located=np.array([True, False]))
    np.testing.assert_allclose(center, [0.5 * certain, 0.5 * pooled])
    np.testing.assert_allclose(left, [0.01 * (1 - certain)] * 2)
    np.testing.assert_allclose(estimation.shift_center(**given)[0], [0.5 * pooled] * 2)


def test_only_levels_of_loose_ranges_are_located(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    shift = estimation.shift_center

    def noted(*parts: Any, **named: Any) -> Any:
        seen.append(named["located"].tolist())
        return shift(*parts, **named)

    monkeypatch.setattr(estimation, "shift_center", noted)
    people = simulate_001(2000, 0)
    for loose in (True, False):
        plan = question_plan(2000, 1.0, **CURVES, range_is_loose=loose)
        simulate(plan, people_from(plan, people.X, people.y), source=SimulationSource(0))
    assert [any(one) for one in seen] == [True, True, False, False]
    assert seen[0] == [True] + [False] * (len(seen[0]) - 1)


def test_curves_of_several_channels_are_looked_for() -> None:
    people, others = simulate_001(3000, 0), simulate_001(2000, 1)

    def both(X: Any) -> Any:
        return np.stack([np.full_like(X, 7.0), X], axis=-1)

    facts = CURVES | {"value_range": [(-100, 50), LOOSE]}
    plan = question_plan(3000, 2.0, **facts, range_is_loose=True)
    server = simulate(plan, people_from(plan, both(people.X), people.y), source=SimulationSource(0))
    assert np.mean(server.model.predict(both(others.X)) != others.y) < 0.15


def test_functions_without_an_order_are_refused() -> None:
    plan = StudyPlan(
        epsilon=1.0,
        n_people=99,
        encoder=CurveEncoder("bspline", n_basis=5),
        classes=(0, 1),
        design={"name": "questions", "range_is_loose": True},
    )
    with pytest.raises(InvalidParameter, match="range_is_loose must be False but for curves"):
        Server(plan)


def test_reach_is_the_largest_whatever_its_sign() -> None:
    task = ReachTask(
        epsilon=1.0,
        people=2,
        coordinates=[[[1, 2], [2, 2]], [[1, 2], [2, 2]]],  # type: ignore[arg-type]
        thresholds=[[0.3, 0.3], [0.3, 0.2]],  # type: ignore[arg-type]
    )
    z = np.array([[0.9, -0.31, 0.1], [0.9, 0.3, -0.3]])
    told = task.exact((z, np.zeros(2)), SimulationSource(0))
    assert told.tolist() == [[1, -1], [-1, 1]]
    assert task.columns == 3


def columns(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 3)) * [1, 5, 2] + np.outer(2 * y - 1, [1.0, 5.0, 0.0]) + 40, y


def test_columns_of_a_table_are_looked_for_too() -> None:
    """Ranges of ±100 around columns of width 1 to 5 at 40, with few people."""
    (X, y), (others, truth) = columns(1500, 0), columns(2000, 1)
    facts: Any = {"feature_ranges": [(-100, 100)] * 3, "classes": (0, 1), "spread_differs": True}

    def error(**more: Any) -> tuple[StudyPlan, float]:
        plan = plan_study(1500, 1.0, **facts, **more)
        server = simulate(plan, people_from(plan, X, y), source=SimulationSource(0))
        return plan, float(np.mean(server.model.predict(others) != truth))

    _, told = error()
    assert told < 0.2  # the best possible: 0.08


def test_people_refuse_other_questions_about_waves() -> None:
    """Nobody who was told of no such question answers it, nor one of another shape."""
    loose, fits = (question_plan(300, 1.0, **CURVES, range_is_loose=told) for told in (True, False))
    good = {"epsilon": 1.0, "people": 1, "coordinates": [[[*range(1, 8)]]], "thresholds": [[0.1]]}

    def ask(plan: StudyPlan, **changed: Any) -> Any:
        ledger = Ledger(1.0)
        person = Person(plan, curve=[0.0, 1.0, 2.0], label=1, ledger=ledger)
        try:
            return person.answer(ReachTask(**(good | changed))).values
        finally:
            assert ledger.remaining.epsilon == (0 if (plan, changed) == (loose, {}) else 1)

    assert ask(loose).shape == (1, 1)
    for plan, changed in (
        (fits, {}),
        (loose, {"coordinates": [[[1]]]}),
        (loose, {"coordinates": [[[*range(2, 9)]]]}),
        (loose, {"coordinates": [[[*range(1, 8)]] * 2], "thresholds": [[0.1, 0.2]]}),
        (loose, {"epsilon": 1.5}),
    ):
        with pytest.raises(ProtocolError):
            ask(plan, **changed)
