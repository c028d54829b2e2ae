"""Laplace noise on a curator's vector, with an axis of its own for each coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.additive import ROUNDING_STEPS, Additive
from dpfda.noise import Source, discrete_laplace


@dataclass(frozen=True, kw_only=True)
class AdditiveLaplace(Additive, name="additive_laplace"):
    """Add Laplace noise of scale a_j S/ε to coordinate j, where Σ |h_j|/a_j ≤ S for neighbors.

    With equal axes this is the Laplace mechanism in ℓ1; with axes √λ_j it is the ICLP mechanism in
    the norm ‖·‖_{1,C} of 003.

    Privacy:
        ε-DP for any release whose neighbors differ by h with Σ |h_j|/a_j ≤ S. Noise is discrete
        Laplace on a lattice of 2^26 steps a scale; the scale is enlarged by what rounding the
        values to the lattice can add to S (C20). The caller answers for S.

    Examples:
        >>> AdditiveLaplace(epsilon=0.5, sensitivity=1.0, axes=(1.0, 2.0)).scales.round(3)
        array([2., 4.])
    """

    # Values up to 2^25 noise scales fit the lattice; rounding costs 3e-8 of ε each.
    kind = "laplace"
    steps: ClassVar[int] = 1 << 26

    @cached_property
    def scales(self) -> FloatArray:
        """b_j."""
        # Σ (|h_j| + r b_j/2^26)/b_j ≤ ε  with  b_j = a_j S / (ε - r J/2^26).
        left = self.epsilon - ROUNDING_STEPS * len(self.axes) / self.steps
        _validate.positive("epsilon minus the cost of rounding", left)
        return np.asarray(self.axes) * (self.sensitivity / left)

    def reach(self, difference: FloatArray) -> float:
        """Σ |h_j|/a_j."""
        return float((np.abs(difference) / np.asarray(self.axes)).sum())

    def _integers(self, rows: int, source: Source) -> IntArray:
        size = len(self.axes)
        return discrete_laplace(rows * size, scale=self.steps, source=source).reshape(rows, size)

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Log-probability of each noisy vector."""
        constant = math.log(math.tanh(1 / (2 * self.steps)))
        return np.asarray((constant - np.abs(self._distance(reports, values))).sum(axis=1))

    @classmethod
    def examples(cls) -> list[Self]:
        """Equal and unequal axes."""
        return [
            cls(epsilon=1.0, sensitivity=2.0),
            cls(epsilon=0.5, sensitivity=0.1, axes=(1.0, 0.5, 0.1)),
        ]
