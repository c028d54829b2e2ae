"""001 Table A.1: what projection and rescaling alone do to four learners, without noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.datasets.simulated import SLOPE_001, scores_001
from dpfda.local.mrma.learners import Learner
from dpfda.report.contents import Outcome
from dpfda_bench.decision_rules import ConstantRule, LinearRule
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.goals import at_most
from dpfda_bench.printed import printed
from dpfda_bench.reproductions import _p001 as common
from dpfda_bench.verdict import Verdict, agrees_if

TITLE = "Error of learners on curves, coefficients and rescaled coefficients, % (001 Table A.1)"
COVERS = ("000-table-1",)
NEEDS = ()
SECONDS = 10
GUARANTEES = {
    "published": "none: there is no noise in this table",
    "as published": "none",
    "corrected": "none",
}
CLAIMED = "none: there is no noise in this table"
READING = str(common.READINGS["001-table-a1"])
GOALS = {"largest_difference_points": at_most(1.0)}

PUBLISHED = {row.pop("learner"): row for row in printed("001-table-a1")}
"""The actual curves (INI), then coefficients, their tanh and their max-abs form for each d."""

NOTES = [
    "As published: members trained on one set of features decide on another (C2). Corrected: "
    "they decide on what they were trained on; for Coefs the two differ for logistic only. Without "
    "noise no intercept is shrunk: the package's default is the corrected rule.",
    "Logistic is determined by the text. Not determined: SVM (here squared hinge, C = 0.1, unit "
    "variance, applied to raw coefficients; hinge with C = 1 is 1 to 1.4 points worse on Coefs, "
    "integrals instead of coefficients give 19 % there), CG (here five steps; one step gives 10.4 "
    "to 10.6 everywhere, cross-validation 10.7 to 11.2, INI needs five for 15.4), DWD (here a "
    "roughness penalty so large that the slope is a line; a ridge of any weight depends on d).",
    "CG is settled. One more attempt at the SVM, some seventy readings (both losses, C from 0.01 "
    "to 100, standardized or not, a penalty in L², coefficients that are not scaled back, no "
    "intercept, integrals): none brings all nine numbers within half a point.",
    "000 Table 1 has the same numbers, digit for digit, and calls MAN Min-Max (C1).",
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
    names = [(start, min(_CHUNK, studies - start)) for start in range(0, studies, _CHUNK)]
    errors = common.collected(effort, _chunk, names)
    means = {key: 100 * float(values.mean()) for key, values in errors.items()}
    shown = [
        _row(name, column, published, means)
        for name, columns in PUBLISHED.items()
        for column, published in columns.items()
        if published is not None
    ]
    reference = {key: means["reference", key, ""] for key in ("Bayes rule", "majority class")}
    return Outcome(
        rows=shown,
        figures={
            "largest_difference_points": max(abs(row["difference"]) for row in shown),
            **{
                f"difference_{name}": max(
                    abs(row["difference"]) for row in shown if row["learner"] == name
                )
                for name in PUBLISHED
            },
            "bayes_percent": reference["Bayes rule"],
            "majority_class_percent": reference["majority class"],
        },
        notes=[f"{studies} replications; the published means are of 500.", *NOTES],
    )


def verdict(outcome: Outcome) -> Verdict:
    """Every printed number within a point."""
    told = ", ".join(f"{name} {outcome.figures[f'difference_{name}']:.1f}" for name in PUBLISHED)
    return agrees_if(
        outcome.figures["largest_difference_points"] <= 1.0,
        f"Largest differences from the 38 printed errors, in points: {told}; the text leaves "
        "settings of all but Logistic open.",
    )


def _row(
    name: str, column: str, published: float, means: dict[tuple[str, str, str], float]
) -> dict[str, Any]:
    ours = means[name, column, "as published"]
    return {
        "learner": name,
        "features": column,
        "published": published,
        "as published": ours,
        "difference": ours - published,
        "corrected": means.get((name, column, "corrected"), ours),
    }


def _chunk(start: int, studies: int) -> dict[tuple[str, str, str], Any]:
    """Errors of every number of the table, for some replications."""
    return dict(_errors(studies, np.random.default_rng([1, start])))


def _errors(studies: int, rng: np.random.Generator) -> Iterator[tuple[tuple[str, str, str], Any]]:
    scores, labels = scores_001((studies, _TRAINING), rng)
    test, truth = scores_001((studies, _TEST), rng)
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
