"""Regularised minimizers on private rows, for methods that perturb them or their objective.

The losses are log(1 + e^{-v xᵀθ}) for labels ±1 and log cosh(xᵀθ - v) for a target in [-1, 1]:
nearly squares for small residuals, but Lipschitz and smooth.

Why the tolerance is always met, whatever the rows. Both losses have |f‴| ≤ c f″ (c = 1, 2), so with
a ridge Λ and |x| ≤ 1 the objective F has |F‴[u,u,u]| ≤ c|u| F″[u,u] ≤ (c/√Λ) F″[u,u]^{3/2}: the
function s F, s = c²/4Λ, is self-concordant. Let κ = √(s gᵀH⁻¹g), its Newton decrement.

* κ > ¼: the step 1/(1 + κ) takes κ - log(1 + κ) ≥ 0.026 off s F (Nesterov 2004, 4.1.5). A longer
  step is taken only where it is seen to gain ¼ of what its slope says, κ²/4(1 + κ) ≥ 0.0125.
* κ ≤ ¼: a whole step gives (κ/(1 - κ))² ≤ 16κ²/9. Nine such steps bring κ below (4/9)^{2^9}, where
  |g| ≤ √(|H|/s) κ is below any tolerance.

F starts at n log 2 or less and is at least -|tilt|²/2Λ: no more than
80 s (n log 2 + |tilt|²/2Λ) + 9 steps are ever made. They take about ten.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.central.regression.problem import Link

LIPSCHITZ = 1.0
"""Length of one person's gradient, for rows in the unit ball, at most: both losses."""

CURVATURE = {"linear": 1.0, "logistic": 0.25}
"""Largest second derivative of the losses."""

TOLERANCE = 1e-6
"""Length of the gradient of the *sum* at the returned point, at most."""

_THIRD = {"linear": 2.0, "logistic": 1.0}  # c of |f‴| ≤ c f″


@dataclass(frozen=True, kw_only=True, eq=False)
class Risk:
    """Σ loss(xᵀθ, v) + ridge/2 |θ|² + tiltᵀθ, of rows in the unit ball."""

    x: FloatArray
    v: FloatArray
    link: Link
    ridge: float
    tilt: FloatArray

    def value(self, theta: FloatArray) -> float:
        """The objective."""
        line = self.x @ theta
        if self.link == "logistic":
            loss = np.logaddexp(0.0, -self.v * line)
        else:
            loss = np.logaddexp(line - self.v, self.v - line) - np.log(2)
        return float(loss.sum() + self.ridge / 2 * (theta @ theta) + self.tilt @ theta)

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and second derivatives."""
        line = self.x @ theta
        if self.link == "logistic":
            likely = expit(line)
            slope, bend = likely - (self.v > 0), likely * (1 - likely)
        else:
            slope = np.tanh(line - self.v)
            bend = 1 - slope**2
        gradient = slope @ self.x + self.ridge * theta + self.tilt
        hessian = (self.x * bend[:, None]).T @ self.x + self.ridge * np.eye(len(theta))
        return gradient, hessian


def minimize_risk(
    x: FloatArray, v: FloatArray, *, link: Link, ridge: float, tilt: FloatArray | None = None
) -> FloatArray:
    """argmin Σ loss(xᵀθ, v) + ridge/2 |θ|² + tiltᵀθ, to a gradient of length `TOLERANCE`.

    The module proves that the loop ends there, for all rows; nothing is ever refused.
    """
    tilt = np.zeros(x.shape[1]) if tilt is None else tilt
    risk = Risk(x=x, v=v, link=link, ridge=ridge, tilt=tilt)
    theta, scale = np.zeros(x.shape[1]), _THIRD[link] ** 2 / (4 * ridge)
    for _ in range(most_steps(len(x), link=link, ridge=ridge, tilt=tilt)):
        gradient, hessian = risk.derivatives(theta)
        if np.linalg.norm(gradient) <= TOLERANCE:
            break
        direction = np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)
        gain = max(float(gradient @ direction), 0.0)
        kappa = math.sqrt(scale * gain)
        theta = theta - _size(risk, theta, direction, gain=gain, kappa=kappa) * direction
    return theta


def most_steps(n: int, *, link: Link, ridge: float, tilt: FloatArray) -> int:
    """How many steps are enough; no number of it comes from a row."""
    scale = _THIRD[link] ** 2 / (4 * ridge)
    return math.ceil(80 * scale * (n * math.log(2) + float(tilt @ tilt) / (2 * ridge))) + 9


def _size(
    risk: Risk, theta: FloatArray, direction: FloatArray, *, gain: float, kappa: float
) -> float:
    """The whole step where that is proved or seen to gain, else half of it, ..., else 1/(1 + κ)."""
    if kappa <= 0.25:
        return 1.0
    size, sure, value = 1.0, 1 / (1 + kappa), risk.value(theta)
    while size > sure:
        if risk.value(theta - size * direction) <= value - 0.25 * size * gain:
            return size
        size /= 2
    return sure
