"""The piecewise mechanism on vectors, and its mixture with Duchi's: the hybrid mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.duchi import DuchiScalar
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


_COIN = 1 << 32


@dataclass(frozen=True, kw_only=True)
class Hybrid(SampledCoordinates, name="hybrid"):
    """For ε > 0.61 the piecewise mechanism with probability 1 - e^{-ε/2}, else Duchi's.

    Privacy:
        ε-LDP for one vector in [-1, 1]^d (Wang et al. 2019): both parts are ε-LDP and the coin that
        chooses between them does not depend on the data.

    Examples:
        >>> Hybrid(epsilon=1.0).variance([[0.0], [1.0]]).round(2).tolist()
        [[4.29], [4.29]]
    """

    def _scalar_randomizer(self, epsilon: float) -> ScalarRandomizer:
        return HybridScalar(epsilon)

    @classmethod
    def examples(cls) -> list[Self]:
        """Below and above the switch, and several coordinates."""
        return [cls(epsilon=0.5), cls(epsilon=2.0), cls(epsilon=6.0, dimension=3)]


@dataclass(frozen=True)
class HybridScalar:
    """The mixture on one number."""

    epsilon: float

    @cached_property
    def _piecewise(self) -> PiecewiseScalar:
        return PiecewiseScalar(self.epsilon)

    @cached_property
    def _duchi(self) -> DuchiScalar:
        return DuchiScalar(self.epsilon)

    @cached_property
    def _share(self) -> int:
        """Parts of `_COIN` that go to the piecewise mechanism."""
        if self.epsilon <= 0.61:
            return 0
        return _COIN - faded(self.epsilon / 2, of=_COIN)

    def draw(self, positions: IntArray, source: Source) -> FloatArray:
        """Reports for integer positions."""
        piecewise = below(_COIN, positions.size, source) < np.uint64(self._share)
        reports = np.empty(positions.size)
        reports[piecewise] = self._piecewise.draw(positions[piecewise], source)
        reports[~piecewise] = self._duchi.draw(positions[~piecewise], source)
        return reports

    def variance(self, x: FloatArray) -> FloatArray:
        """The mixture of the variances: both parts have the same mean."""
        share = self._share / _COIN
        return share * self._piecewise.variance(x) + (1 - share) * self._duchi.variance(x)

    def log_likelihood(self, reports: FloatArray, positions: IntArray) -> FloatArray:
        """Which part a report came from is seen in its value: the two lattices differ."""
        share = self._share / _COIN
        two_point = np.isclose(np.abs(reports), self._duchi.bound, rtol=1e-13, atol=0)
        likelihood = np.empty(reports.shape)
        likelihood[two_point] = math.log1p(-share) + self._duchi.log_likelihood(
            reports[two_point], positions[two_point]
        )
        rest = ~two_point
        if rest.any():
            likelihood[rest] = math.log(share) + self._piecewise.log_likelihood(
                reports[rest], positions[rest]
            )
        return likelihood
