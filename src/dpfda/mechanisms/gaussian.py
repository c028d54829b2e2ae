"""Gaussian noise on a vector, calibrated exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.additive_laplace import ROUNDING_STEPS, check_axes
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source, discrete_gaussian
from dpfda.noise.lattice import whole_steps
from dpfda.privacy.calibration import gaussian_sigma
from dpfda.privacy.events import Event, GaussianEvent
from dpfda.privacy.guarantee import Guarantee

_SIGMA = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Gaussian(Mechanism, name="gaussian"):
    """Add Gaussian noise of standard deviation a_j σ to coordinate j, where ‖h/a‖₂ ≤ S.

    Privacy:
        (ε, δ)-DP for any release whose neighbours differ by h with √Σ(h_j/a_j)² ≤ S. σ is the
        smallest that suffices (Balle & Wang 2018), for S enlarged by what rounding to the lattice
        can add (C20). Noise is discrete Gaussian on a lattice of 2^24 steps a standard deviation.
        The caller answers for S.

    Attributes:
        delta: δ.
        sensitivity: S.
        axes: the a_j, all above 0; one entry for each coordinate.

    Example:
        >>> Gaussian(epsilon=1.0, delta=1e-5, sensitivity=1.0).sigmas.round(2)
        array([3.73])
    """

    delta: float
    sensitivity: float
    axes: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.fraction("delta", self.delta)
        _validate.positive("sensitivity", self.sensitivity)
        object.__setattr__(self, "axes", check_axes(self.axes))

    @cached_property
    def sigmas(self) -> FloatArray:
        """Standard deviation of the noise on each coordinate."""
        # ‖h/a‖ + r √J σ/2^24 ≤ σ/m  with  m = σ(1, δ, sensitivity 1), the noise multiplier.
        multiplier = gaussian_sigma(epsilon=self.epsilon, delta=self.delta)
        rounding = ROUNDING_STEPS * math.sqrt(len(self.axes)) / _SIGMA
        left = _validate.positive("budget minus the cost of rounding", 1 / multiplier - rounding)
        return np.asarray(self.axes) * (self.sensitivity / left)

    @property
    def guarantee(self) -> Guarantee:
        """Central, with δ."""
        return Guarantee(epsilon=self.epsilon, delta=self.delta, model="central")

    @property
    def event(self) -> Event:
        """Priced by its noise multiplier, rounding included."""
        return GaussianEvent(multiplier=gaussian_sigma(epsilon=self.epsilon, delta=self.delta))

    def randomize(self, values: Any, rng: Source, *, clip: bool = False) -> FloatArray:
        """Noisy vectors, shape (n, J); each row is a release of its own."""
        rows = _validate.batch("values", values, columns=len(self.axes))
        noise = discrete_gaussian(rows.size, sigma=_SIGMA, source=rng).reshape(rows.shape)
        step = self.sigmas / _SIGMA
        return (whole_steps(rows, step, clip=clip) + noise) * step

    def _round(self, values: FloatArray) -> IntArray:
        return np.rint(values / (self.sigmas / _SIGMA)).astype(np.int64)

    def variance(self, values: Any) -> FloatArray:
        """(a_j σ)²; the discrete Gaussian's variance differs by less than e^{-2^50}."""
        return np.broadcast_to(self.sigmas**2, np.shape(values)).copy()

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Log-probability of each noisy vector."""
        distance = (self._round(reports) - self._round(np.asarray(values))) / _SIGMA
        constant = -math.log(_SIGMA * math.sqrt(2 * math.pi))
        return np.asarray((constant - distance**2 / 2).sum(axis=1))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """The whole difference in one coordinate, and spread over all."""
        size = len(self.axes)
        first = np.zeros((1, size))
        first[0, 0] = self.sensitivity * self.axes[0]
        spread = self.sensitivity * np.asarray(self.axes)[None, :] / math.sqrt(size)
        return [(first, np.zeros((1, size))), (spread / 2, -spread / 2)]

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate and three."""
        return [
            cls(epsilon=1.0, delta=1e-2, sensitivity=1.0),
            cls(epsilon=0.5, delta=0.05, sensitivity=2.0, axes=(1.0, 0.5, 0.1)),
        ]
