"""002 Figure 2: logistic regression on phishing, adult and kdd."""

from __future__ import annotations

from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions._p002_panels import FORM_GUARANTEES, FORMS, ahead, logistic_or_linear
from dpfda_bench.verdicts import Verdict

TITLE = "Accuracy of private logistic regression (002 Figure 2)"
NEEDS = ("phishing", "adult", "kdd")
SECONDS = 120
GUARANTEES = FORM_GUARANTEES
NOTES = [
    FORMS.format(steps=100),
    "The trivial predictor is the majority class: kdd has 80 % attacks.",
]


def run(effort: Effort = FULL) -> Outcome:
    """Ten splits by default, as in 002."""
    return logistic_or_linear(("phishing", "adult", "kdd"), effort, notes=NOTES)


def verdict(outcome: Outcome) -> Verdict:
    """The paper's claim that its method is ahead of the others."""
    return ahead(outcome.rows)
