"""Numbers that studies of people predict, beside their private mean and a ridge without privacy.

Errors are mean squared errors in units of the variance of people who were not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.datasets.loaders import load_activity, load_tecator
from dpfda.local.recipe import plan_study
from dpfda.noise import SimulationSource
from dpfda.planning.numbers import private_mean
from dpfda.planning.sweep import Sweep
from dpfda.protocol.estimate import non_private_regression
from dpfda.protocol.person import target_places
from dpfda.simulate import people_from, simulate
from dpfda_bench.measuring import mean_and_error

Draw = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""People who are asked, their numbers, other people, theirs."""
_EXPLAINED = 0.8
_SCORES = 50


@dataclass(frozen=True)
class Numbers:
    """A way to draw people who hold a number, and the errors to reach.

    Attributes:
        name: of the figures, ``<name>_eps<ε>``.
        draw: people for a seed.
        facts: what `plan_study` is told.
        goals: relative error by ε; None where only the row is shown.
        tuned: whether constants of the design were chosen on it.
        beside: in units of the private mean's error instead of the variance.
    """

    name: str
    draw: Callable[[int], Draw]
    facts: Mapping[str, Any]
    goals: Mapping[float, float | None]
    tuned: bool = False
    beside: bool = False


def regressions() -> list[Numbers]:
    """A simulation whose public middles are wrong, and right; real curves and tables."""
    public = {"value_range": (-6.0, 6.0), "target_range": (-20.0, 20.0)}
    goals = {0.5: None, 1.0: 0.30, 2.0: 0.25, 5.0: 0.21}
    wrong: dict[str, Any] = {
        "level": 1.5,
        "offset": 6.0,
    }
    people: list[tuple[float, float]] = [(0, 900)] * 12
    known = [*people, (30, 85), (15, 60), (0, 1), (80, 400)]
    hdl = (0.0, 100.0)
    return [
        Numbers("regression", partial(simulated, **wrong), public, goals, tuned=True),
        Numbers("regression_centered", simulated, public, dict.fromkeys(goals)),
        Numbers("regression_skewed", partial(simulated, **wrong, skewed=True), public,
                dict.fromkeys(goals), tuned=True),
        Numbers("nhanes_hdl", partial(_split, _activity, 0.8),
                {"feature_ranges": known, "target_range": hdl}, dict.fromkeys((1.0, 2.0, 5.0), 1.0),
                beside=True),
        Numbers("tecator_fat", partial(_split, _meat, 0.75),
                {"value_range": (2, 5.5), "target_range": (0, 50)}, dict.fromkeys((2.0, 5.0))),
    ]  # fmt: skip


def rows_of(task: Numbers, sweep: Sweep, replications: int) -> list[dict[str, Any]]:
    """One row an ε."""
    rows = []
    for epsilon in task.goals:
        found = sweep.run(partial(study, task, epsilon), product(range(replications)))
        errors = {name: [one[name] for one in found] for name in found[0]}
        row: dict[str, Any] = {"task": task.name, "epsilon": epsilon, "design": "vector_numbers"}
        row |= mean_and_error(errors.pop("study")) | {"tuned": task.tuned}
        rows.append(row | {name: float(np.mean(values)) for name, values in errors.items()})
    return rows


def figures_of(task: Numbers, rows: list[dict[str, Any]]) -> dict[str, float]:
    """One figure an ε: the relative error, or that of the study beside the private mean's."""
    return {
        f"{task.name}_eps{row['epsilon']:g}": row["error"]
        / (row["private mean"] if task.beside else 1)
        for row in rows
    }


def study(task: Numbers, epsilon: float, seed: int) -> dict[str, float]:
    """Relative errors of one whole study, of the private mean, and of a ridge without privacy."""
    X, y, others, truth = task.draw(seed)
    plan = plan_study(len(y), epsilon, seed=seed, **task.facts)
    model = simulate(plan, people_from(plan, X, y), source=SimulationSource(seed)).model
    seen, unseen = plan.encoder.encode(X), plan.encoder.encode(others)
    found = {
        "study": model.values(unseen),
        "private mean": _private_mean(y, epsilon, task.facts["target_range"], seed),
        "ridge": non_private_regression(seen, y).predict(unseen),
    }
    return {
        name: float(np.mean((values - truth) ** 2) / np.var(truth))
        for name, values in found.items()
    }


def _private_mean(y: FloatArray, epsilon: float, target: tuple[float, float], seed: int) -> float:
    """The mean of everybody's number, as they tell it privately."""
    low, high = target
    told = private_mean(target_places(y, target), epsilon, seed)
    return (low + high) / 2 + (high - low) / 2 * told


def slope(points: FloatArray) -> FloatArray:
    """β of `simulated`."""
    j = np.arange(1, _SCORES + 1)
    waves = np.sqrt(2) * np.cos(np.pi * np.outer(j - 1, points))
    waves[0] = 1.0
    return np.asarray((4 * (-1.0) ** (j + 1) / j**2) @ waves)


def simulated(
    seed: int,
    *,
    level: float = 0.0,
    offset: float = 0.0,
    skewed: bool = False,
    n: int = 5000,
    explained: float = _EXPLAINED,
) -> Draw:
    """The curves of 001 §6.1; they explain 80 % of a number, or half of it if noise is skewed."""
    parts: list[FloatArray] = []
    points = np.linspace(0, 1, 51)
    waves = np.cos(np.pi * np.outer(np.arange(_SCORES), points)) * np.sqrt(2)
    waves[0] = 1.0
    for part in range(2):
        rng = np.random.default_rng(2 * seed + part)
        j = np.arange(1, _SCORES + 1)
        signs = (-1.0) ** (j + 1)
        scores = rng.uniform(-(3**0.5), 3**0.5, (n, _SCORES)) * signs / j
        signal = scores @ (4 * signs / j**2)
        told = 0.5 if skewed else explained
        spread = np.sqrt(np.sum(16.0 / j**6.0) * (1 / told - 1))
        noise = rng.exponential(size=n) - 1 if skewed else rng.normal(size=n)
        parts += [scores @ waves + level, signal + spread * noise + offset]
    return parts[0], parts[1], parts[2], parts[3]


def _split(load: Callable[[], tuple[FloatArray, FloatArray]], share: float, seed: int) -> Draw:
    X, y = load()
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [int(share * len(y))])
    return X[train], y[train], X[test], y[test]


def _activity() -> tuple[FloatArray, FloatArray]:
    """Activity by the hour, age, body mass index, sex and total cholesterol; HDL cholesterol."""
    data = load_activity()
    extra = data.extra
    female = np.asarray(extra["gender"]) == "Female"
    columns = [data.X, extra["age"], extra["bmi"], female, extra["lbxtc"]]
    X = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    known = np.isfinite(X).all(axis=1)
    return X[known], np.asarray(data.y)[known]


def _meat() -> tuple[FloatArray, FloatArray]:
    data = load_tecator()
    return np.asarray(data.X), np.asarray(data.y, dtype=np.float64)
