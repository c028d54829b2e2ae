"""MRMA for a number instead of a label, beside `LocalCurveRegressor` on the same people.

People are asked whether their number lies above a public threshold, drawn for each of them from its
public range. On average over thresholds the answer is the number itself, so that what people say of
a member is its correlation with the number, and a member is reversed by the sign of that. Nothing
else changes, nor does the guarantee. MRMA ends with a direction: here it is given the best line in
hindsight, which nobody has, so that its figures are too good.

Each figure is ``<task>_eps<ε>``, a mean squared error relative to the variance; there is no goal.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda import LocalCurveRegressor, MRMAClassifier
from dpfda._validate import FloatArray
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.goals import Goal
from dpfda_bench.measuring import mean_and_error

GOALS: dict[str, Goal] = {}
_PEOPLE, _COLUMNS = 5000, 8
_SLOPES: Mapping[str, tuple[float, ...]] = {"first": (1.0,), "four": (0.5, -0.5, 0.5, -0.5)}
"""Tasks: which columns the number follows, in units of their standard deviations."""
_EXPLAINED = 0.8
_TARGET = (-5.0, 5.0)
_EPSILONS = (1.0, 2.0, 5.0)
_REPLICATIONS, _FEW = 20, 2


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Mean relative squared errors over replications."""
    rows: list[dict[str, Any]] = []
    seeds = range(_FEW if quick else _REPLICATIONS)
    for task in _SLOPES:
        for epsilon in _EPSILONS:
            found = sweep.run(partial(errors, task, epsilon), product(seeds))
            mrma, local, line = zip(*found, strict=True)
            row: dict[str, Any] = {"task": task, "epsilon": epsilon}
            row |= mean_and_error(mrma, "mrma")
            row |= {"local_regressor": float(np.mean(local)), "mean": 1.0}
            rows.append(row | {"non_private": float(np.mean(line))})
    figures = {f"{row['task']}_eps{row['epsilon']:g}": row["mrma"] for row in rows}
    notes = ["Means over replications; MRMA is given the best line in hindsight."]
    return Outcome(rows=rows, figures=figures, notes=notes)


def errors(
    task: str, epsilon: float, seed: int, *, people: int = _PEOPLE
) -> tuple[float, float, float]:
    """Of MRMA, of `LocalCurveRegressor`, and of least squares without privacy."""
    rng = np.random.default_rng(seed)
    (X, y), (others, truth) = _draw(task, people, rng), _draw(task, _PEOPLE, rng)
    facts: dict[str, Any] = {
        "epsilon": epsilon,
        "feature_ranges": [(-3 / j, 3 / j) for j in range(1, _COLUMNS + 1)],
        "random_state": seed,
    }
    above = y > rng.uniform(*_TARGET, len(y))
    judged = MRMAClassifier(classes=(False, True), **facts).fit(X, above)
    local = LocalCurveRegressor(target_range=_TARGET, **facts).fit(X, y)
    line = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y, rcond=None)[0]
    return (
        _left(judged.decision_function(others), truth),
        float(np.mean((local.predict(others) - truth) ** 2) / np.var(truth)),
        _left(others @ line[1:], truth),
    )


def _draw(task: str, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Columns that shrink like 1/j, and a number of variance 1."""
    standard = rng.uniform(-np.sqrt(3), np.sqrt(3), (n, _COLUMNS))
    slope = np.array(_SLOPES[task])
    signal = standard[:, : len(slope)] @ slope
    noise = rng.normal(size=n)
    y = np.sqrt(_EXPLAINED) * signal + np.sqrt(1 - _EXPLAINED) * noise
    return standard / np.arange(1, _COLUMNS + 1), y


def _left(scores: FloatArray, truth: FloatArray) -> float:
    """Of the variance, after the best line through these scores."""
    return 1 - float(np.corrcoef(scores, truth)[0, 1] ** 2)
