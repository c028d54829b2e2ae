"""Numbers that `PrivateCurveRegression` predicts from curves, and how well its bands hold slopes.

Errors are mean squared errors in units of the variance of people who were not asked.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LinearRegression

from dpfda._validate import FloatArray
from dpfda.central.regression.recipe import public_encoder
from dpfda.curves.band import Band
from dpfda.datasets.catalogue import DataFileMissing
from dpfda.datasets.loaders import load_activity
from dpfda.estimators.private_curve_regression import PrivateCurveRegression
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks._local_regression import Draw, simulated, slope
from dpfda_bench.goals import Goal, at_most

_EPSILONS = (0.1, 0.5, 1.0, 2.0)
GOALS: dict[str, Goal] = {
    "nhanes_age_eps0.5": at_most(0.82),
    "simulation_eps0.5": at_most(0.11),
}
_REPLICATIONS, _FEW, _LEARNED = 40, 3, 0.75
_POINTS = np.linspace(0, 1, 101)
_CURVES = partial(simulated, explained=0.945)


class Task(NamedTuple):
    """People to learn from, and what is public of them."""

    draw: Callable[[int], Draw]
    value_range: tuple[float, float]
    target_range: tuple[float, float]
    slope: FloatArray | None = None


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Both tasks at every ε, beside least squares without privacy."""
    tasks = {
        "simulation": Task(_CURVES, (-6.0, 6.0), (-20.0, 20.0), slope(_POINTS)),
        "nhanes_age": Task(_ages, (0.0, 900.0), (30.0, 85.0)),
    }
    rows: list[dict[str, Any]] = []
    notes = ["δ = 1e-5. Bands are of 95 %: shares of points, and of whole functions, held."]
    for name, task in tasks.items():
        try:
            task.draw(0)
        except DataFileMissing as missing:
            notes.append(f"{name} left out: {missing}")
            continue
        for epsilon in _EPSILONS:
            one = partial(_one, task, epsilon)
            found = sweep.run(one, product(range(_FEW if quick else _REPLICATIONS)))
            means = {key: float(np.mean([row[key] for row in found])) for key in found[0]}
            rows.append({"task": name, "epsilon": epsilon, **means})
    figures = {f"{row['task']}_eps{row['epsilon']:g}": row["error"] for row in rows}
    return Outcome(rows=rows, figures=figures, notes=notes)


def _one(task: Task, epsilon: float, seed: int) -> dict[str, float]:
    X, y, others, truth = task.draw(seed)
    model = PrivateCurveRegression(
        epsilon, value_range=task.value_range, target_range=task.target_range, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few people at a small ε, which is the point
        model.fit(X, y)
    encoder = public_encoder(value_ranges=[task.value_range], domain=(0.0, 1.0), most=8)
    plain = LinearRegression().fit(encoder.encode(X), y).predict(encoder.encode(others))
    found = {
        "error": _relative(model.predict(others), truth),
        "non-private": _relative(plain, truth),
    }
    if task.slope is not None:
        held = _holds(model.slope(simultaneous=False), task.slope)
        found["points"] = float(held.mean())
        found["whole"] = float(_holds(model.slope(), task.slope).all())
    return found


def _holds(band: Band, truth: FloatArray) -> Any:
    return (band.low <= truth) & (band.high >= truth)


def _relative(told: FloatArray, truth: FloatArray) -> float:
    return float(np.mean((told - truth) ** 2) / np.var(truth))


def _ages(seed: int) -> Draw:
    data = load_activity()
    X, y = np.asarray(data.X), np.asarray(data.extra["age"], dtype=np.float64)
    known = np.isfinite(X).all(axis=1) & np.isfinite(y)
    X, y = X[known], y[known]
    order = np.random.default_rng(seed).permutation(len(y))
    here, there = np.split(order, [int(_LEARNED * len(y))])
    return X[here], y[here], X[there], y[there]
