"""Regularised minimisers on private rows, for methods that perturb them or their objective."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.errors import DpfdaError
from dpfda.regression.problem import Task

LIPSCHITZ = 1.0
"""Length of one person's gradient, for rows in the unit ball, at most: both losses."""

CURVATURE = {"linear": 1.0, "logistic": 0.25}
"""Largest second derivative of the losses."""

TOLERANCE = 1e-6
"""Length of the gradient of the *sum* at the returned point, at most."""

_MOST_STEPS = 200


def minimise_risk(
    x: FloatArray, v: FloatArray, *, task: Task, ridge: float, tilt: FloatArray | None = None
) -> FloatArray:
    """argmin Σ loss(xᵀθ, v) + ridge/2 |θ|² + tiltᵀθ, to a gradient of length `TOLERANCE`.

    The losses are log(1 + e^{-v xᵀθ}) for labels ±1 and log cosh(xᵀθ - v) for a target in [-1, 1]:
    nearly squares for small residuals, but Lipschitz and smooth.
    """
    theta = np.zeros(x.shape[1])
    tilt = np.zeros_like(theta) if tilt is None else tilt
    value, gradient, hessian = _objective(theta, x, v, task=task, ridge=ridge, tilt=tilt)
    for _ in range(_MOST_STEPS):
        if np.linalg.norm(gradient) <= TOLERANCE:
            return theta
        direction = np.linalg.solve(hessian, gradient)
        size = 1.0
        decrement = float(gradient @ direction)
        while True:  # backtracking: strong convexity makes a small step descend
            trial = theta - size * direction
            found = _objective(trial, x, v, task=task, ridge=ridge, tilt=tilt)
            # Close to the end the gain is below the rounding of the value: a full step is right.
            close = decrement < 1e-7 * (1 + abs(value))
            if close or found[0] <= value - 0.25 * size * decrement or size < 1e-8:
                break
            size /= 2
        theta, (value, gradient, hessian) = trial, found
    raise DpfdaError("the private objective was not minimised to the tolerance the proof needs")


def _objective(
    theta: FloatArray, x: FloatArray, v: FloatArray, *, task: Task, ridge: float, tilt: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    line = x @ theta
    if task == "logistic":
        loss = np.logaddexp(0.0, -v * line)
        likely = expit(line)
        slope, bend = likely - (v > 0), likely * (1 - likely)
    else:
        residual = line - v
        loss = np.logaddexp(residual, -residual) - np.log(2)
        slope = np.tanh(residual)
        bend = 1 - slope**2
    value = float(loss.sum() + ridge / 2 * (theta @ theta) + tilt @ theta)
    gradient = slope @ x + ridge * theta + tilt
    hessian = (x * bend[:, None]).T @ x + ridge * np.eye(len(theta))
    return value, gradient, hessian
