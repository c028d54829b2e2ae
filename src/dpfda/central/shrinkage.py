"""Shrinking noisy coefficients whose noise is known: free, since it looks at releases only."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from dpfda._validate import FloatArray

_TINY = 1e-300


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
