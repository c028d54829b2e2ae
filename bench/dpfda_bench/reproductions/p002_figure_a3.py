"""002 Figure A3: synthetic data, D = 20 (linear) and D = 50 (logistic), pooled and among sites."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions._p002 import synthetic
from dpfda_bench.reproductions._p002_panels import figure

TITLE = "Synthetic data, pooled and among five sites (002 Figure A3)"
SITES = 5


def run(effort: Effort = FULL) -> Outcome:
    """Ten splits by default."""
    repeats = effort.repeats(10, quick=1)
    rows: list[dict[str, Any]] = []
    settings = [
        ("linear, D = 20, pooled", synthetic("linear", dimension=20), None),
        ("linear, D = 20, 5 sites", synthetic("linear", dimension=20), SITES),
        ("logistic, D = 50, pooled", synthetic("logistic", dimension=50), None),
        ("logistic, D = 50, 5 sites", synthetic("logistic", dimension=50), SITES),
    ]
    still = replace(effort, progress=None)
    for name, data, sites in effort.over(settings):
        found = figure({name: data}, repeats=repeats, effort=still, sites=sites)
        rows += [
            {key: value for key, value in row.items() if key != data.measure}
            | {"measure": data.measure, "value": row[data.measure]}
            for row in found
        ]
    return Outcome(
        rows=rows,
        notes=[
            f"{repeats} random 90:10 splits of 10 000 rows; 002 does not say how it drew them. "
            "Labels as in Figures 1 to 4."
        ],
    )
