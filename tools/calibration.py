"""Prints how often a probability is right: expected calibration errors of `predict_proba`.

    python tools/calibration.py [adult.csv.gz]

In ten classes of probability, less what as many calibrated predictions show by chance; means of
three seeds, on rows that were not fitted. Simulated: one column of which P(y = 1) is a line, and
five columns of a logistic model. Adult: age and education, with hours and capital gain beside them
for boosting.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from dpfda import LocalAdaBoostClassifier, LocalGradientBoostingClassifier, PrivateKernelMachine

SEEDS, N, TESTED = range(3), 10_000, 10_000
ADULT = {
    "age": (15, 95),
    "education_num": (0, 17),
    "hours_per_week": (0, 100),
    "capital_gain": (0, 20_000),
}
MACHINES = {loss: {"loss": loss} for loss in ("logistic", "smoothed_hinge")}
BOOSTING: dict[str, Any] = {"LocalGradientBoostingClassifier": LocalGradientBoostingClassifier} | {
    f"LocalAdaBoostClassifier, {rule}": partial(
        LocalAdaBoostClassifier, rule=rule, validation="feedback"
    )
    for rule in ("sample", "statistic", "classifier")
}


def miscalibration(chances: Any, happened: Any) -> float:
    """Expected calibration error in ten classes of probability."""
    group = np.minimum((10 * chances).astype(int), 9)
    apart = np.bincount(group, weights=chances - happened, minlength=10)
    return float(np.abs(apart).sum() / len(chances))


def measured(model: Any, X: Any, y: Any, unseen: Any, truth: Any) -> float:
    """Of a fitted model, less what chance alone shows."""
    chances = model.fit(X, y).predict_proba(unseen)[:, 1]
    rng = np.random.default_rng(0)
    by_chance = [miscalibration(chances, rng.random(len(chances)) < chances) for _ in range(20)]
    return miscalibration(chances, truth) - float(np.mean(by_chance))


def line(seed: int) -> Any:
    """One column; P(y = 1) = x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(N + TESTED, 1))
    return x, (rng.random(len(x)) < x[:, 0]).astype(int)


def logistic(seed: int) -> Any:
    """Five columns, two of which say nothing."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(N + TESTED, 5))
    return x, (rng.random(len(x)) < expit(x @ [4, -3, 2, 0, 0])).astype(int)


def adult(columns: int) -> Any:
    """Some of the rows of the file, in an order of each seed."""
    table = pd.read_csv(sys.argv[1])
    x = table[list(ADULT)[:columns]].to_numpy(float)
    y = table["income"].astype(str).str.contains(">50").to_numpy().astype(int)

    def people(seed: int) -> Any:
        some = np.random.default_rng(seed).permutation(len(x))[: N + TESTED]
        return x[some], y[some]

    return people


def row(name: str, make: Any, people: Any, **ranges: Any) -> None:
    """One line of the table."""
    found = []
    for seed in SEEDS:
        X, y = people(seed)
        model = make(2.0, classes=(0, 1), random_state=seed, **ranges)
        found.append(measured(model, X[:N], y[:N], X[N:], y[N:]))
    print(f"| {name} | {np.mean(found):.3f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(f"| ε = 2, {N} people | expected calibration error |\n|---|---|")
    given = [(lo, hi) for lo, hi in ADULT.values()]
    for name, how in MACHINES.items():
        make = lambda *a, how=how, **k: PrivateKernelMachine(*a, **how, **k)  # noqa: E731
        row(f"PrivateKernelMachine, {name}, a line", make, line, feature_ranges=(0, 1))
        if sys.argv[1:]:
            row(f"PrivateKernelMachine, {name}, Adult", make, adult(2), feature_ranges=given[:2])
    for name, make in BOOSTING.items():
        row(f"{name}, logistic", make, logistic, feature_ranges=(-1, 1))
        if sys.argv[1:]:
            row(f"{name}, Adult", make, adult(4), feature_ranges=given)
