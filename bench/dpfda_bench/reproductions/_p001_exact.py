"""001 Figures 1 and A.6: what noise does to one report, in closed form."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.report.contents import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.lines import named_lines
from dpfda_bench.reproductions import _p001 as common
from dpfda_bench.verdict import Verdict, agrees_if

Z, Z0 = np.linspace(-1, 1, 201), np.linspace(-2, 2, 401)
DIMENSIONS = (1, 2, 5, 10)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
_DRAWS, _BINS = 100_000, 10
_NOTHING = "Nothing is classified: there is neither a majority class nor an error without privacy."


def weight(z: Any, z0: Any, epsilon: float) -> FloatArray:
    """ω(z | z₀, ε), Eq. (5) of 001, for z uniform on (-1, 1).

    Examples:
        >>> weight(0.3, 1.5, 1e-9).round(6).item()
        1.0
    """
    rate, report = epsilon / 2, np.asarray(z0)

    def below(edge: FloatArray) -> FloatArray:  # ∫ e^(-rate |u|) du from 0 to edge
        return np.asarray(np.sign(edge) * -np.expm1(-rate * np.abs(edge)) / rate)

    mean = (below(report + 1) - below(report - 1)) / 2
    return np.asarray(np.exp(-rate * np.abs(report - z)) / mean)


def weights(effort: Effort = FULL) -> Outcome:
    """Evaluate the formula; nothing is random."""
    tables = {e: weight(Z[None, :], Z0[:, None], e) for e in (10.0, 1.0, 0.1, 0.01)}
    rows = [
        {"epsilon": epsilon, "smallest": float(table.min()), "largest": float(table.max())}
        | {"at z = z₀ = 0": float(weight(0.0, 0.0, epsilon))}
        | {"mean over z": float(np.trapezoid(table, Z, axis=1).mean() / 2)}
        for epsilon, table in tables.items()
    ]
    notes = [
        "Exact: e^(-ε|z₀-z|/2) over its mean for z uniform. The mean of ω over z is 1, so its "
        "integral is 2; the text says 1.",
        _NOTHING,
    ]
    return Outcome(rows=rows, notes=notes, plot=partial(_heat, tables))


def weights_verdict(outcome: Outcome) -> Verdict:
    """The interval of weights closes on 1."""
    widths = [row["largest"] - row["smallest"] for row in outcome.rows]
    ends = ", ".join(f"{r['smallest']:.3g} to {r['largest']:.4g}" for r in outcome.rows)
    return agrees_if(
        sorted(widths, reverse=True) == widths and widths[-1] < 0.1,
        f"No numbers are printed. For ε = 10, 1, 0.1, 0.01 weights range over {ends}: they close "
        "on 1, as the text says.",
    )


def _heat(tables: dict[float, FloatArray]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4, figsize=(16, 3.6), sharey=True, layout="constrained")
    for axis, (epsilon, table) in zip(axes, tables.items(), strict=True):
        figure.colorbar(axis.pcolormesh(Z, Z0, table, shading="auto"), ax=axis)
        axis.set(title=f"ε = {epsilon:g}", xlabel="value z")
    axes[0].set_ylabel("report z₀")
    return figure


def distance(dimension: int, epsilon: float) -> float:
    """½ ∫ |p - q| between Z uniform on [-1, 1]^d and Z with Laplace noise of scale 2d/ε.

    Inside the cube the density of a report is nowhere above that of Z, so this is the chance to
    leave it.

    Examples:
        >>> distance(1, 1e9) < 1e-8, distance(1, 1e-6) > 0.999
        (True, True)
    """
    scale = 2 * dimension / epsilon
    return float(1 - (1 + scale / 2 * np.expm1(-2 / scale)) ** dimension)


def counted(dimension: int, epsilon: float, draws: int) -> float:
    """The published estimate: ½ Σ |P̂ - Q̂| over cells of a common grid."""
    rng = np.random.default_rng([8, dimension, round(10 * epsilon)])
    shape = (draws, dimension)
    plain, true = rng.uniform(-1, 1, (2, *shape))
    noisy = true + rng.laplace(scale=2 * dimension / epsilon, size=shape)
    cells = np.floor(np.concatenate([plain, noisy]) * _BINS / 2).astype(np.int64)
    _, which = np.unique(cells, axis=0, return_inverse=True)
    one, other = (np.bincount(w, minlength=which.max() + 1) for w in np.split(which.ravel(), 2))
    return float(np.abs(one - other).sum() / (2 * draws))


def distances(effort: Effort = FULL) -> Outcome:
    """The formula, and the published estimate with 100 000 draws (quick: 2000)."""
    draws = effort.repeats(_DRAWS, quick=2000)
    names = [(d, epsilon, draws) for d in DIMENSIONS for epsilon in EPSILONS]
    rows: list[dict[str, Any]] = [
        {"d": d, "epsilon": epsilon, "exact": distance(d, epsilon), "as published": estimate}
        for (d, epsilon, _), estimate in zip(names, effort.sweep.run(counted, names), strict=True)
    ]
    notes = [
        "exact: 1 - (1 - λ/2 (1 - e^(-2/λ)))^d with λ = 2d/ε, for ½ ∫ |p - q| (C6). The text says "
        "that closed forms are generally unavailable; here there is one.",
        f"as published: {draws} draws of each, counted on a grid of {_BINS} cells across the cube "
        "(the text leaves it open). In ten dimensions hardly two draws share a cell: the estimate "
        "is 1 whatever ε.",
        _NOTHING,
    ]
    panels = {f"d = {d}": [row for row in rows if row["d"] == d] for d in DIMENSIONS}
    plot = partial(named_lines, panels, ("exact", "as published"), y="total variation distance")
    return Outcome(rows=rows, notes=notes, plot=plot)


def distances_verdict(outcome: Outcome) -> Verdict:
    """Towards 1 as ε falls, larger with d; and how good the published estimate is."""
    found = {(row["d"], row["epsilon"]): row["exact"] for row in outcome.rows}
    rising = all(found[d, e] > found[d, f] for d in DIMENSIONS for e, f in pairwise(EPSILONS))
    wider = all(found[c, e] < found[d, e] for c, d in pairwise(DIMENSIONS) for e in EPSILONS)
    off = {
        d: max(abs(r["as published"] - r["exact"]) for r in outcome.rows if r["d"] == d)
        for d in DIMENSIONS
    }
    return agrees_if(
        rising and wider and found[1, 0.1] > 0.9,
        "No numbers are printed. Both patterns of the text, towards 1 as ε falls and larger with "
        "d, hold exactly; the published estimate by counting is off by up to "
        + ", ".join(f"{value:.2g} (d = {d})" for d, value in off.items())
        + ".",
    )


ENTRIES = {
    "001-figure-1": SimpleNamespace(
        TITLE="Weight ω(z | z₀, ε) of a value behind a report (001 Figure 1)",
        NEEDS=(),
        SECONDS=1,
        GUARANTEES={"every row": "ε-LDP for one number in [-1, 1]: Laplace noise of scale 2/ε"},
        CLAIMED=common.CLAIMED,
        READING=common.EXACT,
        run=weights,
        verdict=weights_verdict,
    ),
    "001-figure-a6": SimpleNamespace(
        TITLE="Total variation between a uniform vector and its Laplace report (001 Figure A.6)",
        NEEDS=(),
        SECONDS=12,
        GUARANTEES={"every row": "ε-LDP for one vector: Laplace noise of scale 2d/ε"},
        CLAIMED=common.CLAIMED,
        READING=common.EXACT,
        run=distances,
        verdict=distances_verdict,
    ),
}
