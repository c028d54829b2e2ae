"""All of Figure 2 of 001 on an accelerator, beside two cores, from the same seeds in one run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dpfda.errors import DpfdaError
from dpfda.local.mrma.learners._arrays import placed
from dpfda.planning.sweep import Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.effort import Effort
from dpfda_bench.goals import at_most
from dpfda_bench.reproductions import p001_figure_2

GOALS = {"gpu_seconds": at_most(5.0), "largest_difference_points": at_most(0.01)}
_REPLICATIONS, _FEW = 500, 50
_RULES = ("as published",)


def run(quick: bool = False) -> Outcome:
    """500 replications, 8 budgets, 4 learners, 7 methods, as in `dpfda bench mrma`."""
    try:
        placed(np.zeros(1), "cuda")
    except DpfdaError as refusal:
        return Outcome(notes=[f"Left out: {refusal}."])
    studies = _FEW if quick else _REPLICATIONS
    gpu = Effort(device="cuda")
    p001_figure_2.measure(1, rules=_RULES, effort=gpu)  # kernels and tables are loaded once
    there, on_gpu = _timed(studies, gpu)
    here, on_cpu = _timed(studies, Effort(sweep=Sweep(jobs=2)))
    apart = [100 * abs(on_gpu[key] - on_cpu[key]) for key in on_cpu]
    figures = {
        "cpu_seconds": here,
        "gpu_seconds": there,
        "speedup": here / there,
        "largest_difference_points": max(apart),
    }
    note = (
        f"{studies} replications. What chance decides is drawn on the CPU for both, by the same "
        "exact code: by two processes, started within their time, and by threads."
    )
    return Outcome(figures=figures, notes=[note])


def _timed(studies: int, effort: Effort) -> tuple[float, dict[Any, float]]:
    began = time.perf_counter()
    means, _ = p001_figure_2.measure(studies, rules=_RULES, effort=effort)
    return time.perf_counter() - began, means
