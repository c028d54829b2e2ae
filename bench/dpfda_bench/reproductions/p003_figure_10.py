"""003 Figure 10: private age-at-death densities of all regions, one release of each mechanism."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.report.contents import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions import p003_table_3 as table
from dpfda_bench.verdict import Verdict, not_comparable

TITLE = "Private age-at-death densities of the UN's regions, ε = 1 (003 Figure 10)"
NEEDS = ("un_deaths",)
READING = table.READING
SECONDS = 15
CLAIMED = "ε = 1 for a thousand deaths"
GUARANTEES = {
    "as published": "ε = 1 for a thousand deaths; FRL: none, its size is chosen in hindsight",
    "histogram": "ε = 1 for a thousand deaths (default of PrivateDensity)",
    "uniform": "nothing is looked at",
}
_AGES = np.linspace(0, 100, 256)
_CLOSE = ("ICLP-QR η = 1.01", "FRL")


def run(effort: Effort = FULL) -> Outcome:
    """One release each, as in the figure; distances from f̂ are those of these releases."""
    regions = list(table.PUBLISHED)[: 3 if effort.quick else None]
    found = effort.sweep.run(_drawn, [(region,) for region in regions])
    rows = [row for row, _ in found]
    notes = [
        "× 1000, from the estimate without privacy (not private, distance 0). The figure prints no "
        "numbers: `printed` are the expected distances of Table 3.",
        "Regions, bandwidths and units as in 003-table-3; uniform is the trivial density. 'one "
        "bandwidth' are expected distances from an estimate with the mechanisms' own bandwidth.",
        "by group: distance of the densities of five-year groups from those of the deaths "
        "themselves. The histogram keeps the peak at birth; f̂ and what follows it smooth it away.",
    ]
    pictures = dict(zip(regions, (curves for _, curves in found), strict=True))
    same, other = (
        [_nearer(row, prefix) == _nearer(row, "printed ") for row in rows]
        for prefix in ("", "one bandwidth, ")
    )
    ahead = [row["histogram"] < row["uniform"] for row in rows]
    return Outcome(
        rows=rows,
        figures={
            "share_same_nearer": float(np.mean(same)),
            "share_same_nearer_one_bandwidth": float(np.mean(other)),
            "share_useful": float(np.mean(ahead)),
        },
        notes=notes,
        plot=partial(_plot, pictures),
    )


def verdict(outcome: Outcome) -> Verdict:
    """Which of the two good mechanisms is nearer, region by region."""
    many = len(outcome.rows)
    shares = [outcome.figures[f"share_same_nearer{reading}"] for reading in ("", "_one_bandwidth")]
    same, other = (round(share * many) for share in shares)
    return not_comparable(
        "The figure shows one draw of each mechanism, and the text says nothing about it; Table 3 "
        "has the errors. Of ICLP-QR with η = 1.01 and FRL the same one as in Table 3 is nearer to "
        f"the estimate without privacy in {same} of {many} regions if that estimate has R's "
        f"bandwidth, and in {other} if everything has one bandwidth.",
    )


def _nearer(row: dict[str, Any], prefix: str) -> str:
    return min(_CLOSE, key=lambda name: row[prefix + name])


def _drawn(region: str) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Distances, and the curves on 256 ages."""
    ages = table.spread(table.regional_counts()[region])
    curve, columns, weights = table.released(ages)
    rng = np.random.default_rng([10, len(ages)])
    curves = {"not private": curve}
    for name, one in columns.items():
        curves[name] = one.curve + rng.laplace(scale=np.sqrt(one.variance / 2)) @ one.functions
    curves["histogram"] = table.histograms(ages, _AGES, 1)[0]
    curves["uniform"] = np.full_like(curve, 0.01)
    row: dict[str, Any] = {"region": region, "n": len(ages)}
    row |= {f"printed {name}": value for name, value in table.PUBLISHED[region].items()}
    expected = zip(table.COLUMNS, table.expected(ages, as_authors=False), strict=True)
    row |= {f"one bandwidth, {name}": value for name, value in expected if name in _CLOSE}
    distances = {
        name: table.UNIT * float((drawn - curve) ** 2 @ weights)
        for name, drawn in curves.items()
        if name != "not private"
    }
    true = table.regional_counts()[region] / table.regional_counts()[region].sum()
    groups = np.arange(20) == np.minimum(_AGES // 5, 19)[:, None]
    for name in ("not private", *_CLOSE, "histogram"):
        masses = (curves[name] * weights) @ groups
        distances[f"by group, {name}"] = table.UNIT * float(((masses - true) ** 2).sum() / 5)
    return row | distances, curves


def _plot(pictures: dict[str, dict[str, FloatArray]]) -> Any:
    from matplotlib.figure import Figure

    height = -(-len(pictures) // 4)
    figure = Figure(figsize=(14, 2.6 * height), layout="constrained")
    axes = np.ravel(figure.subplots(height, 4, squeeze=False))
    for place, (region, curves) in zip(axes, pictures.items(), strict=False):
        for name, curve in curves.items():
            style = {"color": "k", "linewidth": 2} if name == "not private" else {"linewidth": 1}
            place.plot(_AGES, curve, label=name, **style)
        place.set(title=region, xlabel="age", ylabel="density")
    for place in axes[len(pictures) :]:
        place.axis("off")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower right", fontsize=9, ncols=2)
    return figure
