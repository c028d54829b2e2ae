"""002 Figure A3: synthetic data, D = 20 (linear) and D = 50 (logistic), pooled and among sites."""

from __future__ import annotations

from typing import Any

from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions._p002_panels import FORM_GUARANTEES, ahead, figure
from dpfda_bench.verdicts import Verdict

TITLE = "Synthetic data, pooled and among five sites (002 Figure A3)"
NEEDS = ()
SECONDS = 120
GUARANTEES = FORM_GUARANTEES
SITES = 5


def run(effort: Effort = FULL) -> Outcome:
    """Ten splits by default."""
    repeats = effort.repeats(10, quick=1)
    rows: list[dict[str, Any]] = []
    panels = {
        "linear, D = 20, pooled": ("synthetic, D = 20", None),
        "linear, D = 20, 5 sites": ("synthetic, D = 20", SITES),
        "logistic, D = 50, pooled": ("synthetic, D = 50", None),
        "logistic, D = 50, 5 sites": ("synthetic, D = 50", SITES),
    }
    for row in figure(panels, repeats=repeats, effort=effort):
        measure = "mse" if "mse" in row else "accuracy"
        rest = {key: value for key, value in row.items() if key != measure}
        rows.append(rest | {"measure": measure, "value": row[measure]})
    return Outcome(
        rows=rows,
        notes=[
            f"{repeats} random 90:10 splits of 10 000 rows; 002 does not say how it drew them. "
            "Labels as in Figures 1 to 4."
        ],
    )


def verdict(outcome: Outcome) -> Verdict:
    """The paper's claim that its method is ahead of the others."""
    return ahead(outcome.rows)
