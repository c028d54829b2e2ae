"""How long all of Figure 2 of 001 takes: 500 replications, 8 budgets, 4 learners, 7 methods."""

from __future__ import annotations

import time

from dpfda.study.outcome import Outcome, at_most
from dpfda.study.reproductions import _p001 as common
from dpfda.study.reproductions import p001_figure_2

GOALS = {"figure2_seconds": at_most(300)}

_REPLICATIONS = 500
_CORES = 2


def run(quick: bool = False) -> Outcome:
    """Measure the reproduction on two cores; quick: 5 replications on one, scaled up."""
    studies = 5 if quick else _REPLICATIONS
    start = time.perf_counter()
    p001_figure_2.measure(studies, n_jobs=1 if quick else _CORES)
    seconds = (time.perf_counter() - start) * _REPLICATIONS / studies
    combinations = _REPLICATIONS * len(common.EPSILONS) * len(common.LEARNERS)
    size = f"{studies} replications" + (" on one core, scaled to 500" if quick else " on two cores")
    return Outcome(
        figures={
            "figure2_seconds": seconds,
            "studies_per_second": combinations * len(common.RULES) / seconds,
        },
        notes=[f"{size}; three rules (as published, corrected, default) are in it."],
    )
