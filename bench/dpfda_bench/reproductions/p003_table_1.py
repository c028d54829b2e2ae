"""003 Table 1: time for 100 paths of the Laplace process and of a Gaussian process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpfda.central.functions import Kernel, Matern, SquaredExponential
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks.iclp import path_times
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.goals import at_most
from dpfda_bench.printed import printed
from dpfda_bench.verdict import Verdict, not_comparable

TITLE = "Time for 100 paths, and for the one decomposition behind them (003 Table 1)"
NEEDS = ()
SECONDS = 60
CLAIMED = "none: times"
READING = (
    "One core, best of several runs; one decomposition for all paths, where the printed times "
    "have one a path."
)
GUARANTEES = {"every row": "none: times of simulated paths"}
GOALS = {"paths_over_eigh": at_most(0.2)}

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
    # Printed: seconds for 100 ICLPs and 100 Gaussian processes, each with its own decomposition.
    lines = printed("003-table-1")
    names = [(line["kernel"], int(line["K"]), best_of) for line in lines]
    alone = replace(effort.sweep, jobs=1, store=None)  # times are measured now, and undisturbed
    for published, times in zip(lines, alone.run(_times, names), strict=True):
        kernel, size = published["kernel"], int(published["K"])
        rows.append(
            {"kernel": kernel, "K": size}
            | {f"published {name}": published[name] for name in ("ICLP", "GP")}
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


def verdict(outcome: Outcome) -> Verdict:
    """Times of two machines and two programs."""
    ratio = max(row["published ICLP"] / row["100 ICLP"] for row in outcome.rows)
    return not_comparable(
        f"Seconds on another machine; one decomposition for all paths makes them up to {ratio:.0f} "
        "times faster than printed."
    )


def _times(kernel: str, size: int, best_of: int) -> dict[str, float]:
    return path_times(_KERNELS[kernel], size, best_of=best_of)
