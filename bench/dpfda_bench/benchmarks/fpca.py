"""How much of the variance of speech the components of `PrivateFPCA` capture."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.functions import as_grid, trapezoid
from dpfda.datasets.loaders import load_phoneme
from dpfda.estimators.private_fpca import PrivateFPCA
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.goals import Goal, at_least
from dpfda_bench.measuring import mean_and_error

GOALS: dict[str, Goal] = {
    "phoneme_k1": at_least(0.97),
    "phoneme_k2": at_least(0.95),
    "phoneme_k3": at_least(0.93),
}
_PEOPLE, _EPSILON, _MOST = 1000, 0.5, 3
_REPLICATIONS, _FEW = 100, 5


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """1000 frames at ε = ½, δ = 1e-5; over what the best components would capture of all."""
    X = np.asarray(load_phoneme().X)
    weights = trapezoid(as_grid(np.linspace(0, 1, X.shape[1])))
    root = np.sqrt(weights)
    surface = np.cov(X.T)
    best = np.linalg.eigvalsh(root[:, None] * surface * root)[::-1][:_MOST].cumsum()
    seeds = range(_FEW if quick else _REPLICATIONS)
    found = np.array(sweep.run(partial(_captured, X, surface, weights), product(seeds)))
    rows = [
        {"components": k + 1, **mean_and_error((found[:, k] / best[k]).tolist(), "captured")}
        for k in range(_MOST)
    ]
    figures = {f"phoneme_k{row['components']}": float(row["captured"]) for row in rows}
    note = f"{len(seeds)} draws of {_PEOPLE} frames, ε = {_EPSILON}, δ = 1e-5, range 0 to 30."
    return Outcome(rows=rows, figures=figures, notes=[note])


def _captured(X: FloatArray, surface: FloatArray, weights: FloatArray, seed: int) -> FloatArray:
    """Variance of all frames along the first 1, 2, 3 released components."""
    some = np.random.default_rng(seed).permutation(len(X))[:_PEOPLE]
    model = PrivateFPCA(_EPSILON, value_range=(0, 30), n_components=_MOST, random_state=seed)
    rows = model.fit(X[some]).components_ * weights
    return np.asarray(np.einsum("ki,ij,kj->k", rows, surface, rows).cumsum())
