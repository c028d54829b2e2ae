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
ROUNDING_STEPS = 2
"""Steps that rounding may move two neighbouring answers apart, coordinate by coordinate: one for the
rounding, one for the float error of scaling an exact sum."""


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
        budget: μ of Gaussian noise (a stage with μ_i each: Σμ_i² = μ², Dong, Roth & Su 2022), or ε of
            Laplace noise.
        noise: which.
    """

    budget: float
    noise: Literal["gaussian", "laplace"] = "gaussian"

    additive: ClassVar[bool] = True
    """Whether the answer is a sum over rows: needed for streams and for sites."""

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
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
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
        return self._perturb(self.statistic(totals), n=n, source=source)

    def _perturb(self, exact: FloatArray, *, n: int, source: Source) -> Noisy:
        if self.noise == "gaussian":
            noise = discrete_gaussian(self.size, sigma=GAUSSIAN_STEPS, source=source)
            step, sigma = self.sigma / GAUSSIAN_STEPS, self.sigma
        else:
            noise = discrete_laplace(self.size, scale=LAPLACE_STEPS, source=source)
            step, sigma = self.sigma / LAPLACE_STEPS, self.sigma * math.sqrt(2)
        lattice = np.rint(exact / step).astype(np.int64) + noise
        return Noisy(lattice * step, sigma, n)


class WholeStage(Stage):
    """A stage that is no sum: the curator needs all rows at once."""

    additive: ClassVar[bool] = False

    @abstractmethod
    def evaluate(self, rows: FloatArray, targets: FloatArray, source: Source) -> FloatArray:
        """The vector that noise is added to."""

    def block(self, rows: FloatArray, targets: FloatArray) -> FloatArray:
        """Refused: there is nothing to add up."""
        raise InvalidData("X", "given as a whole: this method does not work from sums over people")

    def answer(self, rows: FloatArray, targets: FloatArray, source: Source) -> Noisy:
        """Evaluate and add noise."""
        return self._perturb(self.evaluate(rows, targets, source), n=len(rows), source=source)
