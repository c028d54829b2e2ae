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
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.base import BoxMechanism
from dpfda.noise import Source, discrete_laplace
from dpfda.noise.discrete import fine_step, whole_steps
from dpfda.privacy.events import Event, LaplaceEvent, PureEvent

_MOST_EPSILON = float(1 << 30)  # for each coordinate: beyond, ±1 is too far out on the lattice


@dataclass(frozen=True, kw_only=True)
class Laplace(BoxMechanism, name="laplace"):
    """Add Laplace noise of scale 2d/ε to each coordinate (000 and 001, §3.1).

    Privacy:
        ε-LDP for one vector in [-1, 1]^d: two vectors are at most 2d apart in ℓ1. Noise is discrete
        Laplace on a lattice that contains ±1, so rounding does not stretch the box (C20), and its
        scale is rounded up to whole lattice steps.

    Examples:
        >>> Laplace(epsilon=1.0, dimension=4).scale
        8.0
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        most = _MOST_EPSILON * self.dimension
        if self.epsilon > most:
            raise InvalidParameter("epsilon", f"at most {most:g}", self.epsilon)

    @cached_property
    def step(self) -> float:
        """Reports are multiples of it."""
        return fine_step(2 * self.dimension / self.epsilon, most=1.0)

    @cached_property
    def _steps(self) -> int:
        # In fractions: the scale is never below 2d/ε.
        return math.ceil(2 * self.dimension / Fraction(self.epsilon) / Fraction(self.step))

    @property
    def scale(self) -> float:
        """Scale of the noise on each coordinate."""
        return self._steps * self.step

    @property
    def event(self) -> Event:
        """One number is priced as Laplace noise; several only by their sum ε."""
        if self.dimension == 1:
            return LaplaceEvent(ratio=self.epsilon)
        return PureEvent(epsilon=self.epsilon)

    def randomize(self, values: Any, source: Source, *, clip: bool = False) -> FloatArray:
        """Noisy vectors, shape (n, d)."""
        rows = _validate.batch("values", values, columns=self.dimension, bound=1.0, clip=clip)
        noise = discrete_laplace(rows.size, scale=self._steps, source=source)
        noisy = whole_steps(rows, self.step) + noise.reshape(rows.shape)
        return np.asarray(noisy * self.step, dtype=np.float64)

    def variance(self, values: Any) -> FloatArray:
        """Variance of the discrete Laplace distribution, the same for every value."""
        # 2q/(1-q)² with q = e^{-1/s} equals 1/(2 sinh²(1/(2s))), which does not cancel.
        steps = 1 / (2 * math.sinh(1 / (2 * self._steps)) ** 2)
        return np.full(np.shape(values), steps * self.step**2)

    @property
    def depth_shape(self) -> float:
        """d."""
        return float(self.dimension)

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Log-probability of each noisy vector."""
        sent, true = (whole_steps(np.asarray(x), self.step, clip=True) for x in (reports, values))
        constant = math.log(math.tanh(1 / (2 * self._steps)))
        return np.asarray((constant - np.abs(sent - true) / self._steps).sum(axis=-1))

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate and four."""
        return [cls(epsilon=1.0), cls(epsilon=0.1), cls(epsilon=2.0, dimension=4)]
