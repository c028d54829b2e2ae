"""The one formula by which a public linear rule scores encoded curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray

NUMBERS = ("intercept", "coefficients", "centers", "scales")
"""What a linear rule is made of."""


def linear_scores(
    features: Any, *, intercept: Any, coefficients: Any, centers: Any, scales: Any, clipped: bool
) -> FloatArray:
    """intercept + coefficients · squash((z* - centers)/scales), shape (n, m).

    `squash` clips to ±1 if `clipped`. Numbers of shape (m, d) are everybody's; those of shape
    (n, m, d) are each person's own.

    Example:
        >>> linear_scores(np.array([[0.5, 3.0]]), intercept=[1.0], coefficients=[[2.0, 1.0]],
        ...               centers=[[0.0, 0.0]], scales=[[1.0, 1.0]], clipped=True)
        array([[3.]])
    """
    slopes = np.asarray(coefficients)
    scaled = (np.asarray(features)[:, None, : slopes.shape[-1]] - centers) / scales
    if clipped:
        scaled = np.clip(scaled, -1, 1)
    return np.asarray(intercept + np.einsum("...d,...d->...", slopes, scaled))


def decided(scores: FloatArray) -> IntArray:
    """Label numbers (...) behind scores (..., m): the sign of one (0 counts as +), or the largest.

    Example:
        >>> decided(np.array([[0.0], [-1.0]])), decided(np.array([[0.1, 0.3, 0.2]]))
        (array([1, 0]), array([1]))
    """
    if scores.shape[-1] == 1:
        return (scores[..., 0] >= 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=-1), dtype=np.int64)
