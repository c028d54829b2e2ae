"""003 Figure 3: private kernel density estimates on the line."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.density import DensityMechanism, HistogramDensity
from dpfda.central.functions import as_grid, trapezoid
from dpfda.central.kernel_density import KernelDensity
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks.density import line_sample, line_truth
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions._p003 import kernel_estimate, released
from dpfda_bench.verdict import Verdict, agrees_if

TITLE = "Private densities of a two-peaked sample, n = 2000, ε = 1 (003 Figure 3)"
NEEDS = ()
SECONDS = 30
CLAIMED = "ε = 1 for one point"
READING = (
    "Bandwidth 0.2 n^(-1/5) (no constant is printed), the same scaled kernel for the estimate "
    "and its noise; exact sensitivities on a public grid in place of Theorem 8's bound."
)
GUARANTEES = {
    "every mechanism": "ε = 1 for one point, sensitivities exact on a public grid (C13)",
    "kernel, not private": "none",
}
PANELS: dict[str, DensityMechanism] = {
    "ICLP-QR η = 1.25": KernelDensity(eta=1.25),
    "ICLP-QR η = 1.5": KernelDensity(eta=1.5),
    "FRL": KernelDensity(kind="frl", components=9),
    "Bernstein K = 10": KernelDensity(kind="bernstein", components=10),
    "Bernstein K = 30": KernelDensity(kind="bernstein", components=30),
    "Bernstein K = 50": KernelDensity(kind="bernstein", components=50),
    "histogram (default)": HistogramDensity(),
}
_BOX = ((0.0, 1.0),)


def run(effort: Effort = FULL) -> Outcome:
    """Ten releases of each mechanism from one sample."""
    times = effort.repeats(10, quick=3)
    points = line_sample(2000, np.random.default_rng(0))[:, None]
    x = np.linspace(0, 1, 257)
    weights = trapezoid(as_grid(x))
    plain = KernelDensity(eta=1.25)
    grid = plain.layout(_BOX, 2000)[0].grid[0]
    estimate = np.interp(x, grid, kernel_estimate(plain, points, _BOX))
    curves = released(PANELS, points, _BOX, x, times=times, effort=effort)

    def distance(drawn: FloatArray, target: FloatArray) -> float:
        return float(np.mean((drawn - target) ** 2 @ weights))

    rows: list[dict[str, Any]] = [
        {
            "mechanism": label,
            "from the non-private estimate": distance(drawn, estimate),
            "from the true density": distance(drawn, line_truth(x)),
        }
        for label, drawn in curves.items()
    ]

    def plot() -> Any:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(2, 4, figsize=(14, 6), layout="constrained", sharey=True)
        for place, (label, drawn) in zip(axes.flat, curves.items(), strict=False):
            place.plot(x, drawn.T, color="tab:red", linewidth=0.6)
            place.plot(x, estimate, color="tab:blue")
            place.set_title(label, fontsize="small")
        axes.flat[-1].axis("off")
        return figure

    notes = [
        "Mean integrated squared distances. Bandwidth 0.2 n^{-1/5}; the same scaled kernel is used "
        "for the estimate and its noise (C13).",
    ]
    figures = {"histogram_mise": rows[-1]["from the true density"]}
    for label, curve in (("kernel, not private", estimate), ("uniform (trivial)", np.ones(257))):
        rows.append(
            {
                "mechanism": label,
                "from the non-private estimate": distance(curve[None], estimate),
                "from the true density": distance(curve[None], line_truth(x)),
            }
        )
    return Outcome(rows=rows, figures=figures, notes=notes, plot=plot)


def verdict(outcome: Outcome) -> Verdict:
    """ICLP-QR nearer to the estimate without privacy than Bernstein."""
    found = {row["mechanism"]: row["from the non-private estimate"] for row in outcome.rows}
    ours = min(found["ICLP-QR η = 1.25"], found["ICLP-QR η = 1.5"])
    bernstein = min(value for name, value in found.items() if name.startswith("Bernstein"))
    return agrees_if(
        ours < bernstein,
        f"No numbers are printed. Distance from the estimate without privacy: ICLP-QR {ours:.2g}, "
        f"best Bernstein {bernstein:.2g}.",
    )
