"""002 Figure 2: logistic regression on phishing, adult and kdd."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dpfda.study.outcome import Outcome
from dpfda.study.preparation import prepare
from dpfda.study.reproductions._p002_panels import figure, plot_panels

TITLE = "Accuracy of private logistic regression (002 Figure 2)"
NOTES = [
    "002 prints no numbers. `as published` is its form, labelled with the ε it really has; `sound` "
    "is this package's; `as published, C9` floors eigenvalues at 2τ₂√D, because the literal §4.3 "
    "leaves the objective nearly unbounded. noisy_gradient pays the claimed ε in 100 steps each.",
    "The trivial predictor is the majority class: kdd has 80 % attacks.",
]


def run(
    replications: int | None = None,
    quick: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Outcome:
    """Ten splits by default, as in 002."""
    repeats = replications or (1 if quick else 10)
    names = ("phishing",) if quick else ("phishing", "adult", "kdd")
    datasets = {name: prepare(name) for name in names}
    rows = figure(datasets, replications=repeats, quick=quick, progress=progress)
    return Outcome(
        rows=rows,
        notes=[f"{repeats} random 90:10 splits; noise is simulated.", *NOTES],
        plot=partial(plot_panels, rows, "accuracy"),
    )
