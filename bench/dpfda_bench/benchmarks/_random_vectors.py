"""Random tables of two classes, several classes and numbers: what `plan_study` loses on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpfda.local.recipe import plan_study
from dpfda.noise import SimulationSource
from dpfda.simulate import people_from, simulate
from dpfda_bench.random_columns import Kind, column_problem

CELLS = ((1000, 1.0), (3000, 1.0), (3000, 4.0), (20_000, 1.0), (20_000, 4.0))
"""People and ε."""
_PUBLIC, _OTHERS = 20_000, 4000
_WORST, _BEST = 1.5, -0.2  # where regrets are cut: near the limit a ratio says little
_LEAST = 0.02  # of what could be learnt: a problem with less says nothing of a study


def regrets(
    kind: Kind, seed: int, *, cells: Sequence[tuple[int, float]] = CELLS
) -> list[dict[str, Any]]:
    """One problem in every cell; nothing where there is next to nothing to learn."""
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    problem, rng = column_problem(kind, seed), np.random.default_rng(seed + 2 * 10**6)
    numbers = kind == "numbers"
    facts: dict[str, Any] = problem.public | {"seed": seed}
    if not numbers:
        facts["classes"] = tuple(range(len(problem.shares)))
    (others, truth), (public, known) = problem.draw(_OTHERS, rng), problem.draw(_PUBLIC, rng)

    def lost(predicted: Any) -> float:
        return float(np.mean((predicted - truth) ** 2 if numbers else predicted != truth))

    encoder = plan_study(_PUBLIC, 1.0, **facts).encoder
    best = LinearRegression() if numbers else LogisticRegression(C=1e3, max_iter=500)
    fitted = make_pipeline(StandardScaler(), best).fit(encoder.encode(public), known)
    limit = lost(fitted.predict(encoder.encode(others)))
    guessing = lost(known.mean() if numbers else np.bincount(known).argmax())
    found = []
    for n, epsilon in cells:
        rows, labels = problem.draw(n, rng)
        if guessing - limit < _LEAST * guessing:
            continue
        plan = plan_study(n, epsilon, **facts)
        study = simulate(plan, people_from(plan, rows, labels), source=SimulationSource(seed))
        error = lost(np.asarray(study.model.predict(others)))
        regret = float(np.clip((error - limit) / (guessing - limit), _BEST, _WORST))
        row = {"people": n, "epsilon": epsilon, "regret": regret, "error": error, "limit": limit}
        found.append(row)
    return found


def rows_of(kind: Kind, found: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Mean regrets, one row a cell."""
    rows = []
    for people, epsilon in CELLS:
        own = [
            one["regret"]
            for several in found
            for one in several
            if (one["people"], one["epsilon"]) == (people, epsilon)
        ]
        mean, error = (
            (float(np.mean(own)), float(np.std(own) / np.sqrt(len(own)))) if own else (0.0, 0.0)
        )
        cell: dict[str, Any] = {"problems": kind, "people": people, "epsilon": epsilon}
        rows.append(cell | {"regret": mean, "standard_error": error})
    return rows
