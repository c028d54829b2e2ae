"""003 Table 1: time for 100 paths of the Laplace process and of a Gaussian process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpfda.central.functions import decompose, eigenpairs
from dpfda.central.kernels import Exponential, Kernel, Matern, SquaredExponential
from dpfda.central.process import Process
from dpfda.study.effort import FULL, Effort
from dpfda.study.outcome import Outcome, at_most

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
    "exponential": Exponential(),
    "gaussian": SquaredExponential(),
    "matern 3/2": Matern(nu=1.5),
    "matern 5/2": Matern(nu=2.5),
}


def run(effort: Effort = FULL) -> Outcome:
    """Best of several runs, on one core."""
    best_of = effort.repeats(15, quick=3)
    generator = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for number, (kernel, size) in enumerate(PUBLISHED):
        axis = np.linspace(0, 1, size)
        basis = eigenpairs(_KERNELS[kernel], (axis,))
        laplace, gaussian = Process(basis=basis), Process(basis=basis, law="gaussian")
        for process in (laplace, gaussian):
            process.simulate(1, generator)
        with threadpool_limits(1):
            eigh = _best(lambda k=_KERNELS[kernel], a=axis: decompose(k, a), best_of)  # type: ignore[misc]
            iclp = _best(lambda p=laplace: p.simulate(100, generator), best_of)  # type: ignore[misc]
            many = _best(lambda p=laplace: p.simulate(1000, generator), best_of)  # type: ignore[misc]
            gp = _best(lambda p=gaussian: p.simulate(100, generator), best_of)  # type: ignore[misc]
        rows.append(
            {
                "kernel": kernel,
                "K": size,
                "published ICLP": PUBLISHED[kernel, size][0],
                "published GP": PUBLISHED[kernel, size][1],
                "one decomposition": eigh,
                "100 ICLP": iclp,
                "100 GP": gp,
                "1000 ICLP": many,
                "100 ICLP over one decomposition": iclp / eigh,
            }
        )
        effort.done((number + 1) / len(PUBLISHED))
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


def _best(task: Callable[[], object], times: int) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
