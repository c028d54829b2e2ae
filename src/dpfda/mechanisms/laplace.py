"""Laplace noise on a vector in the box [-1, 1]^d."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.mechanisms.base import BoxMechanism
from dpfda.noise import Source, discrete_laplace
from dpfda.noise.lattice import Lattice
from dpfda.privacy.events import Event, LaplaceEvent, PureEvent


@dataclass(frozen=True, kw_only=True)
class Laplace(BoxMechanism, name="laplace"):
    """Add Laplace noise of scale 2d/ε to each coordinate (000 and 001, §3.1).

    Privacy:
        ε-LDP for one vector in [-1, 1]^d: two vectors are at most 2d apart in ℓ1. Noise is discrete
        Laplace on a lattice that contains ±1, so rounding does not stretch the box (C20), and its
        scale is rounded up to whole lattice steps.

    Example:
        >>> Laplace(epsilon=1.0, dimension=4).scale
        8.0
    """

    @cached_property
    def lattice(self) -> Lattice:
        """Where reports live."""
        return Lattice.finer_than(2 * self.dimension / self.epsilon, most=1.0)

    @cached_property
    def _steps(self) -> int:
        return self.lattice.steps_above(Fraction(2 * self.dimension) / Fraction(self.epsilon))

    @property
    def scale(self) -> float:
        """Scale of the noise on each coordinate."""
        return self._steps * self.lattice.step

    @property
    def event(self) -> Event:
        """One number is priced as Laplace noise; several only by their sum ε."""
        if self.dimension == 1:
            return LaplaceEvent(ratio=self.epsilon)
        return PureEvent(epsilon=self.epsilon)

    def randomize(self, values: Any, rng: Source, *, clip: bool = False) -> FloatArray:
        """Noisy vectors, shape (n, d)."""
        rows = _validate.batch("values", values, columns=self.dimension, bound=1.0, clip=clip)
        noise = discrete_laplace(rows.size, scale=self._steps, source=rng)
        return self.lattice.values(self.lattice.round(rows) + noise.reshape(rows.shape))

    def variance(self, values: Any) -> FloatArray:
        """Variance of the discrete Laplace distribution, the same for every value."""
        # 2q/(1-q)² with q = e^{-1/s} equals 1/(2 sinh²(1/(2s))), which does not cancel.
        steps = 1 / (2 * math.sinh(1 / (2 * self._steps)) ** 2)
        return np.full(np.shape(values), steps * self.lattice.step**2)

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Log-probability of each noisy vector."""
        distance = np.abs(self.lattice.round(reports) - self.lattice.round(np.asarray(values)))
        constant = math.log(math.tanh(1 / (2 * self._steps)))
        return np.asarray((constant - distance / self._steps).sum(axis=-1))

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate and four."""
        return [cls(epsilon=1.0), cls(epsilon=0.1), cls(epsilon=2.0, dimension=4)]
