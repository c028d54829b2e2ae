"""Forecasts of studies beside what the studies then achieved, and how long a forecast takes.

A user knows the number of people, how frequent the classes are and what a classifier without
privacy errs. With a family that is all there is (``family_error_points``); some know a typical
curve of each class (``typical_error_points``, tasks of curves only); with a sample there are 200
public rows beside it (``forecast_error_points``). Figures are about tasks on which no constant of
the planner was chosen; the rows show the others, too, and say which they are.

Cases 1 to 8 are those of Tables A.2 and A.3 of 001, with that paper's rules (members count from a
verdict of 0.6 on, intercepts as they are fitted) at ε = 0.5. All cases have the same people and
noise. ``cases_decidable`` of 28 pairs differ by more than three standard errors, and
``cases_ranked_right`` is the share of those that forecasts around typical curves put in order. With
the rules that this package takes by default all cases err alike: there is nothing to rank.

``family_spread_points`` is how far a forecast would be off if a family were exactly right, because
the studies of its members differ: nobody who knows no more can forecast better.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.datasets.catalogue import DataFileMissing
from dpfda.local.recipe import plan_study
from dpfda.noise import SimulationSource
from dpfda.planning.forecast import forecast
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.planning.trials import Expected, Trials
from dpfda.planning.world import made_up
from dpfda.protocol.estimate import non_private_classifier
from dpfda.protocol.person import encode_people
from dpfda.protocol.plan import StudyPlan
from dpfda.report.contents import Outcome
from dpfda.simulate import ask_everybody
from dpfda_bench.benchmarks._plan_tasks import Case, tasks
from dpfda_bench.goals import Goal, at_least, at_most

GOALS: dict[str, Goal] = {
    "forecast_error_points": at_most(2),
    "typical_error_points": at_most(2),
    "family_error_points": at_most(2),
    "seconds": at_most(120),
    "cases_ranked_right": at_least(0.9),
}

_EPSILONS = (0.5, 1.0, 5.0)
_CLASSES = (-1.0, 1.0)
_PUBLIC = 200  # rows of a sample
_FEWEST = 12  # of each class in a sample
_ENOUGH = 8000  # rows for the classifier without privacy

# Tables A.2 and A.3 of 001: N, N0 (who report), n0 (reports a member), B (members).
_CASES = {
    1: (3000, 500, 100, 25), 2: (5500, 500, 100, 50), 3: (5500, 500, 50, 50),
    4: (3000, 500, 100, 50), 5: (3000, 500, 50, 50), 6: (5000, 2500, 250, 50),
    7: (7500, 5000, 500, 50), 8: (7500, 2500, 250, 50),
}  # fmt: skip
_MOST = max(people for people, *_ in _CASES.values())
_CASES_EPSILON = 0.5
_PAPER_LIMIT = 0.1  # what a classifier without privacy errs on the paper's simulation


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Every task at every ε, the cases of 001, and the time of one forecast."""
    studies = 4 if quick else 20
    notes = [f"Errors in %, means over {studies} studies of each kind."]
    try:
        wanted = list(tasks())
    except DataFileMissing as missing:
        notes.append(f"Real data left out: {missing}")
        wanted = list(tasks(real=False))
    if quick:
        wanted = wanted[:3]
    known = sweep.run(partial(_known, wanted), product(range(len(wanted))))
    rows: list[dict[str, Any]] = []
    for task, facts in zip(wanted, known, strict=True):
        rows += sweep.run(partial(_row, task, facts), product(_EPSILONS, (studies,)))
    cases = sweep.run(_case, product(_CASES, (2 * studies,)))
    figures = _figures(rows)
    ranked, told = _ranked(dict(zip(_CASES, cases, strict=True)))
    figures |= ranked
    began = time.perf_counter()
    forecast(3000, 1.0, value_range=(-6, 6), classes=_CLASSES, non_private_error=0.1)
    figures["seconds"] = time.perf_counter() - began
    return Outcome(rows=rows, figures=figures, notes=[*notes, told])


def _figures(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Mean absolute differences, and how many studies lay where nine of ten should."""
    fresh = [row for row in rows if not row["tuned"]] or rows

    def off(name: str) -> float:
        known = [row for row in fresh if row[name] is not None]
        return float(np.mean([abs(row[name] - row["achieved"]) for row in known]))

    def covered(name: str) -> float:
        return float(np.mean([row[name] for row in fresh if row[name] is not None]))

    return {
        "forecast_error_points": off("by sample"),
        "typical_error_points": off("by typical"),
        "family_error_points": off("by family"),
        "family_spread_points": float(np.mean([row["family spread"] for row in fresh])),
        "sample_interval_covers": covered("sample covers"),
        "typical_interval_covers": covered("typical covers"),
        "family_interval_covers": covered("family covers"),
        "tasks": float(len({row["task"] for row in fresh})),
    }


def _known(tasks: list[Case], place: int) -> dict[str, Any]:
    """What the user says of a task, and a sample of people whom nobody will ask."""
    task, found, shares = tasks[place], [], []
    for seed in range(3):
        X, y, others, truth = task.draw(10_000 + seed)
        encoder = plan_study(len(y), 1.0, classes=_CLASSES, **task.facts).encoder
        some = slice(None, _ENOUGH)
        rule = non_private_classifier(encoder.encode(X[some], strict=False), y[some])
        assert rule is not None
        found.append(np.mean(rule.predict(encoder.encode(others, strict=False)) != truth))
        shares.append(np.mean(y > 0))
    # Tasks of very few people have no sample that a forecast would take.
    enough = min(np.sum(truth[:_PUBLIC] == one) for one in _CLASSES) >= _FEWEST
    share, limit = float(np.mean(shares)), max(float(np.mean(found)), 0.001)
    return {
        "n_people": len(y),
        "non_private_error": limit,
        "class_shares": (1 - share, share),
        "sample": (others[:_PUBLIC], truth[:_PUBLIC]) if enough else None,
        "typical": (np.stack([X[y == one].mean(axis=0) for one in _CLASSES]), _CLASSES),
    }


def _row(task: Case, known: dict[str, Any], epsilon: float, studies: int) -> dict[str, Any]:
    """Both forecasts and the truth at one ε."""
    said = {name: value for name, value in known.items() if name not in ("sample", "typical")}
    common = dict(classes=_CLASSES, epsilon=epsilon, studies=studies, also=(), **task.facts)
    by_family = forecast(**said, **common, family=task.family).expected
    by_sample = by_typical = None
    if known["sample"] is not None:
        by_sample = forecast(**said, **common, sample=known["sample"]).expected
    if task.family != "table":
        typical = known["typical"]
        by_typical = forecast(**said, **common, family=task.family, typical=typical).expected
    achieved = np.array([_achieved(task, epsilon, seed) for seed in range(studies)])

    def covers(one: Any) -> float:
        return float(np.mean((one.low <= achieved) & (achieved <= one.high)))

    return {
        "task": task.name,
        "tuned": task.chosen_on,
        "people": known["n_people"],
        "epsilon": epsilon,
        "no privacy": 100 * known["non_private_error"],
        "achieved": 100 * float(achieved.mean()),
        "by sample": None if by_sample is None else 100 * by_sample.error,
        "by typical": None if by_typical is None else 100 * by_typical.error,
        "by family": 100 * by_family.error,
        "family spread": 100 * _spread(by_family, achieved),
        "sample covers": None if by_sample is None else covers(by_sample),
        "typical covers": None if by_typical is None else covers(by_typical),
        "family covers": covers(by_family),
    }


def _spread(one: Expected, achieved: FloatArray) -> float:
    """The mean distance of members of a family from their mean, less the luck of single studies."""
    whole = one.standard_error**2 * len(achieved)
    between = max(0.0, whole - float(achieved.var(ddof=1)))
    return float(np.sqrt(2 / np.pi * between))  # of normal numbers


def _achieved(task: Case, epsilon: float, seed: int) -> float:
    """The error of one whole study on people who were not asked."""
    X, y, others, truth = task.draw(seed)
    plan = plan_study(len(y), epsilon, classes=_CLASSES, seed=seed, **task.facts)
    return _error(plan, (X, y), (others, truth), seed)


def _error(plan: StudyPlan, asked: Any, others: Any, seed: int) -> float:
    features, labels = encode_people(plan, *asked)

    def people(start: int, stop: int) -> tuple[FloatArray, IntArray]:
        return features[start:stop], labels[start:stop]

    model = ask_everybody(plan, people, source=SimulationSource(seed)).model
    tested, truth = encode_people(plan, *others)
    return float(np.mean(model.decide(tested) != truth))


# -- 001, Tables A.2 and A.3 --------------------------------------------------------------------


def _mrma(number: int, n_people: int, epsilon: float, *, seed: int = 0) -> StudyPlan:
    people, reports, size, members = _CASES[number]
    assert people == n_people
    return StudyPlan(
        n_people=people,
        epsilon=epsilon,
        encoder=CurveEncoder("bspline", n_basis=4, rescale="tanh", scale=2.0),
        classes=_CLASSES,
        design={
            "name": "mrma",
            "training_share": reports / people,
            "member_size": size,
            "n_classifiers": members,
            "cutoff": 0.6,
            "boundary_spread": None,
        },
        seed=seed,
    )


def _case(number: int, studies: int) -> dict[str, FloatArray]:
    """Errors of simulated studies of a case: on the paper's people, and by forecasts."""
    people, epsilon, planned = _CASES[number][0], _CASES_EPSILON, partial(_mrma, number)
    known: dict[str, Any] = {"shares": None, "non_private_error": _PAPER_LIMIT}
    public = simulate_001(2000, 10**6)
    means = np.stack([public.X[public.y == label].mean(axis=0) for label in _CLASSES])
    errors = {}
    for name, typical in (("family", None), ("typical", (means, _CLASSES))):
        place = made_up(planned(people, epsilon), "smooth", typical=typical, **known)
        errors[name] = Trials(place, planned, studies=studies).errors(people, epsilon)
    achieved = []
    for seed in range(studies):
        asked, others = simulate_001(_MOST, 2 * seed), simulate_001(2000, 2 * seed + 1)
        assert asked.y is not None
        own = _mrma(number, people, epsilon, seed=seed)
        first = asked.X[:people], asked.y[:people]
        achieved.append(_error(own, first, (others.X, others.y), seed))
    return errors | {"achieved": np.array(achieved)}


def _ranked(cases: dict[int, dict[str, FloatArray]]) -> tuple[dict[str, float], str]:
    """Of pairs of cases that truly differ, how many the forecasts put in the right order."""
    right: dict[str, list[bool]] = {"family": [], "typical": []}
    for first, second in combinations(cases.values(), 2):
        truths = first["achieved"] - second["achieved"]
        if abs(truths.mean()) > 3 * truths.std(ddof=1) / len(truths) ** 0.5:
            for name, found in right.items():
                found.append(bool((first[name] - second[name]).mean() * truths.mean() > 0))
    decidable = len(right["typical"])
    told = "; ".join(
        f"{number}: {', '.join(f'{100 * one[name].mean():.1f}' for name in one)}"
        for number, one in cases.items()
    )
    figures = {
        "cases_decidable": float(decidable),
        "cases_ranked_right": float(np.mean(right["typical"])) if decidable else 0.0,
        "cases_ranked_right_by_family": float(np.mean(right["family"])) if decidable else 0.0,
    }
    return figures, f"Cases of 001 by family, by typical curves, and achieved, in %: {told}."
