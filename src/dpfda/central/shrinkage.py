"""Post-processing of noisy coefficients: shrinkage, and the size of the omitted part.

A row has the first coefficients of a curve, a few sums of further coefficients with random signs,
and the norm of the remainder. A row has the same norm as the curve, so the sensitivity does not
change. The sums estimate the omitted part of the *mean*; the norm gives an upper bound from the
omitted parts of single curves.
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
_CLEAR = 2.0  # noise deviations beyond which a sum of squares counts as signal
_SCALES = 2.0 ** -np.arange(1, 15)  # prior scales of a mean curve's first wave, over the bound
_DECAYS = np.array([0.3, 0.6, 1.0, 2.0])  # b: the prior scale of wave j is proportional to j^-b
_PARTS = np.array([0.1, 1.0, 4.0])  # scale factors of single waves, which may be weak or strong
_PART_ODDS = np.array([0.3, 0.6, 0.1])


class Posterior(NamedTuple):
    """Posterior of coefficients, given a noisy query."""

    mean: FloatArray
    variance: FloatArray

    @property
    def doubt(self) -> float:
        """Expected squared error of the mean, divided by that of 0, the public center."""
        error = float(self.variance.sum())
        return error / (error + float(self.mean @ self.mean))


def posterior(
    noisy: FloatArray, variance: FloatArray, reach: float, *, level_odds: FloatArray = LEVEL_ODDS
) -> Posterior:
    """Posterior mean and variance of the coefficients of a mean curve, given noisy ones.

    All curves have the same prior. The level is anywhere within the public bound. The scale of the
    waves is between half of the bound and nearly 0, and decreases along the coefficients; single
    waves are stronger or weaker. Hypotheses are weighted by the likelihood of the noisy numbers, so
    that the posterior mean is close to 0 if there is only noise.

    Args:
        noisy: coefficients about the public center, in order of decreasing smoothness.
        variance: variances of their noise.
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
    """The average over hypotheses (first axis), weighted by their log-likelihoods `evidence`."""
    weights = np.exp(evidence - logsumexp(evidence))
    found = weights @ mean
    return Posterior(found, weights @ (spread + mean**2) - found**2)


_ALIGNED = np.array([0.05, 0.5, 1.0])
"""Prior correlations of two coefficients: coefficients of most curves vary almost independently,
and those of curves that differ only by a factor vary together."""
_ALIGNED_ODDS = np.full(3, 1 / 3)


def surface_posterior(
    noisy: FloatArray,
    variance: FloatArray,
    reach: float,
    *,
    triangle: Triangle,
    offsets: FloatArray,
) -> Posterior:
    """Posterior mean and variance of a covariance, given noisy mean products of residuals.

    The prior is similar to that of means (`posterior`). The standard deviation of the curves is
    between half of the public bound and nearly 0, and the deviations of the coefficients decrease
    like a power. An entry of the covariance is normal, with a scale that is a fraction of the
    product of two deviations. The center of the residuals is not their mean; the products contain
    the square of this offset, which is known up to noise. Hypotheses about the scales and the
    offset are weighted by the likelihood of the noisy numbers, so that the posterior mean is close
    to 0 if there is only noise.

    Args:
        noisy: mean products, as a vector.
        variance: variances of their noise.
        reach: public bound on deviations.
        triangle: the order of the vector.
        offsets: draws of the difference between the mean and the center, (draws, coefficients).

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
    parts = np.where(
        diagonal, _PARTS, math.sqrt(2) * _ALIGNED
    )  # √2: off-diagonal entries count twice in ‖·‖_F
    prior = (scales.reshape(-1, index.size, 1) * parts) ** 2
    odds = np.log(np.where(diagonal, _PART_ODDS, _ALIGNED_ODDS))
    found, evidence = [], []
    for offset in offsets:  # a loop, because all draws at once may need gigabytes
        centered = noisy - triangle.vector(np.outer(offset, offset))
        given, logs = mixed(centered[:, None], variance[:, None], prior, odds)
        found.append(_averaged(*given, logs.sum(axis=1)))
        evidence.append(logsumexp(logs.sum(axis=1)))
    mean, spread = (np.array(part) for part in zip(*found, strict=True))
    return _averaged(mean, spread, np.array(evidence))


def monotone_shrinkage(noisy: FloatArray, variance: FloatArray) -> FloatArray:
    """Shrinkage factors in [0, 1] of least estimated risk that decrease along the coefficients.

    For factors s, the unbiased estimate of the risk is Σ y²(s - (1 - v/y²))² + const. Its minimizer
    is a weighted isotonic regression of 1 - v/y². Decreasing factors are reasonable, because the
    basis starts with its smoothest functions.

    Examples:
        >>> monotone_shrinkage(np.array([9.0, 0.1]), np.array([1.0, 1.0])).round(2)
        array([0.99, 0.  ])
    """
    energy = noisy**2 + _TINY
    fitted = isotonic_regression(1 - variance / energy, weights=energy, increasing=False).x
    return np.asarray(np.clip(fitted, 0.0, 1.0))


def stands_out(noisy: FloatArray, variance: FloatArray) -> bool:
    """Whether, for some k, the first k coefficients together are clearly larger than their noise.

    If they are not, 0 is on average closer to the truth than the shrunk coefficients.

    Examples:
        >>> stands_out(np.array([9.0, 0.1]), np.ones(2)), stands_out(np.ones(2), np.ones(2))
        (True, False)
    """
    excess, doubt = np.cumsum(noisy**2 - variance), np.sqrt(np.cumsum(2 * variance**2))
    return bool(np.max(excess / np.maximum(doubt, _TINY)) > _CLEAR)


_NORMS = 2.0 ** (-np.arange(31) / 2)  # norms with equal prior probability, as shares of the bound
_QUANTILES = (np.arange(20) + 0.5) / 20  # quantile levels of the omitted norm, for bands
_EXCESS = 0.35  # typical distance of a clipped curve beyond the radius, as a share of it
_ASKEW = 0.5  # share of the clipped part that is assumed to have the same direction
_PEAKED = 1.6  # allowance for peaks of the omitted part, which exceed its root mean square


class LeftOut(NamedTuple):
    """Norm of the omitted part of a mean, as equally likely values in increasing order."""

    values: FloatArray

    @property
    def least(self) -> float:
        """A value that the norm probably exceeds."""
        return float(self.values[0])

    @property
    def likely(self) -> float:
        """The median."""
        return float(np.median(self.values))

    @property
    def most(self) -> float:
        """An upper limit that the norm probably does not exceed, even with peaks."""
        return float(self.peaks[-2])

    @property
    def peaks(self) -> FloatArray:
        """The values, increased for an omitted part with peaks."""
        return _PEAKED * self.values


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The numbers of a curve that a query uses: coefficients, sums and a norm.

    Attributes:
        basis: all functions.
        size: number of single coefficients.
        folds: number of sums of further coefficients.
        rest: whether the norm of the remainder is queried.
    """

    basis: FunctionBasis
    size: int
    folds: int = 0
    rest: bool = True

    @property
    def beyond(self) -> int:
        """Number of omitted coefficients."""
        return self.basis.size - self.size

    @property
    def width(self) -> int:
        """Length of a row."""
        return self.size + (self._folded + self.rest if self.beyond else 0)

    def axes(self, tilt: float) -> FloatArray:
        """a_j = j^-tilt; for the omitted part, which may be a whole curve, half of the tilt."""
        index = np.arange(1, self.width + 1, dtype=np.float64)
        return np.where(index > self.size, (self.size + 1) ** (-tilt / 2), index**-tilt)

    @property
    def _folded(self) -> int:
        return min(self.folds, self.beyond)

    @cached_property
    def _sums(self) -> FloatArray:
        """Orthonormal sums of the further functions, (folds, beyond), each function in one sum."""
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
        """Estimate the norm of the omitted part of the mean from a noisy row.

        Args:
            noisy: the noisy mean of the rows.
            variance: variances of its noise.
            reach: the public bound.
        """
        own, folds = slice(self.size, None), self._folded
        further = FurtherCoefficients(noisy[own], variance[own], folds=folds, beyond=self.beyond)
        return further.left_out(reach)


class FurtherCoefficients(NamedTuple):
    """The noisy numbers that measure the omitted coefficients.

    Attributes:
        noisy: sums of them and, if it was queried, the norm of the remainder.
        variance: variances of the noise.
        folds: number of sums.
        beyond: number of omitted coefficients.
    """

    noisy: FloatArray
    variance: FloatArray
    folds: int
    beyond: int

    def left_out(self, reach: float) -> LeftOut:
        """Estimate the norm of the omitted part of the mean, within a public bound."""
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
            if self.folds:  # the mean norm of single curves is only an upper bound
                above = np.minimum(above, 0.0)
            logs -= 0.5 * above**2 / self.variance[-1]
        weights = np.exp(logs - logs.max())
        total = np.cumsum((weights / weights.sum())[::-1])  # from the smallest
        places = np.searchsorted(total, _QUANTILES)
        return LeftOut(scales[::-1, 0][np.minimum(places, len(total) - 1)])


def clipped_away(radius: float, outside: float, n: int) -> float:
    """Norm of the bias that clipping causes in a mean, from skewed curves and from chance.

    Args:
        radius: the clipping radius.
        outside: share of the curves outside the radius.
        n: number of curves.
    """
    return float(radius * _EXCESS * np.hypot(_ASKEW * outside, np.sqrt(outside / n)))
