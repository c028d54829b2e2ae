"""002 Figure 5: utility against the number of sites, capeFM and the conventional scheme."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda.study.outcome import Outcome
from dpfda_bench.benchmarks.regression_utility import Split
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.measuring import gathered
from dpfda_bench.plots import lines
from dpfda_bench.reproductions._p002 import DELTA, data_of
from dpfda_bench.reproductions._p002_panels import among_sites, published_score
from dpfda_bench.reproductions._p002_published import published_cape_epsilon
from dpfda_bench.verdicts import Verdict, agrees_if

TITLE = "Utility against the number of sites, ε = 0.5 (002 Figures 5 and A4)"
COVERS = ("002-figure-a4",)
NEEDS = ("warfarin", "crime", "phishing", "adult")
SECONDS = 120
GUARANTEES = {
    "cape as published": "true_epsilon: far above 0.5 (C7 and C8)",
    "sound": "(0.5, 1e-5)-DP for one row",
    "conventional": "(0.5, 1e-5)-DP for one row",
}
EPSILON = 0.5
NOTES = [
    "cape as published: its aggregate carries the pooled noise of Gaussian FM as published; the "
    "coordinator also sees the single messages, which costs the true ε shown (C7 and C8 together; "
    "no site colludes). Real keys, masks and shares in every sound row.",
    "sound, c = 0: nobody colludes. sound, paper's c: ⌈S/3⌉ - 1 sites may pool what they know with "
    "the coordinator. conventional: every site alone adds all the noise.",
]


def run(effort: Effort = FULL) -> Outcome:
    """Three splits by default."""
    repeats = effort.repeats(3, quick=1)
    names = ("warfarin",) if effort.quick else ("warfarin", "crime", "phishing", "adult")
    counts = (2, 10) if effort.quick else (2, 5, 10, 20, 50)
    if not effort.quick:  # Figure A4
        names = (*names, "synthetic, D = 20", "synthetic, D = 50")
    rows: list[dict[str, Any]] = []
    splits = iter(effort.sweep.run(one_split, product(names, counts, range(repeats))))
    for name, count in product(names, counts):
        data = data_of(name)
        scores = gathered(found for _ in range(repeats) for found in next(splits))
        for label, values in scores.items():
            true = None if label == "trivial" else EPSILON
            if label == "cape as published":
                true = published_cape_epsilon(EPSILON, delta=DELTA, sites=count, link=data.link)
            rows.append(
                {"data": name, "sites": count, "scheme": label, "true_epsilon": true}
                | {"measure": data.measure, "value": float(np.mean(values))}
            )
    return Outcome(
        rows=rows,
        figures=_spread(rows),
        notes=[f"{repeats} random 90:10 splits, δ = {DELTA:g}.", *NOTES],
        plot=partial(_plot, rows),
    )


def verdict(outcome: Outcome) -> Verdict:
    """More sites harm the conventional scheme, not the correlated one."""
    spread = outcome.figures
    names = {key.split(":")[0] for key in spread}
    held = [
        spread[f"{name}: sound, c = 0, worst over best"]
        <= spread[f"{name}: conventional, worst over best"]
        for name in names
    ]
    largest = max(row["true_epsilon"] or 0.0 for row in outcome.rows)
    return agrees_if(
        all(held),
        f"The number of sites matters more to the conventional scheme on {sum(held)} of "
        f"{len(held)} data sets, as claimed; but the true ε of the published scheme is up to "
        f"{largest:.1f} at a claimed {EPSILON:g}.",
    )


def one_split(name: str, count: int, seed: int) -> list[tuple[str, float]]:
    """Scores of every scheme with the rows dealt out to `count` sites."""
    split, colluders = Split(data_of(name), seed=seed), math.ceil(count / 3) - 1
    rng = np.random.default_rng(seed)
    published = published_score(split, "gaussian_fm", epsilon=EPSILON, delta=DELTA, rng=rng)
    sound = partial(among_sites, split, count, epsilon=EPSILON)
    return [
        ("trivial", split.trivial()),
        ("cape as published", published),
        ("sound, c = 0", sound()),
        ("sound, paper's c", sound(colluders=colluders)),
        ("conventional", sound(alone=True)),
    ]


def _spread(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Largest over smallest value across the numbers of sites, for each data set."""
    figures = {}
    for name in dict.fromkeys(row["data"] for row in rows):
        for scheme in ("sound, c = 0", "conventional"):
            values = [
                row["value"] for row in rows if (row["data"], row["scheme"]) == (name, scheme)
            ]
            figures[f"{name}: {scheme}, worst over best"] = max(values) / min(values)
    return figures


def _plot(rows: list[dict[str, Any]]) -> Any:
    shown: dict[Any, dict[str, Any]] = {}
    for row in rows:
        panel = {"data": f"{row['data']}, {row['measure']}", "sites": row["sites"]}
        shown.setdefault((row["data"], row["sites"]), panel)[row["scheme"]] = row["value"]
    return lines(list(shown.values()), "sites", panel="data", log="x")
