"""What the reproductions of 002 share: its methods as published, its data, its scores.

Everything here draws float noise and takes shortcuts that are not private: simulations only. Each
result carries the ε it really has.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.central.regression.perturbation import CURVATURE, minimize_risk
from dpfda.datasets.preparation import Prepared, prepare
from dpfda.privacy.calibration import gaussian_epsilon
from dpfda_bench.published_fm import FunctionalMechanism, RelaxedFM
from dpfda_bench.reproductions._p002_published import published_epsilon, published_sensitivity

DELTA = 1e-5
FM_FAMILY = (FunctionalMechanism.name, RelaxedFM.name, "gaussian_fm")
PUBLISHED = (*FM_FAMILY, "noisy_gradient", "objective_perturbation")
LOW, LOW_TWITTER = 0.1, "twitter, y ≤ 0.1"
"""A public bound of the target, and the data with it."""
_STEPS = 1000
_SLOW_STEPS = 100  # for a logistic loss every step is a pass over the rows


def positive_rows(data: Prepared) -> FloatArray:
    """Rows as 002 has them: features in [0, 1]/√D, no constant feature, |x|₂ ≤ 1."""
    return np.asarray((data.X + 1 / math.sqrt(data.X.shape[1])) / 2)


def classic_tau(sensitivity: float, epsilon: float, delta: float) -> float:
    """Definition 3 of 002: Δ √(2 ln(1.25/δ))/ε."""
    return sensitivity / epsilon * math.sqrt(2 * math.log(1.25 / delta))


def noise_levels(method: str, link: Any, dimension: int, *, n: int, epsilon: float) -> list[float]:
    """Standard deviation of the noise on Λ_j, for each order j, as published."""
    factor = math.sqrt(2) if method == "fm" else 1.0
    sizes = published_sensitivity(method, link, dimension)
    return [factor * _scale(method, size / n, epsilon, DELTA) for size in sizes]


def _scale(method: str, sensitivity: float, epsilon: float, delta: float) -> float:
    """Of the noise as published: Laplace for the functional mechanism, else Gaussian."""
    return sensitivity / epsilon if method == "fm" else classic_tau(sensitivity, epsilon, delta)


def published_weights(
    method: str,
    rows: FloatArray,
    targets: FloatArray,
    *,
    link: Any,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    floor: bool = False,
    sites: int = 1,
) -> FloatArray:
    """w of one of 002's methods, as published, on rows without a constant feature.

    Args:
        method: which.
        rows: training rows.
        targets: their targets.
        link: linear or logistic.
        epsilon: ε as claimed.
        delta: δ as claimed.
        rng: float noise.
        floor: raise small eigenvalues to 2τ₂√D (C9) instead of negative ones to 0 (§4.3).
        sites: S sites of equal size work alone and their results are averaged (§5.1): each has S
            times the noise, the average √S times.
    """
    if method == "objective_perturbation":
        parts = [
            _tilted(rows[part], targets[part], link, epsilon, rng)
            for part in np.array_split(np.arange(len(rows)), sites)
        ]
        return np.asarray(np.mean(parts, axis=0))
    louder = math.sqrt(sites)
    if method == "noisy_gradient":
        tau = louder * classic_tau(2 / len(rows), epsilon, delta)
        return _descend(rows, targets, link, tau, rng)
    n, dimension = rows.shape
    if link == "linear":
        linear, quadratic = -2 / n * (targets @ rows), rows.T @ rows / n
    else:
        linear, quadratic = (0.5 - targets) @ rows / n, rows.T @ rows / (8 * n)
    first, second = published_sensitivity(method, link, dimension)[-2:]
    draw = rng.laplace if method == "fm" else rng.normal
    scales = [louder * _scale(method, size / n, epsilon, delta) for size in (first, second)]
    linear = linear + draw(size=dimension) * scales[0]
    upper = np.triu(draw(size=(dimension, dimension))) * scales[1]
    values, vectors = np.linalg.eigh(quadratic + upper + np.triu(upper, 1).T)
    if floor:
        deviation = scales[1] * (math.sqrt(2) if method == "fm" else 1.0)
        inverse = 1 / np.maximum(values, 2 * deviation * math.sqrt(dimension))
    else:
        # §4.3: negative eigenvalues become 0; directions without curvature get no weight.
        inverse = np.where(values > 0, 1 / np.where(values > 0, values, 1.0), 0.0)
    return np.asarray(-0.5 * (vectors * inverse) @ (vectors.T @ linear))


def published_guess(weights: FloatArray, rows: FloatArray, link: Any) -> FloatArray:
    """Predictions, or probabilities of class 1."""
    line = rows @ weights
    return np.asarray(line if link == "linear" else expit(np.clip(line, -500, 500)))


def true_epsilon(method: str, claimed: float, *, delta: float, link: Any) -> float | None:
    """The ε a method as published really has, where it differs from the claim."""
    if method == "gaussian_fm":
        return published_epsilon(claimed, delta=delta, link=link)
    if method == "noisy_gradient":
        steps = _STEPS if link == "linear" else _SLOW_STEPS
        multiplier = classic_tau(1.0, claimed, delta) / math.sqrt(steps)
        return gaussian_epsilon(delta=delta, multiplier=multiplier)
    return None


@lru_cache(maxsize=2)
def data_of(name: str) -> Prepared:
    """A data set by the name that a table gives it."""
    if name == LOW_TWITTER:
        data = data_of("twitter")
        return replace(data, y=np.minimum(data.y, LOW) / LOW)
    if name.startswith("synthetic"):
        linear = name == "synthetic, D = 20"
        return synthetic("linear" if linear else "logistic", dimension=20 if linear else 50)
    return prepare(name)


def synthetic(link: Any, *, dimension: int, n: int = 10_000, seed: int = 0) -> Prepared:
    """Appendix B: random rows and a noisy line, or its sign; 002 does not say more."""
    rng = np.random.default_rng(seed)
    cube = rng.uniform(-1, 1, (n, dimension))
    line = cube @ rng.normal(size=dimension) / math.sqrt(dimension)
    line = line + 0.1 * rng.normal(size=n)
    target = np.clip(0.5 + line / 4, 0, 1) if link == "linear" else (line > 0).astype(float)
    return Prepared(cube / math.sqrt(dimension), target, link, "synthetic")


def renyi_epsilon(multiplier: float, *, steps: int, delta: float) -> float:
    """Eq. (7) of 002 with the right α (its Eq. (8) has a stray 1 under the root).

    Examples:
        >>> renyi_epsilon(10.0, steps=1000, delta=1e-5) > 10
        True
    """
    alpha = 1 + math.sqrt(2 * multiplier**2 / steps * math.log(1 / delta))
    return alpha * steps / (2 * multiplier**2) + math.log(1 / delta) / (alpha - 1)


def _tilted(
    rows: FloatArray, targets: FloatArray, link: Any, epsilon: float, rng: np.random.Generator
) -> FloatArray:
    """Objective perturbation of Chaudhuri et al. (2011), pure ε, λ = 0.01."""
    n, dimension = rows.shape
    ridge, curvature = 0.01 * n, CURVATURE[link]
    left = epsilon - 2 * math.log1p(curvature / ridge)
    if left <= 0:
        ridge, left = curvature / math.expm1(epsilon / 4), epsilon / 2
    direction = rng.normal(size=dimension)
    tilt = direction / np.linalg.norm(direction) * rng.gamma(dimension, 2 / left)
    values = targets if link == "linear" else 2 * targets - 1
    return minimize_risk(rows, values, link=link, ridge=ridge, tilt=np.asarray(tilt))


def _descend(
    rows: FloatArray, targets: FloatArray, link: Any, tau: float, rng: np.random.Generator
) -> FloatArray:
    """Noisy gradient descent: every step pays the claimed ε."""
    n, dimension = rows.shape
    theta = np.zeros(dimension)
    if link == "linear":
        linear, quadratic = targets @ rows / n, rows.T @ rows / n
        for _ in range(_STEPS):
            theta = theta - (quadratic @ theta - linear + tau * rng.normal(size=dimension))
        return theta
    for _ in range(_SLOW_STEPS):
        gradient = (expit(rows @ theta) - targets) @ rows / n
        theta = theta - 4 * (gradient + tau * rng.normal(size=dimension))
    return theta
