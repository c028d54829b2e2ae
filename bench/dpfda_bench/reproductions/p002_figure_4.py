"""002 Figure 4: logistic regression among sites, on phishing, adult and kdd."""

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

TITLE = "Accuracy of decentralized logistic regression (002 Figure 4)"
NEEDS = ("phishing", "adult", "kdd")
SECONDS = 120
GUARANTEES = FORM_GUARANTEES


def run(effort: Effort = FULL) -> Outcome:
    """Ten splits by default, as in 002, and five sites."""
    return logistic_or_linear(
        ("phishing", "adult", "kdd"), effort, notes=[AMONG_SITES], sites=SITES
    )


def verdict(outcome: Outcome) -> Verdict:
    """The paper's claim that its method is ahead of the others."""
    return ahead(outcome.rows)
