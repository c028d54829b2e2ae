"""Scores of encoded curves under a public linear rule."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from dpfda._validate import ArrayLike, FloatArray, IntArray

NUMBERS = ("intercept", "coefficients", "centers", "scales")
"""The arrays that define a linear rule."""


def linear_scores(
    features: ArrayLike,
    *,
    intercept: ArrayLike,
    coefficients: ArrayLike,
    centers: ArrayLike,
    scales: ArrayLike,
    clipped: bool,
) -> FloatArray:
    """intercept + coefficients · squash((z* - centers)/scales), shape (n, m).

    `squash` clips to ±1 if `clipped`, and is the identity otherwise. Arrays of shape (m, d) are
    common to all people; arrays of shape (n, m, d) have one rule for each person.

    Examples:
        >>> linear_scores(np.array([[0.5, 3.0]]), intercept=[1.0], coefficients=[[2.0, 1.0]],
        ...               centers=[[0.0, 0.0]], scales=[[1.0, 1.0]], clipped=True)
        array([[3.]])
    """
    slopes = np.asarray(coefficients)
    scaled = squashed(features, centers=centers, scales=scales, clipped=clipped)
    return np.asarray(intercept + np.einsum("...d,...d->...", slopes, scaled))


def squashed(
    features: ArrayLike, *, centers: ArrayLike, scales: ArrayLike, clipped: bool
) -> FloatArray:
    """squash((z* - centers)/scales), shape (n, m, d)."""
    width = np.shape(centers)[-1]
    scaled = (np.asarray(features)[:, None, :width] - centers) / np.asarray(scales)
    return np.asarray(np.clip(scaled, -1, 1) if clipped else scaled)


def class_chances(
    features: ArrayLike,
    *,
    variances: FloatArray | None,
    damping: float,
    clipped: bool,
    **numbers: FloatArray,
) -> FloatArray:
    """Probabilities (n, K) of the classes by a linear rule, which consists of the arrays `NUMBERS`.

    Uncertain scores are shrunk towards 0 (docs/methods/probabilities.md).
    """
    scores = damping * linear_scores(features, clipped=clipped, **numbers)
    if variances is None:
        return chances(scores)
    centers, scales = numbers["centers"], numbers["scales"]
    scaled = squashed(features, centers=centers, scales=scales, clipped=clipped)
    spread = np.einsum("...d,...d->...", scaled**2, variances[..., 1:])
    return chances(moderated(scores, variances[..., 0] + spread))


def moderated(scores: FloatArray, variances: FloatArray) -> FloatArray:
    """Scores (n, m) shrunk towards 0 according to their variances (n, m): MacKay 1992, Eq. (10).

    All scores of a row have the same factor, so that decisions do not change.

    Examples:
        >>> moderated(np.array([[2.0]]), np.array([[8 / np.pi]])).round(3)
        array([[1.414]])
    """
    doubt = np.mean(variances, axis=1, keepdims=True)
    return np.asarray(scores / np.sqrt(1 + np.pi / 8 * doubt))


def chances(scores: FloatArray) -> FloatArray:
    """Probabilities from scores: logistic function of one score, softmax of several.

    Examples:
        >>> chances(np.array([[0.0], [2.0]])).round(2).tolist()
        [[0.5, 0.5], [0.12, 0.88]]
    """
    if scores.shape[1] == 1:
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
    return np.asarray(softmax(scores, axis=1))


def decided(scores: FloatArray) -> IntArray:
    """Label numbers (...) from scores (..., m): the sign of one score (0 is +), or the largest one.

    Examples:
        >>> decided(np.array([[0.0], [-1.0]])), decided(np.array([[0.1, 0.3, 0.2]]))
        (array([1, 0]), array([1]))
    """
    if scores.shape[-1] == 1:
        return (scores[..., 0] >= 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=-1), dtype=np.int64)
