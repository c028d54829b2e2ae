"""002 Table A1: sensitivities of the coefficients, as published and sound."""

from __future__ import annotations

import math
from typing import Any

from dpfda.regression.methods.published_fm import published_l1
from dpfda.regression.problem import Link
from dpfda.regression.sensitivity import joint_l2
from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions._p002_published import published_sensitivity
from dpfda_bench.verdicts import Verdict, agrees_if

TITLE = "Sensitivities of the objective's coefficients, times N (002 Table A1)"
NEEDS = ()
SECONDS = 1
GUARANTEES = {
    "fm, rel., gfm": "as printed; gfm needs √2 times its order 2, and one budget for all (C7)",
    "fm*, rel.*, gfm*": "sound for rows in the unit ball",
}
_SHORT = {"fm": "fm", "relaxed_fm": "rel.", "gaussian_fm": "gfm"}  # a table of 80 characters
DIMENSIONS = (5, 10, 20, 50, 100)


def run(effort: Effort = FULL) -> Outcome:
    """Evaluate every formula; nothing is random."""
    rows: list[dict[str, Any]] = []
    links: tuple[Link, ...] = ("linear", "logistic")
    for link in links:
        first = 0 if link == "linear" else 1
        for dimension in DIMENSIONS:
            columns = {
                method: published_sensitivity(method, link, dimension)
                for method in ("fm", "relaxed_fm", "gaussian_fm")
            }
            for place in range(len(columns["fm"])):
                rows.append(
                    {"link": link, "D": dimension, "order": first + place}
                    | {_SHORT[method]: values[place] for method, values in columns.items()}
                    | sound(link, dimension)
                )
    return Outcome(
        rows=rows,
        figures={"gaussian_fm_joint_linear": joint_l2(2.0, 1.0)},
        notes=[
            "fm, rel. (relaxed_fm), gfm (gaussian_fm): as printed in 002 (|x_d| ≤ 1 for the first "
            "two, |x|₂ ≤ 1 for the third). gaussian_fm's order 2 is a spectral norm; a Gaussian "
            "release needs the Frobenius norm, √2 times as large, and one budget for all orders "
            "(C7).",
            "The columns with a star are sound, for |x|₂ ≤ 1: fm and relaxed_fm for the whole "
            "coefficient vector, gaussian_fm for (Λ1, Λ2) as one vector with unit weights.",
        ],
    )


def verdict(outcome: Outcome) -> Verdict:
    """Formulas, as printed."""
    return agrees_if(
        bool(outcome.rows),
        "The printed formulas, evaluated; the sound sensitivities stand beside them.",
    )


def sound(link: str, dimension: int) -> dict[str, float]:
    """The sound sensitivities for rows in the unit ball."""
    linear = link == "linear"
    return {
        "fm*": published_l1(link, dimension),
        "rel.*": 2 * math.sqrt(6) if linear else math.sqrt(17 / 16),
        "gfm*": joint_l2(2.0, 1.0) if linear else joint_l2(0.5, 0.125),
    }
