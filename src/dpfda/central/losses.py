"""Losses of kernel machines: convex, with a known Lipschitz constant in the prediction."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from dpfda._registry import Registered
from dpfda._validate import FloatArray


@dataclass(frozen=True, kw_only=True)
class Loss(Registered, family="loss"):
    """L(y, f), with derivatives in f."""

    classification: ClassVar[bool] = True

    @abstractmethod
    def slope(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """∂L/∂f."""

    @abstractmethod
    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """∂²L/∂f², or an upper bound where it jumps."""

    @abstractmethod
    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """L."""

    def lipschitz(self, *, kappa: float, psi: float, target_bound: float) -> float:
        """M: |∂L/∂f| ≤ M at every minimiser (C14)."""
        return 1.0

    @classmethod
    def examples(cls) -> list[Self]:
        """The one instance."""
        return [cls()]


@dataclass(frozen=True, kw_only=True)
class Squared(Loss, name="squared"):
    """(y - f)² with |y| ≤ Y: M = 2Y(1 + κ/√ψ), as the minimiser has ‖f‖ ≤ Y/√ψ."""

    classification: ClassVar[bool] = False

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """(y - f)²."""
        return (y - f) ** 2

    def slope(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """2(f - y)."""
        return 2 * (f - y)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """2."""
        return np.full_like(f, 2.0)

    def lipschitz(self, *, kappa: float, psi: float, target_bound: float) -> float:
        """2Y(1 + κ/√ψ)."""
        return 2 * target_bound * (1 + kappa / math.sqrt(psi))


@dataclass(frozen=True, kw_only=True)
class Logistic(Loss, name="logistic"):
    """log(1 + e^{-yf}), y = ±1."""

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """log(1 + e^{-yf})."""
        return np.asarray(np.logaddexp(0.0, -y * f))

    def slope(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """-y σ(-yf)."""
        return np.asarray(-y * expit(-y * f))

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """σ(f)(1 - σ(f))."""
        p = expit(f)
        return np.asarray(p * (1 - p))


@dataclass(frozen=True, kw_only=True)
class SmoothedHinge(Loss, name="smoothed_hinge"):
    """The support vector loss (1 - yf)₊, rounded by a parabola on |1 - yf| < ½."""

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Quadratic near the corner, linear beyond."""
        m = 1 - y * f
        return np.where(m > 0.5, m, np.where(m < -0.5, 0.0, (m + 0.5) ** 2 / 2))

    def slope(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """-y clip(1 - yf + ½, 0, 1)."""
        return np.asarray(-y * np.clip(1.5 - y * f, 0.0, 1.0))

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """1 near the corner."""
        return (np.abs(1 - y * f) <= 0.5).astype(np.float64)
