"""Gaussian noise on a vector, calibrated exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.additive import ROUNDING_STEPS, Additive
from dpfda.noise import Source, discrete_gaussian
from dpfda.privacy.calibration import gaussian_epsilon, gaussian_mu, lattice_charge
from dpfda.privacy.events import Event, GaussianEvent
from dpfda.privacy.guarantee import Guarantee


@dataclass(frozen=True, kw_only=True)
class Gaussian(Additive, name="gaussian"):
    """Add Gaussian noise of standard deviation a_j S/μ to coordinate j, where ‖h/a‖₂ ≤ S.

    μ is what composes: releases with μ_1, μ_2, ... are together one with μ² = Σ μ_i².

    Privacy:
        μ-Gaussian DP for any release whose neighbors differ by h with √Σ(h_j/a_j)² ≤ S, which is
        (ε, δ)-DP with the ε that `guarantee` states (Balle & Wang 2018). S is enlarged by what
        rounding to the lattice can add (C20). Noise is discrete Gaussian on a lattice of 2^24 steps
        a standard deviation. The caller answers for S.

    Attributes:
        mu: μ, what this release may cost.
        delta: the δ at which `guarantee` says it in ε.

    Examples:
        >>> Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0).scales.round(2)
        array([3.73])
    """

    kind = "gaussian"
    steps: ClassVar[int] = 1 << 24

    epsilon: float = field(init=False)
    mu: float
    delta: float = 1e-5

    def __post_init__(self) -> None:
        _validate.positive("mu", self.mu)
        _validate.fraction("delta", self.delta)
        epsilon = gaussian_epsilon(delta=self.delta, multiplier=1 / self.mu)
        object.__setattr__(self, "epsilon", max(epsilon, 1e-6))
        super().__post_init__()

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        sensitivity: float,
        axes: tuple[float, ...] = (1.0,),
    ) -> Self:
        """The least noise that is (ε, δ)-DP."""
        mu = gaussian_mu(epsilon=epsilon, delta=delta)
        return cls(mu=mu, delta=delta, sensitivity=sensitivity, axes=axes)

    @cached_property
    def scales(self) -> FloatArray:
        """Standard deviations."""
        # ‖h/a‖ + r √J σ/2^24 ≤ σ (μ - what discreteness costs).
        size = len(self.axes)
        rounding = ROUNDING_STEPS * math.sqrt(size) / self.steps
        rounding += lattice_charge(coordinates=size, steps=self.steps, mu=self.mu)
        left = _validate.positive("mu minus the cost of rounding", self.mu - rounding)
        return np.asarray(self.axes) * (self.sensitivity / left)

    @property
    def guarantee(self) -> Guarantee:
        """Central, with δ."""
        return replace(super().guarantee, delta=self.delta)

    @property
    def event(self) -> Event:
        """Priced by its noise multiplier 1/μ, rounding included."""
        return GaussianEvent(multiplier=1 / self.mu)

    def _integers(self, rows: int, source: Source) -> IntArray:
        size = len(self.axes)
        return discrete_gaussian(rows * size, sigma=self.steps, source=source).reshape(rows, size)

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Log-probability of each noisy vector."""
        constant = -math.log(self.steps * math.sqrt(2 * math.pi))
        return np.asarray((constant - self._distance(reports, values) ** 2 / 2).sum(axis=1))

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate and three."""
        return [
            cls.calibrated(epsilon=1.0, delta=1e-2, sensitivity=1.0),
            cls.calibrated(epsilon=0.5, delta=0.05, sensitivity=2.0, axes=(1.0, 0.5, 0.1)),
        ]
