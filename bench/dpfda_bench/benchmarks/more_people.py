"""Whether more people make a study better: its error as the number of people grows.

Random problems of two classes of curves (`dpfda_bench.random_problems`), each with four shares of
the smaller class and with 50 to 20 000 effective people in steps of a half more. A step up is the
mean rise of the error from one size to the next, less what chance allows all steps together at the
5 % level.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from scipy.stats import norm

from dpfda.local.recipe import plan_study
from dpfda.mechanisms.randomized_response import effective_answers
from dpfda.noise import SimulationSource
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda.simulate import people_from, simulate
from dpfda_bench.goals import Goal, at_most
from dpfda_bench.random_problems import curve_classes

GOALS: dict[str, Goal] = {"largest_step_up": at_most(0.0)}
SHARES = (0.1, 0.2, 0.35, 0.5)
EFFECTIVE = (*(50 * 1.5**step for step in range(15)), 20_000.0)
_EPSILON = 1.0
_PROBLEMS, _FEW = 40, 3
_OTHERS = 4000
_LEVEL = 0.05
_FIRST = {"choose": 0, "confirm": 1000}


def run(quick: bool = False, *, sweep: Sweep = ALONE, seeds: str = "choose") -> Outcome:
    """Every share and size.

    Args:
        quick: three problems.
        sweep: where studies run.
        seeds: ``choose``, or ``confirm`` for problems that nothing was chosen on.
    """
    number = range(_FIRST[seeds], _FIRST[seeds] + (_FEW if quick else _PROBLEMS))
    found = {
        share: np.array(sweep.run(partial(errors, share), product(number))) for share in SHARES
    }
    return concluded(found)


def concluded(found: dict[float, np.ndarray]) -> Outcome:
    """Errors of each share, shape (problems, sizes), as a table, with the largest step up."""
    rows, largest = [], -np.inf
    allowed = norm.isf(_LEVEL / (len(found) * (len(EFFECTIVE) - 1)))
    for share, wrong in found.items():
        steps = 100 * np.diff(wrong, axis=1)
        chance = allowed * steps.std(axis=0, ddof=1) / np.sqrt(len(steps))
        largest = max(largest, float((steps.mean(axis=0) - chance).max()))
        rows += [
            {"share": share, "effective": size, "error": 100 * float(error)}
            for size, error in zip(EFFECTIVE, wrong.mean(axis=0), strict=True)
        ]
    notes = [
        f"Steps in points, less {allowed:.1f} standard errors: above 0, more people did harm.",
    ]
    return Outcome(rows=rows, figures={"largest_step_up": largest}, notes=notes)


def errors(share: float, seed: int) -> list[float]:
    """Of one problem with this share of class 1, size by size."""
    problem, rng = replace(curve_classes(seed), share=share), np.random.default_rng(seed)
    others, truth = problem.draw(_OTHERS, rng)
    found = []
    for effective in EFFECTIVE:
        people = round(effective / effective_answers(1, _EPSILON))
        curves, labels = problem.draw(people, rng)
        plan = plan_study(
            people, _EPSILON, classes=(0, 1), value_range=problem.value_range, seed=seed
        )
        study = simulate(plan, people_from(plan, curves, labels), source=SimulationSource(seed))
        found.append(float(np.mean(study.model.predict(others) != truth)))
    return found
