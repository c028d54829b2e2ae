"""Integrals on a grid: the one inner product that bases, bounds and errors share.

A grid is a tuple of axes, one for each variable; a function on it is its values in row-major order,
one number a point. Weights are the trapezoid rule's. Bounds that people give are on the *average*
norm, ‖X‖² = ∫X²/length, in which a constant c has norm |c| on every domain; `norm_bound` turns them
into bounds on √∫X², in which bases are orthonormal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter

Grid = tuple[FloatArray, ...]


def as_grid(grid_points: Any) -> Grid:
    """Public grid points as a tuple of increasing axes: an array, or one array a variable."""
    axes = grid_points if isinstance(grid_points, tuple) else (grid_points,)
    return tuple(_axis(axis) for axis in axes)


def as_places(places: Any) -> Grid:
    """Where to read a function off: like a grid, but one place is enough, in any order."""
    axes = places if isinstance(places, tuple) else (places,)
    found = tuple(np.atleast_1d(_numbers(axis)) for axis in axes)
    if any(axis.ndim != 1 or axis.size == 0 for axis in found):
        raise InvalidParameter(
            "grid_points", "at least one point a variable", type(places).__name__
        )
    if not all(np.isfinite(axis).all() for axis in found):
        raise InvalidParameter("grid_points", "finite", "NaN or infinity")
    return found


def trapezoid(grid: Grid) -> FloatArray:
    """Weights of the trapezoid rule, one for each point of the grid.

    Examples:
        >>> trapezoid(as_grid([0.0, 0.5, 1.0]))
        array([0.25, 0.5 , 0.25])
    """
    weights = np.ones(1)
    for axis in grid:
        gaps = np.diff(axis)
        along = np.concatenate([gaps, [0.0]]) / 2 + np.concatenate([[0.0], gaps]) / 2
        weights = np.outer(weights, along).ravel()
    return weights


def norm_bound(bound: float, grid: Grid) -> float:
    """A public bound on the average norm, as a bound on √∫X²: times √(length of the domain).

    Examples:
        >>> norm_bound(2.0, as_grid([0.0, 3.0, 9.0]))
        6.0
    """
    length = math.prod(float(axis[-1] - axis[0]) for axis in grid)
    return _validate.positive("bound", bound) * math.sqrt(length)


def norms(values: FloatArray, weights: FloatArray) -> FloatArray:
    """L² norm of each function, the last axis of `values` being the grid."""
    return np.asarray(np.sqrt((values**2 * weights).sum(axis=-1)))


def _numbers(axis: Any) -> FloatArray:
    try:
        return np.asarray(axis, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("grid_points", "numbers", type(axis).__name__) from None


def _axis(axis: Any) -> FloatArray:
    points, rule = _numbers(axis), "finite and strictly increasing"
    if points.ndim != 1 or points.size < 2:
        raise InvalidParameter("grid_points", "at least two points a variable", points.shape)
    if not np.all(np.isfinite(points)):
        place = int(np.argmin(np.isfinite(points)))
        found = float(points[place])
        raise InvalidParameter("grid_points", f"{rule}; see point {place + 1}", found)
    falls = np.diff(points) <= 0
    if falls.any():
        place = int(np.argmax(falls))
        pair = float(points[place]), float(points[place + 1])
        where = f"{rule}; see points {place + 1} and {place + 2}"
        raise InvalidParameter("grid_points", where, pair)
    return points
