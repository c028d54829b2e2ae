"""003 Table 2: distance of private means from the sample mean: brain scans, electricity."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import Adaptive
from dpfda.central.functions import Grid, Matern, trapezoid
from dpfda.central.kernel_density import Bernstein
from dpfda.central.linear import (
    AbsoluteRegularization,
    FiniteLaplace,
    LinearMechanism,
    OptimalAllocation,
    QuadraticRegularization,
)
from dpfda.report.contents import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.lines import lines
from dpfda_bench.printed import printed
from dpfda_bench.reproductions import _p003 as common
from dpfda_bench.verdict import Verdict, agrees_if

TITLE = "E‖μ̃ - X̄‖² on brain scans and electricity demand (003 Table 2)"
NEEDS = ("dti", "adelaide_demand")
SECONDS = 60
GUARANTEES = {
    "as published, standardized": "none: the bound is the data's own largest norm (C11)",
    "sound": "ε for one scan or day; up to 8ε for a person with 8 scans",
    "allocation, adaptive": "ε for one scan or day",
}

PUBLISHED = printed("003-table-2")
"""With the headings in the right order: the printed ones are permuted (C15)."""

NOTES = [
    "published: columns in the order FRL, Bernstein, ICLP-AR, ICLP-QR (C15); DTI's printed row "
    "labels 2…7 are ε = 1/8…4.",
    "as published: τ is the data's own largest norm, Theorem 6's bounds, FRL's M by the true "
    "error. τ from data is not private (C11): these columns keep no ε.",
    "sound: public bounds (anisotropy in [0, 1]; demand at most 2 × 2500 MW), tight sensitivities, "
    "parameters from n, ε and the kernel. adaptive and allocation subtract a public mid-range.",
    "Six curves of the scans have missing points (36 values): filled along the curve by straight "
    "lines before release, ends continued; a rule on one curve at a time costs nothing.",
    "The unit is a scan (a day). 142 people have up to 8 scans each: for a person ε is up to 8 "
    "times as large.",
    "standardized: every curve minus its own mean, over its own standard deviation, and M = 4. The "
    "text speaks of normalized trajectories and does not say how. Found here from FRL's 0.38 at "
    "ε = 4, more than ‖X̄‖² = 0.25 of the scans as they are: with it the limits of FRL and of "
    "Bernstein for large ε come out on both data sets. ICLP-QR's noise on the scans (0.050/ε²) "
    "then does not: it is that of the curves as they are (0.055/ε²). No ψ that was tried gives "
    "both the noise and the limit of ICLP-AR, in either reading.",
    "Compared with arXiv 2309.00125v2. Of v3 (31 March 2026: another title, "
    "'with a' for 'via a', and a shorter abstract) only the beginning could be read, no table.",
]


def run(effort: Effort = FULL) -> Outcome:
    """Exact expectations for additive mechanisms, simulation for the adaptive one."""
    times = effort.repeats(60, quick=5)
    rows = effort.sweep.run(_row, [(place, times) for place in range(len(PUBLISHED))])
    main = next(r for r in rows if r["data"] == "scans" and r["ν"] == 1.5 and r["ε"] == 1.0)
    figures = {
        "scans_eps1_qr_as_published": main["as published ICLP-QR"],
        "scans_eps1_qr_sound": main["sound ICLP-QR"],
        "scans_eps1_adaptive": main["adaptive"],
        "rows_with_qr_best_as_published": float(sum(_best_is_qr(r, "as published") for r in rows)),
        **{
            f"largest_factor_{prefix.replace(' ', '_')}_{name}": _factor(rows, prefix, name)
            for prefix in _READINGS
            for name in _NAMES
        },
        "rows_with_qr_best_published": float(sum(_best_is_qr(r, "published") for r in rows)),
    }
    keys = ("data", "ε", "as published ICLP-QR", "sound ICLP-QR", "allocation", "adaptive")
    shown = [{k: r[k] for k in keys} for r in rows if r["ν"] == 1.5]
    return Outcome(
        rows=rows,
        figures=figures,
        notes=NOTES,
        plot=lambda: lines(shown, "ε", panel="data"),
    )


def verdict(outcome: Outcome) -> Verdict:
    """How far each column is from the printed one, in either reading of the curves."""
    told = []
    worst = 1.0
    for name in _NAMES:
        plain, other = (_factor(outcome.rows, prefix, name) for prefix in _READINGS)
        told.append(f"{name} {plain:.3g} or {other:.3g}")
        worst = max(worst, min(plain, other))
    return agrees_if(
        worst <= 1.25,
        "Largest factor between printed and recomputed distances, with curves as they are or "
        f"standardized one by one: {', '.join(told)}; no one reading gives all columns.",
    )


_READINGS = ("as published", "standardized")


def _factor(rows: list[dict[str, Any]], prefix: str, name: str) -> float:
    ratios = [row[f"{prefix} {name}"] / row[f"published {name}"] for row in rows]
    return float(max(max(ratio, 1 / ratio) for ratio in ratios))


_NAMES = ("FRL", "Bernstein", "ICLP-AR", "ICLP-QR")


def _row(place: int, times: int) -> dict[str, Any]:
    """A line of the table."""
    published = PUBLISHED[place]
    name, nu, epsilon = (published[key] for key in ("data", "nu", "epsilon"))
    records, grid = common.curves(name)
    row: dict[str, Any] = {"data": name, "ν": nu, "ε": epsilon}
    row |= _labeled("published", tuple(published[column] for column in _NAMES))
    row |= _labeled("as published", _as_published(records, grid, nu, epsilon))
    row |= _labeled("standardized", _as_published(standardized(records), grid, nu, epsilon, 4))
    row |= _labeled("sound", _sound(records, grid, nu, epsilon, common.PUBLIC[name]))
    half = common.PUBLIC[name] / 2
    shifted = records - half
    release = partial(common.release_of, records=shifted, grid=grid, bound=half)
    allocation = release(OptimalAllocation(kernel=Matern(nu=nu)), epsilon=epsilon)
    row["public middle (trivial)"] = float(shifted.mean(axis=0) ** 2 @ trapezoid(grid))
    row["allocation"] = common.expected_distance(allocation, shifted)
    adaptive = release(Adaptive(), epsilon=epsilon)
    row["adaptive"] = common.simulated_distance(adaptive, shifted, replications=times)
    return row


def _labeled(prefix: str, values: tuple[float, ...]) -> dict[str, float]:
    return {f"{prefix} {name}": value for name, value in zip(_NAMES, values, strict=True)}


def _best_is_qr(row: dict[str, Any], prefix: str) -> bool:
    return min(_NAMES, key=lambda name: row[f"{prefix} {name}"]) == "ICLP-QR"


def standardized(records: FloatArray) -> FloatArray:
    """Each curve with mean 0 and variance 1: a rule on one curve at a time."""
    centered = records - records.mean(axis=1, keepdims=True)
    return np.asarray(centered / records.std(axis=1, ddof=1, keepdims=True))


def _as_published(
    records: FloatArray, grid: Grid, nu: float, epsilon: float, components: int | None = None
) -> tuple[float, ...]:
    n, kernel = len(records), Matern(nu=nu)
    highest = float(abs(records).max())

    def distance(mechanism: LinearMechanism | Bernstein) -> float:
        largest = isinstance(mechanism, Bernstein)
        bound = highest if largest else common.largest_norm(records, grid)
        release = common.release_of(mechanism, records, grid, bound=bound, epsilon=epsilon)
        return common.expected_distance(release, records)

    sizes = range(math.ceil(n ** (1 / 6)), math.floor(n ** (1 / 3)) + 1)
    if components is not None:
        sizes = range(components, components + 1)
    return (
        min(distance(FiniteLaplace(kernel=kernel, components=m, published=True)) for m in sizes),
        distance(Bernstein(order=20)),
        distance(AbsoluteRegularization(kernel=kernel, published=True)),
        distance(QuadraticRegularization(kernel=kernel, eta=1.5, published=True)),
    )


def _sound(
    records: FloatArray, grid: Grid, nu: float, epsilon: float, bound: float
) -> tuple[float, ...]:
    kernel = Matern(nu=nu)
    mechanisms: tuple[LinearMechanism | Bernstein, ...] = (
        FiniteLaplace(kernel=kernel),
        Bernstein(order=20),
        AbsoluteRegularization(kernel=kernel),
        QuadraticRegularization(kernel=kernel),
    )
    releases = (
        common.release_of(m, records, grid, bound=bound, epsilon=epsilon) for m in mechanisms
    )
    return tuple(common.expected_distance(release, records) for release in releases)
