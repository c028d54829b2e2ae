"""001 Figure 3: 25 servers of three kinds share their classifiers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.datasets.simulated import SLOPE_001, scores_001
from dpfda.noise import SimulationSource
from dpfda.report.contents import Outcome
from dpfda_bench import baselines
from dpfda_bench.baselines import Members, People, Setting
from dpfda_bench.decision_rules import ConstantRule, LinearRule
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.goals import at_least, at_most
from dpfda_bench.reproductions import _p001 as common
from dpfda_bench.reproductions import _p001_batch as batch
from dpfda_bench.verdict import Verdict, agrees_if

TITLE = "Error with one server and with 25 that share classifiers, % (001 Figure 3)"
COVERS = ("000-figure-9",)
NEEDS = ()
SECONDS = 40
GUARANTEES = common.GUARANTEES | {
    "as published": "ε-LDP for one person, ε/2 + ε/2",
}
_READING = common.READINGS["001-figure-3"]
READING = str(_READING)
CLAIMED = common.CLAIMED
METHODS = ("single server", "multi-server")
OLDER = ("single server 000", "multi-server 000")
GOALS = {
    "gain_points": at_least(0.0),
    "harm_by_group_2_points": at_most(0.5),
    "gain_of_group_2_points": at_least(0.0),
}
_WITHOUT = "without group 2"
NOTES = [
    "Means over the 20 servers whose slope functions have a common shape (groups 1 and 3, opposite "
    "signs); the five of group 2 have random ones. 001 prints no numbers; its text says: sharing "
    "improves Logistic and DWD significantly, and is comparable or slightly better for SVM and CG.",
    "Multi-server: every verdict at ε/2, own members and shared classifiers judged by the same "
    "people, ε in all, as in 001 §6.2. Cutoffs 0.8 and 0.8 as published, none (C3) otherwise; 0.7 "
    "and 0.8 in 000. Rules as in Figure 2.",
    "Harm by group 2: what groups 1 and 3 err more than where group 2 shares nothing. Gain of "
    "group 2: of its own five servers. Figures are means over budgets, as published.",
]

_SERVERS, _PEOPLE, _TEST, _DIMENSION = 25, 3000, 500, 4
_COMPARED, _RANDOM = np.r_[0:10, 15:25], np.r_[10:15]


def run(effort: Effort = FULL) -> Outcome:
    """Repeat the experiment, 20 times by default (400 servers of groups 1 and 3)."""
    studies = effort.repeats(20, quick=1)
    names = product(range(studies), range(len(common.EPSILONS)))
    errors = common.collected(effort, _replication, names)
    means = {key: 100 * float(values.mean()) for key, values in errors.items()}
    rows = [
        {"learner": name, "epsilon": epsilon, "rule": rule}
        | {method: means[name, epsilon, rule, method] for method in METHODS}
        | {method: means.get((name, epsilon, rule, method)) for method in OLDER}
        | _differences(partial(_mean, means, name, epsilon, rule))
        | {"majority class": means["", epsilon, "", "majority class"]}
        | {"non-private": means[name, epsilon, rule, "non-private"]}
        for name in common.LEARNERS
        for rule in common.RULES
        for epsilon in common.EPSILONS
    ]
    return Outcome(
        rows=rows,
        figures=_claims(rows),
        notes=[f"{studies} replications of {_SERVERS} servers.", *NOTES],
        plot=partial(common.plot_rules, rows, METHODS),
    )


def verdict(outcome: Outcome) -> Verdict:
    """Sharing helps Logistic and DWD clearly, and does not harm SVM and CG."""
    gain = {name: outcome.figures[f"gain_{name.lower()}_points"] for name in common.LEARNERS}
    told = ", ".join(f"{name} {value:+.1f}" for name, value in gain.items())
    return agrees_if(
        min(gain["Logistic"], gain["DWD"]) >= 1.0 and min(gain["SVM"], gain["CG"]) >= -0.5,
        f"No numbers are printed. Points gained by sharing, mean over budgets: {told}; the text "
        "says significantly better for Logistic and DWD, comparable for SVM and CG.",
    )


def _mean(means: dict[Any, float], name: str, epsilon: float, rule: str, method: str) -> float:
    return means[name, epsilon, rule, method]


def _differences(error: Callable[[str], float]) -> dict[str, float]:
    """What sharing is worth to servers of a common shape, what those of others cost, and gain."""
    single, shared = METHODS
    return {
        "gain": error(single) - error(shared),
        "harm by group 2": error(shared) - error(_WITHOUT),
        "gain of group 2": error(f"group 2, {single}") - error(f"group 2, {shared}"),
    }


def slopes(rng: np.random.Generator) -> FloatArray:
    """Coefficients of the 25 slope functions on the 50 cosine functions."""
    shape = SLOPE_001 / 4
    kernel = np.exp(-15 * np.abs(np.subtract.outer(common.GRID, common.GRID)))
    paths = rng.standard_normal((5, 101)) @ np.linalg.cholesky(kernel + 1e-10 * np.eye(101)).T
    return np.concatenate(
        [
            rng.uniform(-8, -2, (10, 50)) * shape,
            (paths * common.quadrature()) @ common.FUNCTIONS.T,
            rng.uniform(2, 8, (10, 50)) * shape,
        ]
    )


def _replication(number: int, place: int) -> dict[Any, FloatArray]:
    """Errors of the servers of groups 1 and 3; every server is a study of one batch."""
    epsilon, code = common.EPSILONS[place], common.encoding(_DIMENSION)
    source = SimulationSource(np.random.SeedSequence((3, number, place)))
    other = SimulationSource(np.random.SeedSequence((3, number, place, 1)))
    third = SimulationSource(np.random.SeedSequence((3, number, place, 2)))
    beta = slopes(source.generator)
    scores, labels = scores_001((_SERVERS, _PEOPLE), source.generator, slope=beta)
    test, truth = scores_001((_SERVERS, _TEST), source.generator, slope=beta)
    encoded = np.tanh(scores @ code.coefficients)
    majority = ConstantRule(np.where(labels.mean(axis=1) >= 0, 1.0, -1.0))
    found = {("", epsilon, "", "majority class"): majority.errors(test, truth)[_COMPARED]}
    reports: tuple[FloatArray, FloatArray] | None = None
    for name in common.LEARNERS:
        fitted: dict[Any, Any] = {}
        for rule in common.RULES:
            learner = common.noisy_learner(name, rule, code, _READING)
            base = Setting(common.SIMULATED, epsilon=epsilon, learner=learner, gram=code.gram)
            matrix = partial(common.decided, code=code, name=name, rule=rule)
            people = People(encoded, labels, matrix(scores))
            if reports is None:
                reports = baselines.noisy_reports(base, people, source)
            if learner not in fitted:
                who = batch.chosen(base, labels.shape, source)
                weak = batch.weak_members(base, *reports, who)
                whole = baselines.reference_rules(base, people)["non-private"]
                fitted[learner] = weak, whole
            weak, whole = fitted[learner]
            setting = common.under_rule(base, rule, cutoff=0.8)
            members = batch.shrunk_members(setting, weak)
            single = _average(setting, members, people, source)
            halved = replace(setting, design=replace(setting.design, verdict_share=0.5))
            shared = _average(halved, members, people, source)
            together = _average(halved, _everywhere(shared, slice(None)), people, source)
            without = _average(halved, _everywhere(shared, _COMPARED), people, other)
            features = matrix(test)
            for method, decision in zip(METHODS, (single, together), strict=True):
                errors = decision.errors(features, truth)
                found[name, epsilon, rule, method] = errors[_COMPARED]
                found[name, epsilon, rule, f"group 2, {method}"] = errors[_RANDOM]
            if rule == "as published":
                early = common.under_rule(halved, rule, cutoff=0.7)
                own = _average(early, members, people, third)
                alone = replace(early, design=replace(early.design, verdict_share=1.0))
                older = (
                    _average(alone, members, people, third),
                    _average(halved, _everywhere(own, slice(None)), people, third),
                )
                for method, decision in zip(OLDER, older, strict=True):
                    errors = decision.errors(features, truth)
                    found[name, epsilon, rule, method] = errors[_COMPARED]
            found[name, epsilon, rule, _WITHOUT] = without.errors(features, truth)[_COMPARED]
            found[name, epsilon, rule, "non-private"] = whole.errors(features, truth)[_COMPARED]
    return found


def _everywhere(shared: LinearRule, of: Any) -> Members:
    """The classifiers of some servers, for every server to judge."""
    intercept, coefficients = shared.intercept[of], shared.coefficients[of]
    return (
        np.repeat(intercept[None], _SERVERS, axis=0),
        np.repeat(coefficients[None], _SERVERS, axis=0),
    )


def _average(
    setting: Setting, members: Members, people: People, source: SimulationSource
) -> LinearRule:
    told = batch.coins(setting, people.labels.shape, source)
    totals, judges = batch.verdict_totals(setting, members, people, told)
    averaged = batch.mrma_rules(setting, members, totals, judges)["MRMA"]
    assert isinstance(averaged, LinearRule)
    return averaged


def _claims(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Mean gain of sharing as published, in points, over the budgets, for each learner."""
    published = [row for row in rows if row["rule"] == "as published"]
    gains = {
        f"gain_{name.lower()}_points": float(
            np.mean([row["gain"] for row in published if row["learner"] == name])
        )
        for name in common.LEARNERS
    }
    return gains | {
        f"{column.replace(' ', '_')}_points": float(np.mean([row[column] for row in published]))
        for column in ("gain", "harm by group 2", "gain of group 2")
    }
