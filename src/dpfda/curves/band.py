"""Bands about curves, from simulated errors."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray

PATHS = 2000  # simulated errors behind a band; their seed is public and fixed
_SIDES = (0.159, 0.5, 0.841)  # one standard deviation below, the median, one above, if normal

Of = Literal["population", "sample"]
"""Whose curve a band holds: of everybody who might have been asked, or of those who were."""


class Band(NamedTuple):
    """A curve between two others, on the grid."""

    middle: FloatArray
    low: FloatArray
    high: FloatArray

    def about(self, center: FloatArray) -> Band:
        """The same band with a public function added."""
        return Band(*(curve + center for curve in self))

    def holding(self, curve: FloatArray) -> Band:
        """The same band about another curve, widened where that would leave it."""
        return Band(curve, np.minimum(self.low, curve), np.maximum(self.high, curve))


def whose(of: Of) -> Of:
    """Check whose curve a band is for."""
    _validate.one_of("of", of, ("population", "sample"))
    return of


def around(middle: FloatArray, paths: FloatArray, *, level: float, simultaneous: bool) -> Band:
    """A band about a curve that simulated errors (draws, ...) leave with probability 1 - level."""
    spread = np.sqrt((paths**2).mean(axis=0))
    ratio = np.abs(paths) / np.maximum(spread, 1e-300)
    if simultaneous:
        factor = np.quantile(ratio.reshape(len(ratio), -1).max(axis=1), level)
    else:
        factor = np.quantile(ratio, level, axis=0)
    return Band(middle, middle - factor * spread, middle + factor * spread)


def between(paths: FloatArray, *, level: float, simultaneous: bool) -> Band:
    """A band that holds a share `level` of plausible curves (draws, ...), about their median.

    Its sides are as wide as the curves spread on either side, so that neither a long tail on one
    side nor a few far draws move the other.
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
