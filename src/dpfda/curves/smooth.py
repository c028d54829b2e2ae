"""Demmler–Reinsch functions: constant, line, then waves by growing roughness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, interval, whole
from dpfda.curves.basis import Basis

MOST_FUNCTIONS = 64


@dataclass(frozen=True, kw_only=True)
class SmoothBasis(Basis, name="smooth"):
    """Orthonormal functions by growing ∫(f'')²: a constant, a line, then waves free at the ends.

    Unlike cosines their first few carry a curve that rises from one end to the other. On a domain
    of length L every function is divided by √L.

    They are the shapes in which a free rod swings: second and third derivatives are 0 at both ends,
    the fourth is f times a constant. On x from -1 to 1 they are cos(mx)/cos m + cosh(mx)/cosh m for
    tan m = -tanh m, and sin(mx)/sin m + sinh(mx)/sinh m for tan m = tanh m, in turns.

    Examples:
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
        x = 2 * (t - low) / (high - low) - 1
        line = [np.ones_like(x), math.sqrt(3) * x][: self.n_basis]
        waves = [_wave(k, x) for k in range(2, self.n_basis)]
        return np.stack([*line, *waves], axis=-1) / math.sqrt(high - low)


def _wave(k: int, x: FloatArray) -> FloatArray:
    """Function number k ≥ 2 on [-1, 1], even for even k."""
    half, sign = math.pi * (k // 2), 1 if k % 2 else -1
    m = half
    for _ in range(20):  # each step leaves less than a thirtieth of the error
        m = half + sign * math.atan(math.tanh(m))
    if k % 2:
        return np.sin(m * x) / math.sin(m) + np.sinh(m * x) / math.sinh(m)
    return np.cos(m * x) / math.cos(m) + np.cosh(m * x) / math.cosh(m)


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
