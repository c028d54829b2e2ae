"""Read, fill and clip the records of a curator, one record at a time."""

from __future__ import annotations

import numpy as np

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray
from dpfda.central.functions import Grid, as_grid
from dpfda.curves.observations import Curves, GridPoints, public_domain, read_curves
from dpfda.errors import InvalidData, InvalidParameter

_DEFAULT_POINTS = 101
_LARGEST = 1e100  # values are clipped to this size, so that no square overflows


def read_records(
    curves: Curves,
    grid_points: GridPoints,
    *,
    domain_range: tuple[float, float] | None = None,
    least: int = 2,
) -> tuple[FloatArray, Grid]:
    """Curves on one public grid, shape (n, points), without gaps.

    Arrays have shape (n, T) for curves, and (n, T1, T2) for surfaces, whose grid has two axes
    (s, t). An ``FDataGrid`` and pairs (t, x) are accepted too. Missing values (NaN) are
    interpolated linearly on the same curve, and beyond its first and last value they are constant.
    A curve without any value is rejected.
    """
    _refuse_odd_matrices(curves)
    values, grid = _read(curves, grid_points, domain_range)
    if len(values) < least:
        raise InvalidData("curves", f"at least {least} curves", f"n_samples = {len(values)}")
    return np.clip(values, -_LARGEST, _LARGEST), grid


def _read(
    curves: Curves, grid_points: GridPoints, domain_range: tuple[float, float] | None
) -> tuple[FloatArray, Grid]:
    if of_surfaces(grid_points):
        return _read_surfaces(curves, grid_points)
    points, values, grid = read_points(curves, grid_points, domain_range=domain_range)
    if points.ndim == 1:
        return fill_gaps(values, grid[0]), grid
    return np.stack([_along(t, x, grid[0]) for t, x in zip(points, values, strict=True)]), grid


def read_points(
    curves: Curves, grid_points: GridPoints, *, domain_range: tuple[float, float] | None
) -> tuple[FloatArray, FloatArray, Grid]:
    """Points (T,) or (n, T) of the curves, values (n, T) with NaN for missing values, and a grid.

    The grid is the given one or that of the curves. If each curve has its own points and no grid is
    given, the grid is even.
    """
    axis = None if grid_points is None else as_grid(_axis_of(grid_points))[0]
    span = public_domain(curves, axis, domain_range)
    points, values = read_curves(curves, _axis_of(grid_points), domain_range=span, strict=True)
    if points.ndim == 1:
        return points, values, as_grid(points)
    grid = (np.linspace(*span, _DEFAULT_POINTS),) if grid_points is None else as_grid(grid_points)
    return points, values, grid


def fill_gaps(values: FloatArray, points: FloatArray) -> FloatArray:
    """Replace NaN by linear interpolation along each row.

    Examples:
        >>> fill_gaps(np.array([[1.0, np.nan, 3.0]]), np.array([0.0, 0.5, 1.0]))
        array([[1., 2., 3.]])
    """
    filled = values.copy()
    for row in np.flatnonzero(np.isnan(values).any(axis=1)):
        filled[row] = _along(points, values[row], points)
    return filled


def clip_rows(rows: FloatArray, radius: float, *, axes: FloatArray | float = 1.0) -> FloatArray:
    """Scale down each row such that ‖row/axes‖₂ ≤ radius."""
    rows = np.clip(rows, -_LARGEST, _LARGEST)
    length = np.sqrt(((rows / axes) ** 2).sum(axis=-1, keepdims=True))
    return np.asarray(rows * (radius / np.maximum(length, radius)))


def as_function(center: ArrayLike, points: int) -> FloatArray:
    """A public center function on the grid, given as one number or one for each grid point."""
    try:
        values = np.asarray(center, dtype=np.float64)
    except (TypeError, ValueError):
        kind = center if isinstance(center, str) else type(center).__name__
        raise InvalidParameter("center", f"one finite number, or {points}", kind) from None
    if values.ndim > 0:
        values = values.ravel()
    if (values.ndim > 0 and values.size != points) or not np.all(np.isfinite(values)):
        raise InvalidParameter("center", f"one finite number, or {points}", values.shape)
    return np.broadcast_to(values, (points,)).copy()


def of_surfaces(grid_points: GridPoints) -> bool:
    """Whether the grid points are a tuple of two axes; only then are arrays read as surfaces."""
    return isinstance(grid_points, tuple) and len(grid_points) == 2 and np.ndim(grid_points[0]) == 1


def _read_surfaces(curves: Curves, grid_points: GridPoints) -> tuple[FloatArray, Grid]:
    values = np.asarray(curves)
    if values.ndim != 3 or values.dtype.kind not in "fiub":
        raise InvalidData("curves", "an array (n, T1, T2) of numbers", f"shape {values.shape}")
    if min(values.shape[1:]) < 2:
        rule = "an array (n, T), or (n, T1, T2) with at least two points along each variable"
        raise InvalidData("curves", rule, f"shape {values.shape}")
    grid = as_grid(grid_points)
    if values.shape[1:] != tuple(axis.size for axis in grid):
        raise InvalidData("curves", "as large as the grid", f"shape {values.shape}")
    return _validate.batch("curves", values.reshape(values.shape[0], -1)), grid


def _refuse_odd_matrices(curves: Curves) -> None:
    """Reject sparse, complex and one-column matrices, each with its own error message."""
    if hasattr(curves, "toarray"):
        raise InvalidData("curves", "a dense array", "a sparse one")
    kind = getattr(getattr(curves, "dtype", None), "kind", "")
    if kind == "c":
        raise InvalidData("curves", "real", "complex numbers. Complex data not supported")
    shape = getattr(curves, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] < 2:
        found = f"{shape[1]} feature(s) (shape={tuple(shape)}) while a minimum of 2 is required."
        raise InvalidData("curves", "observed at two points or more", found)


def _axis_of(grid_points: GridPoints) -> GridPoints:
    return (
        grid_points[0] if isinstance(grid_points, tuple) and len(grid_points) == 1 else grid_points
    )


def _along(t: FloatArray, x: FloatArray, grid: FloatArray) -> FloatArray:
    """Interpolate a curve linearly to a grid, with constant ends; its points t have any order."""
    seen = ~np.isnan(x)
    order = np.argsort(t[seen], kind="stable")
    return np.interp(grid, t[seen][order], np.clip(x[seen], -_LARGEST, _LARGEST)[order])
