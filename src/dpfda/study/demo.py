"""What ``dpfda demo`` shows: curves of simulated people, sent through every mechanism of the box.

`run` is the only door: whatever it does, it hands back an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.mechanisms import Mechanism
from dpfda.noise import SimulationSource
from dpfda.study.outcome import Outcome

TITLE = "The mean curve of 20,000 people, each of whom sent noise"
CAPTION = "The mean curve without noise, and what noisy reports alone show of it."

_PEOPLE = 20_000
_EPSILON = 1.0
_GRID = np.linspace(0, 1, 60)
_ENCODER = CurveEncoder("bspline", n_basis=4, bounds=(-4.0, 4.0))
_NAMES = ("laplace", "piecewise", "hybrid", "duchi")


def run(progress: Callable[[float], None] | None = None) -> Outcome:
    """Encode, perturb, average: one row a mechanism."""
    curves = simulated_curves(_PEOPLE, seed=0)
    encoded = _ENCODER.encode(curves, grid_points=_GRID)
    true_mean = _ENCODER.draw(encoded.mean(axis=0, keepdims=True), _GRID)[0]
    rows: list[dict[str, Any]] = []
    means: dict[str, FloatArray] = {}
    for done, name in enumerate(_NAMES, start=1):
        mechanism = Mechanism.from_dict({"name": name, "epsilon": _EPSILON, "dimension": 4})
        reports = mechanism.randomize(encoded, SimulationSource(done))
        means[name] = _ENCODER.draw(reports.mean(axis=0, keepdims=True), _GRID)[0]
        rows.append(
            {
                "mechanism": name,
                "stated variance": float(mechanism.variance(encoded).mean()),
                "measured variance": float(((reports - encoded) ** 2).mean()),
                "error of the mean curve": float(np.sqrt(((means[name] - true_mean) ** 2).mean())),
            }
        )
        if progress is not None:
            progress(done / len(_NAMES))
    promise = mechanism.guarantee.drawn_from(SimulationSource(0))
    best = min(rows, key=lambda row: row["error of the mean curve"])
    notes = [
        f"Each person sent one report of 4 numbers. Guarantee: {promise}.",
        f"Closest mean curve: {best['mechanism']}. The curves themselves range from about -4 to 4.",
    ]
    return Outcome(rows=rows, notes=notes, plot=partial(_draw, true_mean, means))


def simulated_curves(people: int, *, seed: int) -> FloatArray:
    """Smooth curves around one hump, shape (people, 60)."""
    rng = np.random.default_rng(seed)
    hump = np.exp(-((_GRID - 0.35) ** 2) / 0.05)
    waves = np.stack([np.ones_like(_GRID), np.sin(2 * np.pi * _GRID), np.cos(2 * np.pi * _GRID)])
    return np.asarray(2 * hump + rng.normal(size=(people, 3)) * [0.4, 0.5, 0.3] @ waves)


def _draw(true_mean: FloatArray, means: dict[str, FloatArray]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    axes.plot(_GRID, true_mean, linewidth=4, alpha=0.35, label="without noise")
    for name, mean in means.items():
        axes.plot(_GRID, mean, linewidth=1.4, label=name)
    axes.set_xlabel("t")
    axes.set_ylabel("mean of x(t)")
    axes.legend(frameon=False)
    return figure
