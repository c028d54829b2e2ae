"""Orthonormal functions on a public grid: eigenpairs of kernels, splines, tensor products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.interpolate import RegularGridInterpolator, make_interp_spline

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.kernels import Kernel
from dpfda.central.quadrature import Grid, as_places, trapezoid
from dpfda.curves.rowwise import row_product
from dpfda.curves.smooth import demmler_reinsch
from dpfda.errors import InvalidParameter

_SMALLEST_EIGENVALUE = 1e-12  # of the largest; below, the decomposition is rounding error
_CUBIC = 3


@dataclass(frozen=True, eq=False)
class FunctionBasis:
    """Functions φ_1, φ_2, ... known on a grid, smooth ones first, and read off anywhere by splines.

    Attributes:
        grid: one axis of points for each variable.
        functions: values (J, points), row-major over the axes.
        eigenvalues: λ_j of the kernel, decreasing; ones where there is no kernel.

    Examples:
        >>> from dpfda.central.quadrature import as_grid
        >>> basis = spline_basis(as_grid(np.linspace(0, 1, 21)), size=5)
        >>> bool(np.abs(basis.gram - np.eye(5)).max() < 1e-12)
        True
    """

    grid: Grid
    functions: FloatArray
    eigenvalues: FloatArray

    @cached_property
    def weights(self) -> FloatArray:
        """Quadrature weights of the grid."""
        return trapezoid(self.grid)

    @property
    def size(self) -> int:
        """J."""
        return int(self.functions.shape[0])

    @property
    def gram(self) -> FloatArray:
        """∫ φ_j φ_k."""
        return np.asarray((self.functions * self.weights) @ self.functions.T)

    def project(self, values: FloatArray) -> FloatArray:
        """Coefficients ∫ x φ_j of functions given on the grid, (..., points) to (..., J).

        Those of a curve do not depend on the curves beside it, to the last bit.
        """
        rows = values.reshape(-1, self.weights.size)
        found = row_product(rows, (self.functions * self.weights).T)
        return found.reshape(*values.shape[:-1], self.size)

    def expand(self, coefficients: FloatArray) -> FloatArray:
        """Values on the grid, (..., J) to (..., points)."""
        return np.asarray(coefficients @ self.functions)

    def first(self, size: int) -> FunctionBasis:
        """The first `size` functions."""
        return FunctionBasis(self.grid, self.functions[:size], self.eigenvalues[:size])

    def at(self, grid_points: Any) -> FloatArray:
        """Values (J, points) on another grid, or in any places, inside the domain."""
        grid = as_places(grid_points)
        if len(grid) != len(self.grid):
            raise InvalidParameter("grid_points", f"{len(self.grid)} axes", len(grid))
        for ours, theirs in zip(self.grid, grid, strict=True):
            slack = 1e-9 * (ours[-1] - ours[0])
            low, high = float(theirs.min()), float(theirs.max())
            if low < ours[0] - slack or high > ours[-1] + slack:
                rule = f"inside the domain [{ours[0]:g}, {ours[-1]:g}]"
                raise InvalidParameter("grid_points", rule, (low, high))
        inside = [np.clip(t, o[0], o[-1]) for o, t in zip(self.grid, grid, strict=True)]
        if len(grid) == 1:
            degree = _CUBIC if self.grid[0].size > _CUBIC else 1
            spline = make_interp_spline(self.grid[0], self.functions, k=degree, axis=1)
            return np.asarray(spline(inside[0]))
        return between(self.grid, self.functions, inside)


def between(grid: Grid, rows: FloatArray, axes: Sequence[FloatArray]) -> FloatArray:
    """Functions known on a grid (J, points), read off on another by straight lines."""
    table = np.moveaxis(rows.reshape(-1, *(axis.size for axis in grid)), 0, -1)
    mesh = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    return np.asarray(RegularGridInterpolator(grid, table)(mesh).T)


def eigenpairs(kernel: Kernel, grid: Grid) -> FunctionBasis:
    """Eigenfunctions and eigenvalues of a kernel in the quadrature inner product, cached.

    In two variables the kernel is the product of the one-dimensional ones. Components with
    λ_j ≤ 1e-12 λ_1 are dropped, from summary and noise alike.
    """
    return _eigenpairs(kernel, tuple(tuple(axis.tolist()) for axis in grid))


@lru_cache(maxsize=64)
def _eigenpairs(kernel: Kernel, axes: tuple[tuple[float, ...], ...]) -> FunctionBasis:
    return tensor([decompose(kernel, np.array(axis)) for axis in axes])


def decompose(kernel: Kernel, axis: FloatArray) -> FunctionBasis:
    """Eigenpairs on one axis, computed anew: use `eigenpairs`, which remembers them."""
    unit = (axis - axis[0]) / (axis[-1] - axis[0])
    # Orthonormal on [0, 1] and then on the domain: φ(t)/√length keeps ∫φ² = 1.
    root = np.sqrt(trapezoid((unit,)))
    values, vectors = np.linalg.eigh(root[:, None] * kernel.between(unit, unit) * root)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > _SMALLEST_EIGENVALUE * values[0]
    functions = (vectors[:, kept] / root[:, None]).T / np.sqrt(axis[-1] - axis[0])
    return FunctionBasis((axis,), _signed(functions), values[kept])


def tensor(bases: Sequence[FunctionBasis]) -> FunctionBasis:
    """Products of functions of one variable each, by decreasing product of eigenvalues."""
    if len(bases) == 1:
        return bases[0]
    first, second = bases[0], tensor(bases[1:])
    values = np.outer(first.eigenvalues, second.eigenvalues).ravel()
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > _SMALLEST_EIGENVALUE * values[order[0]]]
    j, k = np.unravel_index(order, (first.size, second.size))
    functions = (first.functions[j][:, :, None] * second.functions[k][:, None, :]).reshape(
        len(order), -1
    )
    return FunctionBasis(first.grid + second.grid, functions, values[order])


def spline_basis(grid: Grid, *, size: int) -> FunctionBasis:
    """Demmler–Reinsch splines: constant, line, then waves by growing ∫(f'')², cached.

    A basis for means of unknown shape: unlike a short-range kernel's eigenfunctions its first few
    functions carry a smooth curve. In two variables, products by growing total roughness.
    """
    size = _validate.whole("size", size)
    return _spline_basis(tuple(tuple(axis.tolist()) for axis in grid)).first(size)


@lru_cache(maxsize=64)
def _spline_basis(axes: tuple[tuple[float, ...], ...]) -> FunctionBasis:
    basis = tensor([_demmler_reinsch(np.array(axis)) for axis in axes])
    return FunctionBasis(basis.grid, basis.functions, np.ones(basis.size))


def _demmler_reinsch(axis: FloatArray) -> FunctionBasis:
    functions = demmler_reinsch(axis)
    return FunctionBasis((axis,), functions, 1.0 / np.arange(1, len(functions) + 1))


def _signed(functions: FloatArray) -> FloatArray:
    """Signs fixed, so that equal inputs give equal coefficients on every machine."""
    largest = np.take_along_axis(functions, np.abs(functions).argmax(axis=1, keepdims=True), axis=1)
    return np.asarray(functions * np.sign(largest))
