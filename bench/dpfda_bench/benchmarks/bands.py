"""How often bands of `PrivateMean` hold the mean of the population, and how wide they are.

The bands of `PrivateMoments`, whose radius is smaller, stand beside them.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.moments.moments_release import BANDS_FROM
from dpfda.estimators.private_mean import PrivateMean
from dpfda.estimators.private_moments import PrivateMoments
from dpfda.noise.law import NoiseLaw
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks._curve_families import FAMILIES, MEAN, RANGE, curves
from dpfda_bench.goals import Goal, at_least, at_most

Cell = tuple[str, str, int, float]
GOALS: dict[str, Goal] = {
    "coverage_least": at_least(0.92),
    "coverage_most": at_most(0.985),
    "width_ratio_70": at_most(1.5),
}
_SIZES, _EPSILONS, _LEVEL = (200, 500, 1000, 5000), (0.5, 1.0, 2.0, 4.0), 0.95
_REPLICATIONS, _FEW = 300, 30
_PATHS, _DELTA = 500, 1e-5
_MOMENTS = ((1000, 1.0), (1000, 4.0), (5000, 1.0), (5000, 4.0))  # n, ε of their rows


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Every family, n and ε with nε ≥ 500."""
    replications = _FEW if quick else _REPLICATIONS
    cells: list[Cell] = [
        ("mean", family, n, epsilon)
        for family in FAMILIES
        for n in (_SIZES[1:3] if quick else _SIZES)
        for epsilon in _EPSILONS
        if n * epsilon >= BANDS_FROM
    ]
    cells += [
        ("moments", family, *one) for family in FAMILIES for one in _MOMENTS[: 1 if quick else 4]
    ]
    rows = [
        _row(cell, sweep.run(partial(_one, *cell), product(range(replications)))) for cell in cells
    ]
    held = {of: _held([row for row in rows if row["of"] == of]) for of in ("mean", "moments")}
    figures = {"coverage_least": min(held["mean"]), "coverage_most": max(held["mean"])}
    strong = [
        row["width ratio"]
        for row in rows
        if row["of"] == "mean" and row["family"] == "gaussian"
        if row["epsilon"] * np.sqrt(row["n"]) >= 70
    ]
    if strong:
        figures["width_ratio_70"] = max(strong)
    figures |= {"moments_least": min(held["moments"]), "moments_most": max(held["moments"])}
    notes = [
        f"{replications} replications a row: a coverage of .95 has a standard error of "
        f"{np.sqrt(0.95 * 0.05 / replications):.3f}.",
        "width ratio: mean width over that of a band without privacy, from the sample covariance.",
        f"Public range {RANGE}, δ = {_DELTA:g}. Shapes and radii were chosen on "
        "normal and exponential curves like these, and on smoother and rougher ones; what "
        "variances may be larger by also on lognormal ones.",
        "moments: `PrivateMoments`, whose radius is 1.25 times the one that was found (1.5 for a "
        "mean with inference): clipping moves means of skewed curves, which its bands leave out.",
    ]
    return Outcome(rows=rows, figures=figures, notes=notes)


def _held(rows: list[dict[str, Any]]) -> list[float]:
    return [row[kind] for row in rows for kind in ("pointwise", "simultaneous")]


def _one(of: str, family: str, n: int, epsilon: float, seed: int) -> tuple[float, bool, float]:
    """Share of points held, whether all were, and the width over the non-private one's."""
    rows = curves(family, n, seed)
    known: dict[str, Any] = {"value_range": RANGE, "delta": _DELTA, "random_state": seed}
    if of == "mean":
        release: Any = PrivateMean(epsilon, inference=True, **known).fit(rows).release_
    else:
        release = PrivateMoments(epsilon, **known).fit(rows)
    whole = release.interval(_LEVEL, simultaneous=True)[-2:]
    points = release.interval(_LEVEL, simultaneous=False)[-2:]
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


def _row(cell: Cell, found: list[tuple[float, bool, float]]) -> dict[str, Any]:
    points, whole, width = (float(np.mean(part)) for part in zip(*found, strict=True))
    of, family, n, epsilon = cell
    return {
        "of": of,
        "family": family,
        "n": n,
        "epsilon": epsilon,
        "pointwise": points,
        "simultaneous": whole,
        "width ratio": width,
    }
