"""The benchmark of studies: a table of tasks, each of which can be drawn and learnt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpfda_bench.benchmarks import (
    guessing,
    local,
    local_choice,
    mrma_classes,
    mrma_numbers,
    mrma_verdicts,
)
from dpfda_bench.benchmarks._local_problem import Problem
from dpfda_bench.benchmarks._local_problems import problems
from dpfda_bench.benchmarks._local_regression import _private_mean, regressions

TASKS = {problem.name: problem for problem in problems()}


def test_every_figure_has_a_goal() -> None:
    assert len(TASKS) == len(problems())
    assert {name for name in local.GOALS if name.startswith("corr8_eps")} == {
        "corr8_eps0.5", "corr8_eps1", "corr8_eps2", "corr8_eps5"
    }  # fmt: skip


@pytest.mark.parametrize("name", ["corr8", "skew40", "K6"])
def test_people_lie_in_their_public_ranges(name: str) -> None:
    problem = TASKS[name]
    X, y, _, _ = problem.draw(0)
    low, high = np.array(problem.facts["feature_ranges"]).T
    assert np.mean((low <= X) & (high >= X)) > 0.999
    assert set(np.unique(y)) == set(range(problem.n_classes))


def test_a_task_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        X, y, others, truth = TASKS["corr8"].draw(seed)
        return X[:500], y[:500], others, truth

    small: Problem = replace(TASKS["corr8"], draw=few, goals={2.0: 50.0})
    monkeypatch.setattr(local, "problems", lambda: [small])
    monkeypatch.setattr(local, "regressions", list)
    outcome = local.run(quick=True)
    assert list(outcome.figures) == ["corr8_eps2"]
    assert 20 < outcome.figures["corr8_eps2"] < 60


def test_classes_that_differ_in_spread_stand_beside_a_quadratic_rule() -> None:
    found = local.limits(TASKS["wide_level"])
    assert 20 < found["non_private"] < 35 < 45 < found["guessing"] <= 50
    assert {name for name, task in TASKS.items() if task.facts.get("spread_differs")} == {
        "wide_curves", "wide_level", "wide_table", "rough_curves", "tailed_table",
        "simulation_spread", "corr8_spread",
    }  # fmt: skip


def test_both_designs_are_measured_on_the_same_people(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        X, y, others, truth = TASKS["corr8"].draw(seed)
        return X[:4000], y[:4000], others, truth

    small: Problem = replace(TASKS["corr8"], draw=few, goals={5.0: 50.0})
    chosen, found = local_choice.errors(small, 5.0, 0)
    assert found[chosen] == local.study(small, 5.0, 0)[0]
    assert found["vectors"] != found["answers"]
    monkeypatch.setattr(local_choice, "problems", lambda: [small])
    (row,) = local_choice.run(quick=True).rows
    assert row["regret"] == row[row["chosen"]] - min(row["vectors"], row["answers"])


def test_mrma_of_several_classes_is_measured_beside_the_recipe() -> None:
    found = mrma_classes._errors(TASKS["K6"], 5.0, 0)
    assert found["non_private"] < 5 < 75 < found["majority"]
    assert found["recipe"] < found["mrma"] < 75  # six seeds: 56 to 71


def test_mrma_with_several_verdicts_of_a_person_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mrma_verdicts, "_EPSILONS", (5.0,))
    monkeypatch.setattr(mrma_verdicts, "_LEARNERS", ("conjugate_gradient",))
    found = mrma_verdicts.run(quick=True)
    assert [row["verdicts"] for row in found.rows] == [1, 2, 5]
    assert all(10 < row["error"] < 20 for row in found.rows)  # 10 % is the smallest possible error
    assert len({row["error"] for row in found.rows}) == 3


def test_mrma_for_numbers_is_measured_beside_the_regressor() -> None:
    mrma, local, line = mrma_numbers.errors("four", 8.0, 0, people=2500)
    assert line == pytest.approx(0.2, abs=0.02), "as much as is not explained"
    assert line < local < 0.6
    assert line < mrma < 1


def test_a_number_is_measured_beside_the_private_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    task = {task.name: task for task in regressions()}["regression"]
    assert local.GOALS["regression_eps1"].bound == 0.30
    assert "regression_eps0.5" not in local.GOALS
    _, y, _, _ = task.draw(0)
    low, high = task.facts["target_range"]
    assert np.mean((low <= y) & (y <= high)) > 0.999
    assert abs(np.mean(y)) > 5
    assert abs(_private_mean(y, 5.0, (low, high), 0) - np.mean(y)) < 1
    few = replace(task, draw=lambda seed: tuple(part[:900] for part in task.draw(seed)))
    few = replace(few, goals={3.0: 0.5})
    monkeypatch.setattr(local, "problems", list)
    monkeypatch.setattr(local, "regressions", lambda: [few, replace(few, name="by", beside=True)])
    outcome = local.run(quick=True)
    row = outcome.rows[0]
    assert row["ridge"] < row["error"] < row["private mean"]
    assert outcome.figures["regression_eps3"] == row["error"]
    assert outcome.figures["by_eps3"] == row["error"] / row["private mean"]


def test_studies_without_signal_are_held_against_guessing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guessing, "_EPSILONS", {1.0: (30,), 2.0: (30,)})
    monkeypatch.setattr(guessing, "_SHARES", (0.1, 0.5))
    outcome = guessing.run(quick=True)
    assert set(outcome.figures) >= set(guessing.GOALS)
    assert len(outcome.rows) == 16
    assert [row["tuned"] for row in outcome.rows] == [True] * 8 + [False] * 8
    for row in outcome.rows:
        assert row["mean"] == pytest.approx((row["10%"] + row["50%"]) / 2)


def test_the_rarer_class_is_one_or_the_other() -> None:
    """An excess of guessing itself is 0, whichever class is rarer."""
    few = guessing.Population("table", 0.1)
    for seed in (0, 1):
        _, y = few.draw(4000, seed=seed, who=0)
        assert np.mean(y) == pytest.approx(few.share_of_one(seed), abs=0.03)
    assert {few.share_of_one(0), few.share_of_one(1)} == {0.1, 0.9}
    excess, said = guessing.study(few, 1.0, 500.0, True, 1)
    assert abs(excess) < 3
    assert said
