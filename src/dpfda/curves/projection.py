"""Least squares: the coefficients of a curve in a basis, z = argmin Σ_t (x(t) − Σ_k z_k φ_k(t))².

On a shared grid the pseudo-inverse P⁺ (d × T) is public and computed once, so a batch of curves
is one matrix product (`row_product`: no curve depends on those beside it). Curves with missing
points or own grids each have their own P⁺; they are solved many at a time, on the points they have,
with the minimum-norm solution where these are too few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.curves.basis import Basis, frozen
from dpfda.curves.matrices import row_product

BoolArray = npt.NDArray[np.bool_]

_LARGEST = float(np.finfo(np.float64).max)
_CHUNK = 2**21  # numbers in one stack of design matrices: 16 MiB


def project(basis: Basis, points: FloatArray, values: FloatArray) -> FloatArray:
    """Coefficients (n, d) of the curves; NaN for a curve without a single point.

    Args:
        basis: the functions φ.
        points: a shared grid (T,) or own grids (n, T), inside the domain.
        values: x at these points (n, T); NaN marks a point that was not seen.
    """
    seen = ~np.isnan(values)
    if points.ndim == 1 and points.size > 0 and seen.all():
        return _multiply(lambda x: row_product(x, projector(basis, points).T), values)
    z = np.full((values.shape[0], basis.n_basis), np.nan)
    complete = seen.all(axis=1) & (points.ndim == 1) & (points.size > 0)
    if complete.any():
        across = projector(basis, points).T
        z[complete] = _multiply(lambda x: row_product(x, across), values[complete])
    for rows in _chunks(np.flatnonzero(~complete & seen.any(axis=1)), seen, basis.n_basis):
        z[rows] = _solve_each(basis, points, values[rows], seen[rows], rows)
    return z


def projector(basis: Basis, points: FloatArray) -> FloatArray:
    """The public matrix P⁺ (d, T) that turns values on a shared grid into coefficients."""
    return _projector(basis, np.ascontiguousarray(points, dtype=np.float64).tobytes())


@lru_cache(maxsize=64)
def _projector(basis: Basis, grid: bytes) -> FloatArray:
    return frozen(_pseudo_inverse(basis.evaluate(np.frombuffer(grid))))


def _solve_each(
    basis: Basis, points: FloatArray, values: FloatArray, seen: BoolArray, rows: IntArray
) -> FloatArray:
    """Curves that each have their own P⁺: a row of zeros stands for a point that was not seen."""
    if points.ndim == 1:  # the same pattern of missing points has the same P⁺
        # Compared as packed bits: sorting rows of booleans would take most of the time.
        packed = np.ascontiguousarray(np.packbits(seen, axis=1))
        pattern = packed.view(f"V{packed.shape[1]}").ravel()
        _, first, which = np.unique(pattern, return_index=True, return_inverse=True)
        inverses = _pseudo_inverse(basis.evaluate(points) * seen[first, :, None])[which]
    else:
        longest = int(np.flatnonzero(seen.any(axis=0)).max()) + 1
        seen, values, points = seen[:, :longest], values[:, :longest], points[rows, :longest]
        inverses = _pseudo_inverse(basis.evaluate(points) * seen[:, :, None])
    return _multiply(lambda x: np.einsum("nt,ndt->nd", x, inverses), np.where(seen, values, 0.0))


def _pseudo_inverse(designs: FloatArray) -> FloatArray:
    # The cut-off of numpy's lstsq, so that both agree on what counts as too few points.
    cutoff = np.finfo(np.float64).eps * max(designs.shape[-2:])
    return np.linalg.pinv(designs, rcond=cutoff).astype(np.float64, copy=False)


def _multiply(product: Callable[[FloatArray], FloatArray], values: FloatArray) -> FloatArray:
    """The linear map `product`, safe for curves so large that it would overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = product(values)
        large = ~np.isfinite(z).all(axis=1)
        if large.any():
            # Multiply at size 1, then scale back and stop at the largest float.
            size = np.abs(values).max(axis=1, keepdims=True)
            scaled_back = product(values / np.where(size > 0, size, 1.0)) * size
            z[large] = np.clip(scaled_back, -_LARGEST, _LARGEST)[large]
        return z


def _chunks(rows: IntArray, seen: BoolArray, n_basis: int) -> Iterator[IntArray]:
    """Split rows so that the design matrices of a part fit into memory.

    Sorted by number of points: on own grids a part is only as wide as its longest curve.
    """
    if rows.size == 0:
        return
    in_order = rows[np.argsort(seen[rows].sum(axis=1), kind="stable")]
    parts = -(-rows.size * seen.shape[1] * n_basis // _CHUNK)
    yield from np.array_split(in_order, min(parts, rows.size))
