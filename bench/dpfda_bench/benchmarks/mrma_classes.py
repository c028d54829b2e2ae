"""MRMA of several classes beside the study that `plan_study` makes of the same people.

Each figure is ``<task>_eps<ε>``, MRMA's error in %; there is no goal, since no paper has one.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from dpfda import MRMAClassifier
from dpfda.datasets.catalogue import DataFileMissing
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks._local_problem import Problem
from dpfda_bench.benchmarks._local_problems import problems
from dpfda_bench.benchmarks.local import study
from dpfda_bench.goals import Goal
from dpfda_bench.measuring import mean_and_error

GOALS: dict[str, Goal] = {}
_TASKS = ("K6", "phoneme5")
_EPSILONS = (1.0, 2.0, 5.0)
_REPLICATIONS, _FEW = 20, 2


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Mean errors in % over replications."""
    rows: list[dict[str, Any]] = []
    notes = ["Errors in %; the recipe's study has the design that plan_study chooses."]
    for problem in problems():
        try:
            if problem.name in _TASKS:
                rows += _rows(problem, sweep, _FEW if quick else _REPLICATIONS)
        except DataFileMissing as missing:
            notes.append(f"{problem.name} left out: {missing}")
    figures = {f"{row['task']}_eps{row['epsilon']:g}": row["mrma"] for row in rows}
    return Outcome(rows=rows, figures=figures, notes=notes)


def _rows(problem: Problem, sweep: Sweep, replications: int) -> list[dict[str, Any]]:
    rows = []
    for epsilon in _EPSILONS:
        found = sweep.run(partial(_errors, problem, epsilon), product(range(replications)))
        row: dict[str, Any] = {"task": problem.name, "epsilon": epsilon}
        row |= mean_and_error([one["mrma"] for one in found], "mrma")
        for name in ("recipe", "majority", "non_private"):
            row[name] = mean_and_error([one[name] for one in found], name)[name]
        rows.append(row)
    return rows


def _errors(problem: Problem, epsilon: float, seed: int) -> dict[str, float]:
    X, y, others, truth = problem.draw(seed)
    facts = dict(problem.facts, classes=tuple(range(problem.n_classes)))
    mrma = MRMAClassifier(epsilon=epsilon, random_state=seed, **facts).fit(X, y)
    errors = mrma.evaluate(others, truth).errors
    names = {"mrma": "MRMA", "majority": "majority class", "non_private": "non-private"}
    found = {short: 100 * errors[name] for short, name in names.items()}
    return found | {"recipe": study(problem, epsilon, seed)[0]}
