"""004 Table III: how much noise disturbs the impurities that choose a decision stump."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np

from dpfda.noise import SimulationSource
from dpfda.report.contents import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.goals import at_least
from dpfda_bench.reproductions import _p004 as common
from dpfda_bench.verdict import Verdict

TITLE = "Mean squared difference of perturbed and true impurities φ, first round (004 Table III)"
NEEDS = ("mnist_4_9", "fashion")
SECONDS = 120
CLAIMED = "ε-LDP for one owner"
READING = (
    "Mean squared differences in place of the plain ones of the text; shares divided by the "
    "public number of rows (C17)."
)
GUARANTEES = {"measured": "ε-LDP for one owner, shares divided by a public bound (C17)"}

PRINTED_GAP = {"mnist": 0.2, "fashion": 0.17, "synthetic": 0.3}
OWNERS = {"mnist": (200, 20), "fashion": (200, 20), "synthetic": (1000, 80)}
GOALS = {"synthetic_in_order": at_least(1.0)}


def run(effort: Effort = FULL) -> Outcome:
    """Ten runs as in the paper; the corrected share is the printed one, normalized (C17)."""
    runs = effort.repeats(10, quick=3)
    rows = common.table("004-table-3", _cell, effort, runs=runs)
    figures = common.in_order(rows, "measured")
    for name in dict.fromkeys(row["data"] for row in rows):
        key = f"{name}_piecewise_below_gap_from_eps"
        figures[key] = common.first_below(rows, name, "measured", "gap")
        figures[f"{key}_printed"] = common.first_below(rows, name, "printed", "printed gap")
    return Outcome(
        rows=rows,
        figures=figures,
        notes=[
            f"{runs} runs; 200 owners × 20 rows (synthetic: 1000 × 80); thresholds are the data "
            "user's medians.",
            "Printed numbers fit the mean of (φ - φ')², not the plain difference that the text "
            "defines: Laplace noise alone gives 1309 for MNIST at ε = 1 (printed 1290).",
            "The gap Δ_im is the mean absolute difference of φ between two features.",
        ],
        plot=partial(common.plot_table, rows, "measured", "gap", "features"),
    )


def verdict(outcome: Outcome) -> Verdict:
    """Printed over measured."""
    return common.off_print(outcome.rows, "measured")


def _cell(name: common.Name, mechanism: str, epsilon: float, runs: int) -> dict[str, float]:
    data = common.load(name)
    found = [disturbance(data, name, mechanism, epsilon, seed) for seed in range(runs)]
    return {
        "measured": float(np.mean([square for square, _ in found])),
        "gap": found[0][1],
        "printed gap": PRINTED_GAP[name],
    }


def disturbance(
    data: common.Data, name: str, mechanism: str, epsilon: float, seed: int
) -> tuple[float, float]:
    """Mean over features of (φ' - φ)², and the mean difference of φ between features."""
    number, size = OWNERS[name]
    owners = data.grouped(number, size, seed=seed)
    study = common.shares("statistic", data, owners, mechanism=mechanism, epsilon=epsilon)
    request, source = study.tasks(0, number), SimulationSource(seed)
    true = request.exact(request.fitting(owners), source).mean(axis=0)
    reply = request.answer(owners, source).values.mean(axis=0)
    phi, noisy = (np.abs(table.reshape(2, -1)).sum(axis=0) for table in (true, reply))
    gap = np.mean([abs(one - other) for one, other in combinations(phi, 2)])
    return float(np.mean((noisy - phi) ** 2)), float(gap)
