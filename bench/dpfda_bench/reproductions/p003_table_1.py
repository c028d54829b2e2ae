"""003 Table 1: time for 100 paths of the Laplace process and of a Gaussian process."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda.central.kernels import Kernel, Matern, SquaredExponential
from dpfda.study.outcome import Outcome, at_most
from dpfda_bench.benchmarks.iclp import path_times
from dpfda_bench.effort import FULL, Effort

TITLE = "Time for 100 paths, and for the one decomposition behind them (003 Table 1)"
GOALS = {"paths_over_eigh": at_most(0.2)}

PUBLISHED = {
    ("exponential", 100): (0.5677, 0.2735),
    ("exponential", 200): (2.7786, 1.6838),
    ("exponential", 500): (29.985, 20.902),
    ("gaussian", 100): (0.5530, 0.2684),
    ("gaussian", 200): (2.6178, 1.6102),
    ("gaussian", 500): (29.263, 20.418),
    ("matern 3/2", 100): (0.5710, 0.2707),
    ("matern 3/2", 200): (2.6366, 1.6172),
    ("matern 3/2", 500): (29.381, 20.569),
    ("matern 5/2", 100): (0.5512, 0.2715),
    ("matern 5/2", 200): (2.6184, 1.6152),
    ("matern 5/2", 500): (29.291, 20.534),
}
"""Seconds for 100 ICLPs and 100 Gaussian processes, each with a decomposition of its own."""

_KERNELS: dict[str, Kernel] = {
    "exponential": Matern(nu=0.5),
    "gaussian": SquaredExponential(),
    "matern 3/2": Matern(nu=1.5),
    "matern 5/2": Matern(nu=2.5),
}


def run(effort: Effort = FULL) -> Outcome:
    """Best of several runs, on one core."""
    best_of = effort.repeats(15, quick=3)
    rows: list[dict[str, Any]] = []
    for (kernel, size), (laplace, gaussian) in effort.over(PUBLISHED.items()):
        times = path_times(_KERNELS[kernel], size, best_of=best_of)
        rows.append(
            {"kernel": kernel, "K": size, "published ICLP": laplace, "published GP": gaussian}
            | {name: times[name] for name in times if name != "100 exact ICLP"}
            | {"100 ICLP over one decomposition": times["100 ICLP"] / times["one decomposition"]}
        )
    figures = {
        "paths_over_eigh": max(row["100 ICLP over one decomposition"] for row in rows),
        "time_of_1000_over_100_paths": float(
            np.median([row["1000 ICLP"] / row["100 ICLP"] for row in rows])
        ),
    }
    notes = [
        "Seconds. The published code decomposes the kernel once a path; here once for all.",
        "Paths are floating-point ones, for pictures; a release draws exact lattice noise.",
    ]
    return Outcome(rows=rows, figures=figures, notes=notes)
