"""Cosine functions: smooth, ordered from slow to fast, with no demand at the ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, interval, whole
from dpfda.curves.basis import Basis


@dataclass(frozen=True, kw_only=True)
class CosineBasis(Basis, name="cosine"):
    """Orthonormal 1, √2 cos(πt), √2 cos(2πt), ..., `n_basis` functions in all.

    On a domain of length L every function is divided by √L, so a curve's first coefficient is
    its mean times √L.

    Example:
        >>> CosineBasis(n_basis=3).evaluate([0.0, 0.5, 1.0]).round(3).tolist()
        [[1.0, 1.414, 1.414], [1.0, 0.0, -1.414], [1.0, -1.414, 1.414]]
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
        """One function, several, and another domain."""
        return [cls(), cls(n_basis=1), cls(n_basis=6, domain_range=(-2.0, 5.0))]

    def gram(self) -> FloatArray:
        """The identity: the functions are orthonormal."""
        return np.eye(self.n_basis)

    def _functions(self, t: FloatArray) -> FloatArray:
        low, high = self.domain_range
        j = np.arange(1, self.n_basis)
        waves = np.cos(np.pi * ((t - low) / (high - low))[:, None] * j)
        functions = np.column_stack([np.ones_like(t), math.sqrt(2) * waves])
        return functions / math.sqrt(high - low)
