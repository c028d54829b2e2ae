"""What a released mean leaves out: coefficients beyond those asked for, and what clipping took.

A row is the first coefficients of a curve, a few sums of further ones with random signs, and the
norm of all that remains. It is as long as the curve, so that nothing changes for privacy. The
sums say how much the *mean* has beyond; the norm says how much single curves have, at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.functions import FunctionBasis
from dpfda.curves.matrices import row_product

_SCALES = 2.0 ** (-np.arange(31) / 2)  # of a bound: norms that are thought of, all alike
_SURE = 0.95  # of the probability: what a band allows for
_EXCESS = 0.35  # of a radius: how far a clipped curve is beyond it
_ASKEW = 0.5  # of what is clipped: in one direction
_PEAKED = 1.25  # what is left out may be spikes, which are higher than their root mean square


class LeftOut(NamedTuple):
    """Norm of what is left out of a mean: at least, as likely above as below, at most."""

    least: float
    likely: float
    most: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """What is asked about a curve.

    Attributes:
        basis: all functions.
        size: how many of them have coefficients of their own.
        folds: sums of further coefficients.
        rest: whether the norm of all others is asked for.
    """

    basis: FunctionBasis
    size: int
    folds: int = 0
    rest: bool = True

    @property
    def beyond(self) -> int:
        """Coefficients that are left out."""
        return self.basis.size - self.size

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return self.size + (self._folded + self.rest if self.beyond else 0)

    def axes(self, tilt: float) -> FloatArray:
        """a_j = j^-tilt; half of the tilt for what is left out, which may be all of a curve."""
        index = np.arange(1, self.width + 1, dtype=np.float64)
        return np.where(index > self.size, (self.size + 1) ** (-tilt / 2), index**-tilt)

    @property
    def _folded(self) -> int:
        return min(self.folds, self.beyond)

    @cached_property
    def _sums(self) -> FloatArray:
        """Orthonormal combinations of the further functions, (folds, beyond): each is in one."""
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=self.beyond)  # public and fixed
        table = np.zeros((self._folded, self.beyond))
        place = np.arange(self.beyond) % max(1, self._folded)
        table[place, np.arange(self.beyond)] = signs
        return np.asarray(table / np.sqrt((table**2).sum(axis=1, keepdims=True)))

    def rows(self, curves: FloatArray) -> FloatArray:
        """Curves on the grid as rows of this layout."""
        coefficients = self.basis.project(curves)
        if not self.beyond:
            return coefficients
        own, further = np.split(coefficients, [self.size], axis=1)
        if not self.rest:
            return own
        rest = (further**2).sum(axis=1, keepdims=True)
        if self._folded:
            sums = row_product(np.ascontiguousarray(further), self._sums.T)
            own = np.hstack([own, sums])
            rest = np.maximum(rest - (sums**2).sum(axis=1, keepdims=True), 0.0)
        return np.hstack([own, np.sqrt(rest)])

    def left_out(self, noisy: FloatArray, variance: FloatArray, reach: float) -> LeftOut:
        """How much of the mean lies beyond, from what a noisy row says.

        Args:
            noisy: the mean row.
            variance: of its noise.
            reach: the public bound.
        """
        own, folds = slice(self.size, None), self._folded
        further = Further(noisy[own], variance[own], folds=folds, beyond=self.beyond)
        return further.left_out(reach)


class Further(NamedTuple):
    """What a noisy row says about coefficients beyond those asked for.

    Attributes:
        noisy: sums of them and, if it was asked for, the norm of all others.
        variance: of the noise.
        folds: how many sums there are.
        beyond: coefficients that are left out.
    """

    noisy: FloatArray
    variance: FloatArray
    folds: int
    beyond: int

    def left_out(self, reach: float) -> LeftOut:
        """How much of the mean lies beyond, within a public bound."""
        if not self.beyond:
            return LeftOut(0.0, 0.0, 0.0)
        scales = reach * _SCALES[:, None]
        logs = np.zeros(len(_SCALES))
        sums, variance = self.noisy[: self.folds], self.variance[: self.folds]
        if self.folds:
            spread = scales**2 / self.beyond + variance
            logs -= 0.5 * (np.log(spread) + sums**2 / spread).sum(axis=1)
        if self.noisy.size > self.folds:
            above = self.noisy[-1] - scales[:, 0]
            if self.folds:  # single curves have as much on average, or more
                above = np.minimum(above, 0.0)
            logs -= 0.5 * above**2 / self.variance[-1]
        weights = np.exp(logs - logs.max())
        total = np.cumsum((weights / weights.sum())[::-1])  # from the smallest
        places = np.searchsorted(total, [1 - _SURE, 0.5, _SURE])
        least, likely, most = scales[::-1, 0][np.minimum(places, len(total) - 1)].tolist()
        return LeftOut(least, likely, _PEAKED * most)


def clipped_away(radius: float, outside: float, n: int) -> float:
    """Norm of what clipping takes off a mean: of skewed curves, and by chance of all others.

    Args:
        radius: that was looked for.
        outside: share of the curves that it leaves outside.
        n: curves.
    """
    return float(radius * _EXCESS * np.hypot(_ASKEW * outside, np.sqrt(outside / n)))
