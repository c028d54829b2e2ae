"""Regressions whose public ranges are far too wide: the first people say where everything lies."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from dpfda import SimulationSource, plan_study
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.linear.regression_progress import RegressionProgress
from dpfda.linear.reports import effective_people
from dpfda.linear.schedule import Schedule
from dpfda.protocol import Server, StudyPlan
from dpfda.protocol.tasks.reach import ReachTask
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.recipe import in_words
from dpfda.simulate import people_from, simulate

LOOSE: dict[str, Any] = {"value_range": (-30.0, 90.0), "target_range": (-100.0, 300.0)}
PEOPLE = 4000


@cache
def crowd(seed: int) -> tuple[Any, Any]:
    """Curves of height 1 around 1.5; numbers around 6 that their level and slope explain."""
    rng = np.random.default_rng(seed)
    level, slope = rng.normal(size=(2, PEOPLE, 1))
    X = 1.5 + level + 0.7 * slope * np.linspace(-1, 1, 21)
    return X, 6 + 3 * level[:, 0] - 2 * slope[:, 0] + rng.normal(size=PEOPLE)


def studied(epsilon: float, **facts: Any) -> tuple[float, RegressionProgress]:
    plan = plan_study(PEOPLE, epsilon, **(LOOSE | facts))
    server = simulate(plan, people_from(plan, *crowd(0)), source=SimulationSource(0))
    X, y = crowd(1)
    assert isinstance(server.progress, RegressionProgress)
    return float(np.mean((server.model.predict(X) - y) ** 2) / np.var(y)), server.progress


def test_curves_and_numbers_are_found_in_loose_ranges() -> None:
    error, progress = studied(1.0, range_is_loose=True)
    assert error < 0.35  # without privacy 1/14 = 0.07
    assert studied(1.0)[0] > 0.45
    # In units of half ranges: 60 for curves around 30, 200 for numbers around 100.
    assert abs(100 + 200 * progress.middle[0] - 6) < 6
    assert abs(30 + 60 * progress.middle[1] - 1.5) < 1.5
    assert not progress.middle[2:].any()
    # Standard deviations are 3.7 and 1: one to ten of them.
    assert 3.7 < 200 * progress.reach[0] < 37
    assert 1 < 60 * progress.reach[1] < 10
    target, level = (progress.ranging.level(channel) for channel in range(2))
    assert progress.reach[0] == pytest.approx(np.hypot(5.4 * target.scale, target.margin))
    usual = progress.ranging.found()[1][1]
    assert progress.reach[1] == pytest.approx(np.hypot(usual, level.margin))
    np.testing.assert_allclose(progress.reach[3] / progress.reach[2], 1 / 2)


def test_phases_add_up_and_ask_about_both() -> None:
    plan = plan_study(PEOPLE, 1.0, **LOOSE, range_is_loose=True, evaluation_share=0.1)
    server = Server(plan)
    phases = server.progress.phases
    assert sum(phase.people for phase in phases) == PEOPLE
    kinds = [phase.kind for phase in phases]
    assert kinds[:15] == ["reach"] * 6 + ["level"] * 8 + ["location"]
    ranged = sum(phase.people for phase in phases if phase.kind in ("reach", "level"))
    # 60 clear answers each for the target and for curves.
    assert ranged == int(2 * 60 / effective_people(PEOPLE, 1.0) * PEOPLE)
    rng = np.random.default_rng(0)
    seen = []
    while server.kind != "location":
        task = server.issue(server.wanted)
        assert isinstance(task, (StumpTask, ReachTask))
        seen.append(set(task.coordinates.ravel().tolist()))
        told = np.where(rng.random(task.thresholds.shape) < 0.5, 1.0, -1.0)
        server.receive(told, start=server.issued - task.people)
    assert seen == [set(range(2, 9))] * 6 + [{0, 1}] * 8
    rows, _ = in_words(plan)
    assert [row["phase"] for row in rows[:2]] == ["reach", "level"]
    assert not any("label" in row["asked"] for row in rows)


def test_stop_store_and_resume_at_any_person() -> None:
    """Stored as JSON and rebuilt after each reply to the first phases, then after each phase."""
    plan = plan_study(90, 6.0, **LOOSE, range_is_loose=True, n_features=3, force=True)
    X, y = (part[:90] for part in crowd(0))
    people = people_from(plan, X, y)
    whole = simulate(plan, people, source=SimulationSource(5))
    source = SimulationSource(5)
    server, person = Server(plan), 0
    while not server.finished:
        start, step = server.issued, 1 if server.kind in ("reach", "level") else 90
        task = server.issue(server.wanted)
        reply = task.answer(people(person, person + task.people), source).values
        person += task.people
        for row in range(0, task.people, step):
            stored = msgspec.json.decode(msgspec.json.encode(server.state()))
            server = Server.resume(plan, stored)
            server.receive(reply[row : row + step], start=start + row)
    assert server.model.to_json() == whole.progress.model.to_json()


def test_nobody_answers_where_everything_lies() -> None:
    plan = plan_study(200, 6.0, **LOOSE, range_is_loose=True)
    gone = Server(plan).progress.phases[:14]
    first = sum(phase.people for phase in gone)
    X, y = (part[:200] for part in crowd(0))
    people = people_from(plan, X, y)
    server = simulate(plan, people, source=SimulationSource(0), answers=lambda who: who >= first)
    progress = server.progress
    assert isinstance(progress, RegressionProgress)
    assert np.all(progress.reach[:2] == 1)  # as if nothing were loose
    assert not progress.middle.any()
    assert np.all(np.isfinite(server.model.predict(X)))


def test_columns_of_a_table_are_looked_for_one_by_one() -> None:
    """The target is ranged first; more people are asked where columns lie, and expect any place."""
    rng = np.random.default_rng(0)
    X = rng.normal([20, -70, 3], [1, 2, 0.5], (6000, 3))
    y = 40 + 2 * (X[:, 0] - 20) - (X[:, 1] + 70) + rng.normal(size=6000)
    facts: dict[str, Any] = {"feature_ranges": [(-100, 100)] * 3, "target_range": (-9000, 11_000)}
    errors = []
    for loose in (True, False):
        plan = plan_study(6000, 2.0, **facts, range_is_loose=loose)
        server = simulate(plan, people_from(plan, X, y), source=SimulationSource(0))
        errors.append(np.mean((server.model.predict(X) - y) ** 2) / np.var(y))
        progress = server.progress
        assert isinstance(progress, RegressionProgress)
        assert progress.schedule.loose is loose
        assert np.all(progress.reach[1:] == 1)
        if loose:
            assert abs(1000 + 10_000 * progress.middle[0] - 40) < 20
            assert {phase.kind for phase in progress.phases} >= {"level", "location"}
            assert "reach" not in {phase.kind for phase in progress.phases}
    assert errors[0] < 0.5 < errors[1]


def test_more_people_say_where_columns_lie_if_they_may_lie_anywhere() -> None:
    def located(loose: bool) -> int:
        plan = plan_study(
            3000, 1.0, feature_ranges=[(0, 1)] * 3, target_range=(0, 1), range_is_loose=loose
        )
        progress = Server(plan).progress
        assert isinstance(progress, RegressionProgress)
        assert isinstance(progress.schedule, Schedule)
        people = sum(phase.people for phase in progress.phases if phase.kind == "location")
        return round(100 * people / progress.schedule.people)

    assert (located(True), located(False)) == (25, 20)


def test_only_waves_can_be_ranged() -> None:
    plan = StudyPlan(
        epsilon=1.0, n_people=1000, encoder=CurveEncoder("bspline", n_basis=5),
        target_range=(0, 1), design={"name": "local_regression", "range_is_loose": True},
    )  # fmt: skip
    with pytest.raises(InvalidParameter, match="range_is_loose must be False but for curves"):
        Server(plan)
