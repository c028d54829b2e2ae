"""Integrals on a grid: the one inner product that bases, bounds and errors share.

A grid is a tuple of axes, one for each variable; a function on it is its values in row-major order,
one number a point. Weights are the trapezoid rule's, so a constant's norm is √(length of domain).
"""

from __future__ import annotations

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


def trapezoid(grid: Grid) -> FloatArray:
    """Weights of the trapezoid rule, one for each point of the grid.

    Example:
        >>> trapezoid(as_grid([0.0, 0.5, 1.0]))
        array([0.25, 0.5 , 0.25])
    """
    weights = np.ones(1)
    for axis in grid:
        gaps = np.diff(axis)
        along = np.concatenate([gaps, [0.0]]) / 2 + np.concatenate([[0.0], gaps]) / 2
        weights = np.outer(weights, along).ravel()
    return weights


def norms(values: FloatArray, weights: FloatArray) -> FloatArray:
    """L² norm of each function, the last axis of `values` being the grid."""
    return np.asarray(np.sqrt((values**2 * weights).sum(axis=-1)))


def _axis(axis: Any) -> FloatArray:
    try:
        points = np.asarray(axis, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("grid_points", "numbers", type(axis).__name__) from None
    if points.ndim != 1 or points.size < 2:
        raise InvalidParameter("grid_points", "at least two points a variable", points.shape)
    if not np.all(np.isfinite(points)) or np.any(np.diff(points) <= 0):
        raise InvalidParameter("grid_points", "finite and increasing", "other points")
    return points


def uniform_grid(domain_range: tuple[float, float], size: int) -> Grid:
    """Equidistant points of an interval, ends included."""
    low, high = _validate.interval("domain_range", domain_range)
    return (np.linspace(low, high, _validate.whole("size", size, least=2)),)
