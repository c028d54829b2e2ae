"""The piecewise mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.sampled_coordinates import HALF_WIDTH, SampledCoordinates, ScalarRandomizer
from dpfda.noise import Source
from dpfda.noise.uniform import below, faded, weights


@dataclass(frozen=True, kw_only=True)
class Piecewise(SampledCoordinates, name="piecewise"):
    """Send a number near the truth with high density, any other with e^ε times lower density.

    Privacy:
        ε-LDP for one vector in [-1, 1]^d (Wang et al. 2019; 004, Algorithms 2 and 3). Input and
        output live on lattices, the draw is an exact integer draw, the odds are rounded down.

    Examples:
        >>> mechanism = Piecewise(epsilon=6.0, dimension=4)
        >>> mechanism.sampled
        2
    """

    def _scalar_randomizer(self, epsilon: float) -> ScalarRandomizer:
        return PiecewiseScalar(epsilon)

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate, one of four, and several of five."""
        return [cls(epsilon=1.0), cls(epsilon=0.5, dimension=4), cls(epsilon=8.0, dimension=5)]


@dataclass(frozen=True)
class PiecewiseScalar:
    """The piecewise mechanism on one number, on a lattice.

    Reports are the half-integers from -M + ½ to M - ½, M = C + w/2, times a unit: a window of w of
    them around the true position c has weight `high` each, the others weight `low`. The mean is
    proportional to c, whatever the rounding of the weights; the unit makes it c/C.
    """

    epsilon: float

    @cached_property
    def window(self) -> int:
        """w, an even number of likely reports; the optimal share of the range is e^{-ε/2}."""
        return max(2, 2 * faded(self.epsilon / 2, of=HALF_WIDTH))

    @cached_property
    def weights(self) -> tuple[int, int]:
        """Of a report inside the window, and of one outside: as fine as 64-bit totals allow."""
        return weights(self.epsilon, likely=self.window, others=2 * HALF_WIDTH)

    @cached_property
    def _total(self) -> int:
        high, low = self.weights
        return self.window * high + 2 * HALF_WIDTH * low

    @cached_property
    def unit(self) -> float:
        """Distance of neighboring reports."""
        high, low = self.weights
        return self._total / ((high - low) * self.window * HALF_WIDTH)

    def draw(self, positions: IntArray, source: Source) -> FloatArray:
        """Reports for integer positions c."""
        high, low = self.weights
        coins = below(self._total, positions.size, source)
        start = positions - self.window // 2
        likely = np.uint64(self.window * high)
        inside = start + (coins // np.uint64(high)).astype(np.int64)
        rank = ((coins - likely) // np.uint64(low)).astype(np.int64)
        outside = rank - HALF_WIDTH - self.window // 2
        outside = np.where(outside >= start, outside + self.window, outside)
        return (np.where(coins < likely, inside, outside) + 0.5) * self.unit

    def variance(self, x: FloatArray) -> FloatArray:
        """Exact, by the sums of squares of half-integers."""
        (high, low), w, c = self.weights, self.window, x * HALF_WIDTH
        everywhere = _squares(HALF_WIDTH + w // 2)
        near = w * c * c + _squares(w // 2)
        second = (low * everywhere + (high - low) * near) / self._total
        return np.asarray(second * self.unit**2 - x * x)

    def log_likelihood(self, reports: FloatArray, positions: IntArray) -> FloatArray:
        """Two levels: inside the window or not."""
        offset = np.rint(reports / self.unit - 0.5) - (positions - self.window // 2)
        inside = (offset >= 0) & (offset < self.window)
        return np.log(np.where(inside, *self.weights) / self._total)


def _squares(count: int) -> float:
    """Sum of the squares of ±½, ±3/2, ..., ±(count - ½)."""
    return count * (4 * count * count - 1) / 6
