"""001 Table A.1: what projection and rescaling alone do to four learners, without noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.datasets import SLOPE_001
from dpfda.learners import Learner
from dpfda.mrma.decision_rules import ConstantRule, LinearRule
from dpfda.study.outcome import Outcome, at_most
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions import _p001 as common

TITLE = "Error of learners on curves, coefficients and rescaled coefficients, % (001 Table A.1)"
GOALS = {"largest_difference_points": at_most(1.0)}

PUBLISHED = {
    "Logistic": (None, 17.81, 12.32, 11.68, 20.66, 13.55, 12.81, 23.19, 15.21, 13.86),
    "SVM": (None, 10.85, 11.20, 11.03, 11.29, 11.67, 11.27, 11.69, 12.07, 11.48),
    "DWD": (11.01, 11.02, 10.64, 10.61, 11.01, 10.60, 10.58, 11.01, 10.61, 10.59),
    "CG": (15.42, 11.02, 11.47, 11.31, 11.34, 11.86, 11.43, 11.65, 12.00, 11.64),
}
"""INI, then Coefs, Tanh, MAN for d = 4, 5, 6."""

NOTES = [
    "As published: members trained on one set of features decide on another (C2). Corrected: "
    "they decide on what they were trained on; for Coefs the two differ for logistic only.",
    "Logistic is determined by the text. Not determined: SVM (here squared hinge, C = 0.1, unit "
    "variance, applied to raw coefficients; hinge with C = 1 is 1 to 1.4 points worse on Coefs, "
    "integrals instead of coefficients give 19 % there), CG (here five steps; one step gives 10.4 "
    "to 10.6 everywhere, cross-validation 10.7 to 11.2, INI needs five for 15.4), DWD (here a "
    "roughness penalty so large that the slope is a line; a ridge of any weight depends on d).",
    "Tanh with scale 1 saturates: the corrected rule shows it (C2), the published one hides it by "
    "applying the members to raw curves.",
]

_TRAINING, _TEST, _CHUNK = 50, 500, 100
_RESCALED: dict[str, Callable[[FloatArray], FloatArray]] = {
    "Coefs": lambda z: z,
    "Tanh": lambda z: np.asarray(np.tanh(z)),
    "MAN": common.max_abs,
}


def run(effort: Effort = FULL) -> Outcome:
    """Repeat the experiment, 2000 times by default: four times as often as the paper."""
    studies = effort.repeats(2000, quick=40)
    sums: dict[tuple[str, str, str], float] = {}
    for start in range(0, studies, _CHUNK):
        size = min(_CHUNK, studies - start)
        for key, errors in _chunk(size, np.random.default_rng([1, start])):
            sums[key] = sums.get(key, 0.0) + float(errors.sum())
        effort.done((start + size) / studies)
    means = {key: 100 * total / studies for key, total in sums.items()}
    rows = [_row(name, place, means) for name in PUBLISHED for place in range(10)]
    shown = [row for row in rows if row["published"] is not None]
    reference = {key: means["reference", key, ""] for key in ("Bayes rule", "majority class")}
    return Outcome(
        rows=shown,
        figures={
            "largest_difference_points": max(abs(row["difference"]) for row in shown),
            "bayes_percent": reference["Bayes rule"],
            "majority_class_percent": reference["majority class"],
        },
        notes=[f"{studies} replications; the published means are of 500.", *NOTES],
    )


def _row(name: str, place: int, means: dict[tuple[str, str, str], float]) -> dict[str, Any]:
    block, within = divmod(place - 1, len(_RESCALED))
    column = "INI" if place == 0 else f"d = {4 + block} {list(_RESCALED)[within]}"
    published = PUBLISHED[name][place]
    ours = means.get((name, column, "as published"))
    return {
        "learner": name,
        "features": column,
        "published": published,
        "as published": ours,
        "difference": None if published is None or ours is None else ours - published,
        "corrected": means.get((name, column, "corrected"), ours),
    }


def _chunk(studies: int, rng: np.random.Generator) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Errors of every cell of the table, for some replications."""
    scores, labels = common.draw(rng, studies, _TRAINING)
    test, truth = common.draw(rng, studies, _TEST)
    bayes = np.where(0.1 + np.matmul(test, SLOPE_001) >= 0, 1.0, -1.0)
    yield ("reference", "Bayes rule", ""), np.mean(bayes != truth, axis=1)
    majority = ConstantRule(np.where(labels.mean(axis=1) >= 0, 1.0, -1.0))
    yield ("reference", "majority class", ""), majority.errors(test, truth)
    for dimension in (4, 5, 6):
        code = common.encoding(dimension)
        for column, rescale in _RESCALED.items():
            train = rescale(scores @ code.coefficients)
            plain = rescale(test @ code.coefficients)
            for name in PUBLISHED:
                learner = common.learner(name, roughness=code.roughness)
                rule = _fitted(learner, train, labels, code.gram)
                key = name, f"d = {dimension} {column}"
                used = common.published_features(test, code, name)
                yield (*key, "as published"), rule.errors(used, truth)
                yield (*key, "corrected"), rule.errors(plain, truth)
    yield from _actual_curves(scores, labels, test, truth)


def _actual_curves(
    scores: FloatArray, labels: FloatArray, test: FloatArray, truth: FloatArray
) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """INI: functional learners on the 101 values of each curve, in L² by quadrature."""
    weights = common.quadrature()
    second = np.diff(np.eye(len(weights)), n=2, axis=0) * (len(weights) - 1) ** 2
    roughness = second.T @ second / (len(weights) - 1)
    values, values_test = common.curves(scores), common.curves(test)
    for name in ("DWD", "CG"):
        learner = common.learner(name, roughness=roughness)
        rule = _fitted(learner, values, labels, np.diag(weights))
        yield (name, "INI", "as published"), rule.errors(values_test, truth)


def _fitted(
    learner: Learner, features: FloatArray, labels: FloatArray, gram: FloatArray
) -> LinearRule:
    models: Any = learner.fit(features, labels, gram=gram)
    return LinearRule(np.asarray(models.intercept), np.asarray(models.coefficients))
