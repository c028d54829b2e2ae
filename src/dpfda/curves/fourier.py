"""Fourier functions: for curves that repeat with the domain's length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, interval, whole
from dpfda.curves.basis import Basis


@dataclass(frozen=True, kw_only=True)
class FourierBasis(Basis, name="fourier"):
    """Orthonormal 1, √2 sin(2πt), √2 cos(2πt), √2 sin(4πt), ..., cut after `n_basis` functions.

    On a domain of length L every function is divided by √L, which keeps the basis orthonormal.

    Example:
        >>> FourierBasis(n_basis=3).evaluate([0.0, 0.25]).round(3).tolist()
        [[1.0, 0.0, 1.414], [1.0, 1.414, 0.0]]
    """

    n_basis: int = 4
    domain_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        self._settle(
            n_basis=whole("n_basis", self.n_basis),
            domain_range=interval("domain_range", self.domain_range),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """Even and odd sizes, and a year of days."""
        return [cls(), cls(n_basis=5, domain_range=(0.0, 365.0))]

    def gram(self) -> FloatArray:
        """The identity: the functions are orthonormal."""
        return np.eye(self.n_basis)

    def _functions(self, t: FloatArray) -> FloatArray:
        low, high = self.domain_range
        k = np.arange(1, self.n_basis)
        # k = 1, 2, 3, 4, ... runs sin, cos, sin, cos, ... at frequency 1, 1, 2, 2, ...
        angle = 2 * np.pi * ((t - low) / (high - low))[:, None] * ((k + 1) // 2)
        waves = np.where(k % 2 == 1, np.sin(angle), np.cos(angle))
        functions = np.column_stack([np.ones_like(t), math.sqrt(2) * waves])
        return functions / math.sqrt(high - low)
