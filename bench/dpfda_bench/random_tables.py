"""What goes with random curves: groups, covariates, targets; and random points and tables.

The shapes of `random_curves` have a counterpart for single numbers: a smooth density, one with
many modes, one with a spike, heavy tails, and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda_bench.random_curves import SHAPES, CurveProblem, Shape, Slack, problem, public_range

_GROUP_SHARES = (0.6, 0.3, 0.1)
_EFFECT = 0.3  # of the width of the right range: the largest effect of a group or covariate
_AGES = (20.0, 80.0)
_WAVES = 5  # cosines of an effect or slope function
_REFERENCE = 20_000  # points that stand for a population
_COVERED = 0.999
_COLUMNS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouped:
    """Curves of three groups.

    Attributes:
        curves: the problem, with all curves.
        labels: the group of each curve.
        means: mean curve of each group in the population.
    """

    curves: CurveProblem
    labels: IntArray
    means: FloatArray


def grouped(seed: int, *, shape: Shape, slack: Slack, n: int) -> Grouped:
    """Three groups of unequal size whose means differ by smooth curves."""
    one, rng = problem(seed, shape=shape, slack=slack, n=n), np.random.default_rng([seed, n, 1])
    size = _EFFECT * rng.uniform() * one.right_width
    effects = size * np.stack([_wave(one.grid_points, rng) for _ in _GROUP_SHARES])
    labels = rng.choice(len(_GROUP_SHARES), p=_GROUP_SHARES, size=n)
    curves = _moved(one, effects[labels], size)
    return Grouped(curves=curves, labels=labels, means=one.population + effects)


@dataclass(frozen=True, kw_only=True, eq=False)
class WithCovariates:
    """Curves with covariates: an age, and a 0/1 variable.

    Attributes:
        curves: the problem.
        rows: covariates, (n, 2).
        ranges: public range of each.
    """

    curves: CurveProblem
    rows: FloatArray
    ranges: tuple[tuple[float, float], ...]


def with_covariates(seed: int, *, shape: Shape, slack: Slack, n: int) -> WithCovariates:
    """Curves whose mean is linear in two covariates."""
    one, rng = problem(seed, shape=shape, slack=slack, n=n), np.random.default_rng([seed, n, 2])
    size = _EFFECT * rng.uniform() * one.right_width
    effects = size / 2 * np.stack([_wave(one.grid_points, rng) for _ in range(2)])
    low, high = _AGES
    scaled = np.column_stack([rng.uniform(-1, 1, n), rng.integers(2, size=n)])
    ages = (low + high) / 2 + (high - low) / 2 * scaled[:, 0]
    return WithCovariates(
        curves=_moved(one, scaled @ effects, size),
        rows=np.column_stack([ages, scaled[:, 1]]),
        ranges=(_AGES, (0.0, 1.0)),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class WithTargets:
    """Curves with a number that depends on them.

    Attributes:
        curves: the problem.
        targets: y = a + ∫ β(t) x(t) dt + noise.
        slope: β at the grid points.
        expected: a + ∫ β x of the reference curves.
        target_range: public range of y; right.
    """

    curves: CurveProblem
    targets: FloatArray
    slope: FloatArray
    expected: FloatArray
    target_range: tuple[float, float]


def with_targets(seed: int, *, shape: Shape, slack: Slack, n: int) -> WithTargets:
    """Targets that are linear in curves, with noise of 0.2 to 1 times the signal's deviation."""
    one, rng = problem(seed, shape=shape, slack=slack, n=n), np.random.default_rng([seed, n, 3])
    slope, level = _wave(one.grid_points, rng), rng.normal()

    def signal(rows: FloatArray) -> FloatArray:
        return np.asarray(level + np.trapezoid(rows * slope, one.grid_points, axis=1))

    expected = signal(one.reference)
    noise = rng.uniform(0.2, 1.0) * float(expected.std())
    return WithTargets(
        curves=one,
        targets=signal(one.curves) + noise * rng.normal(size=n),
        slope=slope,
        expected=expected,
        target_range=_right_range(expected + noise * rng.normal(size=len(expected)), rng),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class PointProblem:
    """Numbers of n people.

    Attributes:
        points: (n,).
        reference: many other numbers of the same population.
        value_range: the public range.
    """

    points: FloatArray
    reference: FloatArray
    value_range: tuple[float, float]


def points(seed: int, *, shape: Shape, slack: Slack, n: int) -> PointProblem:
    """Draw numbers whose density has this shape."""
    rng = np.random.default_rng([seed, SHAPES.index(shape), n, 4])
    draw, unit = _numbers(shape, rng), 10 ** rng.uniform(-3, 3)
    reference = unit * draw(_REFERENCE)
    low, high = np.quantile(reference, [(1 - _COVERED) / 2, (1 + _COVERED) / 2])
    return PointProblem(
        points=unit * draw(n),
        reference=reference,
        value_range=public_range(float(low), float(high), slack, rng),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TableProblem:
    """Rows of three numbers with a target.

    Attributes:
        rows: (n, 3).
        targets: (n,).
        feature_ranges: public, one a column.
        target_range: public; right.
        reference: other rows of the same population.
        expected: their expected targets.
    """

    rows: FloatArray
    targets: FloatArray
    feature_ranges: tuple[tuple[float, float], ...]
    target_range: tuple[float, float]
    reference: FloatArray
    expected: FloatArray


def table(seed: int, *, shape: Shape, slack: Slack, n: int) -> TableProblem:
    """Columns of one shape; ``fast`` ones are x, x² and x³, hence correlated."""
    rng = np.random.default_rng([seed, SHAPES.index(shape), n, 5])
    slopes, level = rng.normal(size=_COLUMNS), rng.normal()
    columns = [_numbers(shape, rng) for _ in range(_COLUMNS)]
    units = 10 ** rng.uniform(-3, 3, _COLUMNS)

    def draw(size: int) -> FloatArray:
        if shape == "fast":
            x = rng.uniform(0.0, 1.0, size)
            return np.column_stack([x**power for power in range(1, _COLUMNS + 1)])
        if shape == "spiky":
            return (rng.random((size, _COLUMNS)) < (0.5, 0.2, 0.05)).astype(np.float64)
        return np.column_stack([column(size) for column in columns])

    reference, rows = draw(_REFERENCE), draw(n)
    slopes /= np.maximum(reference.std(axis=0), 1e-12)
    expected = reference @ slopes + level
    noise = rng.uniform(0.2, 1.0) * float(expected.std())
    quantiles = np.quantile(reference, [(1 - _COVERED) / 2, (1 + _COVERED) / 2], axis=0)
    return TableProblem(
        rows=rows * units,
        targets=rows @ slopes + level + noise * rng.normal(size=n),
        feature_ranges=tuple(
            public_range(float(low), float(high), slack, rng) for low, high in (quantiles * units).T
        ),
        target_range=_right_range(expected + noise * rng.normal(size=_REFERENCE), rng),
        reference=reference * units,
        expected=expected,
    )


def _numbers(shape: Shape, rng: np.random.Generator) -> Callable[[int], FloatArray]:
    """A law of single numbers."""
    if shape == "heavy":
        return lambda n: rng.standard_t(3, size=n)
    if shape == "discrete":
        rate = 10 ** rng.uniform(0.3, 1.5)
        return lambda n: rng.poisson(rate, size=n).astype(np.float64)
    many = 6 if shape == "fast" else 2
    places = np.arange(many) + rng.uniform(-0.2, 0.2, many)
    widths = np.full(many, 0.15 if shape == "fast" else rng.uniform(0.3, 0.6))
    if shape == "spiky":
        widths[0] = 0.01
    shares = rng.dirichlet(np.full(many, 5.0))

    def draw(n: int) -> FloatArray:
        which = rng.choice(many, p=shares, size=n)
        return np.asarray(places[which] + widths[which] * rng.normal(size=n))

    return draw


def _wave(t: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A smooth curve whose largest absolute value is 1."""
    waves = np.arange(_WAVES)
    scores = rng.normal(size=_WAVES) / np.maximum(waves, 1)
    curve = scores @ np.cos(np.pi * waves[:, None] * t)
    return np.asarray(curve / np.abs(curve).max())


def _moved(one: CurveProblem, by: FloatArray, most: float) -> CurveProblem:
    """The same with curves moved by `most` at most, and a range that has room for it."""
    low, high = one.value_range
    return replace(one, curves=one.curves + by, value_range=(low - most, high + most))


def _right_range(values: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - _COVERED) / 2, (1 + _COVERED) / 2])
    return public_range(float(low), float(high), "right", rng)
