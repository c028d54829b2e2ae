"""Pure ε without a matrix Laplace: the exact sampler beside a simulation of methods 8.9."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves.symmetric import floored
from dpfda.noise import SimulationSource
from dpfda.privacy.cost import Cost
from dpfda.regression.fixed_point import clip_to_ball
from dpfda.regression.location_look import LocationLook
from dpfda.regression.problem import Bounds, Problem
from dpfda.study.outcome import Outcome
from dpfda_bench.benchmarks.regression_utility import Split
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.measuring import gathered
from dpfda_bench.preparation import Prepared
from dpfda_bench.reproductions._p002 import data_of
from dpfda_bench.verdicts import Verdict, not_comparable

TITLE = "Pure ε: exact Laplace, and a simulated matrix Laplace (extends 002)"
NEEDS = ("warfarin", "crime", "phishing", "adult")
SECONDS = 60
GUARANTEES = {
    "exact Laplace": "ε-DP for one row",
    "functional mechanism": "ε-DP for one row",
    "matrix Laplace (simulation only)": "argued to be ε-DP; not offered",
}
EPSILONS = (0.5, 1.0, 2.0)
_TARGET_WEIGHT = 0.85
_FLOOR = 6.0


def run(effort: Effort = FULL) -> Outcome:
    """Ten splits by default."""
    repeats = effort.repeats(10, quick=2)
    names = ("warfarin",) if effort.quick else ("warfarin", "crime", "phishing", "adult")
    rows: list[dict[str, Any]] = []
    splits = iter(effort.sweep.run(scores_of, product(names, range(repeats))))
    for name in names:
        scores = gathered(found for _ in range(repeats) for found in next(splits))
        rows += [
            {"data": name, "method": method, "epsilon": epsilon, "measure": data_of(name).measure}
            | {"value": float(np.mean(values))}
            for (method, epsilon), values in scores.items()
        ]
    return Outcome(
        rows=rows,
        notes=[
            f"{repeats} random 90:10 splits.",
            "exact Laplace: what delta=0 gives; Laplace noise on every moment, lattice-exact.",
            "matrix Laplace (simulation only): mean aa' + (β/2)(G₁G₁' - G₂G₂'), G_i Gaussian "
            "m × (m+1), β = 2(1 + 0.85²)/(n ¾ε). Its log-density is argued to be Lipschitz in the "
            "nuclear norm; no exact lattice sampler is known, so the package does not offer it.",
        ],
    )


def verdict(outcome: Outcome) -> Verdict:
    """Nothing printed."""
    return not_comparable("002 has no such comparison; it extends the paper.")


def scores_of(name: str, seed: int) -> list[tuple[tuple[str, float | None], float]]:
    """Scores on one random 90:10 split of a data set."""
    return list(one_split(data_of(name), seed=seed))


def one_split(data: Prepared, *, seed: int) -> Iterator[tuple[tuple[str, float | None], float]]:
    """Scores on one random 90:10 split."""
    split = Split(data, seed=seed)
    yield ("trivial", None), split.trivial()
    for epsilon in EPSILONS:
        yield ("exact Laplace", epsilon), split.private("moments", epsilon, delta=0.0)
        yield ("functional mechanism", epsilon), split.private("fm", epsilon, delta=0.0)
        guess = matrix_laplace(split.X, split.y, split.unseen, epsilon=epsilon, seed=seed)
        yield ("matrix Laplace (simulation only)", epsilon), split.score(guess)
        yield ("for comparison: (ε, 1e-5)", epsilon), split.private("moments", epsilon)


def matrix_laplace(
    X: FloatArray, y: FloatArray, unseen: FloatArray, *, epsilon: float, seed: int
) -> FloatArray:
    """Predictions of the two-stage release with a float matrix Laplace: a simulation."""
    n, dimension = X.shape
    bounds = Bounds(center=np.zeros(dimension), target_center=0.5, target_radius=0.5)
    problem = Problem(link="linear", bounds=bounds)
    look = LocationLook(problem=problem, cost=Cost(epsilon=epsilon).part(0.25))
    found = look.read(look.answer((X, y), SimulationSource(seed))).bounds
    rows = clip_to_ball(X, center=found.center, radius=found.radius) / found.radius
    values = np.clip((y - found.target_center) / found.target_radius, -1, 1)
    joint = np.column_stack([rows, _TARGET_WEIGHT * values])
    size = dimension + 1
    beta = 2 * (1 + _TARGET_WEIGHT**2) / (n * 0.75 * epsilon)
    rng = np.random.default_rng(seed)
    plus, minus = rng.normal(size=(2, size, size + 1))
    noisy = joint.T @ joint / n + beta / 2 * (plus @ plus.T - minus @ minus.T)
    floor = _FLOOR * beta * math.sqrt(size + 1)
    w = floored(noisy[:-1, :-1], floor, inverted=True) @ noisy[:-1, -1] / _TARGET_WEIGHT
    clipped = clip_to_ball(unseen, center=found.center, radius=found.radius) / found.radius
    return np.asarray(found.target_center + found.target_radius * (clipped @ w))
