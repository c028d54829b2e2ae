"""Coverage of bands on real curves: a data set is the population, samples are drawn from it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from itertools import product

import numpy as np

from dpfda._validate import FloatArray
from dpfda.datasets.catalogue import DataFileMissing, Dataset
from dpfda.datasets.loaders import (
    load_activity,
    load_adelaide_demand,
    load_canadian_weather,
    load_dti,
    load_tecator,
)
from dpfda.estimators.private_mean import PrivateMean
from dpfda.planning.sweep import Sweep
from dpfda_bench.benchmarks._honesty_judge import Cell, Finding, share
from dpfda_bench.benchmarks._honesty_task import LEVEL, held

_SETS: dict[str, tuple[Callable[[], Dataset], tuple[float, float]]] = {
    "tecator": (load_tecator, (1.5, 6.0)),  # absorbance
    "Adelaide demand": (load_adelaide_demand, (0.0, 4000.0)),  # megawatts
    "DTI": (load_dti, (0.0, 1.0)),  # anisotropy, by definition
    "Canadian weather": (load_canadian_weather, (-50.0, 40.0)),  # °C
    "NHANES activity": (load_activity, (0.0, 1000.0)),  # log-counts, summed over two hours
}
"""Data sets, with the range that somebody who knows the quantity states."""

_MOST = 2000  # people of a sample
_PRICES = ((1.0, 0.0), (1.0, 1e-6))
_BLOCK = 25


def rows(*, runs: int, sweep: Sweep) -> tuple[list[Finding], list[str]]:
    """Coverage for each data set that is here; notes about those that are not."""
    known, notes = [], []
    for name in _SETS:
        try:
            known.append((name, min(_MOST, len(_curves(name)))))
        except DataFileMissing as missing:
            notes.append(f"coverage_real leaves out {name}: {missing}")
    cells: list[Cell] = [
        (f"{name}, {'population' if inference else 'sample'}", n, *price)
        for (name, n), inference, price in product(known, (False, True), _PRICES)
    ]
    starts = range(0, runs, _BLOCK)
    blocks = [(cell, start, min(start + _BLOCK, runs)) for cell in cells for start in starts]
    parts = iter(sweep.run(_block, blocks))
    found = []
    for cell in cells:
        outcomes = [one for _ in starts for one in next(parts)]
        missed = [warned for holds, warned in outcomes if not holds]
        told = f"{np.mean(missed):.0%} of the misses have a warning" if missed else ""
        found.append(share(cell, [holds for holds, _ in outcomes], told))
    return found, notes


def _block(cell: Cell, start: int, stop: int) -> list[tuple[bool, bool]]:
    """Whether bands hold, and whether there was a warning."""
    kind, n, epsilon, delta = cell
    name, _, target = kind.partition(", ")
    population, found = _curves(name), []
    for seed in range(start, stop):
        sample = population[np.random.default_rng(seed).integers(len(population), size=n)]
        truth = (sample if target == "sample" else population).mean(axis=0)
        model = PrivateMean(
            epsilon,
            delta=delta,
            value_range=_SETS[name][1],
            inference=target == "population",
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the release keeps them
            release = model.fit(sample).release_
        holds = held(truth, *release.interval(LEVEL, simultaneous=True))
        found.append((holds, bool(release.warnings)))
    return found


@lru_cache(maxsize=len(_SETS))
def _curves(name: str) -> FloatArray:
    """Complete curves of a data set."""
    curves = np.asarray(_SETS[name][0]().X, dtype=np.float64)
    return np.asarray(curves[~np.isnan(curves).any(axis=1)])
