"""Mean integrated squared error of `PrivateDensity` on the mixtures of 003 §6.2."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import multivariate_normal, truncnorm

from dpfda._validate import FloatArray
from dpfda.central.density import DensityMechanism, HistogramDensity
from dpfda.central.functions import as_grid, trapezoid
from dpfda.central.kernel_density import KernelDensity
from dpfda.estimators.private_density import PrivateDensity
from dpfda.report.contents import Outcome
from dpfda_bench.goals import Goal, at_most

GOALS: dict[str, Goal] = {
    "n500": at_most(0.026),
    "n2000": at_most(0.0058),
    "n10000": at_most(0.0013),
}

LINE: dict[str, DensityMechanism] = {
    "histogram (default)": HistogramDensity(),
    "ICLP-QR η = 1.25": KernelDensity(kind="iclp_qr"),
    "FRL, 12 components": KernelDensity(kind="frl", components=12),
    "Bernstein K = 30": KernelDensity(kind="bernstein", components=30),
}
PLANE: dict[str, DensityMechanism] = {
    "histogram (default)": HistogramDensity(),
    "ICLP-QR η = 1.2": KernelDensity(kind="iclp_qr", eta=1.2, rough=True),
    "FRL, 25 components": KernelDensity(kind="frl", components=25, eta=1.2, rough=True),
    "Bernstein K = 10": KernelDensity(kind="bernstein", components=10, eta=1.2, rough=True),
}

_LINE_GRID = as_grid(np.linspace(0, 1, 257))
_PLANE_GRID = as_grid((np.linspace(-5, 5, 65), np.linspace(-5, 5, 65)))


def run(quick: bool = False) -> Outcome:
    """The default beside the kernel releases, in one and two variables."""
    few, rare = ((40, 4), (10, 1)) if quick else ((400, 40), (60, 5))
    rows = [_row(1, n, few) for n in (500, 2000, 10_000)]
    plane = [_row(2, n, rare) for n in ((2000,) if quick else (500, 2000, 10_000))]
    figures = {f"n{row['n']}": row["histogram (default)"] for row in rows}
    figures |= {f"plane_n{row['n']}": row["histogram (default)"] for row in plane}
    notes = [
        f"two variables, n = {row['n']}: "
        + ", ".join(f"{label} {row[label]:.4g}" for label in PLANE)
        for row in plane
    ]
    return Outcome(rows=rows, figures=figures, notes=notes)


def _row(variables: int, n: int, replications: tuple[int, int]) -> dict[str, Any]:
    """Errors of every mechanism; the default, which is fast, has more replications."""
    mechanisms, error = (LINE, line_error) if variables == 1 else (PLANE, plane_error)
    return {"variables": variables, "n": n} | {
        label: error(mechanism, n, replications=replications[label != "histogram (default)"])
        for label, mechanism in mechanisms.items()
    }


def line_sample(n: int, rng: np.random.Generator) -> FloatArray:
    """The mixture of two truncated normals on [0, 1]."""
    center = np.where(rng.random(n) < 0.6, 0.3, 0.7)
    low, high = (0 - center) / 0.1, (1 - center) / 0.1
    return np.asarray(truncnorm.rvs(low, high, loc=center, scale=0.1, random_state=rng))


def line_truth(x: FloatArray) -> FloatArray:
    """Its density."""
    parts = [
        share * truncnorm.pdf(x, -center / 0.1, (1 - center) / 0.1, loc=center, scale=0.1)
        for share, center in ((0.6, 0.3), (0.4, 0.7))
    ]
    return np.asarray(sum(parts))


def plane_sample(n: int, rng: np.random.Generator) -> FloatArray:
    """The mixture of two normals on [-5, 5]², drawn again where it falls outside."""
    shape = np.array([[1.0, 0.5], [0.5, 1.0]])
    points = np.empty((0, 2))
    while len(points) < n:
        first = rng.random(n) < 0.6
        center = np.where(first[:, None], [-3.0, -3.0], [3.0, 2.0])
        drawn = center + rng.standard_normal((n, 2)) @ np.linalg.cholesky(shape).T
        points = np.vstack([points, drawn[(np.abs(drawn) <= 5).all(axis=1)]])
    return points[:n]


def plane_truth() -> FloatArray:
    """Its density on the grid of errors."""
    mesh = np.stack(np.meshgrid(*_PLANE_GRID, indexing="ij"), axis=-1)
    shape = [[1.0, 0.5], [0.5, 1.0]]
    density = sum(
        share * multivariate_normal(center, shape).pdf(mesh)
        for share, center in ((0.6, [-3.0, -3.0]), (0.4, [3.0, 2.0]))
    ).ravel()
    return np.asarray(density / (density @ trapezoid(_PLANE_GRID)))


def line_error(mechanism: DensityMechanism, n: int, *, replications: int) -> float:
    """MISE over replications, in one variable."""
    rng, x = np.random.default_rng(n), _LINE_GRID[0]
    errors = [
        _fit(mechanism, line_sample(n, rng), (0.0, 1.0), seed).values(x) - line_truth(x)
        for seed in range(replications)
    ]
    return float(np.mean(np.square(errors), axis=0) @ trapezoid(_LINE_GRID))


def plane_error(mechanism: DensityMechanism, n: int, *, replications: int) -> float:
    """MISE over replications, in two variables."""
    rng, truth = np.random.default_rng(n), plane_truth()
    box = ((-5.0, 5.0), (-5.0, 5.0))
    errors = [
        _fit(mechanism, plane_sample(n, rng), box, seed).values(_PLANE_GRID).ravel() - truth
        for seed in range(replications)
    ]
    return float(np.mean(np.square(errors), axis=0) @ trapezoid(_PLANE_GRID))


def _fit(mechanism: DensityMechanism, points: FloatArray, box: Any, seed: int) -> Any:
    default = isinstance(mechanism, HistogramDensity)
    model = PrivateDensity(
        1.0, feature_ranges=box, mechanism=mechanism, project=default, random_state=seed
    )
    return model.fit(points).release_
