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
    """Measure the published experiment on two cores; quick: a batch on one, scaled up."""
    studies, epsilons = (10, (0.5, 5.0)) if quick else (_REPLICATIONS, common.EPSILONS)
    start = time.perf_counter()
    p001_figure_2.measure(
        studies, rules=("as published",), epsilons=epsilons, n_jobs=1 if quick else _CORES
    )
    share = studies * len(epsilons) / (_REPLICATIONS * len(common.EPSILONS))
    seconds = (time.perf_counter() - start) / share
    combinations = _REPLICATIONS * len(common.EPSILONS) * len(common.LEARNERS)
    size = "one batch on one core, scaled up" if quick else "500 replications on two cores"
    return Outcome(
        figures={"figure2_seconds": seconds, "studies_per_second": combinations / seconds},
        notes=[f"{size}, seven methods each; a study has 3000 people."],
    )
