"""Errors of `PrivateCurveClassifier` on speech and on simulated curves, in %."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import AnyArray, FloatArray
from dpfda.central.regression.recipe import public_encoder
from dpfda.datasets import simulate_001
from dpfda.datasets.catalogue import DataFileMissing
from dpfda.datasets.loaders import load_phoneme
from dpfda.estimators.private_curve_classifier import PrivateCurveClassifier
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.protocol.estimate import majority_error, non_private_classifier
from dpfda.report.contents import Outcome
from dpfda_bench.goals import Goal, at_most
from dpfda_bench.measuring import mean_and_error

Curves = tuple[FloatArray, AnyArray]
_EPSILONS = (0.1, 0.5, 1.0, 2.0)
_BOUNDS = {
    "phoneme5": (23.0, 9.5, 8.8, 8.2),
    "aa_ao": (37.0, 21.0, 20.0, 19.5),
    "sh_iy": (6.5, 1.0, 0.6, 0.4),
    "simulation": (11.0, 10.6, 10.4, 10.2),
}
GOALS: dict[str, Goal] = {
    f"{task}_eps{epsilon:g}": at_most(bound)
    for task, bounds in _BOUNDS.items()
    for epsilon, bound in zip(_EPSILONS, bounds, strict=True)
}
_REPLICATIONS, _FEW = 40, 3
_COMPARED = 10  # replications that are also learned without privacy
_LEARNED = 0.75  # share of the curves that are learned from; the others judge


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Every task at every ε, beside the majority class and a classifier without privacy."""
    rows: list[dict[str, Any]] = []
    notes = [
        "Errors in %, means over replications, δ = 1e-5. Nothing was chosen by these runs.",
        f"majority, non-private: means over the first {_COMPARED} replications.",
    ]
    for task, (draw, value_range) in _tasks().items():
        try:
            draw(0)
        except DataFileMissing as missing:
            notes.append(f"{task} left out: {missing}")
            continue
        seeds = range(_FEW if quick else _REPLICATIONS)
        each = sweep.run(partial(_beside, draw, value_range), product(seeds[:_COMPARED]))
        beside = {key: float(np.mean([one[key] for one in each])) for key in each[0]}
        for epsilon in _EPSILONS:
            found = sweep.run(partial(_one, draw, value_range, epsilon), product(seeds))
            row = {"task": task, "epsilon": epsilon} | mean_and_error(found)
            rows.append(row | beside)
    figures = {f"{row['task']}_eps{row['epsilon']:g}": row["error"] for row in rows}
    return Outcome(rows=rows, figures=figures, notes=notes)


def _tasks() -> dict[str, tuple[Callable[[int], tuple[Curves, Curves]], tuple[float, float]]]:
    return {
        "phoneme5": (partial(_speech, None), (0.0, 30.0)),
        "aa_ao": (partial(_speech, ("aa", "ao")), (0.0, 30.0)),
        "sh_iy": (partial(_speech, ("sh", "iy")), (0.0, 25.0)),
        "simulation": (_simulated, (-6.0, 6.0)),
    }


def _speech(classes: Any, seed: int) -> tuple[Curves, Curves]:
    data = load_phoneme() if classes is None else load_phoneme(classes=classes)
    X, y = np.asarray(data.X), np.asarray(data.y)
    order = np.random.default_rng(seed).permutation(len(y))
    here, there = np.split(order, [int(_LEARNED * len(y))])
    return (X[here], y[here]), (X[there], y[there])


def _simulated(seed: int) -> tuple[Curves, Curves]:
    data = simulate_001(5000, seed)
    X, y = np.asarray(data.X), np.asarray(data.y)
    return (X[:3000], y[:3000]), (X[3000:], y[3000:])


def _one(draw: Any, value_range: tuple[float, float], epsilon: float, seed: int) -> float:
    (X, y), (others, truth) = draw(seed)
    classes = tuple(np.unique(y).tolist())
    model = PrivateCurveClassifier(
        epsilon, value_range=value_range, classes=classes, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few people at a small ε, which is the point
        model.fit(X, y)
    return 100 * float(np.mean(model.predict(others) != truth))


def _beside(draw: Any, value_range: tuple[float, float], seed: int) -> dict[str, float]:
    """Always the most frequent class, and nobody's privacy."""
    (X, y), (others, truth) = draw(seed)
    encoder = public_encoder(value_ranges=[value_range], domain=(0.0, 1.0), most=16)
    rule = non_private_classifier(encoder.coefficients(X), y)
    wrong = np.mean(rule.predict(encoder.coefficients(others)) != truth) if rule else np.nan
    return {"majority": 100 * majority_error(truth), "non-private": 100 * float(wrong)}
