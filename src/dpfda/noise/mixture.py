"""Posterior of noisy numbers under a mixture of normal beliefs; where the level of data may lie."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from dpfda._validate import FloatArray

LEVELS = np.array([0.02, 0.1, 0.45])
"""Of a public bound: how far the level of curves or targets is from the public center."""
LEVEL_ODDS = np.array([0.1, 0.2, 0.7])
"""Of curves."""
_TARGET_ODDS = np.full(3, 1 / 3)
"""Of targets, whose range fits more often, so that their mean is near the middle."""


def mixed(
    noisy: FloatArray, variance: FloatArray, prior: FloatArray, odds: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    """Posterior mean and variance under a mixture of normals (last axis); log evidence.

    Args:
        noisy: numbers; their last axis has length 1.
        variance: of their noise, likewise.
        prior: variances of the beliefs.
        odds: logarithms of the beliefs' probabilities.
    """
    both = prior + variance
    logs = odds - 0.5 * (np.log(both) + noisy**2 / both)
    evidence = logsumexp(logs, axis=-1)
    weights = np.exp(logs - evidence[..., None])
    kept = prior / both
    mean = (weights * kept).sum(-1) * noisy[..., 0]
    second = (weights * (kept * variance + (kept * noisy) ** 2)).sum(-1)
    return (mean, np.maximum(second - mean**2, 0.0)), evidence


def level(noisy: float, variance: float) -> tuple[float, float]:
    """Mean and variance of the level of targets, in units of their bound, given a noisy one.

    Examples:
        >>> mean, variance = level(0.5, 1e-4)
        >>> round(mean, 2), variance < 1e-4
        (0.5, True)
        >>> abs(level(0.5, 100.0)[0]) < 0.01
        True
    """
    numbers = np.array([[noisy]]), np.array([[variance]])
    (mean, left), _ = mixed(*numbers, LEVELS**2, np.log(_TARGET_ODDS))
    return float(mean[0]), float(left[0])
