"""How often bands of `PrivateMean` hold the mean of the population, and how wide they are."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.moments.joint_looks import BANDS_FROM
from dpfda.moments.mean_estimator import PrivateMean
from dpfda.noise.law import NoiseLaw
from dpfda.study.outcome import Outcome
from dpfda.study.sweep import ALONE, Sweep
from dpfda_bench.benchmarks._curve_families import FAMILIES, MEAN, RANGE, curves
from dpfda_bench.goals import Goal, at_least, at_most

GOALS: dict[str, Goal] = {
    "coverage_least": at_least(0.92),
    "coverage_most": at_most(0.985),
    "width_ratio_70": at_most(1.5),
}
_SIZES, _EPSILONS, _LEVEL = (200, 500, 1000, 5000), (0.5, 1.0, 2.0, 4.0), 0.95
_REPLICATIONS, _FEW = 300, 30
_PATHS, _DELTA = 500, 1e-5


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Every family, n and ε with nε ≥ 500."""
    replications = _FEW if quick else _REPLICATIONS
    cells = [
        (family, n, epsilon)
        for family in FAMILIES
        for n in (_SIZES[1:3] if quick else _SIZES)
        for epsilon in _EPSILONS
        if n * epsilon >= BANDS_FROM
    ]
    rows = [
        _row(cell, sweep.run(partial(_one, *cell), product(range(replications)))) for cell in cells
    ]
    held = [row[kind] for row in rows for kind in ("pointwise", "simultaneous")]
    figures = {"coverage_least": min(held), "coverage_most": max(held)}
    strong = [
        row["width ratio"]
        for row in rows
        if row["family"] == "gaussian" and row["epsilon"] * np.sqrt(row["n"]) >= 70
    ]
    if strong:
        figures["width_ratio_70"] = max(strong)
    notes = [
        f"{replications} replications a row: a coverage of .95 has a standard error of "
        f"{np.sqrt(0.95 * 0.05 / replications):.3f}.",
        "width ratio: mean width over that of a band without privacy, from the sample covariance.",
        f"Public range {RANGE}, δ = {_DELTA:g}. Shapes and radii were chosen on "
        "normal and exponential curves like these, and on smoother and rougher ones.",
    ]
    return Outcome(rows=rows, figures=figures, notes=notes)


def _one(family: str, n: int, epsilon: float, seed: int) -> tuple[float, bool, float]:
    """Share of points held, whether all were, and the width over the non-private one's."""
    rows = curves(family, n, seed)
    known: dict[str, Any] = {"value_range": RANGE, "delta": _DELTA, "random_state": seed}
    release = PrivateMean(epsilon, inference=True, **known).fit(rows).release_
    whole = release.interval(_LEVEL, simultaneous=True)
    points = release.interval(_LEVEL)
    width = float(np.mean(whole[1] - whole[0]))
    return float(_holds(points).mean()), bool(_holds(whole).all()), width / _non_private(rows, seed)


def _holds(band: tuple[FloatArray, FloatArray]) -> Any:
    low, high = band
    return (low <= MEAN) & (high >= MEAN)


def _non_private(rows: FloatArray, seed: int) -> float:
    """Mean width of a simultaneous band from the sample's own covariance."""
    spread = np.cov(rows.T) / len(rows)
    paths = NoiseLaw.normal(spread).draw(_PATHS, np.random.default_rng(seed))
    deviation = np.sqrt(np.diag(spread))
    return float(2 * np.quantile(np.abs(paths / deviation).max(axis=1), _LEVEL) * deviation.mean())


def _row(cell: tuple[str, int, float], found: list[tuple[float, bool, float]]) -> dict[str, Any]:
    points, whole, width = (float(np.mean(part)) for part in zip(*found, strict=True))
    family, n, epsilon = cell
    return {
        "family": family,
        "n": n,
        "epsilon": epsilon,
        "pointwise": points,
        "simultaneous": whole,
        "width ratio": width,
    }
