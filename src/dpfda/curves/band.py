"""Bands about curves, from simulated errors."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray

PATHS = 2000  # simulated errors for a band; their seed is public and fixed
# for a normal distribution: the mean, and one standard deviation below and above
_SIDES = (0.159, 0.5, 0.841)

Of = Literal["population", "sample"]
"""The target of a band: the mean of the population, or of the people in the sample."""


class Band(NamedTuple):
    """A curve with its lower and upper band, on the grid."""

    middle: FloatArray
    low: FloatArray
    high: FloatArray

    def about(self, center: FloatArray) -> Band:
        """The same band with a public function added."""
        return Band(*(curve + center for curve in self))

    def holding(self, curve: FloatArray) -> Band:
        """The same band for another curve, widened where that curve would lie outside."""
        return Band(curve, np.minimum(self.low, curve), np.maximum(self.high, curve))


def whose(of: Of) -> Of:
    """Check the target of a band."""
    _validate.one_of("of", of, ("population", "sample"))
    return of


def around(middle: FloatArray, paths: FloatArray, *, level: float, simultaneous: bool) -> Band:
    """A band about a curve that contains simulated errors (draws, ...) with probability `level`."""
    spread = np.sqrt((paths**2).mean(axis=0))
    ratio = np.abs(paths) / np.maximum(spread, 1e-300)
    if simultaneous:
        factor = np.quantile(ratio.reshape(len(ratio), -1).max(axis=1), level)
    else:
        factor = np.quantile(ratio, level, axis=0)
    return Band(middle, middle - factor * spread, middle + factor * spread)


def between(paths: FloatArray, *, level: float, simultaneous: bool) -> Band:
    """A band that contains a share `level` of plausible curves (draws, ...), about their median.

    The widths of the two sides follow the spread above and below the median. So a long tail or
    outliers on one side do not affect the other side.
    """
    low, middle, high = np.quantile(paths, _SIDES, axis=0)
    below, above = np.maximum(middle - low, 1e-300), np.maximum(high - middle, 1e-300)
    away = paths - middle
    ratio = np.where(away > 0, away / above, -away / below)
    if simultaneous:
        factor = np.quantile(ratio.reshape(len(ratio), -1).max(axis=1), level)
    else:
        factor = np.quantile(ratio, level, axis=0)
    return Band(middle, middle - factor * below, middle + factor * above)
