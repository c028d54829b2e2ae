"""Read curves in any accepted form as points t and values x(t).

Convention: NaN in `values` marks a missing point. A shared grid has shape (T,), individual grids
have shape (n, T). With `strict`, unusable data raise an error that shows no value. Otherwise they
are marked as missing, because in a study an error would itself reveal something.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Protocol, TypeAlias, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from dpfda._validate import AnyArray, ArrayLike, FloatArray, interval
from dpfda.curves.basis import within
from dpfda.errors import InvalidData, InvalidParameter

Curves: TypeAlias = object
"""Curves in any accepted form: an array, a list of pairs (t, x), an FDataGrid or FDataIrregular of
scikit-fda, a data frame, or a mapping of columns."""
GridPoints: TypeAlias = ArrayLike | None
"""Points t that all curves share, or a list of grids, one per curve; None for equidistant points.
"""


class _OnGrid(Protocol):
    """The used attributes of an FDataGrid; avoids importing scikit-fda."""

    grid_points: Sequence[FloatArray]
    data_matrix: FloatArray
    domain_range: Sequence[tuple[float, float]]
    dim_domain: int

    def __len__(self) -> int: ...


class _Irregular(Protocol):
    """The used attributes of an FDataIrregular."""

    start_indices: AnyArray
    points: FloatArray
    values: FloatArray

    def __len__(self) -> int: ...


_NUMBERS = "a two-dimensional array (n, T) of numbers, an FDataGrid, or a list of pairs (t, x)"


def read_channels(
    X: Curves, grid_points: GridPoints, *, count: int, strict: bool
) -> list[tuple[Curves, GridPoints]]:
    """Curves and grid points of each of `count` channels, as `read_curves` takes them."""
    X, grid_points = with_own_grids(X, grid_points, strict=strict)
    if count == 1:
        if strict and (several := _channels(X)) > 1:
            rule = "of one channel, as the encoder is (CurveEncoder.side_by_side is for several)"
            raise InvalidData("X", rule, f"{several} channels")
        if isinstance(X, np.ndarray) and X.ndim == 3 and X.shape[2] == 1:
            X = X[:, :, 0]
        return [(X, grid_points)]
    if on_grid(X) and len(X.grid_points) == 1:
        grid_points, X = X.grid_points[0], np.asarray(X.data_matrix)
    elif _irregular(X) and X.points.shape[1] == 1:
        starts = X.start_indices[1:]
        points, observed = np.split(X.points[:, 0], starts), np.split(X.values, starts)
        X, grid_points = list(zip(points, observed, strict=True)), None
    if _are_pairs(X):
        values = [_numbers(pair[1]) if _is_pair(pair) else None for pair in X]
        if strict and any(x is None or x.ndim != 2 or x.shape[1] != count for x in values):
            raise InvalidData("X", f"pairs (t, x), x of shape (T, {count}) for {count} channels")
        return [
            (
                [
                    (pair[0], x[:, c])
                    if _is_pair(pair) and x is not None and x.shape[1:] == (count,)
                    else None
                    for pair, x in zip(X, values, strict=True)
                ],
                None,
            )
            for c in range(count)
        ]
    stack = _numbers(X)
    if stack is None or stack.ndim != 3 or stack.shape[2] != count:
        if strict:
            raise InvalidData("X", f"an array (n, T, {count}), for {count} channels")
        return [(np.full((len(_people(X)), 1), np.nan), None)] * count
    return [(stack[:, :, c], grid_points) for c in range(count)]


def _channels(X: Curves) -> int:
    """Number of channels of an array, or of functions of one variable on a grid."""
    values = X.data_matrix if on_grid(X) else X
    return int(values.shape[2]) if isinstance(values, np.ndarray) and values.ndim == 3 else 1


def with_own_grids(
    X: Curves, grid_points: GridPoints, *, strict: bool = True
) -> tuple[Curves, GridPoints]:
    """Curves with a list of grids as pairs (t, x); other curves unchanged.

    Examples:
        >>> with_own_grids([[1.0, 2.0], [3.0]], [[0.0, 1.0], [0.5]])
        ([([0.0, 1.0], [1.0, 2.0]), ([0.5], [3.0])], None)
    """
    if not isinstance(grid_points, list | tuple | np.ndarray) or not any(
        map(_is_sequence, grid_points)
    ):
        return X, grid_points
    curves = cast("Sequence[object]", X)
    if len(grid_points) != len(curves):
        if len(grid_points) == 1:  # one grid in a list, as scikit-fda has one grid per variable
            return X, grid_points[0]
        if strict:
            raise InvalidData("grid_points", "one grid, or one for each curve")
        return X, None
    return list(zip(grid_points, curves, strict=True)), None


def points_of(X: Curves, grid_points: GridPoints) -> GridPoints:
    """Grid points as given, or column names of a frame if these are increasing numbers.

    The default column numbers of pandas are not grid points.

    Examples:
        >>> import pandas as pd
        >>> points_of(pd.DataFrame([[3.0, 4.0]], columns=["0.5", "2"]), None)
        array([0.5, 2. ])
        >>> points_of(pd.DataFrame([[3.0, 4.0]]), None)
    """
    names = getattr(X, "columns", None)
    if grid_points is not None or names is None or type(names).__name__ == "RangeIndex":
        return grid_points
    try:
        points = np.asarray(list(names), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    numbers = points.ndim == 1 and points.size > 1 and np.isfinite(points).all()
    return points if numbers and np.all(np.diff(points) > 0) else None


def read_curves(
    curves: Curves,
    grid_points: GridPoints,
    *,
    domain_range: tuple[float, float],
    strict: bool,
) -> tuple[FloatArray, FloatArray]:
    """Points (T,) or (n, T) inside the domain, and values (n, T) with NaN for missing points."""
    if on_grid(curves):
        points, values = _from_grid(curves, strict)
    elif _irregular(curves):
        points, values = _from_irregular(curves, strict)
    elif _are_pairs(curves):
        points, values = _pad(*_from_pairs(curves, strict))
    else:
        points, values = _from_rows(curves, grid_points, domain_range, strict)
    return _usable(points, values, domain_range, strict)


def public_domain(
    curves: Curves, grid_points: GridPoints, given: tuple[float, float] | None = None
) -> tuple[float, float]:
    """The public range of t: as given, that of an FDataGrid, or the range of shared points.

    Points that all curves share are public. Individual points are private and never determine the
    domain. Without any points it is [0, 1].

    Examples:
        >>> days = np.zeros((5, 3))
        >>> public_domain(days, [0.0, 12.0, 24.0]), public_domain(days, None)
        ((0.0, 24.0), (0.0, 1.0))
    """
    if given is not None:
        return interval("domain_range", given)
    if on_grid(curves):
        low, high = curves.domain_range[0]
        return float(low), float(high)
    if grid_points is not None:
        points = _numbers(grid_points)
        if points is None or points.ndim != 1 or points.size < 2 or not np.isfinite(points).all():
            rule = "at least two finite numbers, the same for all curves"
            raise InvalidParameter("grid_points", rule, np.shape(grid_points))
        return interval("grid_points", (points.min(), points.max()))
    if own_grids(curves):
        raise InvalidParameter("domain_range", "given where curves have their own points", None)
    return 0.0, 1.0


def on_grid(curves: Curves) -> TypeGuard[_OnGrid]:
    """Whether it is an FDataGrid."""
    return hasattr(curves, "data_matrix")


def _irregular(curves: Curves) -> TypeGuard[_Irregular]:
    return hasattr(curves, "start_indices")


def own_grids(X: Curves) -> bool:
    """Whether curves include their points: scikit-fda objects, or a list of pairs (t, x)."""
    if hasattr(X, "grid_points") or hasattr(X, "start_indices"):
        return True
    if not isinstance(X, (list, tuple)) or not len(X):
        return False
    first = X[0]
    return isinstance(first, tuple) and len(first) == 2 and np.ndim(first[0]) == 1


def depth(X: Curves) -> int:
    """Nesting depth of an array, from its first entries: 2 for (n, T), 3 for (n, T, C)."""
    if hasattr(X, "ndim"):
        return int(X.ndim)
    return 1 + depth(X[0]) if isinstance(X, (list, tuple)) and len(X) else 0


def read_vectors(vectors: object, *, n_basis: int, strict: bool) -> FloatArray:
    """Plain vectors (n, d), with NaN for missing numbers; with `strict`, these are refused."""
    values = _matrix(vectors, single=not strict)
    if values is None and not strict:
        values = np.stack([_row(row, n_basis) for row in _people(vectors)])
    if values is None:
        raise InvalidData("X", f"a two-dimensional array (n, {n_basis}) of numbers")
    if not strict:
        if values.shape[1] != n_basis:
            return np.full((values.shape[0], n_basis), np.nan)
        return np.where(np.isinf(values).any(axis=1, keepdims=True), np.nan, values)
    if values.shape[0] == 0 or values.shape[1] != n_basis:
        rule = f"an array with at least one row and {n_basis} columns"
        raise InvalidData("X", rule, f"shape {values.shape}")
    if not np.all(np.isfinite(values)):
        raise InvalidData("X", "finite (no NaN, no infinity)")
    return values


def _usable(
    points: FloatArray, values: FloatArray, domain_range: tuple[float, float], strict: bool
) -> tuple[FloatArray, FloatArray]:
    """Apply the rules for every curve: finite values at points inside the domain."""
    low, high = domain_range
    inside = within(points, domain_range)
    if values.size > 0 and inside.all() and np.isfinite(values).all():
        return np.clip(points, low, high), values  # the common case, without copies
    seen = ~np.isnan(values)
    infinite = np.isinf(values).any(axis=1, keepdims=True)
    if strict:
        if values.shape[0] == 0:
            raise InvalidData("X", "a batch of at least one curve", f"shape {values.shape}")
        if infinite.any():
            raise InvalidData("X", "finite (NaN marks a missing point)")
        if not np.all(inside | ~seen if points.ndim == 2 else inside):
            raise InvalidData(
                "grid_points", f"inside the domain [{low:g}, {high:g}], see domain_range"
            )
        if not seen.any(axis=1).all():
            raise InvalidData("X", "curves that are each observed at one point or more")
    values = np.where(inside & ~infinite, values, np.nan)
    return np.clip(np.where(inside, points, low), low, high), values


def _from_grid(curves: _OnGrid, strict: bool) -> tuple[FloatArray, FloatArray]:
    if len(curves.grid_points) == 1 and curves.data_matrix.shape[2] == 1:
        (grid,), matrix = curves.grid_points, curves.data_matrix[:, :, 0]
        return np.asarray(grid, dtype=np.float64), np.asarray(matrix, dtype=np.float64)
    return _not_one_variable(curves, strict)


def _from_irregular(curves: _Irregular, strict: bool) -> tuple[FloatArray, FloatArray]:
    if curves.points.shape[1] == 1 and curves.values.shape[1] == 1:
        starts = curves.start_indices[1:]
        return _pad(np.split(curves.points[:, 0], starts), np.split(curves.values[:, 0], starts))
    return _not_one_variable(curves, strict)


def _not_one_variable(curves: Sized, strict: bool) -> tuple[FloatArray, FloatArray]:
    if strict:
        raise InvalidData("X", "real-valued functions of one variable")
    return _unseen(len(curves))


def _from_pairs(
    curves: Sequence[object], strict: bool
) -> tuple[list[FloatArray], list[FloatArray]]:
    points, values = [], []
    for pair in curves:
        t, x = map(_numbers, pair) if _is_pair(pair) else (None, None)
        if t is None or x is None or t.ndim != 1 or t.shape != x.shape:
            if strict:
                raise InvalidData("X", "pairs (t, x) of equally many numbers")
            t = x = np.empty(0)
        points.append(t)
        values.append(x)
    return points, values


def _from_rows(
    curves: Curves, grid_points: GridPoints, domain_range: tuple[float, float], strict: bool
) -> tuple[FloatArray, FloatArray]:
    values = _matrix(curves, single=not strict)
    if values is None and strict:
        raise InvalidData("X", _NUMBERS)
    if values is None:  # rows of unequal length, or not numbers: read each person separately
        return _pad(*_from_pairs(_with_grids(curves, grid_points, domain_range), strict))
    grid = _grid(grid_points, values.shape[1], domain_range)
    if grid is not None and grid.shape == values.shape[1:]:
        return grid, values
    if strict:
        found = f"{values.shape[1]} columns"
        raise InvalidData("grid_points", "one number for each column of X", found)
    return _unseen(values.shape[0])


def _with_grids(
    curves: Curves, grid_points: GridPoints, domain_range: tuple[float, float]
) -> list[object]:
    """Pairs (t, x), one per person, None where x is not a row of numbers."""
    rows = [_numbers(row) for row in _people(curves)]
    return [
        None if row is None or row.ndim != 1 else (_grid(grid_points, row.size, domain_range), row)
        for row in rows
    ]


def _grid(
    grid_points: GridPoints, size: int, domain_range: tuple[float, float]
) -> FloatArray | None:
    return np.linspace(*domain_range, size) if grid_points is None else _numbers(grid_points)


def _are_pairs(curves: Curves) -> TypeGuard[Sequence[object]]:
    """Whether this is a list of pairs (t, x) of sequences, judged by its first entry."""
    return isinstance(curves, list | tuple) and any(map(_is_pair, curves))


def _is_pair(pair: object) -> TypeGuard[Sequence[Sequence[object]]]:
    return isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_sequence, pair))


def _is_sequence(part: object) -> bool:
    if isinstance(part, np.ndarray):
        return part.ndim > 0
    return hasattr(part, "__len__") and not isinstance(part, str | bytes | dict)


def _unseen(n: int) -> tuple[FloatArray, FloatArray]:
    """A batch without any usable point."""
    return np.empty(0), np.empty((n, 0))


def _pad(points: list[FloatArray], values: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Individual grids as one array, padded with NaN to the longest."""
    sizes = np.array([t.size for t in points])
    filled = np.arange(sizes.max(initial=0)) < sizes[:, None]
    padded_points, padded_values = np.full(filled.shape, np.nan), np.full(filled.shape, np.nan)
    padded_points[filled] = np.concatenate(points)
    padded_values[filled] = np.concatenate(values)
    return padded_points, padded_values


def _people(rows: object) -> list[object]:
    """The rows of data that are not a matrix; data without rows count as one person."""
    if isinstance(rows, list | tuple | np.ndarray):
        members = list(rows) if _is_sequence(rows) else []
        if any(map(_is_sequence, members)):
            return members
    return [rows]


def _row(row: object, size: int) -> FloatArray:
    numbers = _numbers(row)
    return np.full(size, np.nan) if numbers is None or numbers.shape != (size,) else numbers


def _matrix(rows: object, *, single: bool = False) -> FloatArray | None:
    """A float matrix, or None; with `single`, a vector is read as one row."""
    array = _numbers(rows)
    if array is not None and array.ndim == 1 and single:
        array = array[None, :]
    return array if array is not None and array.ndim == 2 else None


def _numbers(values: object) -> npt.NDArray[np.float64] | None:
    """A float array, possibly with NaN and infinity; None if the values are not numbers."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiubO":
            return None
        with np.errstate(over="ignore"):  # a wider float that is too large becomes infinite
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        return None
