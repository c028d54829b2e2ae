"""What changes when one belief of studies of two classes is halved or doubled.

`dpfda.local.study.beliefs` says what is held likely before anybody answers. Here each of its
numbers is half as large and twice as large, one after the other, on the random problems of
`dpfda bench random_studies`. A belief on which much depends would have to be known better.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

from dpfda.local.study import beliefs
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks.random_studies import studies
from dpfda_bench.goals import Goal, at_most

GOALS: dict[str, Goal] = {"largest_change": at_most(0.05)}
BELIEFS = {
    "WIDTH": "the first feature's width",
    "FALLS": "how fast widths fall",
    "OWN_WIDTH": "a feature's own part in its width",
    "MIDDLES": "how far middles are from 0",
    "LEVEL": "how far levels are from the middle of the range",
    "APART": "how far classes are apart",
    "NOTHING": "how likely it is that nothing says anything",
    "BALANCED": "how likely equal classes are",
    "UNEVEN": "how uneven others are",
}
_PROBLEMS, _FEW = 64, 2


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Mean regret of every change less that of none, with its standard error."""
    problems = range(_FEW if quick else _PROBLEMS)

    def regrets(name: str | None, factor: float) -> Any:
        found = sweep.run(partial(changed, name, factor), product(problems))
        return np.array(found)

    before = regrets(None, 1.0)
    rows = [{"belief": "none", "factor": 1.0, "regret": float(before.mean())}]
    largest = 0.0
    for name, factor in product(BELIEFS, (0.5, 2.0)):
        now = regrets(name, factor)
        change = now - before
        rows.append(
            {
                "belief": BELIEFS[name],
                "factor": factor,
                "regret": float(now.mean()),
                "change": float(change.mean()),
                "se": float(change.std() / np.sqrt(len(change))),
            }
        )
        largest = max(largest, float(change.mean()))
    notes = ["Regret: 0 as without privacy, 1 as guessing; mean over problems and cells."]
    return Outcome(rows=rows, figures={"largest_change": largest}, notes=notes)


def changed(name: str | None, factor: float, seed: int) -> float:
    """Mean regret of one problem where a belief is changed."""
    if name is None:
        return _regret(seed)
    with patch.object(beliefs, name, changed_value(name, factor)):
        return _regret(seed)


def changed_value(name: str, factor: float) -> Any:
    """A belief that many times as large; of a logarithm, what it is the logarithm of.

    Examples:
        >>> round(changed_value("NOTHING", 2.0), 3), changed_value("BALANCED", 2.0)
        (0.2, 0.95)
    """
    value = getattr(beliefs, name)
    if name == "WIDTH":
        return value + np.log(factor)
    return min(factor * value, 0.95) if name == "BALANCED" else factor * value


def _regret(seed: int) -> float:
    return float(np.mean([one["regret"] for one in studies(seed, signal=True)]))
