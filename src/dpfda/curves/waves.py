"""Cosine and Fourier functions: smooth, orthonormal, ordered from slow to fast."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, interval, whole
from dpfda.curves.basis import Basis


@dataclass(frozen=True, kw_only=True)
class _Waves(Basis):
    """A constant and √2 times waves; on a domain of length L all are divided by √L."""

    ordered: ClassVar[bool] = True

    n_basis: int = 4
    domain_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        self._settle(
            n_basis=whole("n_basis", self.n_basis),
            domain_range=interval("domain_range", self.domain_range),
        )

    def gram(self) -> FloatArray:
        """The identity: the functions are orthonormal."""
        return np.eye(self.n_basis)

    @abstractmethod
    def _waves(self, unit: FloatArray) -> FloatArray:
        """Waves number 1, 2, ... at points (T, 1) of [0, 1]."""

    def _functions(self, t: FloatArray) -> FloatArray:
        low, high = self.domain_range
        waves = self._waves(((t - low) / (high - low))[:, None])
        functions = np.column_stack([np.ones_like(t), math.sqrt(2) * waves])
        return functions / math.sqrt(high - low)


@dataclass(frozen=True, kw_only=True)
class CosineBasis(_Waves, name="cosine"):
    """Orthonormal 1, √2 cos(πt), √2 cos(2πt), ..., `n_basis` functions in all.

    They make no demand at the ends. On a domain of length L every function is divided by √L, so a
    curve's first coefficient is its mean times √L.

    Examples:
        >>> CosineBasis(n_basis=3).evaluate([0.0, 0.5, 1.0]).round(3).tolist()
        [[1.0, 1.414, 1.414], [1.0, 0.0, -1.414], [1.0, -1.414, 1.414]]
    """

    @classmethod
    def examples(cls) -> list[Self]:
        """One function, several, and another domain."""
        return [cls(), cls(n_basis=1), cls(n_basis=6, domain_range=(-2.0, 5.0))]

    def _waves(self, unit: FloatArray) -> FloatArray:
        return np.cos(np.pi * unit * np.arange(1, self.n_basis))


@dataclass(frozen=True, kw_only=True)
class FourierBasis(_Waves, name="fourier"):
    """Orthonormal 1, √2 sin(2πt), √2 cos(2πt), √2 sin(4πt), ..., cut after `n_basis` functions.

    For curves that repeat with the domain's length.

    Examples:
        >>> FourierBasis(n_basis=3).evaluate([0.0, 0.25]).round(3).tolist()
        [[1.0, 0.0, 1.414], [1.0, 1.414, 0.0]]
    """

    @classmethod
    def examples(cls) -> list[Self]:
        """Even and odd sizes, and a year of days."""
        return [cls(), cls(n_basis=5, domain_range=(0.0, 365.0))]

    def _waves(self, unit: FloatArray) -> FloatArray:
        # k = 1, 2, 3, 4, ... runs sin, cos, sin, cos, ... at frequency 1, 1, 2, 2, ...
        k = np.arange(1, self.n_basis)
        angle = 2 * np.pi * unit * ((k + 1) // 2)
        return np.where(k % 2 == 1, np.sin(angle), np.cos(angle))
