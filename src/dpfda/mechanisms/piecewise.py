"""Duchi's mechanism, the piecewise mechanism, and their mixture, on vectors in [-1, 1]^d.

Splitting ε over all d coordinates gives each of them much noise. Reporting k random coordinates
with ε/k each, scaled up by d/k, is also unbiased and has a smaller variance (Wang et al. 2019; 004,
Algorithm 3). `SampledCoordinates` does this for any mechanism of one number.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.mechanisms.base import BoxMechanism
from dpfda.noise import Source
from dpfda.noise.uniform import below, coin_signs, faded, odds, subsets, weights

HALF_WIDTH = 1 << 20
"""Inputs are rounded to multiples of 1/HALF_WIDTH; ±1 are lattice points (C20)."""


class ScalarRandomizer(Protocol):
    """An unbiased mechanism of one number c/HALF_WIDTH, c an integer; it never outputs 0."""

    def draw(self, positions: IntArray, source: Source) -> FloatArray:
        """Reports for integer positions c."""

    def variance(self, x: FloatArray) -> FloatArray:
        """Exact variance at x."""

    def log_likelihood(self, reports: FloatArray, positions: IntArray) -> FloatArray:
        """Log-probability of each report."""


@dataclass(frozen=True, kw_only=True)
class SampledCoordinates(BoxMechanism):
    """Report k random coordinates of d with ε/k each, and 0 for the others."""

    @abstractmethod
    def _scalar_randomizer(self, epsilon: float) -> ScalarRandomizer:
        """The mechanism of one coordinate."""

    @property
    def sampled(self) -> int:
        """k, the number of reported coordinates."""
        return max(1, min(self.dimension, math.floor(self.epsilon / 2.5)))

    @cached_property
    def _scalar(self) -> ScalarRandomizer:
        return self._scalar_randomizer(self.epsilon / self.sampled)

    @property
    def _factor(self) -> float:
        return self.dimension / self.sampled

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Unbiased reports, shape (n, d), with k entries of each row other than 0."""
        rows = _validate.batch("values", values, columns=self.dimension, bound=1.0, clip=clip)
        positions = _round(rows)
        if self.sampled == self.dimension:
            return self._scalar.draw(positions.ravel(), source).reshape(rows.shape)
        chosen = subsets(len(rows), choose=self.sampled, among=self.dimension, source=source)
        drawn = self._scalar.draw(np.take_along_axis(positions, chosen, axis=1).ravel(), source)
        reports = np.zeros(rows.shape)
        np.put_along_axis(reports, chosen, self._factor * drawn.reshape(chosen.shape), axis=1)
        return reports

    def variance(self, values: ArrayLike) -> FloatArray:
        """(d/k)(Var(x) + x²) - x² with the scalar variance at ε/k."""
        x = np.asarray(values, dtype=np.float64)
        return self._factor * (self._scalar.variance(x) + x * x) - x * x

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each report; its zeros show which coordinates were chosen."""
        positions = np.broadcast_to(_round(np.asarray(values)), reports.shape)
        reported = reports != 0
        each = np.zeros(reports.shape)
        each[reported] = self._scalar.log_likelihood(
            reports[reported] / self._factor, positions[reported]
        )
        return np.asarray(each.sum(axis=1) - math.log(math.comb(self.dimension, self.sampled)))


def _round(values: FloatArray) -> IntArray:
    return np.rint(values * HALF_WIDTH).astype(np.int64)


_LOW = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Duchi(BoxMechanism, name="duchi"):
    """Round x to a random corner v of the cube, then send a corner on v's side with odds e^ε.

    Privacy:
        ε-LDP for one vector in [-1, 1]^d (Duchi, Jordan & Wainwright 2018). Corners t have weight
        e^ε if t·v > 0 and 1 otherwise; ties t·v = 0, which exist for even d, have weight 1 (C19).
        The corner is found by exact rejection from uniform corners.

    Examples:
        >>> Duchi(epsilon=1.0, dimension=2).guarantee.epsilon
        1.0
    """

    @cached_property
    def _high(self) -> int:
        return odds(self.epsilon, denominator=_LOW)

    @cached_property
    def _total(self) -> int:
        """Total weight of all corners, the same for every v."""
        ties = math.comb(self.dimension, self.dimension // 2) if self.dimension % 2 == 0 else 0
        return ((1 << self.dimension) - ties) // 2 * (self._high + _LOW) + ties * _LOW

    @cached_property
    def bound(self) -> float:
        """B, the absolute value of every reported coordinate; it makes the report unbiased."""
        surplus = math.comb(self.dimension - 1, self.dimension // 2)  # Σ t_1 v_1 where t·v > 0
        return float(Fraction(self._total, (self._high - _LOW) * surplus))

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Corners of the cube of half-width B, shape (n, d)."""
        rows = _validate.batch("values", values, columns=self.dimension, bound=1.0, clip=clip)
        corners = _random_corners(rows, source)
        reports = np.empty(rows.shape)
        missing = np.arange(len(rows))
        while missing.size:
            proposal = coin_signs(missing.size * self.dimension, source).reshape(-1, self.dimension)
            agree = (proposal * corners[missing]).sum(axis=1) > 0
            accepted = agree | (below(self._high, missing.size, source) < np.uint64(_LOW))
            reports[missing[accepted]] = proposal[accepted]
            missing = missing[~accepted]
        return self.bound * reports

    def variance(self, values: ArrayLike) -> FloatArray:
        """The variance B² - x², since every report is ±B."""
        x = np.asarray(values, dtype=np.float64)
        return np.asarray(self.bound**2 - x * x)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Mixture over the hidden corner v, by the number of agreeing coordinates."""
        signs = np.sign(reports)
        agree = (1 + signs * np.asarray(values)) / 2  # P(v_j = t_j), shape (n, d)
        weight = _LOW + (self._high - _LOW) * _majority_probability(agree)
        return np.asarray(np.log(weight / self._total))

    @classmethod
    def examples(cls) -> list[Self]:
        """One coordinate, and an even and an odd number of them."""
        return [
            cls(epsilon=1.0),
            cls(epsilon=1.0, dimension=2),
            cls(epsilon=2.0, dimension=4),
            cls(epsilon=0.5, dimension=5),
        ]


@dataclass(frozen=True)
class DuchiScalar:
    """Duchi's mechanism for one number, which reports ±B."""

    epsilon: float

    @cached_property
    def _high(self) -> int:
        return odds(self.epsilon, denominator=_LOW)

    @property
    def bound(self) -> float:
        """The bound B."""
        return (self._high + _LOW) / (self._high - _LOW)

    def draw(self, positions: IntArray, source: Source) -> FloatArray:
        """Reports for integer positions: a random corner, kept with odds e^ε."""
        corner = np.where(_up(positions, source), 1.0, -1.0)
        kept = below(self._high + _LOW, positions.size, source) < np.uint64(self._high)
        return self.bound * np.where(kept, corner, -corner)

    def variance(self, x: FloatArray) -> FloatArray:
        """The variance B² - x²."""
        return np.asarray(self.bound**2 - x * x)

    def log_likelihood(self, reports: FloatArray, positions: IntArray) -> FloatArray:
        """Log-probability of +B or -B."""
        return np.log((1 + np.sign(reports) * positions / HALF_WIDTH / self.bound) / 2)


def _random_corners(rows: FloatArray, source: Source) -> FloatArray:
    """±1 with mean x, coordinate by coordinate."""
    positions = np.rint(rows * HALF_WIDTH).astype(np.int64)
    return np.where(_up(positions.ravel(), source).reshape(rows.shape), 1.0, -1.0)


def _up(positions: IntArray, source: Source) -> npt.NDArray[np.bool_]:
    """True with probability (1 + c/C)/2, exactly."""
    coins = below(2 * HALF_WIDTH, positions.size, source)
    return coins < (positions + HALF_WIDTH).astype(np.uint64)


def _majority_probability(agree: FloatArray) -> FloatArray:
    """P(more than d/2 heads) for independent coins, one row of head probabilities per case."""
    n, d = agree.shape
    counts = np.zeros((n, d + 1))
    counts[:, 0] = 1.0
    for j in range(d):
        p = agree[:, j : j + 1]
        counts[:, 1:] = counts[:, 1:] * (1 - p) + counts[:, :-1] * p
        counts[:, :1] *= 1 - p
    return np.asarray(counts[:, d // 2 + 1 :].sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class Piecewise(SampledCoordinates, name="piecewise"):
    """Report numbers near the true value with density e^ε times as high as all others.

    Privacy:
        ε-LDP for one vector in [-1, 1]^d (Wang et al. 2019; 004, Algorithms 2 and 3). Input and
        output lie on lattices; the draw is an exact integer draw with odds rounded down.

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
    """The piecewise mechanism for one number, on a lattice.

    Reports are the half-integers from -M + ½ to M - ½, M = C + w/2, times a unit: a window of w of
    them around the true position c has weight `high` each, the others weight `low`. The mean is
    proportional to c for any rounding of the weights; the unit makes it c/C.
    """

    epsilon: float

    @cached_property
    def window(self) -> int:
        """w, an even number of likely reports; the optimal share of the range is e^{-ε/2}."""
        return max(2, 2 * faded(self.epsilon / 2, of=HALF_WIDTH))

    @cached_property
    def weights(self) -> tuple[int, int]:
        """Weights inside and outside the window, as fine as 64-bit totals allow."""
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
        """Exact variance, by sums of squares of half-integers."""
        (high, low), w, c = self.weights, self.window, x * HALF_WIDTH
        everywhere = _squares(HALF_WIDTH + w // 2)
        near = w * c * c + _squares(w // 2)
        second = (low * everywhere + (high - low) * near) / self._total
        return np.asarray(second * self.unit**2 - x * x)

    def log_likelihood(self, reports: FloatArray, positions: IntArray) -> FloatArray:
        """Log-probability of each report, which is higher inside the window."""
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
        """ε below and above 0.61, and several coordinates."""
        return [cls(epsilon=0.5), cls(epsilon=2.0), cls(epsilon=6.0, dimension=3)]


@dataclass(frozen=True)
class HybridScalar:
    """The mixture of both mechanisms for one number."""

    epsilon: float

    @cached_property
    def _piecewise(self) -> PiecewiseScalar:
        return PiecewiseScalar(self.epsilon)

    @cached_property
    def _duchi(self) -> DuchiScalar:
        return DuchiScalar(self.epsilon)

    @cached_property
    def _share(self) -> int:
        """Weight of the piecewise mechanism, out of `_COIN`."""
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
        """The weighted mean of both variances, since both mechanisms are unbiased."""
        share = self._share / _COIN
        return share * self._piecewise.variance(x) + (1 - share) * self._duchi.variance(x)

    def log_likelihood(self, reports: FloatArray, positions: IntArray) -> FloatArray:
        """Log-probability of each report; its lattice shows which of the two mechanisms drew it."""
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
