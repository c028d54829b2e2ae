"""Where gradient reports help: owners of one class, feedback instead of labels, single persons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dpfda._validate import IntArray
from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.estimators.local_ada_boost_classifier import LocalAdaBoostClassifier
from dpfda.estimators.local_curve_classifier import LocalCurveClassifier
from dpfda.estimators.local_gradient_boosting_classifier import LocalGradientBoostingClassifier
from dpfda.report.contents import Outcome
from dpfda_bench.goals import Goal
from dpfda_bench.measuring import gathered, mean_and_error
from dpfda_bench.reproductions import _p004 as common

GOALS: dict[str, Goal] = {}
_OWNERS, _ROWS = 8000, 4
Errors = Iterator[tuple[tuple[str, str], float]]
"""Errors by (case, method)."""


def run(quick: bool = False) -> Outcome:
    """Errors in three settings; the synthetic data of 004, and the curves of 001."""
    runs = 1 if quick else 3
    rows = [*mixed_owners(runs), *feedback(runs), *persons(runs, quick=quick)]
    return Outcome(
        rows=rows,
        notes=[
            f"{runs} runs; {_OWNERS} owners with {_ROWS} rows in the first two settings.",
            "Owners of one class: the share of an owner's rows that are of the owner's own class.",
            "Feedback: half of a round's owners judge; no label of the data user is used.",
            "Persons: one row each. Gradient reports use 1000 unlabeled rows of the data user, "
            "questions use public ranges only.",
        ],
    )


def _row(
    setting: str, case: str, method: str, epsilon: float, errors: list[float]
) -> dict[str, Any]:
    case_of = {"setting": setting, "case": case, "method": method, "epsilon": epsilon}
    return case_of | mean_and_error(errors)


def mixed_owners(runs: int) -> list[dict[str, Any]]:
    """Owners whose rows are of one class mostly."""
    data = common.synthetic()
    rows = []
    for purity in (0.5, 0.9, 1.0):
        for rule, radius in (("gradient", 0.5), ("gradient", 2.0), ("statistic", 0.5)):
            errors = []
            for seed in range(runs):
                where = one_class_owners(data.owner_labels, purity=purity, seed=seed)
                errors.append(_error(data, where, rule=rule, epsilon=3.0, seed=seed, radius=radius))
            name = f"{rule}, cut at {radius:g}√(k/N)" if rule == "gradient" else rule
            rows.append(_row("owners of one class", f"{purity:.0%}", name, 3.0, errors))
    return rows


def one_class_owners(labels: IntArray, *, purity: float, seed: int) -> IntArray:
    """Rows of each owner, (owners, rows); a row is of the owner's class with this probability."""
    rng = np.random.default_rng([seed, 4])
    own = rng.integers(0, 2, (_OWNERS, 1))
    wanted = np.where(rng.random((_OWNERS, _ROWS)) < purity, own, 1 - own)
    where = np.empty((_OWNERS, _ROWS), dtype=np.int64)
    for label in (0, 1):
        mask = wanted == label
        where[mask] = rng.permutation(np.flatnonzero(labels == label))[: mask.sum()]
    return where


def feedback(runs: int) -> list[dict[str, Any]]:
    """Clean validation labels against privatized verdicts of further owners."""
    data = common.synthetic()
    rows = []
    for rule in ("statistic", "sample"):
        for validation in ("clean", "feedback"):
            for epsilon in (3.0, 7.0):
                errors = [
                    _error(
                        data,
                        one_class_owners(data.owner_labels, purity=0.5, seed=seed),
                        rule=rule, epsilon=epsilon, seed=seed, validation=validation,
                    )
                    for seed in range(runs)
                ]  # fmt: skip
                rows.append(_row("who judges a rule", validation, rule, epsilon, errors))
    return rows


def _error(
    data: common.Data,
    where: IntArray,
    *,
    rule: Any,
    epsilon: float,
    seed: int,
    validation: Any = "clean",
    radius: float = 0.5,
) -> float:
    classifier: LocalAdaBoostClassifier | LocalGradientBoostingClassifier
    if rule == "gradient":
        classifier = LocalGradientBoostingClassifier(epsilon, radius=radius, random_state=seed)
    else:
        classifier = LocalAdaBoostClassifier(
            epsilon, rule=rule, validation=validation, random_state=seed
        )
    labels = data.user_labels if rule != "gradient" and validation == "clean" else None
    classifier.fit(
        data.owners[where.ravel()],
        data.owner_labels[where.ravel()],
        groups=np.repeat(np.arange(len(where)), where.shape[1]),
        reference=data.user,
        reference_labels=labels,
    )
    return _wrong(classifier, data.test, data.test_labels)


def persons(runs: int, *, quick: bool) -> list[dict[str, Any]]:
    """One row a person: gradient reports against question reports."""
    rows = []
    for people in (3000,) if quick else (3000, 20_000):
        for epsilon in (0.5, 1.0, 3.0):
            found = gathered(
                error
                for seed in range(runs)
                for errors in (_vectors, _curves)
                for error in errors(people, epsilon, seed)
            )
            rows += [_row("persons", c, m, epsilon, errors) for (c, m), errors in found.items()]
    return rows


def _vectors(people: int, epsilon: float, seed: int) -> Errors:
    data = common.synthetic()
    chosen = np.random.default_rng(seed).permutation(len(data.owners))[:people]
    X, y = data.owners[chosen], data.owner_labels[chosen]
    case = f"synthetic, {people} people"
    bounds = [(-1.0, 1.0)] * data.user.shape[1]
    asked = LocalCurveClassifier(epsilon, feature_ranges=bounds, random_state=seed).fit(X, y)
    yield (case, "questions"), _wrong(asked, data.test, data.test_labels)
    told = LocalGradientBoostingClassifier(epsilon, random_state=seed)
    told.fit(X, y, reference=data.user[:1000])
    yield (case, "gradient"), _wrong(told, data.test, data.test_labels)


def _curves(people: int, epsilon: float, seed: int) -> Errors:
    sizes = (people, 3000, 1000)
    study, test, own = (simulate_001(n, 3 * seed + i) for i, n in enumerate(sizes))
    case = f"curves of 001, {people} people"
    assert study.y is not None
    asked = LocalCurveClassifier(epsilon, value_range=(-6, 6), random_state=seed)
    yield (case, "questions"), _wrong(asked.fit(study.X, study.y), test.X, test.y)
    encoder = CurveEncoder("cosine", n_basis=8, rescale="clip", scale=6.0)
    told = LocalGradientBoostingClassifier(epsilon, products=0, random_state=seed)
    told.fit(encoder.encode(study.X), study.y, reference=encoder.encode(own.X))
    yield (case, "gradient"), _wrong(told, encoder.encode(test.X), test.y)


def _wrong(classifier: Any, X: Any, labels: Any) -> float:
    return float(np.mean(classifier.predict(X) != labels))
