"""Shrinking noisy coefficients whose noise is known: free, since it looks at releases only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import logsumexp

from dpfda._validate import FloatArray
from dpfda.noise.law import LEVEL_ODDS, LEVELS, mixed

_TINY = 1e-300
_CLEAR = 2.0  # deviations above what noise makes
_SCALES = 2.0 ** -np.arange(1, 15)  # of a bound: of the first wave of a mean curve
_DECAYS = np.array([0.3, 0.6, 1.0, 2.0])  # b: the scale of wave j falls like j^-b
_PARTS = np.array([0.1, 1.0, 4.0])  # some waves are much weaker or stronger than their scale
_PART_ODDS = np.array([0.3, 0.6, 0.1])


class Posterior(NamedTuple):
    """What is believed of coefficients after a noisy look at them."""

    mean: FloatArray
    variance: FloatArray

    @property
    def doubt(self) -> float:
        """Expected squared error of the mean, over that of 0, the public center."""
        error = float(self.variance.sum())
        return error / (error + float(self.mean @ self.mean))


def posterior(noisy: FloatArray, variance: FloatArray, reach: float) -> Posterior:
    """Mean and variance of coefficients of a mean curve, given noisy ones.

    One belief for all curves: the level is anywhere within the public bound; waves have a scale
    from half of the bound down to next to nothing, which falls along the coefficients, and single
    ones are stronger or weaker. Hypotheses are weighed by how probable they make the noisy numbers,
    so that where there is nothing but noise 0 is left.

    Args:
        noisy: coefficients about the public center, smooth ones first.
        variance: of their noise.
        reach: the public bound.

    Examples:
        >>> found = posterior(np.array([0.4, 0.01]), np.array([1e-4, 1e-4]), 1.0)
        >>> found.mean.round(2)
        array([0.4, 0. ])
    """
    level, odds = (reach * LEVELS) ** 2, np.log(LEVEL_ODDS)
    first, *_ = mixed(noisy[:1, None], variance[:1, None], level, odds)
    if noisy.size == 1:
        return Posterior(*first)
    waves = np.arange(1, noisy.size, dtype=np.float64)
    scales = reach * _SCALES[:, None, None] * waves ** -_DECAYS[:, None]
    prior = (scales.reshape(-1, waves.size, 1) * _PARTS) ** 2  # (hypotheses, waves, parts)
    (mean, spread), evidence = mixed(noisy[1:, None], variance[1:, None], prior, np.log(_PART_ODDS))
    total = evidence.sum(axis=1)
    weights = np.exp(total - logsumexp(total))
    found = weights @ mean
    spread = weights @ (spread + mean**2) - found**2
    return Posterior(np.append(first[0], found), np.append(first[1], spread))


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
