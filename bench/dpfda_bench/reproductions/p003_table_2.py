"""003 Table 2: distance of private means from the sample mean: brain scans, electricity."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import Adaptive
from dpfda.central.functions import Matern, trapezoid
from dpfda.central.kernel_density import Bernstein
from dpfda.central.linear import AbsoluteRegularization, FiniteLaplace, QuadraticRegularization
from dpfda.central.mean import FunctionMechanism
from dpfda.report.contents import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.lines import lines
from dpfda_bench.printed import printed
from dpfda_bench.reproductions import _p003 as common
from dpfda_bench.reproductions._p003_authors import (
    PURE,
    TRUE_EPSILON,
    table_run,
)
from dpfda_bench.reproductions._p003_authors import (
    READING as AUTHORS,
)
from dpfda_bench.verdict import Verdict, agrees_if

TITLE = "E‖μ̃ - X̄‖² on brain scans and electricity demand (003 Table 2)"
NEEDS = ("dti", "adelaide_demand")
SECONDS = 60
READING = AUTHORS
CLAIMED = "ε for one scan or day"
GUARANTEES = {
    "as run": TRUE_EPSILON,
    "made sound": "ε for one scan or day; up to 8ε for a person with 8 scans",
    "default": "ε for one scan or day, as made sound; 'as they are' with a public range",
}

PUBLISHED = printed("003-table-2")
"""With the headings in the right order: the printed ones are permuted (C15)."""
HEIGHT = 4.0
"""Public bound on |X(t)| of a standardized curve, for Bernstein: four deviations."""

NOTES = [
    "Columns in the order FRL, Bernstein, ICLP-AR, ICLP-QR (C15); DTI's printed row labels 2…7 are "
    "ε = 1/8…4. Each curve minus its mean, divided by its L² deviation; 376 scans without missing "
    "points, 508 Mondays. ICLP-QR has ψ = 2(n/τ₂)^-1.25 here.",
    "made sound: a standardized curve has norm 1, which is public. FRL and ICLP-AR keep their "
    "parameters and the sensitivities of Theorem 6; ICLP-QR keeps its own with the sensitivity "
    "that follows from ‖X‖ ≤ 1 and noise of the right scale; Bernstein clips at |X| ≤ 4. 'ICLP-QR, "
    "Theorem 6' has the printed bound, which the printed table does not use (C24).",
    "default: `PrivateMean` on the same curves with bound 1. 'as they are': 382 scans (missing "
    "points filled along the curve) or 508 Mondays in 2500 MW, public ranges [0, 1] and [0, 2]; "
    "in units of the data, not comparable with the other columns.",
    "The unit is a scan (a day). 142 people have up to 8 scans each: for a person ε is up to 8 "
    "times as large.",
    "Compared with arXiv 2309.00125v2. Of v3 (31 March 2026: another title, "
    "'with a' for 'via a', and a shorter abstract) only the beginning could be read, no table.",
]
_CLOSE = 0.03


def run(effort: Effort = FULL) -> Outcome:
    """Exact expectations for additive mechanisms, simulation for the default."""
    times = effort.repeats(60, quick=5)
    rows = effort.sweep.run(_row, [(place, times) for place in range(len(PUBLISHED))])
    main = next(r for r in rows if r["data"] == "scans" and r["ν"] == 1.5 and r["ε"] == 1.0)
    off = [abs(row[f"{k} as run"] / row[f"{k} published"] - 1) for row in rows for k in PURE]
    figures = {
        "printed_numbers": float(len(off)),
        "within_1_percent": float(sum(value <= 0.01 for value in off)),
        "within_3_percent": float(sum(value <= _CLOSE for value in off)),
        "largest_difference": max(off),
        "scans_eps1_qr_as_run": main["ICLP-QR as run"],
        "scans_eps1_qr_made_sound": main["ICLP-QR made sound"],
        "scans_eps1_qr_theorem_6": main["ICLP-QR, Theorem 6"],
        "scans_eps1_default": main["default"],
        **{
            f"rows_with_qr_best_{version.replace(' ', '_')}": float(
                sum(min(PURE, key=lambda k, r=r: r[f"{k} {version}"]) == "ICLP-QR" for r in rows)  # type: ignore[misc]
            )
            for version in ("published", "as run", "made sound")
        },
    }
    names = ("ICLP-QR published", "ICLP-QR as run", "ICLP-QR made sound", "FRL as run", "default")
    shown = [{k: r[k] for k in ("data", "ε", *names)} for r in rows if r["ν"] == 1.5]
    plot = partial(lines, shown, "ε", panel="data")
    return Outcome(rows=rows, figures=figures, notes=NOTES, plot=plot)


def verdict(outcome: Outcome) -> Verdict:
    """How many printed numbers come out."""
    found = outcome.figures
    close, total = round(found["within_3_percent"]), round(found["printed_numbers"])
    return agrees_if(
        close == total,
        f"As run, {close} of the {total} printed numbers come out within 3 %, "
        f"{round(found['within_1_percent'])} within 1 %. ICLP-QR as run has the noise of √2 ε and "
        "an ℓ1 bound taken from the data (C24, C25); made sound its error on the scans at ε = 1 is "
        f"{found['scans_eps1_qr_made_sound']:.3f} instead of "
        f"{found['scans_eps1_qr_as_run']:.3f}.",
    )


def _row(place: int, times: int) -> dict[str, Any]:
    """A line of the table."""
    line = PUBLISHED[place]
    name, nu, epsilon = (line[key] for key in ("data", "nu", "epsilon"))
    run_ = table_run(name, nu, epsilon)
    as_run = run_.errors(run_.curves.mean(axis=0), hindsight=False)
    row: dict[str, Any] = {"data": name, "ν": nu, "ε": epsilon}
    row |= {f"{k} published": line[k] for k in PURE}
    row |= {f"{k} as run": as_run[k] for k in PURE}
    row |= {f"{k} made sound": v for k, v in made_sound(run_.curves, nu, epsilon).items()}
    grid = unit_grid(run_.curves)
    printed_bound = sound_mechanisms(len(run_.curves), nu)["ICLP-QR"]
    assert isinstance(printed_bound, QuadraticRegularization)
    theorem = common.release_of(
        replace(printed_bound, published=True), run_.curves, grid, bound=1.0, epsilon=epsilon
    )
    row["ICLP-QR, Theorem 6"] = common.expected_distance(theorem, run_.curves)
    drawn = partial(common.simulated_distance, replications=times)
    release = partial(common.release_of, Adaptive(), grid=grid, bound=1.0, epsilon=epsilon)
    row["default"] = drawn(release(records=run_.curves), run_.curves)
    row["zero curve (trivial)"] = float(run_.curves.mean(axis=0) ** 2 @ trapezoid(grid))
    records, plain = common.curves(name)
    half = common.PUBLIC[name] / 2
    other = common.release_of(Adaptive(), records - half, plain, bound=half, epsilon=epsilon)
    row["default, curves as they are"] = drawn(other, records - half)
    return row


def unit_grid(curves: FloatArray) -> tuple[FloatArray, ...]:
    """Equidistant points of [0, 1]."""
    return (np.linspace(0, 1, curves.shape[1]),)


def sound_mechanisms(n: int, nu: float) -> dict[str, FunctionMechanism]:
    """The authors' parameters with bounds that hold: FRL's M = ⌈n^¼ - 1⌉, η = 3 and 1.25."""
    kernel = Matern(nu=nu)
    return {
        "FRL": FiniteLaplace(kernel=kernel, components=int(np.ceil(n**0.25 - 1)), published=True),
        "Bernstein": Bernstein(order=20),
        # Their threshold √2 ψ/λ^(η/2) with ψ = 1/n is ψ'/(2λ^(η/2)) with ψ' = 2√2/n.
        "ICLP-AR": AbsoluteRegularization(
            kernel=kernel, eta=3.0, psi=2 * 2**0.5 / n, published=True
        ),
        "ICLP-QR": QuadraticRegularization(kernel=kernel, eta=1.25, psi=2 * n**-1.25),
    }


def made_sound(curves: FloatArray, nu: float, epsilon: float) -> dict[str, float]:
    """E‖μ̃ - X̄‖² of the four with guarantees that hold."""
    grid = unit_grid(curves)
    found = {}
    for name, mechanism in sound_mechanisms(len(curves), nu).items():
        bound = HEIGHT if name == "Bernstein" else 1.0
        release = common.release_of(mechanism, curves, grid, bound=bound, epsilon=epsilon)
        found[name] = common.expected_distance(release, curves)
    return found
