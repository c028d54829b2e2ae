"""Model reversal: a classifier that is wrong more often than right is turned round."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._validate import FloatArray


def directions(accuracy: Any) -> FloatArray:
    """-1 where r̃ < ½ (the candidate is reversed), +1 elsewhere: Eq. (9) of 001; ½ keeps it.

    Example:
        >>> directions([0.3, 0.5, 1.2]).tolist()
        [-1.0, 1.0, 1.0]
    """
    return np.where(np.asarray(accuracy) < 0.5, -1.0, 1.0)


def strengths(accuracy: Any) -> FloatArray:
    """r̃* = max(r̃, 1 - r̃), what averaging weighs by.

    It is biased upwards (a coin flip judged by 50 people at ε = 0.5 has mean 0.73), so it is a
    weight and never an accuracy: that comes from people who judged nothing before.

    Example:
        >>> strengths([0.3, 0.5, 1.2]).tolist()
        [0.7, 0.5, 1.2]
    """
    value = np.asarray(accuracy, dtype=np.float64)
    return np.maximum(value, 1 - value)
