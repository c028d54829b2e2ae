"""Post-processing of noisy coefficients: shrinkage, and the size of what is left out.

A row is the first coefficients of a curve, a few sums of further ones with random signs, and the
norm of all that remains. It is as long as the curve, so that nothing changes for privacy. The
sums say how much the *mean* has beyond; the norm says how much single curves have, at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import logsumexp

from dpfda._validate import FloatArray
from dpfda.central.functions import FunctionBasis
from dpfda.curves.matrices import Triangle, row_product
from dpfda.noise.law import LEVEL_ODDS, LEVELS, mixed

_TINY = 1e-300
_CLEAR = 2.0  # deviations above what noise makes
_SCALES = 2.0 ** -np.arange(1, 15)  # of a bound: of the first wave of a mean curve
_DECAYS = np.array([0.3, 0.6, 1.0, 2.0])  # b: the scale of wave j falls like j^-b
_PARTS = np.array([0.1, 1.0, 4.0])  # some waves are much weaker or stronger than their scale
_PART_ODDS = np.array([0.3, 0.6, 0.1])


class Posterior(NamedTuple):
    """Posterior of coefficients, given a noisy query."""

    mean: FloatArray
    variance: FloatArray

    @property
    def doubt(self) -> float:
        """Expected squared error of the mean, over that of 0, the public center."""
        error = float(self.variance.sum())
        return error / (error + float(self.mean @ self.mean))


def posterior(
    noisy: FloatArray, variance: FloatArray, reach: float, *, level_odds: FloatArray = LEVEL_ODDS
) -> Posterior:
    """Mean and variance of coefficients of a mean curve, given noisy ones.

    One belief for all curves: the level is anywhere within the public bound; waves have a scale
    from half of the bound down to next to nothing, which falls along the coefficients, and single
    ones are stronger or weaker. Hypotheses are weighed by how probable they make the noisy numbers,
    so that where there is nothing but noise 0 is left.

    Args:
        noisy: coefficients about the public center, smooth ones first.
        variance: of their noise.
        reach: the public bound.
        level_odds: prior probabilities of the deviations `LEVELS` of the first coefficient.

    Examples:
        >>> found = posterior(np.array([0.4, 0.01]), np.array([1e-4, 1e-4]), 1.0)
        >>> found.mean.round(2)
        array([0.4, 0. ])
    """
    level, odds = (reach * LEVELS) ** 2, np.log(level_odds)
    first, *_ = mixed(noisy[:1, None], variance[:1, None], level, odds)
    if noisy.size == 1:
        return Posterior(*first)
    waves = np.arange(1, noisy.size, dtype=np.float64)
    scales = reach * _SCALES[:, None, None] * waves ** -_DECAYS[:, None]
    prior = (scales.reshape(-1, waves.size, 1) * _PARTS) ** 2  # (hypotheses, waves, parts)
    (mean, spread), evidence = mixed(noisy[1:, None], variance[1:, None], prior, np.log(_PART_ODDS))
    found = _averaged(mean, spread, evidence.sum(axis=1))
    return Posterior(np.append(first[0], found.mean), np.append(first[1], found.variance))


def _averaged(mean: FloatArray, spread: FloatArray, evidence: FloatArray) -> Posterior:
    """Over hypotheses (first axis), each as likely as its evidence, a logarithm, says."""
    weights = np.exp(evidence - logsumexp(evidence))
    found = weights @ mean
    return Posterior(found, weights @ (spread + mean**2) - found**2)


_ALIGNED = np.array([0.05, 0.5, 1.0])
"""Products of two coefficients, over those of their deviations: coefficients of most curves vary by
themselves, those of curves that all have one shape together."""
_ALIGNED_ODDS = np.full(3, 1 / 3)


def surface_posterior(
    noisy: FloatArray,
    variance: FloatArray,
    reach: float,
    *,
    triangle: Triangle,
    offsets: FloatArray,
) -> Posterior:
    """Mean and variance of a covariance, given noisy mean products of residuals.

    As for means (`posterior`): curves deviate by anything from half of a public bound down to next
    to nothing, and the deviations of their coefficients fall like a power. An entry is normal, with
    a part of the product of two deviations. The residuals are about a center that is not their
    mean, and the square of how far it is off is in the products; how far is known up to noise.
    Hypotheses about both are weighed by how probable they make the noisy numbers, so that where
    there is nothing but noise 0 is left, however large the noise.

    Args:
        noisy: mean products, as a vector.
        variance: of their noise.
        reach: public bound on deviations.
        triangle: the order of the vector.
        offsets: draws of how far the mean may be from the center, (draws, coefficients).

    Examples:
        >>> one = Triangle(np.ones(1))
        >>> products, noise = np.array([0.25]), np.array([1e-4])
        >>> centered, off = np.zeros((1, 1)), np.full((1, 1), 0.4)
        >>> surface_posterior(products, noise, 1.0, triangle=one, offsets=centered).mean.round(2)
        array([0.25])
        >>> surface_posterior(products, noise, 1.0, triangle=one, offsets=off).mean.round(2)
        array([0.09])
    """
    index = (triangle.rows + 1.0) * (triangle.columns + 1.0)
    diagonal = (triangle.rows == triangle.columns)[:, None]
    scales = (reach * _SCALES[:, None, None]) ** 2 * index ** -_DECAYS[:, None]
    parts = np.where(diagonal, _PARTS, math.sqrt(2) * _ALIGNED)  # of a vector whose norm is ‖·‖_F
    prior = (scales.reshape(-1, index.size, 1) * parts) ** 2
    odds = np.log(np.where(diagonal, _PART_ODDS, _ALIGNED_ODDS))
    found, evidence = [], []
    for offset in offsets:  # one by one: all together may need gigabytes
        centered = noisy - triangle.vector(np.outer(offset, offset))
        given, logs = mixed(centered[:, None], variance[:, None], prior, odds)
        found.append(_averaged(*given, logs.sum(axis=1)))
        evidence.append(logsumexp(logs.sum(axis=1)))
    mean, spread = (np.array(part) for part in zip(*found, strict=True))
    return _averaged(mean, spread, np.array(evidence))


def monotone_shrinkage(noisy: FloatArray, variance: FloatArray) -> FloatArray:
    """Factors in [0, 1], not increasing along the coefficients, of least estimated risk.

    For factors s the unbiased estimate of risk is Σ y²(s - (1 - v/y²))² + const: a weighted
    isotonic regression of 1 - v/y². Smooth-first bases make "not
    increasing" right.

    Examples:
        >>> monotone_shrinkage(np.array([9.0, 0.1]), np.array([1.0, 1.0])).round(2)
        array([0.99, 0.  ])
    """
    energy = noisy**2 + _TINY
    fitted = isotonic_regression(1 - variance / energy, weights=energy, increasing=False).x
    return np.asarray(np.clip(fitted, 0.0, 1.0))


def stands_out(noisy: FloatArray, variance: FloatArray) -> bool:
    """Whether the first so many coefficients together are larger than noise makes them.

    Where they are not, 0 is on average nearer to the truth than what is left of them.

    Examples:
        >>> stands_out(np.array([9.0, 0.1]), np.ones(2)), stands_out(np.ones(2), np.ones(2))
        (True, False)
    """
    excess, doubt = np.cumsum(noisy**2 - variance), np.sqrt(np.cumsum(2 * variance**2))
    return bool(np.max(excess / np.maximum(doubt, _TINY)) > _CLEAR)


_NORMS = 2.0 ** (-np.arange(31) / 2)  # of a bound: norms that are thought of, all alike
_QUANTILES = (np.arange(20) + 0.5) / 20  # of what is left out, for bands
_EXCESS = 0.35  # of a radius: how far a clipped curve is beyond it
_ASKEW = 0.5  # of what is clipped: in one direction
_PEAKED = 1.6  # what is left out may be spikes, which are higher than their root mean square


class LeftOut(NamedTuple):
    """Norm of what is left out of a mean: equally likely values, increasing."""

    values: FloatArray

    @property
    def least(self) -> float:
        """It is probably larger."""
        return float(self.values[0])

    @property
    def likely(self) -> float:
        """As likely too large as too small."""
        return float(np.median(self.values))

    @property
    def most(self) -> float:
        """It is probably smaller, even if what is left out is spikes."""
        return float(self.peaks[-2])

    @property
    def peaks(self) -> FloatArray:
        """The same if what is left out is spikes."""
        return _PEAKED * self.values


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The coefficients of a curve that a query uses.

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
        """The part of the mean beyond the queried coefficients, estimated from a noisy row.

        Args:
            noisy: the mean row.
            variance: of its noise.
            reach: the public bound.
        """
        own, folds = slice(self.size, None), self._folded
        further = FurtherCoefficients(noisy[own], variance[own], folds=folds, beyond=self.beyond)
        return further.left_out(reach)


class FurtherCoefficients(NamedTuple):
    """Estimate of coefficients beyond those in the query, from a noisy row.

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
        """The part of the mean beyond the queried coefficients, within a public bound."""
        if not self.beyond:
            return LeftOut(np.zeros(1))
        scales = reach * _NORMS[:, None]
        logs = np.zeros(len(_NORMS))
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
        places = np.searchsorted(total, _QUANTILES)
        return LeftOut(scales[::-1, 0][np.minimum(places, len(total) - 1)])


def clipped_away(radius: float, outside: float, n: int) -> float:
    """Norm of what clipping takes off a mean: of skewed curves, and by chance of all others.

    Args:
        radius: that was looked for.
        outside: share of the curves that it leaves outside.
        n: curves.
    """
    return float(radius * _EXCESS * np.hypot(_ASKEW * outside, np.sqrt(outside / n)))
