"""The logistic model of K classes: probabilities, information, and a fit to the user's labels."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray, IntArray

_STEPS, _LONGEST_STEP, _TOLERANCE = 50, 3.0, 1e-6


def probabilities(features: FloatArray, coefficients: FloatArray) -> FloatArray:
    """P(y = 1), ..., P(y = K - 1) for features (..., D) and θ (K - 1, D); class 0 has the rest."""
    scores = features @ coefficients.T
    top = np.maximum(scores.max(axis=-1, keepdims=True), 0.0)
    powers = np.exp(scores - top)
    return np.asarray(powers / (np.exp(-top) + powers.sum(axis=-1, keepdims=True)))


def prior_precision(variances: FloatArray, *, classes: int) -> FloatArray:
    """Inverse prior covariance of θ: the K classes are alike, θ_k is class k against class 0."""
    contrasts = 0.5 * (np.eye(classes - 1) + 1)
    return np.kron(np.linalg.inv(contrasts), np.diag(1 / variances))


def information(features: FloatArray, chances: FloatArray) -> FloatArray:
    """Mean over rows of (diag p - p pᵀ) ⊗ φ φᵀ: the Fisher information of one row."""
    scores, size = chances.shape[1], features.shape[1]
    blocks = np.empty((scores, size, scores, size))
    for one in range(scores):
        for other in range(one + 1):
            weight = chances[:, one] * ((one == other) - chances[:, other])
            block = (features * weight[:, None]).T @ features / len(features)
            blocks[one, :, other, :] = block
            blocks[other, :, one, :] = block
    return blocks.reshape(scores * size, scores * size)


def most_likely(
    features: FloatArray, labels: IntArray, *, precision: FloatArray, classes: int
) -> tuple[FloatArray, FloatArray]:
    """Posterior mode θ (K - 1, D) and posterior precision from clean labels (the data user's).

    Examples:
        >>> theta, _ = most_likely(np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([0, 1]),
        ...                        precision=np.eye(2), classes=2)
        >>> theta.round(2)
        array([[0.  , 0.67]])
    """
    n, size = features.shape
    theta = np.zeros((classes - 1, size))
    hit = labels[:, None] == np.arange(1, classes)
    hessian = precision
    for _ in range(_STEPS):
        chances = probabilities(features, theta)
        hessian = n * information(features, chances) + precision
        uphill = ((hit - chances).T @ features).ravel() - precision @ theta.ravel()
        step = np.linalg.solve(hessian, uphill)
        length = float(np.abs(step).max())
        theta += (step * min(1.0, _LONGEST_STEP / max(length, 1e-12))).reshape(theta.shape)
        if length < _TOLERANCE:
            break
    return theta, hessian
