"""002 Figure 3: linear regression among sites, on IWPC, crime and twitter."""

from __future__ import annotations

from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions._p002_panels import (
    AMONG_SITES,
    FORM_GUARANTEES,
    SITES,
    ahead,
    logistic_or_linear,
)
from dpfda_bench.verdicts import Verdict

TITLE = "Mean squared error of decentralized linear regression (002 Figure 3)"
NEEDS = ("warfarin", "crime", "twitter")
SECONDS = 120
GUARANTEES = FORM_GUARANTEES


def run(effort: Effort = FULL) -> Outcome:
    """Ten splits by default, as in 002, and five sites."""
    names = ("warfarin", "crime", "twitter")
    return logistic_or_linear(names, effort, notes=[AMONG_SITES], sites=SITES)


def verdict(outcome: Outcome) -> Verdict:
    """The paper's claim that its method is ahead of the others."""
    return ahead(outcome.rows)
