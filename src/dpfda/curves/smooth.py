"""Demmler–Reinsch splines: constant, line, then waves by growing roughness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, interval, whole
from dpfda.curves.basis import Basis

_POINTS = 257  # of the public grid on [0, 1] that the functions are made on
MOST_FUNCTIONS = 64


@dataclass(frozen=True, kw_only=True)
class SmoothBasis(Basis, name="smooth"):
    """Orthonormal functions by growing ∫(f'')²: a constant, a line, then waves free at the ends.

    Unlike cosines their first few carry a curve that rises from one end to the other. On a domain
    of length L every function is divided by √L.

    Example:
        >>> SmoothBasis(n_basis=2).evaluate([0.0, 0.5, 1.0]).round(2).tolist()
        [[1.0, -1.73], [1.0, 0.0], [1.0, 1.73]]
    """

    ordered: ClassVar[bool] = True

    n_basis: int = 4
    domain_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        self._settle(
            n_basis=whole("n_basis", self.n_basis, most=MOST_FUNCTIONS),
            domain_range=interval("domain_range", self.domain_range),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """One function, several, and another domain."""
        return [cls(), cls(n_basis=1), cls(n_basis=6, domain_range=(-2.0, 5.0))]

    def _functions(self, t: FloatArray) -> FloatArray:
        low, high = self.domain_range
        values = _interpolated()((t - low) / (high - low))[:, : self.n_basis]
        return np.asarray(values / np.sqrt(high - low))


def demmler_reinsch(axis: FloatArray) -> FloatArray:
    """As many functions as there are points, (J, T), orthonormal in the trapezoid rule."""
    unit = (axis - axis[0]) / (axis[-1] - axis[0])
    gaps = np.diff(unit)
    root = np.sqrt(np.convolve(gaps, [0.5, 0.5]))  # of the weights of the points
    line = np.stack([np.ones_like(unit), unit - 0.5])
    rows = line * root
    if unit.size > 2:
        slopes = np.diff(np.eye(unit.size), axis=0) / gaps[:, None]
        middle = (gaps[1:] + gaps[:-1]) / 2
        curvature = np.diff(slopes, axis=0) / np.sqrt(middle)[:, None]
        penalty = curvature.T @ curvature / root[:, None] / root
        _, vectors = np.linalg.eigh(penalty)
        rows = np.vstack([rows, vectors[:, 2:].T])
    # The null space comes out of `eigh` in any rotation: put constant and line first, by QR.
    q, r = np.linalg.qr(rows.T)
    functions = q * np.sign(np.diag(r)) / root[:, None] / np.sqrt(axis[-1] - axis[0])
    return np.asarray(functions.T)


@lru_cache(maxsize=1)
def _interpolated() -> Any:
    """The functions on [0, 1], their signs fixed, by cubic splines through a fine grid."""
    from scipy.interpolate import make_interp_spline  # slow to import, and seldom needed

    grid = np.linspace(0.0, 1.0, _POINTS)
    functions = demmler_reinsch(grid)[:MOST_FUNCTIONS]
    signs = np.where(functions[:, -1] < 0, -1.0, 1.0)  # none is 0 at its free end
    return make_interp_spline(grid, functions.T * signs, k=3)
