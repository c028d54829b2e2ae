"""What changes if one belief of studies of two classes is halved or doubled.

`dpfda.local.study.beliefs.Beliefs` holds every number of the prior. Each of them is changed alone,
on the random problems of `dpfda bench random_studies`. A belief whose change matters much would
have to be known better.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.local.study.beliefs import Beliefs
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks.random_studies import studies
from dpfda_bench.goals import Goal, at_most

GOALS: dict[str, Goal] = {"largest_change": at_most(0.05)}
FACTORS = {"halved": 0.5, "doubled": 2.0}
_PROBABILITIES = ("nothing", "balanced", "even")
_PROBLEMS, _FEW = 32, 2


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Change of the mean regret for each belief, halved and doubled, with standard errors.

    Args:
        quick: two problems.
        sweep: where studies run.
    """
    problems = list(product(range(_FEW if quick else _PROBLEMS)))

    def regrets(beliefs: Beliefs) -> FloatArray:
        return np.array(sweep.run(partial(regret, beliefs), problems))

    before, rows, largest = regrets(Beliefs()), [], 0.0
    for name in (one.name for one in fields(Beliefs)):
        row: dict[str, Any] = {"belief": name, "value": _shown(getattr(Beliefs(), name))}
        for how, factor in FACTORS.items():
            change = regrets(changed(name, factor)) - before
            row[how], row[f"{how}_se"] = float(change.mean()), _error(change)
            largest = max(largest, row[how])
        rows.append(row | {"reason": Beliefs.reason(name)})
    notes = [
        f"Mean regret of {len(problems)} problems in six cells: {before.mean():.3f}; 0 as without "
        "privacy, 1 as guessing. Shown is its change; of a probability, its odds are changed; of "
        "`slack_odds`, the odds of each value beside the one before."
    ]
    return Outcome(rows=rows, figures={"largest_change": largest}, notes=notes)


def changed(name: str, factor: float) -> Beliefs:
    """The beliefs with one of them this many times as large; of a probability, its odds.

    Examples:
        >>> changed("apart", 2.0).apart, changed("balanced", 3.0).balanced
        (0.8, 0.75)
    """
    value = getattr(Beliefs(), name)
    if name in _PROBABILITIES:
        new: Any = factor * value / (1 - value + factor * value)
    elif name == "slack_odds":
        new = tuple(float(one) for one in np.array(value) * factor ** np.arange(len(value)))
    elif isinstance(value, tuple):
        new = tuple(factor * one for one in value)
    else:
        new = factor * value
    return replace(Beliefs(), **{name: new})


def regret(beliefs: Beliefs, seed: int) -> float:
    """Mean regret of one problem over all cells."""
    return float(np.mean([one["regret"] for one in studies(seed, beliefs=beliefs)]))


def _error(change: FloatArray) -> float:
    return float(change.std() / np.sqrt(len(change)))


def _shown(value: Any) -> str:
    return " ".join(f"{one:g}" for one in (value if isinstance(value, tuple) else (value,)))
