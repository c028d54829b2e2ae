"""Duchi's minimax mechanism: every report is a corner of a large cube."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.base import BoxMechanism
from dpfda.mechanisms.sampled_coordinates import HALF_WIDTH
from dpfda.noise import Source
from dpfda.noise.uniform import below, coin_signs, odds

_LOW = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Duchi(BoxMechanism, name="duchi"):
    """Round x to a random corner v of the cube, then send a corner on v's side with odds e^ε.

    Privacy:
        ε-LDP for one vector in [-1, 1]^d (Duchi, Jordan & Wainwright 2018). Corners t have weight
        e^ε if t·v > 0 and 1 otherwise; ties t·v = 0, which exist for even d, are in one half only
        (C19). The corner is found by exact rejection from uniform corners.

    Examples:
        >>> Duchi(epsilon=1.0, dimension=2).guarantee.epsilon
        1.0
    """

    @cached_property
    def _high(self) -> int:
        return odds(self.epsilon, denominator=_LOW)

    @cached_property
    def _total(self) -> int:
        """Weight of all corners, whatever v is."""
        ties = math.comb(self.dimension, self.dimension // 2) if self.dimension % 2 == 0 else 0
        return ((1 << self.dimension) - ties) // 2 * (self._high + _LOW) + ties * _LOW

    @cached_property
    def bound(self) -> float:
        """B, the size of every reported coordinate, which makes the report unbiased."""
        surplus = math.comb(self.dimension - 1, self.dimension // 2)  # Σ t_1 v_1 where t·v > 0
        return float(Fraction(self._total, (self._high - _LOW) * surplus))

    def randomize(self, values: Any, source: Source, *, clip: bool = False) -> FloatArray:
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

    def variance(self, values: Any) -> FloatArray:
        """B² - x²: every report is ±B."""
        x = np.asarray(values, dtype=np.float64)
        return np.asarray(self.bound**2 - x * x)

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Mixes over the hidden corner v through the number of agreeing coordinates."""
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
    """Duchi's mechanism on one number: ±B."""

    epsilon: float

    @cached_property
    def _high(self) -> int:
        return odds(self.epsilon, denominator=_LOW)

    @property
    def bound(self) -> float:
        """B."""
        return (self._high + _LOW) / (self._high - _LOW)

    def draw(self, positions: IntArray, source: Source) -> FloatArray:
        """Reports for integer positions: a random corner, kept with odds e^ε."""
        corner = np.where(_up(positions, source), 1.0, -1.0)
        kept = below(self._high + _LOW, positions.size, source) < np.uint64(self._high)
        return self.bound * np.where(kept, corner, -corner)

    def variance(self, x: FloatArray) -> FloatArray:
        """B² - x²."""
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
    """P(more than d/2 of independent coins show heads), one row of head probabilities a case."""
    n, d = agree.shape
    counts = np.zeros((n, d + 1))
    counts[:, 0] = 1.0
    for j in range(d):
        p = agree[:, j : j + 1]
        counts[:, 1:] = counts[:, 1:] * (1 - p) + counts[:, :-1] * p
        counts[:, :1] *= 1 - p
    return np.asarray(counts[:, d // 2 + 1 :].sum(axis=1))
