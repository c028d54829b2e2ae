"""One pass over the data: a public question whose answer is a sum over people, plus noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData
from dpfda.noise import Source, discrete_gaussian, discrete_laplace
from dpfda.regression.fixed_point import BLOCK

GAUSSIAN_STEPS = 1 << 24
"""Lattice steps in one standard deviation of Gaussian noise."""
LAPLACE_STEPS = 1 << 30
"""Lattice steps in one scale of Laplace noise."""
_CACHED = 1 << 16  # numbers
ROUNDING_STEPS = 2
"""Steps that rounding may move two neighbouring answers apart, coordinate by coordinate: one for
the rounding, one for the float error of scaling an exact sum."""


@dataclass(frozen=True)
class Noisy:
    """A stage's public answer.

    Attributes:
        values: the sum in the stage's coordinates, with noise.
        sigma: standard deviation of the noise on each coordinate.
        n: how many rows were added up (public).
    """

    values: FloatArray
    sigma: float
    n: int


@dataclass(frozen=True, kw_only=True)
class Stage(ABC):
    """A public question: what to add up over all rows, and how far one row can move the sum.

    Attributes:
        budget: μ of Gaussian noise (a stage with μ_i each: Σμ_i² = μ², Dong, Roth & Su 2022), or
            ε of Laplace noise.
        noise: which.
    """

    budget: float
    noise: Literal["gaussian", "laplace"] = "gaussian"

    additive: ClassVar[bool] = True
    """Whether it needs one pass over rows that may come in chunks."""
    linear_in_rows: ClassVar[bool] = True
    """Whether sites may add up their own answers: the statistic is the weighted sum itself."""

    @property
    @abstractmethod
    def weights(self) -> FloatArray:
        """What each exact integer sum is multiplied by; `sensitivity` is measured after that."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Replace-one sensitivity of the weighted sum, in ℓ2 (Gaussian) or ℓ1 (Laplace)."""

    @abstractmethod
    def block(self, rows: FloatArray, targets: FloatArray) -> FloatArray:
        """Exact sums over at most 2^16 rows: floats holding whole numbers below 2^53."""

    def sums(self, rows: FloatArray, targets: FloatArray) -> IntArray:
        """Exact sums over the rows, as 64-bit integers."""
        total = np.zeros(len(self.weights), dtype=np.int64)
        # Blocks that fit into a processor's cache: the pass then costs little more than reading.
        step = min(BLOCK, max(256, _CACHED // rows.shape[1]))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            total += self.block(rows[part], targets[part]).astype(np.int64)
        return total

    def statistic(self, totals: IntArray) -> FloatArray:
        """The vector that noise is added to."""
        return np.asarray(totals * self.weights)

    @property
    def size(self) -> int:
        """Length of the answer."""
        return len(self.weights)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise (Gaussian) or its scale (Laplace), rounding paid for.

        Gaussian: S + r √J σ/2^24 ≤ σ μ. Laplace: S + r J b/2^30 ≤ b ε.
        """
        gaussian = self.noise == "gaussian"
        spread = math.sqrt(self.size) if gaussian else self.size
        steps = GAUSSIAN_STEPS if gaussian else LAPLACE_STEPS
        left = self.budget - ROUNDING_STEPS * spread / steps
        return self.sensitivity / _validate.positive("budget minus the cost of rounding", left)

    def release(self, totals: IntArray, *, n: int, source: Source) -> Noisy:
        """The answer with noise, all integer arithmetic on a public lattice.

        Privacy:
            μ-Gaussian DP, or ε-DP for Laplace noise, for replacing one row.
        """
        return Noisy(self.perturb(self.statistic(totals), source), self.noise_deviation, n)

    def perturb(self, exact: FloatArray, source: Source) -> FloatArray:
        """Round to the lattice and add noise; the last axis holds one answer."""
        if self.noise == "gaussian":
            steps = GAUSSIAN_STEPS
            noise = discrete_gaussian(exact.size, sigma=steps, source=source)
        else:
            steps = LAPLACE_STEPS
            noise = discrete_laplace(exact.size, scale=steps, source=source)
        step = self.sigma / steps
        lattice = np.rint(exact / step).astype(np.int64) + noise.reshape(exact.shape)
        return np.asarray(lattice * step)

    @property
    def noise_deviation(self) -> float:
        """Standard deviation of the noise on each coordinate."""
        return self.sigma if self.noise == "gaussian" else self.sigma * math.sqrt(2)


class WholeStage(Stage):
    """A stage that is no sum: the curator needs all rows at once."""

    additive: ClassVar[bool] = False
    linear_in_rows: ClassVar[bool] = False

    @abstractmethod
    def evaluate(self, rows: FloatArray, targets: FloatArray, source: Source) -> FloatArray:
        """The vector that noise is added to."""

    def block(self, rows: FloatArray, targets: FloatArray) -> FloatArray:
        """Refused: there is nothing to add up."""
        raise InvalidData("X", "given as a whole: this method does not work from sums over people")

    def answer(self, rows: FloatArray, targets: FloatArray, source: Source) -> Noisy:
        """Evaluate and add noise."""
        exact = self.evaluate(rows, targets, source)
        return Noisy(self.perturb(exact, source), self.noise_deviation, len(rows))
