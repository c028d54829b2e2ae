"""What the reproductions of 003 share: data sets, expected errors, pictures."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import repeat
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.cell_queries import Box, NearestMean
from dpfda.central.density import DensityMechanism, DensityRelease
from dpfda.central.functions import Grid, as_grid, norms, trapezoid
from dpfda.central.kernel_density import Bernstein, KernelDensity
from dpfda.central.linear import LinearMechanism
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.records import read_records
from dpfda.datasets.loaders import load_adelaide_demand, load_dti
from dpfda.noise import SimulationSource
from dpfda.privacy.cost import Cost
from dpfda_bench.benchmarks.iclp import distances
from dpfda_bench.effort import Effort

EPSILONS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
DEMAND_UNIT = 2500.0
"""Megawatts: half-hourly demand in Adelaide is divided by this public figure."""
PUBLIC = {"scans": 1.0, "electricity": 2.0}
"""Anisotropy is in [0, 1]; demand in [0, 2] units: |X| ≤ 1 or 2, |X - ½ range| ≤ ½ range."""


def scans() -> tuple[FloatArray, Grid]:
    """382 profiles of the corpus callosum, missing points filled along each curve."""
    data = load_dti()
    return read_records(data.X, data.grid_points)


def mondays() -> tuple[FloatArray, Grid]:
    """508 Mondays of electricity demand, 48 half-hours each, in units of 2500 MW, on [0, 1]."""
    data = load_adelaide_demand()
    rows = data.X[data.extra["weekday"] == 1] / DEMAND_UNIT
    return rows, as_grid(np.linspace(0, 1, rows.shape[1]))


@lru_cache
def curves(name: str) -> tuple[FloatArray, Grid]:
    """``scans`` or ``electricity``."""
    return scans() if name == "scans" else mondays()


def release_of(
    mechanism: FunctionMechanism, records: FloatArray, grid: Grid, *, bound: float, epsilon: float
) -> MeanRelease:
    """The conversation about these records' mean."""
    return MeanRelease(epsilon=epsilon, n=len(records), bound=bound, grid=grid, mechanism=mechanism)


def expected_distance(release: MeanRelease, records: FloatArray) -> float:
    """E‖μ̃ - X̄‖² of a mechanism that adds independent noise: exact, no simulation."""
    curve, noise = without_noise(release, records)
    return float((curve - records.mean(axis=0)) ** 2 @ trapezoid(release.grid)) + noise


def without_noise(release: MeanRelease, records: FloatArray) -> tuple[FloatArray, float]:
    """The curve that noise is added to, and E‖noise‖²: for comparisons only, not private."""
    mechanism = release.mechanism
    assert isinstance(mechanism, LinearMechanism | Bernstein)
    query = mechanism.query(release)
    basis = mechanism.basis(release.grid).first(query.size)
    exact = query.exact(query.fitting(release.records(records)), SimulationSource(0))
    variance = query.mechanism.law.variance
    return basis.expand(exact), float(variance @ (basis.functions**2 @ basis.weights))


def simulated_distance(release: MeanRelease, records: FloatArray, *, replications: int) -> float:
    """E‖μ̃ - X̄‖² by simulation."""
    samples, source = repeat(records, replications), SimulationSource(0)
    return float(distances(release, samples, records.mean(axis=0), source=source).mean())


def kernel_estimate(density: KernelDensity, points: FloatArray, box: Box) -> FloatArray:
    """A kernel estimate without noise, on the cells' grid: not private, for comparisons only."""
    basis, features, axes = density.layout(box, len(points), whole=True)
    low, high = (np.array([side[end] for side in box]) for end in (0, 1))
    query = NearestMean(
        cost=Cost(epsilon=1.0),
        n=len(points),
        low=low,
        high=high,
        along=basis.grid[0].size,
        features=features,
        axes=axes,
    )
    return basis.expand(query.exact((points,), SimulationSource(0)))


def released(
    mechanisms: dict[str, DensityMechanism],
    points: FloatArray,
    box: Box,
    at: Any,
    *,
    times: int,
    effort: Effort,
) -> dict[str, FloatArray]:
    """Releases of each density from one sample at ε = 1, evaluated `at` a grid: (times, points)."""
    draw = partial(_drawn, mechanisms=mechanisms, points=points, box=box, at=at)
    found = effort.sweep.run(draw, [(label, times) for label in mechanisms])
    return dict(zip(mechanisms, found, strict=True))


def _drawn(
    label: str,
    times: int,
    *,
    mechanisms: dict[str, DensityMechanism],
    points: FloatArray,
    box: Box,
    at: Any,
) -> FloatArray:
    source, mechanism = SimulationSource(list(mechanisms).index(label)), mechanisms[label]
    release = DensityRelease(epsilon=1.0, n=len(points), box=box, mechanism=mechanism)
    drawn = [release.ask((points,), source=source).values(at).ravel() for _ in range(times)]
    return np.array(drawn)


def largest_norm(records: FloatArray, grid: Grid) -> float:
    """The data's own maximum: what the published experiments take for τ. Not private (C11)."""
    return float(norms(records, trapezoid(grid)).max())
