"""Functions on a public grid: covariance kernels, integrals and orthonormal bases.

The bases are eigenfunctions of kernels, splines, and tensor products of both. Kernels are classes
that are registered by name.

A grid is a tuple of axes, one for each variable. A function on it is the array of its values in
row-major order. Integrals use the weights of the trapezoid rule. Users state bounds on the
*average* norm, ‖X‖² = ∫X²/length, in which a constant c has norm |c| on every domain. `norm_bound`
converts them to bounds on √∫X², the norm in which bases are orthonormal.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from scipy.interpolate import RegularGridInterpolator, make_interp_spline
from scipy.special import gamma, kv

from dpfda import _validate
from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.curves.bases import demmler_reinsch
from dpfda.curves.matrices import row_product
from dpfda.curves.observations import GridPoints
from dpfda.errors import InvalidParameter
from dpfda.protocol.fields import check_fields, number, whole


@dataclass(frozen=True, kw_only=True)
class Kernel(Registered, family="kernel"):
    """A covariance function C(s, t) on [0, 1]; other domains are mapped to [0, 1]."""

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def between(self, s: FloatArray, t: FloatArray) -> FloatArray:
        """C(s_i, t_k) as a matrix."""

    @property
    @abstractmethod
    def decay(self) -> float:
        """β such that the eigenvalues fall like j^-β (infinite for analytic kernels)."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few instances for checks."""


@dataclass(frozen=True, kw_only=True)
class Matern(Kernel, name="matern"):
    """Matérn kernel of smoothness ν and length ρ; the defaults of paper 003 are ν = 3/2, ρ = 0.1.

    With ν = ½ it is the exponential kernel exp(-|s - t|/ρ).

    Examples:
        >>> Matern(nu=0.5, length=1.0).between(np.zeros(1), np.ones(1)).round(4)
        array([[0.3679]])
    """

    nu: float = number(above=0.0, default=1.5)
    length: float = number(least=1e-100, default=0.1)

    def between(self, s: FloatArray, t: FloatArray) -> FloatArray:
        """Closed forms for ν = 1/2, 3/2, 5/2; the Bessel form otherwise."""
        r = math.sqrt(2 * self.nu) * np.abs(s[:, None] - t[None, :]) / self.length
        if self.nu == 0.5:
            return np.asarray(np.exp(-r))
        if self.nu == 1.5:
            return np.asarray((1 + r) * np.exp(-r))
        if self.nu == 2.5:
            return np.asarray((1 + r + r**2 / 3) * np.exp(-r))
        safe = np.maximum(r, 1e-10)  # K_ν has a pole at 0, where the kernel is 1
        values = 2 ** (1 - self.nu) / gamma(self.nu) * safe**self.nu * kv(self.nu, safe)
        return np.asarray(np.where(r < 1e-10, 1.0, values))

    @property
    def decay(self) -> float:
        """2ν + 1: the native space is the Sobolev space of order ν + ½."""
        return 2 * self.nu + 1

    @classmethod
    def examples(cls) -> list[Self]:
        """The closed forms and one general ν."""
        return [cls(nu=nu) for nu in (0.5, 1.5, 2.5, 2.0)]


@dataclass(frozen=True, kw_only=True)
class SquaredExponential(Kernel, name="gaussian"):
    """The kernel exp(-(s - t)²/(2ρ²)), also called Gaussian; its paths are analytic."""

    decay = math.inf

    length: float = number(least=1e-100, default=0.1)

    def between(self, s: FloatArray, t: FloatArray) -> FloatArray:
        """exp(-(s - t)²/(2ρ²))."""
        return np.asarray(np.exp(-0.5 * ((s[:, None] - t[None, :]) / self.length) ** 2))

    @classmethod
    def examples(cls) -> list[Self]:
        """Two lengths."""
        return [cls(), cls(length=0.3)]


@dataclass(frozen=True, kw_only=True)
class Cosines(Kernel, name="cosines"):
    """A kernel with given eigenpairs: 1, √2 cos πt, √2 cos 2πt, ... with λ_j = j^-β.

    The grid must have more points than terms. On evenly spaced points the eigenfunctions are
    exactly the cosines.

    Examples:
        >>> basis = eigenpairs(Cosines(exponent=2.0, terms=3), as_grid(np.linspace(0, 1, 65)))
        >>> basis.eigenvalues.round(4).tolist()
        [1.0, 0.25, 0.1111]
    """

    exponent: float = number(above=1.0, most=20.0, default=4.0)
    terms: int = whole(most=4096, default=64)

    def between(self, s: FloatArray, t: FloatArray) -> FloatArray:
        """Σ λ_j φ_j(s) φ_j(t)."""
        j = np.arange(self.terms)
        scaled = np.where(j > 0, math.sqrt(2.0), 1.0) * (j + 1.0) ** (-self.exponent / 2)
        left, right = (np.cos(np.pi * np.outer(at, j)) * scaled for at in (s, t))
        return np.asarray(left @ right.T)

    @property
    def decay(self) -> float:
        """β."""
        return self.exponent

    @classmethod
    def examples(cls) -> list[Self]:
        """The default terms, and five terms."""
        return [cls(), cls(exponent=2.0, terms=5)]


Grid = tuple[FloatArray, ...]


def as_grid(grid_points: GridPoints) -> Grid:
    """Public grid points as a tuple of increasing axes, one for each variable."""
    axes = grid_points if isinstance(grid_points, tuple) else (grid_points,)
    return tuple(_axis(axis) for axis in axes)


def as_places(places: GridPoints) -> Grid:
    """Points at which to evaluate a function: one or more for each variable, in any order."""
    axes = places if isinstance(places, tuple) else (places,)
    found = tuple(np.atleast_1d(_numbers(axis)) for axis in axes)
    if any(axis.ndim != 1 or axis.size == 0 for axis in found):
        raise InvalidParameter(
            "grid_points", "at least one point for each variable", type(places).__name__
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
    """Convert a bound on the average norm to one on √∫X²: multiply by √(length of the domain).

    Examples:
        >>> norm_bound(2.0, as_grid([0.0, 3.0, 9.0]))
        6.0
    """
    length = math.prod(float(axis[-1] - axis[0]) for axis in grid)
    return _validate.positive("bound", bound) * math.sqrt(length)


def norms(values: FloatArray, weights: FloatArray) -> FloatArray:
    """L² norm of each function; the last axis of `values` is the grid."""
    return np.asarray(np.sqrt((values**2 * weights).sum(axis=-1)))


def _numbers(axis: object) -> FloatArray:
    try:
        return np.asarray(axis, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("grid_points", "numbers", type(axis).__name__) from None


def _axis(axis: object) -> FloatArray:
    points, rule = _numbers(axis), "finite and strictly increasing"
    if points.ndim != 1 or points.size < 2:
        raise InvalidParameter("grid_points", "at least two points for each variable", points.shape)
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


_SMALLEST_EIGENVALUE = 1e-12  # as a share of the largest; smaller ones are rounding error
_CUBIC = 3


@dataclass(frozen=True, eq=False)
class FunctionBasis:
    """Functions φ_1, φ_2, ... on a grid, smoothest first; splines interpolate between grid points.

    Attributes:
        grid: one axis of points for each variable.
        functions: values (J, points), row-major over the axes.
        eigenvalues: λ_j of the kernel, decreasing; all are 1 if there is no kernel.

    Examples:
        >>> from dpfda.central.functions import as_grid
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
        """Coefficients ∫ x φ_j of functions on the grid, (..., points) to (..., J).

        The coefficients of a curve do not depend on other curves in the array, not even in the last
        bit.
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

    def at(self, grid_points: GridPoints) -> FloatArray:
        """Values (J, points) on another grid, or at any points inside the domain."""
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


def derivatives(grid: Grid, rows: FloatArray, axis: FloatArray, *, order: int) -> FloatArray:
    """Derivatives at `axis` of functions of one variable, by cubic splines through grid values."""
    if len(grid) != 1:
        raise InvalidParameter(
            "order", "used with functions of one variable", f"{len(grid)} variables"
        )
    if grid[0].size <= _CUBIC:
        raise InvalidParameter("grid_points", f"more than {_CUBIC} points", grid[0].size)
    spline = make_interp_spline(grid[0], rows, k=_CUBIC, axis=1)
    return np.asarray(spline.derivative(_validate.whole("order", order, most=_CUBIC - 1))(axis))


def between(grid: Grid, rows: FloatArray, axes: Sequence[FloatArray]) -> FloatArray:
    """Functions on a grid (J, points), interpolated linearly to another grid."""
    table = np.moveaxis(rows.reshape(-1, *(axis.size for axis in grid)), 0, -1)
    mesh = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    return np.asarray(RegularGridInterpolator(grid, table)(mesh).T)


def eigenpairs(kernel: Kernel, grid: Grid) -> FunctionBasis:
    """Eigenfunctions and eigenvalues of a kernel in the quadrature inner product, cached.

    In two variables the kernel is the product of the one-dimensional ones. Components with
    λ_j ≤ 1e-12 λ_1 are dropped, both from the summary and from the noise.
    """
    return _eigenpairs(kernel, tuple(tuple(axis.tolist()) for axis in grid))


@lru_cache(maxsize=64)
def _eigenpairs(kernel: Kernel, axes: tuple[tuple[float, ...], ...]) -> FunctionBasis:
    return tensor([decompose(kernel, np.array(axis)) for axis in axes])


def decompose(kernel: Kernel, axis: FloatArray) -> FunctionBasis:
    """Eigenpairs on one axis, without a cache; use `eigenpairs`, which has one."""
    unit = (axis - axis[0]) / (axis[-1] - axis[0])
    # Orthonormal on [0, 1] and then on the domain: φ(t)/√length keeps ∫φ² = 1.
    root = np.sqrt(trapezoid((unit,)))
    values, vectors = np.linalg.eigh(root[:, None] * kernel.between(unit, unit) * root)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > _SMALLEST_EIGENVALUE * values[0]
    functions = (vectors[:, kept] / root[:, None]).T / np.sqrt(axis[-1] - axis[0])
    return FunctionBasis((axis,), _signed(functions), values[kept])


def tensor(bases: Sequence[FunctionBasis]) -> FunctionBasis:
    """Products of functions of one variable, in order of decreasing products of eigenvalues."""
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
    """Demmler–Reinsch splines: a constant, a line, then waves of increasing ∫(f'')²; cached.

    This basis suits means of unknown shape: its first few functions represent a smooth curve well,
    unlike those of a short-range kernel. In two variables the functions are products, in order of
    increasing total roughness.
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
    """Fix the signs, so that equal inputs give equal coefficients on every machine."""
    largest = np.take_along_axis(functions, np.abs(functions).argmax(axis=1, keepdims=True), axis=1)
    return np.asarray(functions * np.sign(largest))
