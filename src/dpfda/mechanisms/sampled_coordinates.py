"""From a mechanism of one number to one of a vector: report a few random coordinates.

Splitting ε over all d coordinates drowns each of them; telling k of them with ε/k each, scaled up
by d/k, is unbiased and better (Wang et al. 2019; 004, Algorithm 3).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.base import BoxMechanism
from dpfda.noise import Source
from dpfda.noise.uniform import subsets

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
    """Tell k random coordinates of d with ε/k each, the others as 0."""

    @abstractmethod
    def _scalar_randomizer(self, epsilon: float) -> ScalarRandomizer:
        """The mechanism of one coordinate."""

    @property
    def sampled(self) -> int:
        """k, how many coordinates a person tells."""
        return max(1, min(self.dimension, math.floor(self.epsilon / 2.5)))

    @cached_property
    def _scalar(self) -> ScalarRandomizer:
        return self._scalar_randomizer(self.epsilon / self.sampled)

    @property
    def _factor(self) -> float:
        return self.dimension / self.sampled

    def randomize(self, values: Any, source: Source, *, clip: bool = False) -> FloatArray:
        """Unbiased reports, shape (n, d), with k entries of each row other than 0."""
        rows = _validate.batch("values", values, columns=self.dimension, bound=1.0, clip=clip)
        positions = _round(rows)
        if self.sampled == self.dimension:
            return self._scalar.draw(positions.ravel(), source).reshape(rows.shape)
        chosen = subsets(len(rows), choose=self.sampled, among=self.dimension, source=source)
        told = self._scalar.draw(np.take_along_axis(positions, chosen, axis=1).ravel(), source)
        reports = np.zeros(rows.shape)
        np.put_along_axis(reports, chosen, self._factor * told.reshape(chosen.shape), axis=1)
        return reports

    def variance(self, values: Any) -> FloatArray:
        """(d/k)(Var(x) + x²) - x² with the scalar variance at ε/k."""
        x = np.asarray(values, dtype=np.float64)
        return self._factor * (self._scalar.variance(x) + x * x) - x * x

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Log-probability of each report; the choice of coordinates is seen in the zeros."""
        positions = np.broadcast_to(_round(np.asarray(values)), reports.shape)
        told = reports != 0
        each = np.zeros(reports.shape)
        each[told] = self._scalar.log_likelihood(reports[told] / self._factor, positions[told])
        return np.asarray(each.sum(axis=1) - math.log(math.comb(self.dimension, self.sampled)))


def _round(values: FloatArray) -> IntArray:
    return np.rint(values * HALF_WIDTH).astype(np.int64)
