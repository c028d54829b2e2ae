"""Laplace noise on a curator's vector, with an axis of its own for each coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source, discrete_laplace
from dpfda.noise.lattice import whole_steps
from dpfda.privacy.guarantee import Guarantee

_SCALE = 1 << 26  # values up to 2^25 noise scales fit the lattice; rounding costs 3e-8 of ε each
ROUNDING_STEPS = 2
"""How far rounding may move two neighbouring coordinates apart: one step for the rounding itself,
and room for the floating-point error of the division and of whatever computed the value."""


@dataclass(frozen=True, kw_only=True)
class AdditiveLaplace(Mechanism, name="additive_laplace"):
    """Add Laplace noise of scale a_j S/ε to coordinate j, where Σ |h_j|/a_j ≤ S for neighbours.

    With equal axes this is the Laplace mechanism in ℓ1; with axes √λ_j it is the ICLP mechanism in
    the norm ‖·‖_{1,C} of 003.

    Privacy:
        ε-DP for any release whose neighbours differ by h with Σ |h_j|/a_j ≤ S. Noise is discrete
        Laplace on a lattice of 2^26 steps a scale; the scale is enlarged by what rounding the
        values to the lattice can add to S (C20). The caller answers for S.

    Attributes:
        sensitivity: S.
        axes: the a_j, all above 0; one entry for each coordinate.

    Example:
        >>> AdditiveLaplace(epsilon=0.5, sensitivity=1.0, axes=(1.0, 2.0)).scales.round(3)
        array([2., 4.])
    """

    sensitivity: float
    axes: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive("sensitivity", self.sensitivity)
        object.__setattr__(self, "axes", check_axes(self.axes))

    @cached_property
    def scales(self) -> FloatArray:
        """Scale of the noise on each coordinate."""
        # Σ (|h_j| + r b_j/2^26)/b_j ≤ ε  with  b_j = a_j S / (ε - r J/2^26).
        left = self.epsilon - ROUNDING_STEPS * len(self.axes) / _SCALE
        _validate.positive("epsilon minus the cost of rounding", left)
        return np.asarray(self.axes) * (self.sensitivity / left)

    @property
    def guarantee(self) -> Guarantee:
        """Central: a curator adds the noise."""
        return Guarantee(epsilon=self.epsilon, model="central")

    def randomize(self, values: Any, rng: Source, *, clip: bool = False) -> FloatArray:
        """Noisy vectors, shape (n, J); each row is a release of its own."""
        rows = _validate.batch("values", values, columns=len(self.axes))
        noise = discrete_laplace(rows.size, scale=_SCALE, source=rng).reshape(rows.shape)
        step = self.scales / _SCALE
        return (whole_steps(rows, step, clip=clip) + noise) * step

    def _round(self, values: FloatArray) -> IntArray:
        return np.rint(values / (self.scales / _SCALE)).astype(np.int64)

    def variance(self, values: Any) -> FloatArray:
        """2 b_j², but for a discretisation of relative size 2^-55."""
        return np.broadcast_to(2 * self.scales**2, np.shape(values)).copy()

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Log-probability of each noisy vector."""
        distance = np.abs(self._round(reports) - self._round(np.asarray(values)))
        constant = math.log(math.tanh(1 / (2 * _SCALE)))
        return np.asarray((constant - distance / _SCALE).sum(axis=1))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """The whole difference in one coordinate, and spread over all."""
        size = len(self.axes)
        first = np.zeros((1, size))
        first[0, 0] = self.sensitivity * self.axes[0]
        spread = self.sensitivity * np.asarray(self.axes)[None, :] / size
        return [(first, np.zeros((1, size))), (spread / 2, -spread / 2)]

    @classmethod
    def examples(cls) -> list[Self]:
        """Equal and unequal axes."""
        return [
            cls(epsilon=1.0, sensitivity=2.0),
            cls(epsilon=0.5, sensitivity=0.1, axes=(1.0, 0.5, 0.1)),
        ]


def check_axes(axes: Any) -> tuple[float, ...]:
    """Public axes as a tuple of finite numbers above 0."""
    checked = tuple(_validate.positive("axes", float(axis)) for axis in axes)
    if not checked:
        raise InvalidParameter("axes", "at least one number", axes)
    return checked
