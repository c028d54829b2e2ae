"""How fast a batch of weak classifiers is fitted, against a loop over scikit-learn."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpfda._validate import FloatArray
from dpfda.local.mrma.learners import Learner
from dpfda.report.contents import Outcome
from dpfda_bench.goals import at_least
from dpfda_bench.measuring import seconds

GOALS = {"logistic_ratio_vs_sklearn": at_least(50.0), "svm_ratio_vs_sklearn": at_least(25.0)}

_MEMBERS, _ROWS, _FEATURES = 2000, 50, 5
_ROUNDS = 10
_FIGURE_FITS = 200_000
"""Fits of one learner in 001 Figure 2: 500 replications, 8 values of ε, 50 members."""
_RIVALS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(C=np.inf),
    "linear_svm": lambda: SVC(kernel="linear"),
}
"""The same learners in scikit-learn; maximum likelihood is an infinite C."""


def run(quick: bool = False) -> Outcome:
    """Fit 2000 members of 50 rows and 5 features with both libraries, in one run."""
    looped = 100 if quick else _MEMBERS
    features, labels = _reports()
    # One thread for both: on small problems further threads only wait for each other.
    with threadpool_limits(1):
        compared = {
            name: _compare(Learner.named(name)(), theirs, features, labels, looped=looped)
            for name, theirs in _RIVALS.items()
        }
        figure = _four_learners(2000 if quick else 25_000)
    return Outcome(
        rows=[{"learner": name, **numbers} for name, numbers in compared.items()],
        figures={
            "logistic_ratio_vs_sklearn": compared["logistic"]["ratio"],
            "svm_ratio_vs_sklearn": compared["linear_svm"]["ratio"],
            "four_learners_seconds": figure,
        },
        notes=[
            f"{_MEMBERS} members of {_ROWS} rows and {_FEATURES} features, one thread, medians of "
            f"{_ROUNDS} rounds" + (f"; the loop ran {looped} members." if quick else "."),
            "scikit-learn runs with its own tolerances; the difference of the coefficients is its "
            "own distance from the solution (SVC with tol=1e-6 takes as long).",
            f"four_learners_seconds: {_FIGURE_FITS:,} fits of (50, 4) with each of logistic, "
            "linear_svm, dwd and conjugate_gradient, on one core, scaled up from a part.",
        ],
    )


def _compare(
    learner: Learner,
    theirs: Callable[[], Any],
    features: FloatArray,
    labels: FloatArray,
    *,
    looped: int,
) -> dict[str, float]:
    """Times of both side by side in every round: the machine may be busy with other things."""
    ours, loops = [], []
    for part in np.array_split(np.arange(looped), _ROUNDS):
        ours.append(seconds(partial(learner.fit, features, labels)))
        loop = seconds(partial(_loop, theirs, features, labels, part))
        loops.append(loop / len(part) * _MEMBERS)
    batch, loop = statistics.median(ours), statistics.median(loops)
    return {
        "batch, ms": 1e3 * batch,
        "scikit-learn loop, ms": 1e3 * loop,
        "ratio": loop / batch,
        "largest difference": _difference(learner, theirs, features, labels),
    }


def _reports() -> tuple[FloatArray, FloatArray]:
    """Features with noise of their own size, labels that depend on them a little."""
    rng = np.random.default_rng(0)
    clean = rng.uniform(-1.0, 1.0, (_MEMBERS, _ROWS, _FEATURES))
    slopes = rng.normal(size=(_MEMBERS, 1, _FEATURES))
    odds = np.exp(-2.0 * np.sum(clean * slopes, axis=2))
    labels = np.where(rng.random((_MEMBERS, _ROWS)) < 1.0 / (1.0 + odds), 1.0, -1.0)
    return clean + rng.laplace(0.0, 0.5, clean.shape), labels


def _loop(make: Callable[[], Any], features: FloatArray, labels: FloatArray, part: Any) -> None:
    for member in part:
        make().fit(features[member], labels[member])


def _difference(
    learner: Learner, make: Callable[[], Any], features: FloatArray, labels: FloatArray
) -> float:
    """Largest difference of a coefficient in 20 members."""
    models = learner.fit(features[:20], labels[:20])
    theirs = [make().fit(features[b], labels[b]).coef_[0] for b in range(20)]
    return float(np.max(np.abs(models.coefficients - np.stack(theirs))))


def _four_learners(members: int) -> float:
    """Seconds for what one figure needs, in the four learners of the papers together."""
    rng = np.random.default_rng(1)
    labels = np.where(rng.random((members, 50)) < 0.5, 1.0, -1.0)
    features = np.clip(rng.normal(0.3 * labels[:, :, None], 0.5, (members, 50, 4)), -1, 1)
    features = features + rng.laplace(0.0, 4.0, features.shape)
    names = ("logistic", "linear_svm", "dwd", "conjugate_gradient")
    taken = seconds(lambda: [Learner.named(name)().fit(features, labels) for name in names])
    return taken * _FIGURE_FITS / members
