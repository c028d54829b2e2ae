"""MRMA with several verdicts of each person, on simulated people of 001.

A figure is ``<learner>_k<verdicts of a person>_eps<ε>``, the error in %; there is no goal, since no
paper has one.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from dpfda import MRMAClassifier
from dpfda.datasets import simulate_001
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.goals import Goal
from dpfda_bench.measuring import mean_and_error

GOALS: dict[str, Goal] = {}
_LEARNERS = ("conjugate_gradient", "logistic")
_VERDICTS = (1, 2, 5)
_EPSILONS = (0.5, 1.0, 2.0, 5.0)
_PEOPLE, _OTHERS = 3000, 2000
_REPLICATIONS, _FEW = 20, 2


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Mean errors in % over replications: the same people and noise seeds for every k."""
    replications = _FEW if quick else _REPLICATIONS
    rows: list[dict[str, Any]] = []
    for learner, epsilon, verdicts in product(_LEARNERS, _EPSILONS, _VERDICTS):
        seeds = product(range(replications))
        found = sweep.run(partial(_error, learner, epsilon, verdicts), seeds)
        row = {"learner": learner, "epsilon": epsilon, "verdicts": verdicts}
        rows.append(row | mean_and_error(found))
    figures = {
        f"{row['learner']}_k{row['verdicts']}_eps{row['epsilon']:g}": row["error"] for row in rows
    }
    notes = [f"Errors in %, {_PEOPLE} people, {replications} replications; ε/k for each verdict."]
    return Outcome(rows=rows, figures=figures, notes=notes)


def _error(learner: str, epsilon: float, verdicts: int, seed: int) -> float:
    data = simulate_001(_PEOPLE + _OTHERS, random_state=seed)
    asked, others = slice(None, _PEOPLE), slice(_PEOPLE, None)
    assert data.y is not None
    made = MRMAClassifier(
        epsilon=epsilon, learner=learner, classifiers_per_person=verdicts, random_state=seed
    )
    made.fit(data.X[asked], data.y[asked], grid_points=data.grid_points)
    score = made.score(data.X[others], data.y[others], grid_points=data.grid_points)
    return 100 * (1 - score)
