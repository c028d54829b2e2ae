"""What it costs to know no range, or one far too wide; and who is told that it is too small."""

from __future__ import annotations

import warnings
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.datasets import simulate_001
from dpfda.estimators.private_curve_classifier import PrivateCurveClassifier
from dpfda.estimators.private_curve_regression import PrivateCurveRegression
from dpfda.estimators.private_moments import PrivateMoments
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks._curve_families import FAMILIES, curves
from dpfda_bench.benchmarks._local_regression import simulated
from dpfda_bench.goals import Goal, at_least, at_most

GOALS: dict[str, Goal] = {
    "mean_cost_n1000": at_most(1.2),
    "mean_cost_n5000": at_most(1.2),
    "loose_cost": at_most(1.2),
    "warning_half_norm": at_least(0.9),
    "warning_right": at_most(0.02),
}
_LEVELS = (0.0, 5.0)  # where the curves lie in their range: in the middle, and far from it
_LOOSE = 100
_SIZES = (1000, 5000)
_REPLICATIONS, _FEW = 60, 5
_LEARNERS = 20
_EPSILON = 1.0
Span = tuple[float, float] | None


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Squared errors of a mean over those with the right range; how often warnings are told."""
    seeds = range(_FEW if quick else _REPLICATIONS)
    cells = [
        (family, level, n, delta)
        for n in _SIZES[: 1 if quick else 2]
        for delta in (1e-5, 0.0)
        for family in FAMILIES
        for level in _LEVELS
    ]
    rows = [_row(cell, sweep.run(partial(_one, *cell), product(seeds))) for cell in cells]
    figures = {}
    for n in sorted({row["n"] for row in rows}):
        figures[f"mean_cost_n{n}"] = _average(rows, n, 1e-5, "no range")
    for n in sorted({row["n"] for row in rows}):
        figures[f"mean_cost_pure_n{n}"] = _average(rows, n, 0.0, "no range")
    figures["loose_cost"] = _average(rows, 1000, 1e-5, "range 100 times too wide")
    figures["warning_half_norm"] = min(row["told at half"] for row in rows if row["delta"])
    figures["warning_right"] = max(row["told if right"] for row in rows if row["delta"])
    people = range(2 if quick else _LEARNERS)
    for task, learn in (("classifier", _classes), ("regression", _line)):
        told, found = np.array(sweep.run(learn, product(people))).mean(axis=0)
        figures[f"{task}_told"], figures[f"{task}_found"] = float(told), float(found)
    notes = [
        f"{len(seeds)} replications a row, ε = {_EPSILON:g}. The right range about 0 holds "
        "99.9 % of all values; half the norm is half of √(average of X²) about 0.",
        "Costs are mean squared errors over those with the right range, averaged over the rows; "
        "warnings are the worst row's, with δ.",
        f"classifier, regression: errors in %, and mean squared errors over the variance, of "
        f"{len(people)} simulated studies of 3000 people, range told and found, ε = {_EPSILON:g}.",
        "Constants of the search were chosen on the Gaussian and exponential curves of this file.",
    ]
    return Outcome(rows=rows, figures=figures, notes=notes)


def _classes(seed: int) -> list[float]:
    """Errors in % of a classifier that is told the range of curves, and of one that is not."""
    here, there = simulate_001(3000, seed), simulate_001(3000, seed + 10**6)
    known: dict[str, Any] = {"classes": (-1, 1), "random_state": seed}
    found = []
    for span in ((-6, 6), None):
        model = PrivateCurveClassifier(_EPSILON, value_range=span, **known)
        model.fit(np.asarray(here.X), here.y)
        found.append(100 * float(np.mean(model.predict(np.asarray(there.X)) != there.y)))
    return found


def _line(seed: int) -> list[float]:
    """Relative squared errors of a regression that is told the range of curves, and not."""
    X, y, others, truth = simulated(seed, explained=0.945)
    known: dict[str, Any] = {"target_range": (-20, 20), "random_state": seed}
    found = []
    for span in ((-6, 6), None):
        model = PrivateCurveRegression(_EPSILON, value_range=span, **known).fit(X, y)
        found.append(float(np.mean((model.predict(others) - truth) ** 2) / np.var(truth)))
    return found


def _average(rows: list[dict[str, Any]], n: int, delta: float, kind: str) -> float:
    return float(np.mean([row[kind] for row in rows if row["n"] == n and row["delta"] == delta]))


def _one(family: str, level: float, n: int, delta: float, seed: int) -> list[float]:
    """Squared errors with the right range, a loose one and none; warnings if right and at half."""
    most, norm = _true(family, level)
    rows = curves(family, n, seed) + level
    right, loose, none, small = (
        _released(rows, None if half is None else (-half, half), delta, seed)
        for half in (most, _LOOSE * most, None, norm / 2)
    )
    return [right[0], loose[0], none[0], right[1], small[1]]


@lru_cache(maxsize=16)
def _true(family: str, level: float) -> tuple[float, float]:
    """What holds 99.9 % of all values, and √(average of X²)."""
    many = curves(family, 20_000, 10_000) + level
    return float(np.quantile(np.abs(many), 0.999)), float(np.sqrt(np.mean(many**2)))


def _released(rows: FloatArray, span: Span, delta: float, seed: int) -> tuple[float, float]:
    model = PrivateMoments(_EPSILON, value_range=span, delta=delta, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # counted below
        model.fit(rows)
    told = any("too small" in text for text in model.moments_.warnings)
    return float(np.mean((model.means_[0] - rows.mean(axis=0)) ** 2)), float(told)


def _row(cell: tuple[str, float, int, float], found: list[list[float]]) -> dict[str, Any]:
    right, loose, none, told, small = np.mean(found, axis=0)
    family, level, n, delta = cell
    return {
        "family": family,
        "level": level,
        "n": n,
        "delta": delta,
        "no range": float(none / right),
        "range 100 times too wide": float(loose / right),
        "told if right": float(told),
        "told at half": float(small),
    }
