"""002 Figure 3: linear regression among sites, on IWPC, crime and twitter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dpfda.study.outcome import Outcome
from dpfda.study.preparation import prepare
from dpfda.study.reproductions._p002_panels import figure, plot_panels

TITLE = "Mean squared error of decentralised linear regression (002 Figure 3)"
SITES = 5
NOTES = [
    "fm, relaxed_fm, gaussian_fm, noisy_gradient and objective_perturbation as published work at "
    "each site alone and are averaged; cape is 002's correlated noise, labelled with the ε it "
    "really has against its coordinator. sound: DecentralizedRegression, real keys and masks.",
]


def run(
    replications: int | None = None,
    quick: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Outcome:
    """Ten splits by default, as in 002, and five sites."""
    repeats = replications or (1 if quick else 10)
    names = ("warfarin",) if quick else ("warfarin", "crime", "twitter")
    datasets = {name: prepare(name) for name in names}
    rows = figure(datasets, replications=repeats, quick=quick, progress=progress, sites=SITES)
    return Outcome(
        rows=rows,
        notes=[f"{repeats} random 90:10 splits, {SITES} sites; noise is simulated.", *NOTES],
        plot=partial(plot_panels, rows, "mse"),
    )
