"""002 Figure 1: linear regression on IWPC, crime and twitter."""

from __future__ import annotations

from functools import partial

from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions._p002 import LOW, LOW_TWITTER, renyi_epsilon
from dpfda_bench.reproductions._p002_panels import (
    FORM_GUARANTEES,
    FORMS,
    ahead,
    figure,
    plot_panels,
)
from dpfda_bench.verdicts import Verdict

TITLE = "Mean squared error of private linear regression (002 Figure 1)"
NEEDS = ("warfarin", "crime", "twitter")
SECONDS = 120
GUARANTEES = FORM_GUARANTEES
NOTES = [
    FORMS.format(steps=1000),
    "Every table shows the trivial predictor (the training mean): on twitter, whose target has a "
    "standard deviation of 0.03 on a scale bounded by 1, most private methods do not beat it. "
    "`twitter, y ≤ 0.1` is the same data with a public bound of 0.1 on the target: its 1 % largest "
    "targets count as 0.1, in training and in the score, so compare it with its own trivial row.",
]


def run(effort: Effort = FULL) -> Outcome:
    """Ten splits by default, as in 002."""
    repeats = effort.repeats(10, quick=2)
    names = ("warfarin",) if effort.quick else ("warfarin", "crime", "twitter", LOW_TWITTER)
    rows = figure({name: (name, None) for name in names}, repeats=repeats, effort=effort)
    for row in rows:
        if row["data"] == LOW_TWITTER:
            row["mse"] *= LOW**2  # back to the units of twitter
    worst = renyi_epsilon(4.8448 / 0.5, steps=1000, delta=1e-5)
    return Outcome(
        rows=rows,
        figures={"noisy_gradient_overall_epsilon": worst},
        notes=[f"{repeats} random 90:10 splits; noise is simulated.", *NOTES],
        plot=partial(plot_panels, rows, "mse"),
    )


def verdict(outcome: Outcome) -> Verdict:
    """The paper's claim that its method is ahead of the others."""
    return ahead(outcome.rows)
