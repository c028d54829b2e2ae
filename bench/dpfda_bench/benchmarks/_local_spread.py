"""Classes whose people are spread differently, and what asking for it costs where means differ.

No linear rule of the features tells the first apart; a quadratic one without privacy is the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda_bench.benchmarks._local_problem import Draw, Problem, at

Family = Callable[[int, np.random.Generator], tuple[FloatArray, IntArray]]

_OTHERS = 5000
_POINTS: FloatArray = np.linspace(0, 1, 65)
_TERMS = 16
_ASKED = {"spread_differs": True}


def spreads(others: list[Problem]) -> list[Problem]:
    """Constants were chosen on those marked tuned; the others were looked at once, afterwards.

    Of `others`, whose classes differ in their means, two are asked for distances in vain.
    """
    means = {problem.name: problem for problem in others}
    curves: dict[str, Any] = {"value_range": (-6.0, 6.0), **_ASKED}
    columns: dict[str, Any] = {"feature_ranges": [(-10, 10)] * 8, **_ASKED}
    tailed: dict[str, Any] = {"feature_ranges": [(-50, 50)] * 6, **_ASKED}
    return [
        _problem("wide_curves", _wide_curves, 3000, curves, at(40, 30, 20, 15.5), tuned=True),
        _problem("wide_level", _wide_level, 3000, curves, at(45, 40, 34, 30), tuned=True),
        _problem("wide_table", _wide_table, 20_000, columns, at(38, 27, 24, 21), tuned=True),
        _problem("rough_curves", _rough_curves, 3000, curves, at(45, 40, 30, 25)),
        _problem("tailed_table", _tailed_table, 10_000, tailed, at(35, 33, 28, 25)),
        _in_vain(means["simulation"], at(13, 11.5, 11.5, 11.5)),
        _in_vain(means["corr8"], at(47, 37, 28, 25.5)),
    ]


def _in_vain(problem: Problem, goals: dict[float, float]) -> Problem:
    facts = {**problem.facts, **_ASKED}
    return Problem(f"{problem.name}_spread", problem.draw, facts, goals, tuned=problem.tuned)


def _problem(
    name: str, family: Family, people: int, facts: Any, goals: Any, *, tuned: bool = False
) -> Problem:
    return Problem(name, partial(_draw, family, people), facts, goals, tuned=tuned)


def _draw(family: Family, people: int, seed: int) -> Draw:
    rng = np.random.default_rng(2000 + seed)
    return *family(people, rng), *family(_OTHERS, rng)


def _cosines(amplitudes: FloatArray) -> FloatArray:
    """Curves (n, T) with these coefficients (n, m)."""
    waves = np.cos(np.pi * np.outer(np.arange(amplitudes.shape[1]), _POINTS))
    waves[1:] *= np.sqrt(2)
    return np.asarray(amplitudes @ waves)


def _wide_curves(n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Smooth curves around a bump; those of one class vary twice as much, in all they do."""
    y = rng.integers(0, 2, n)
    size = 0.7 / np.maximum(np.arange(_TERMS), 1)
    middle = 0.8 * np.exp(-20 * (_POINTS - 0.4) ** 2)
    return middle + _cosines(rng.normal(size=(n, _TERMS)) * size * (1 + y)[:, None]), y


def _wide_level(n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """The same, but only level and first wave differ."""
    y = rng.integers(0, 2, n)
    size = np.repeat(0.7 / np.maximum(np.arange(_TERMS), 1)[None], n, axis=0)
    size[:, :2] *= (1 + y)[:, None]
    return 0.5 + _cosines(rng.normal(size=(n, _TERMS)) * size), y


def _wide_table(n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Eight columns that go together; four of them vary twice as much in one class."""
    y = rng.integers(0, 2, n)
    common = np.linalg.cholesky(0.7 * np.eye(8) + 0.3)
    X = rng.normal(size=(n, 8)) @ common.T
    X[:, ::2] *= (1 + y)[:, None]
    return X + np.linspace(-2, 2, 8), y


def _rough_curves(n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Stationary curves as large in both classes; in one they turn three times as fast."""
    y = rng.integers(0, 2, n)
    apart = np.abs(_POINTS[:, None] - _POINTS)
    roots = [
        np.linalg.cholesky(np.exp(-0.5 * (apart / length) ** 2) + 1e-6 * np.eye(len(_POINTS)))
        for length in (0.3, 0.1)
    ]
    normal = rng.normal(size=(n, len(_POINTS)))
    rows = [np.where(y[:, None] == one, normal @ root.T, 0) for one, root in enumerate(roots)]
    return np.sin(2 * np.pi * _POINTS) + sum(rows), y


def _tailed_table(n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Six columns with tails; of a third of people, three of them vary twice as much."""
    y = (rng.random(n) < 0.35).astype(np.int64)
    X = rng.standard_t(5, size=(n, 6))
    X[:, :3] *= (1 + y)[:, None]
    X[:, 4] += 0.5 * y
    return 3 * X + np.linspace(0, 10, 6), y
