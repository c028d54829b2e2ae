"""Misclassification of studies as `plan_study` makes them, on tables, curves and many classes.

Each figure is ``<task>_eps<ε>``, an error in %. A task is a row of `_local_problems`, or of
`_local_regression` where a number is predicted.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.datasets.catalogue import DataFileMissing
from dpfda.local.recipe import plan_study
from dpfda.noise import SimulationSource
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.protocol.estimate import majority_error, non_private_classifier
from dpfda.report.contents import Outcome
from dpfda.simulate import people_from, simulate
from dpfda_bench.benchmarks._local_problem import Problem
from dpfda_bench.benchmarks._local_problems import problems
from dpfda_bench.benchmarks._local_regression import figures_of, regressions, rows_of
from dpfda_bench.goals import Goal, at_most
from dpfda_bench.measuring import mean_and_error

GOALS: dict[str, Goal] = (
    {
        f"{problem.name}_eps{epsilon:g}": at_most(bound)
        for problem in problems()
        for epsilon, bound in problem.goals.items()
    }
    | {
        f"{problem.name}_calibration_eps{epsilon:g}": at_most(0.05)
        for problem in problems()
        for epsilon in problem.calibrated
    }
    | {
        f"{task.name}_eps{epsilon:g}": at_most(bound)
        for task in regressions()
        for epsilon, bound in task.goals.items()
        if bound is not None
    }
)
_REPLICATIONS, _FEW = 40, 3
_TEMPERED = 0.1  # share of people who say how sure the classifier may be


def run(quick: bool = False, *, only: tuple[str, ...] = (), sweep: Sweep = ALONE) -> Outcome:
    """Mean error in % of each task at each ε; `only` some tasks where named."""
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    notes = [
        "Errors in %, means over replications. Constants were chosen on tasks marked tuned.",
        "Of vector_numbers: mean squared errors in units of the number's variance; the figure of "
        "nhanes_hdl is in units of the private mean's error.",
    ]
    for problem in problems():
        if only and problem.name not in only:
            continue
        try:
            found = _row(problem, sweep, _FEW if quick else _REPLICATIONS)
        except DataFileMissing as missing:
            notes.append(f"{problem.name} left out: {missing}")
            continue
        rows += found
        figures |= {f"{problem.name}_eps{row['epsilon']:g}": row["error"] for row in found}
        figures |= {
            f"{problem.name}_calibration_eps{row['epsilon']:g}": row["calibration"]
            for row in found
            if row["epsilon"] in problem.calibrated
        }
        figures |= {
            f"{problem.name}_untempered_eps{row['epsilon']:g}": row["untempered"]
            for row in found
            if row["epsilon"] in problem.calibrated
        }
    for task in regressions():
        if only and task.name not in only:
            continue
        try:
            measured = rows_of(task, sweep, _FEW if quick else _REPLICATIONS)
        except DataFileMissing as missing:
            notes.append(f"{task.name} left out: {missing}")
            continue
        rows += measured
        figures |= figures_of(task, measured)
    return Outcome(rows=rows, figures=figures, notes=notes)


def _row(problem: Problem, sweep: Sweep, replications: int) -> list[dict[str, Any]]:
    """One row an ε."""
    rows = []
    beside = limits(problem) if problem.facts.get("spread_differs") else {}
    for epsilon in problem.goals:
        found = sweep.run(partial(study, problem, epsilon), product(range(replications)))
        errors, off, untempered, designs = zip(*found, strict=True)
        row = {"task": problem.name, "epsilon": epsilon, "design": designs[0]}
        row |= mean_and_error(errors) | {"tuned": problem.tuned}
        row |= {"calibration": float(np.mean(off)), "untempered": float(np.mean(untempered))}
        row |= beside
        rows.append(row)
    return rows


def limits(problem: Problem) -> dict[str, float]:
    """What a quadratic rule without privacy errs, and what guessing does, in %."""
    X, y, others, truth = problem.draw(0)
    encoder = plan_study(len(y), 1.0, classes=(0, 1), **problem.facts).encoder
    rule = non_private_classifier(encoder.encode(X), y, squares=True)
    assert rule is not None
    wrong = float(np.mean(rule.predict(encoder.encode(others)) != truth))
    return {"non_private": 100 * wrong, "guessing": 100 * majority_error(truth)}


def study(problem: Problem, epsilon: float, seed: int) -> tuple[float, float, float, str]:
    """Of one whole study: error in % on people who were not asked, calibrations, and its design.

    Calibration is how far probabilities are off, beyond chance: where a tenth of the people say
    how sure the classifier may be, and where nobody does.
    """
    X, y, others, truth = problem.draw(seed)
    classes = tuple(range(problem.n_classes))
    plan = plan_study(len(y), epsilon, classes=classes, seed=seed, **problem.facts)
    model = simulate(plan, people_from(plan, X, y), source=SimulationSource(seed)).model
    features = plan.encoder.encode(others)
    wrong, off, untempered = np.mean(model.decide(features) != truth), np.nan, np.nan
    if epsilon in problem.calibrated:
        known = {**problem.facts, "temperature_share": _TEMPERED}
        asked = plan_study(len(y), epsilon, classes=classes, seed=seed, **known)
        sure = simulate(asked, people_from(asked, X, y), source=SimulationSource(seed)).model
        off, untempered = (
            _beyond_chance(one.chances(features)[:, 1], truth == 1, seed) for one in (sure, model)
        )
    return 100 * float(wrong), off, untempered, str(plan.design["name"])


def _beyond_chance(chances: FloatArray, happened: Any, seed: int) -> float:
    rng = np.random.default_rng(seed)
    by_chance = [_miscalibration(chances, rng.random(len(chances)) < chances) for _ in range(5)]
    return _miscalibration(chances, happened) - float(np.mean(by_chance))


def _miscalibration(chances: FloatArray, happened: Any) -> float:
    """Expected calibration error in ten classes of probability."""
    place = np.minimum((10 * chances).astype(np.int64), 9)
    return float(np.abs(np.bincount(place, chances - happened, 10)).sum() / len(chances))
