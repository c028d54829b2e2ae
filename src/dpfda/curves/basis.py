"""The family of bases, and the coefficients of a curve in a basis by least squares.

The coefficients are z = argmin Σ_t (x(t) − Σ_k z_k φ_k(t))². On a shared grid the pseudo-inverse P⁺
(d × T) is public and computed once, and a batch of curves is one matrix product (`row_product`: the
result for a curve does not depend on the other curves). A curve with missing points or its own grid
has its own P⁺. Many such curves are solved at once, on the points they have. If a curve has too few
points, the minimum-norm solution is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpfda._registry import Registered
from dpfda._validate import FloatArray, IntArray
from dpfda.curves.matrices import row_product
from dpfda.errors import InvalidData


class Basis(Registered, ABC, family="basis"):
    """A public, frozen list of functions on an interval.

    A new basis is a frozen dataclass with `n_basis` and `domain_range`. Its method `_functions`
    returns the values of its functions; everything else is inherited. If declared with
    ``name="..."``, it can be requested by name.

    Examples:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Powers(Basis):
        ...     n_basis: int = 2
        ...     domain_range: tuple[float, float] = (0.0, 1.0)
        ...
        ...     def _functions(self, t):
        ...         return t[:, None] ** np.arange(self.n_basis)
        >>> Powers().gram().round(4).tolist()
        [[1.0, 0.5], [0.5, 0.3333]]
    """

    n_basis: int
    domain_range: tuple[float, float]

    #: False for plain vectors, which have no t.
    functional: ClassVar[bool] = True
    #: True if coefficients of smooth curves decrease with the number of the function.
    ordered: ClassVar[bool] = False

    @property
    def parts(self) -> tuple[Basis, ...]:
        """The basis of each channel of a curve; here only this basis."""
        return (self,)

    def in_turns(self, channels: Sequence[FloatArray]) -> FloatArray:
        """Combine the numbers of each channel's functions (..., d_c) to one array (..., d)."""
        return channels[0]

    def apart(self, numbers: FloatArray) -> list[FloatArray]:
        """Undo `in_turns`."""
        return [numbers]

    def evaluate(self, points: npt.ArrayLike) -> FloatArray:
        """Values of all functions at `points`: shape ``points.shape + (n_basis,)``."""
        t = np.asarray(points, dtype=np.float64)
        low, high = self.domain_range
        if not np.all(within(t, self.domain_range)):
            raise InvalidData("points", f"inside the domain [{low:g}, {high:g}]")
        if t.size == 0:
            return np.empty((*t.shape, self.n_basis))
        values = self._functions(np.clip(t, low, high).ravel())
        return values.reshape(*t.shape, self.n_basis)

    def gram(self) -> FloatArray:
        """The matrix of inner products G_kl = ∫ φ_k φ_l, read-only and computed once."""
        return _gram(self)

    @classmethod
    def examples(cls) -> list[Self]:
        """Small instances for the checks that every basis must pass."""
        return [cls()]

    @abstractmethod
    def _functions(self, t: FloatArray) -> FloatArray:
        """Values at points `t` of shape (T,), all inside the domain: shape (T, n_basis)."""

    def _quadrature(self) -> tuple[FloatArray, int]:
        """Ends of the smooth pieces of the functions, and the number of Gauss nodes per piece."""
        return np.linspace(*self.domain_range, 65), 16

    def _settle(self, **values: object) -> None:
        """Store checked parameters of a frozen dataclass, from its `__post_init__`."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def within(points: FloatArray, domain_range: tuple[float, float]) -> npt.NDArray[np.bool_]:
    """Which points lie in the domain, with a tolerance for the rounding of a grid's last point."""
    low, high = domain_range
    slack = 1e-9 * (high - low)
    return (points >= low - slack) & (points <= high + slack)  # NaN compares false


@lru_cache(maxsize=64)
def _gram(basis: Basis) -> FloatArray:
    ends, nodes = basis._quadrature()
    node, weight = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(ends)[:, None] / 2
    points = (ends[:-1, None] + half * (1 + node)).ravel()
    weights = (half * weight).ravel()
    values = basis.evaluate(points)
    return frozen(values.T @ (weights[:, None] * values))


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, read-only, because it is shared through a cache."""
    array.setflags(write=False)
    return array


BoolArray = npt.NDArray[np.bool_]

_LARGEST = float(np.finfo(np.float64).max)
_CHUNK = 2**21  # numbers in one stack of design matrices: 16 MiB


def project(basis: Basis, points: FloatArray, values: FloatArray) -> FloatArray:
    """Coefficients (n, d) of the curves; NaN for a curve without a single point.

    Args:
        basis: the functions φ.
        points: a shared grid (T,) or individual grids (n, T), inside the domain.
        values: x at these points (n, T); NaN marks a missing point.
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
    """Curves with individual P⁺: a row of zeros represents a missing point."""
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
    # The cutoff of numpy's lstsq, so that both treat the same designs as singular.
    cutoff = np.finfo(np.float64).eps * max(designs.shape[-2:])
    return np.linalg.pinv(designs, rcond=cutoff).astype(np.float64, copy=False)


def _multiply(product: Callable[[FloatArray], FloatArray], values: FloatArray) -> FloatArray:
    """Apply the linear map `product`; for huge curves, avoid overflow by scaling."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = product(values)
        large = ~np.isfinite(z).all(axis=1)
        if large.any():
            # Multiply the curve scaled to size 1, scale back, and cap at the largest float.
            size = np.abs(values).max(axis=1, keepdims=True)
            scaled_back = product(values / np.where(size > 0, size, 1.0)) * size
            z[large] = np.clip(scaled_back, -_LARGEST, _LARGEST)[large]
        return z


def _chunks(rows: IntArray, seen: BoolArray, n_basis: int) -> Iterator[IntArray]:
    """Split rows so that the design matrices of a part fit into memory.

    Rows are sorted by their number of points, so that each part is only as wide as its longest
    curve.
    """
    if rows.size == 0:
        return
    in_order = rows[np.argsort(seen[rows].sum(axis=1), kind="stable")]
    parts = -(-rows.size * seen.shape[1] * n_basis // _CHUNK)
    yield from np.array_split(in_order, min(parts, rows.size))
