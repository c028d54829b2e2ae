"""Classification tasks that forecasts are judged on: what a user would say of each, and its people.

Ranges are choices that a person could make without the data. Constants of the generators were
chosen on the tasks with ``chosen_on`` and on no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.datasets import loaders, simulate_001
from dpfda_bench.prepared_data import prepare

Split = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Rows and labels (±1) of people who are asked, then of others."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """People with curves or rows, and what is known of them in advance.

    Attributes:
        name: in tables.
        family: the public generator that a user would choose.
        facts: that `plan_study` takes, without people, ε and classes.
        draw: a replication, by its seed.
        chosen_on: constants of the generators were chosen on this task.
    """

    name: str
    family: str
    facts: Mapping[str, Any]
    draw: Callable[[int], Split]
    chosen_on: bool = False


def tasks(*, real: bool = True) -> Iterator[Case]:
    """All of them; those with real data need their files."""
    yield from _simulated()
    if real:
        yield from _curves()
        yield from _tables()


def _curves() -> Iterator[Case]:
    for pair, known in (("sh iy", True), ("aa ao", True), ("dcl iy", False), ("aa sh", False)):
        first, second = pair.split()
        data = loaders.load_phoneme(classes=(first, second))
        yield _real(f"phoneme {pair}", "spectra", data.X, data.y, {"value_range": (0, 25)}, known)
    italy, gun = loaders.load_italy_power_demand(), loaders.load_gunpoint()
    yield _real("italy power", "smooth", italy.X, italy.y, {"value_range": (-3, 3)}, True)
    yield _real("gunpoint", "smooth", gun.X, gun.y, {"value_range": (-3, 3)})
    meat = loaders.load_tecator()
    fat = np.asarray(meat.y, dtype=float) >= 20
    yield _real("tecator", "spectra", meat.X, fat, {"value_range": (2, 5.5)})
    days = loaders.load_adelaide_demand()
    weekend = np.isin(days.extra["weekday"], (0, 6))
    yield _real("adelaide weekend", "smooth", days.X, weekend, {"value_range": (500, 3000)})
    active = loaders.load_activity()
    old = active.extra["age"].astype(float) >= 60
    yield _real("activity age", "smooth", active.X, old, {"value_range": (0, 900)})
    scans = loaders.load_dti()
    whole = ~np.isnan(scans.X).any(axis=1)
    ill = np.asarray(scans.extra["case"], dtype=float)[whole]
    yield _real("dti case", "smooth", scans.X[whole], ill, {"value_range": (0, 1)}, True)
    children = loaders.load_growth()
    yield _real("growth", "smooth", children.X, children.y, {"value_range": (50, 220)}, True)
    deaths = loaders.load_un_mortality()
    country = deaths.extra["location_type"] == 4
    rates = np.log10(np.maximum(deaths.X[country], 1e-6))
    late = deaths.extra["period"][country] >= "1985"
    yield _real("mortality period", "smooth", rates, late, {"value_range": (-5, 0)})


def _tables() -> Iterator[Case]:
    ill = loaders.load_diabetes()
    medical = [(0, 12), (50, 200), (40, 120), (0, 60), (0, 300), (15, 50), (0, 1.5), (20, 80)]
    yield _real("diabetes", "table", ill.X, ill.y, {"feature_ranges": medical}, True)
    for name, known in (("adult", True), ("phishing", False), ("kdd", False)):
        found = prepare(name)
        columns = found.X.shape[1]
        rows = found.X * columns**0.5
        yield _real(
            name, "table", rows, found.y > 0, {"feature_ranges": [(-1, 1)] * columns}, known
        )
    dose = prepare("warfarin")
    rows, ranges = dose.X * dose.X.shape[1] ** 0.5, [(-1, 1)] * dose.X.shape[1]
    yield _real("warfarin dose", "table", rows, dose.y >= 0.55, {"feature_ranges": ranges})
    for name, load in (("mnist", loaders.load_mnist_4_9), ("fashion", loaders.load_fashion)):
        images = load()
        small = images.X.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49)
        facts = {"feature_ranges": [(0, 1)] * 49}
        yield _real(name, "table", small, images.y, facts)


def _simulated() -> Iterator[Case]:
    box = {"value_range": (-6, 6)}
    yield Case(name="001", family="smooth", facts=box, draw=_paper, chosen_on=True)
    yield Case(name="bumps", family="smooth", facts=box, draw=partial(_drawn, _bumps))
    yield Case(name="walks", family="rough", facts=box, draw=partial(_drawn, _walks))
    yield Case(name="steps", family="rough", facts=box, draw=partial(_drawn, _steps))
    for name, family, simulation, range_ in (
        ("slopes", "smooth", _slopes, (-6, 6)), ("peaks", "spectra", _peaks, (-1, 4)),
        ("ripples", "rough", _ripples, (-5, 5)),
    ):  # fmt: skip
        own, draw = {"value_range": range_}, partial(_drawn, simulation)
        yield Case(name=name, family=family, facts=own, draw=draw, chosen_on=True)
    ten = {"feature_ranges": [(-10, 10)] * 8}
    yield Case(name="correlated", family="table", facts=ten, draw=partial(_drawn, _correlated))
    weak = {"feature_ranges": [(0, 1)] * 5 + [(15, 50), (0, 52), (0, 30)]}
    yield Case(name="weak", family="table", facts=weak, draw=partial(_drawn, _weak))


def _real(
    name: str, family: str, X: Any, y: Any, facts: Mapping[str, Any], *chosen_on: bool
) -> Case:
    labels = np.where(np.asarray(y, dtype=float) > 0, 1.0, -1.0)
    draw = partial(_split, np.asarray(X, dtype=np.float64), labels)
    return Case(name=name, family=family, facts=facts, draw=draw, chosen_on=any(chosen_on))


def _split(X: FloatArray, y: FloatArray, seed: int) -> Split:
    """A random split: three quarters are asked."""
    order = np.random.default_rng(seed).permutation(len(X))
    asked, others = np.split(order, [int(0.75 * len(X))])
    return X[asked], y[asked], X[others], y[others]


def _paper(seed: int) -> Split:
    asked, others = simulate_001(3000, 2 * seed), simulate_001(10_000, 2 * seed + 1)
    assert asked.y is not None
    assert others.y is not None
    return asked.X, asked.y, others.X, others.y


Drawn = Callable[[int, np.random.Generator], tuple[FloatArray, FloatArray]]


def _drawn(simulation: Drawn, seed: int) -> Split:
    rng = np.random.default_rng(seed)
    return *simulation(4000, rng), *simulation(10_000, rng)


_T = np.linspace(0, 1, 51)


def _bumps(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """A smooth Gaussian process; one class has a higher bump at 0.3."""
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    root = np.linalg.cholesky(np.exp(-(np.subtract.outer(_T, _T) ** 2) / 0.08) + 1e-6 * np.eye(51))
    bump = np.exp(-(((_T - 0.3) / 0.12) ** 2))
    return np.sin(3 * _T) + rng.normal(size=(n, 51)) @ root.T + 0.9 * (y > 0)[:, None] * bump, y


def _walks(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Random walks with a drift of either sign."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    steps = rng.normal(0, 51**-0.5, (n, 51)) + 0.9 * y[:, None] / 51
    return np.cumsum(steps, axis=1), y


def _steps(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Noise around a level of one's own, and a step in the middle for one class."""
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    level = rng.normal(0, 1, (n, 1))
    return level + rng.normal(0, 1.5, (n, 51)) + 0.8 * np.outer(y > 0, _T > 0.5), y


def _slopes(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Wide levels off the middle of the range; one class rises faster."""
    y = np.where(rng.random(n) < 0.35, 1.0, -1.0)
    root = np.linalg.cholesky(np.exp(-(np.subtract.outer(_T, _T) ** 2) / 0.02) + 1e-6 * np.eye(51))
    curves = 2 + 1.2 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, 51)) @ root.T
    return curves + 1.6 * np.outer(y > 0, _T - 0.5), y


def _peaks(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Three peaks of random height; the middle one is higher in one class."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    height = np.abs(1 + 0.4 * rng.normal(size=(n, 3)))
    height[:, 1] += 0.5 * (y > 0)
    shapes = np.exp(-(((_T - np.array([[0.2], [0.5], [0.75]])) / 0.05) ** 2))
    noise = 0.3 * rng.normal(size=(n, 1)) + 0.1 * rng.normal(size=(n, 51))
    return height @ shapes + noise, y


def _ripples(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Noise and a random walk, and a wave of either sign."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    noise = rng.normal(size=(n, 51))
    walk = 0.5 * np.cumsum(rng.normal(size=(n, 51)), axis=1) / 51**0.5
    return noise + walk + 0.35 * np.outer(y, np.cos(3 * np.pi * _T)), y


def _correlated(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Eight columns with correlation 0.5; labels by a logistic model."""
    X = rng.normal(size=(n, 8)) * 0.5**0.5 + rng.normal(size=(n, 1)) * 0.5**0.5
    X *= 2.5
    log_odds = X @ np.array([0.8, -0.6, 0.5, 0.4, 0.3, 0.0, 0.0, 0.0])
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), 1.0, -1.0)


def _weak(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Marks, a normal column, counts and weeks; a weak signal and classes of unequal size."""
    marks = (rng.random((n, 5)) < [0.5, 0.5, 0.05, 0.07, 0.05]).astype(float)
    age, count = rng.normal(30, 3.5, n), rng.poisson(2, n)
    weeks = np.where(rng.random(n) < 0.45, 0, rng.uniform(1, 52, n))
    log_odds = (
        0.12 * (age - 30) - 0.02 * (weeks - 15) + 0.5 * marks[:, 2] + 0.15 * (count - 2) - 0.5
    )
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), 1.0, -1.0)
    return np.column_stack([marks, age, weeks, count]), y
