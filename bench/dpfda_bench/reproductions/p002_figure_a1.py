"""002 Figure A1: noise on the coefficients of linear regression, for D = 5 … 100."""

from __future__ import annotations

from functools import partial
from typing import Any

from dpfda.privacy.calibration import gaussian_sigma
from dpfda.regression.sensitivity import best_weight, joint_l2
from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.plots import lines
from dpfda_bench.reproductions._p002 import DELTA, FM_FAMILY, noise_levels
from dpfda_bench.verdicts import Verdict, agrees_if

TITLE = "Standard deviation of the noise on Λ_j, linear regression, N = 10 000 (002 Figure A1)"
NEEDS = ()
SECONDS = 1
GUARANTEES = {
    "as published": "each order spends the claimed ε: gaussian_fm has far more in all (C7)",
    "sound gaussian_fm": "(ε, 1e-5)-DP for one row",
}
DIMENSIONS = (5, 10, 20, 50, 100)
EPSILONS = (0.1, 0.5, 1.0)
ROWS = 10_000


def run(effort: Effort = FULL) -> Outcome:
    """Evaluate every formula; nothing is random."""
    return levels("linear", first=0, factors=(2.0, 1.0))


def verdict(outcome: Outcome) -> Verdict:
    """The figure's claim: least noise with gaussian_fm."""
    held = [row["gaussian_fm"] < min(row["relaxed_fm"], row["fm"]) for row in outcome.rows]
    return agrees_if(
        all(held),
        f"gaussian_fm has the least noise in {sum(held)} of {len(held)} rows, as claimed; a sound "
        "release needs more than its printed noise (C7).",
    )


def levels(link: str, *, first: int, factors: tuple[float, float]) -> Outcome:
    """τ as published for each order, and the sound joint release beside it."""
    rows: list[dict[str, Any]] = []
    for epsilon in EPSILONS:
        for dimension in DIMENSIONS:
            columns = {
                method: noise_levels(method, link, dimension, n=ROWS, epsilon=epsilon)
                for method in FM_FAMILY
            }
            weight = best_weight(*factors, dimension=dimension)
            sigma = gaussian_sigma(epsilon=epsilon, delta=DELTA) / ROWS
            sigma *= joint_l2(factors[0], factors[1] * weight)
            for place in range(len(columns["fm"])):
                order = first + place
                rows.append(
                    {"epsilon": epsilon, "D": dimension, "order": order}
                    | {method: values[place] for method, values in columns.items()}
                    | {"sound gaussian_fm": {1: sigma, 2: sigma / weight}.get(order)}
                )
    shown = [
        {key: value for key, value in row.items() if key != "epsilon"}
        for row in sorted(rows, key=lambda row: row["order"])
        if row["epsilon"] == EPSILONS[1]
    ]
    return Outcome(
        rows=rows,
        notes=[
            f"δ = {DELTA:g}. fm: standard deviation √2 Δ/ε of Laplace noise; the others "
            "Δ √(2 ln(1.25/δ))/ε with the sensitivities of Table A1.",
            "sound gaussian_fm: (Λ1, Λ2) released once, exact calibration, best weight of Λ2; its "
            "noise on off-diagonal entries is 1/√2 of what is shown. Λ0 is not released.",
        ],
        plot=partial(lines, shown, "D", panel="order", y=f"τ at ε = {EPSILONS[1]}", log="y"),
    )
