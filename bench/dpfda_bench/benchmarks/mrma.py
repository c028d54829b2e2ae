"""How long all of Figure 2 of 001 takes: 500 replications, 8 budgets, 4 learners, 7 methods."""

from __future__ import annotations

import time

from dpfda.planning.sweep import Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.effort import Effort
from dpfda_bench.goals import at_most
from dpfda_bench.reproductions import _p001 as common
from dpfda_bench.reproductions import p001_figure_2

GOALS = {"figure2_seconds": at_most(300)}

_REPLICATIONS = 500
_CORES = 2
_RULES = ("as published",)


def run(quick: bool = False) -> Outcome:
    """Measure the published experiment on two cores; quick: estimate it from one small batch."""
    seconds = _estimate() if quick else _measure()
    combinations = _REPLICATIONS * len(common.EPSILONS) * len(common.LEARNERS)
    how = "estimated from the processor time of 10 replications" if quick else "500 replications"
    return Outcome(
        figures={"figure2_seconds": seconds, "studies_per_second": combinations / seconds},
        notes=[f"{how}, on two cores; seven methods each; a study has 3000 people."],
    )


def _measure() -> float:
    start = time.perf_counter()
    effort = Effort(sweep=Sweep(jobs=_CORES))
    p001_figure_2.measure(_REPLICATIONS, rules=_RULES, effort=effort)
    return time.perf_counter() - start


def _estimate(studies: int = 10) -> float:
    p001_figure_2.measure(1, rules=_RULES, epsilons=(1.0,))  # tables are built once
    start = time.process_time()
    p001_figure_2.measure(studies, rules=_RULES)
    return (time.process_time() - start) * _REPLICATIONS / studies / _CORES
