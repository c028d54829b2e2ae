"""002 Figure 3: linear regression among sites, on IWPC, crime and twitter."""

from __future__ import annotations

from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions._p002_panels import AMONG_SITES, SITES, logistic_or_linear

TITLE = "Mean squared error of decentralized linear regression (002 Figure 3)"


def run(effort: Effort = FULL) -> Outcome:
    """Ten splits by default, as in 002, and five sites."""
    names = ("warfarin", "crime", "twitter")
    return logistic_or_linear(names, effort, notes=[AMONG_SITES], sites=SITES)
