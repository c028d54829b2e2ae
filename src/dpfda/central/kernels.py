"""Covariance kernels of the noise processes, one class each, found by name."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gamma, kv

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.protocol.fields import Declared, number


@dataclass(frozen=True, kw_only=True)
class Kernel(Registered, Declared, family="kernel"):
    """A covariance function C(s, t) on [0, 1]; domains are mapped there first."""

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
    """Matérn kernel of smoothness ν, the paper's default with ν = 3/2 and length ρ = 0.1.

    The roughest of the family, ν = ½, is the exponential kernel exp(-|s - t|/ρ).

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
    """exp(-(s - t)²/(2ρ²)), also called Gaussian or radial basis function: analytic paths."""

    decay = math.inf

    length: float = number(least=1e-100, default=0.1)

    def between(self, s: FloatArray, t: FloatArray) -> FloatArray:
        """exp(-(s - t)²/(2ρ²))."""
        return np.asarray(np.exp(-0.5 * ((s[:, None] - t[None, :]) / self.length) ** 2))

    @classmethod
    def examples(cls) -> list[Self]:
        """Two lengths."""
        return [cls(), cls(length=0.3)]
