"""A mixture of the piecewise and the two-point mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.duchi import DuchiScalar
from dpfda.mechanisms.piecewise import PiecewiseScalar
from dpfda.mechanisms.sampled_coordinates import SampledCoordinates, ScalarRandomizer
from dpfda.noise import Source
from dpfda.noise.uniform import below, faded

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
