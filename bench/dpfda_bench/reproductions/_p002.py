"""What the reproductions of 002 share: its methods as published, its data, its scores.

Everything here draws float noise and takes shortcuts that are not private: simulations only. Each
result carries the ε it really has.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.central.regression.perturbation import CURVATURE, minimize_risk
from dpfda.privacy.calibration import gaussian_epsilon
from dpfda_bench.prepared_data import Prepared, prepare
from dpfda_bench.published_fm import FunctionalMechanism, RelaxedFM
from dpfda_bench.reproductions._p002_published import published_epsilon, published_sensitivity

DELTA = 1e-5
FM_FAMILY = (FunctionalMechanism.name, RelaxedFM.name, "gaussian_fm")
PUBLISHED = (*FM_FAMILY, "noisy_gradient", "objective_perturbation")
"""gaussian_fm is the paper's; it claims to be ahead of all the others."""
LOW, LOW_TWITTER = 0.1, "twitter, y ≤ 0.1"
"""A public bound of the target, and the data with it."""
STEPS = 1000
"""Of noisy gradient descent, the only number that 002 names (§6.1)."""
Solver = Literal["box", "literal", "floor"]
"""|w_d| ≤ 1 as in the public code of the authors; §4.3 without a box; the floor of C9."""
OUTPUT = "output_perturbation"
"""What the public code calls objective perturbation: noise of norm Gamma(D, 2/ε) on the minimum."""


def positive_rows(data: Prepared) -> FloatArray:
    """Rows as the authors' code has them: features in [0, 1] over the largest norm of a row.

    That norm is the data's own (C11). There is no constant feature.
    """
    rows = (data.X * math.sqrt(data.X.shape[1]) + 1) / 2
    return np.asarray(rows / np.linalg.norm(rows, axis=1).max())


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


class Fitted(NamedTuple):
    """w of a method as published, and the bound that its guarantee lacks.

    Attributes:
        weights: w.
        reach: root mean square, over the steps, of the bound |w| + 1 on a row's gradient that
            holds for a linear loss, where 002 assumes 1; 1 where the assumption holds.
    """

    weights: FloatArray
    reach: float = 1.0


def published_weights(
    method: str,
    rows: FloatArray,
    targets: FloatArray,
    *,
    link: Any,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    solver: Solver = "box",
    sites: int = 1,
) -> Fitted:
    """w of one of 002's methods, as published, on rows without a constant feature.

    Args:
        method: which.
        rows: training rows.
        targets: their targets.
        link: linear or logistic.
        epsilon: ε as claimed.
        delta: δ as claimed.
        rng: float noise.
        solver: what is done with a noisy objective: see `Solver`.
        sites: S sites of equal size work alone and their results are averaged (§5.1): each has S
            times the noise, the average √S times.
    """
    if method == "objective_perturbation":
        parts = [
            _tilted(rows[part], targets[part], link, epsilon, rng)
            for part in np.array_split(np.arange(len(rows)), sites)
        ]
        weights = np.asarray(np.mean(parts, axis=0))
        longest = max(float(np.linalg.norm(part)) for part in parts)
        return Fitted(weights, longest + 1 if link == "linear" else 1.0)
    if method == OUTPUT:
        return Fitted(_moved(rows, targets, link, epsilon, rng))
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
    if solver == "floor":
        deviation = scales[1] * (math.sqrt(2) if method == "fm" else 1.0)
        inverse = 1 / np.maximum(values, 2 * deviation * math.sqrt(dimension))
    elif solver == "box":
        # §4.3: negative eigenvalues become 0.
        kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return Fitted(_in_box(kept, linear))
    else:
        # §4.3: negative eigenvalues become 0; directions without curvature get no weight.
        inverse = np.where(values > 0, 1 / np.where(values > 0, values, 1.0), 0.0)
    return Fitted(np.asarray(-0.5 * (vectors * inverse) @ (vectors.T @ linear)))


def _in_box(quadratic: FloatArray, linear: FloatArray) -> FloatArray:
    """The minimum of w'Qw + l'w with |w_d| ≤ 1."""

    def value(w: FloatArray) -> tuple[float, FloatArray]:
        curved = quadratic @ w
        return float(w @ curved + linear @ w), np.asarray(2 * curved + linear)

    box = [(-1.0, 1.0)] * len(linear)
    return np.asarray(minimize(value, np.zeros(len(linear)), jac=True, bounds=box).x)


def published_guess(weights: FloatArray, rows: FloatArray, link: Any) -> FloatArray:
    """Predictions, or probabilities of class 1."""
    line = rows @ weights
    return np.asarray(line if link == "linear" else expit(np.clip(line, -500, 500)))


def true_epsilon(
    method: str, claimed: float, *, delta: float, link: Any, reach: float = 1.0
) -> float | None:
    """The ε a method as published really has, where it differs from the claim.

    Args:
        method: which.
        claimed: ε as claimed.
        delta: δ.
        link: linear or logistic.
        reach: of the fits, see `Fitted`.
    """
    if method == "gaussian_fm":
        return published_epsilon(claimed, delta=delta, link=link)
    if method == "noisy_gradient":
        multiplier = classic_tau(1.0, claimed, delta) / (math.sqrt(STEPS) * reach)
        return gaussian_epsilon(delta=delta, multiplier=multiplier)
    if method == "objective_perturbation":
        return claimed * reach
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
    """As the authors' public code: uniform rows of norm 1, y = x'β without noise, |β| = 1.

    That code has the linear model only; a class is whether x'β exceeds its median.
    """
    rng = np.random.default_rng(seed)
    rows = rng.uniform(size=(n, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    slope = rng.uniform(size=dimension)
    line = rows @ (slope / np.linalg.norm(slope))
    target = line if link == "linear" else (line > np.median(line)).astype(float)
    return Prepared((2 * rows - 1) / math.sqrt(dimension), target, link, "synthetic")


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


def _moved(
    rows: FloatArray, targets: FloatArray, link: Any, epsilon: float, rng: np.random.Generator
) -> FloatArray:
    """The minimum of the penalized risk plus noise that does not shrink with the rows."""
    n, dimension = rows.shape
    values = targets if link == "linear" else 2 * targets - 1
    exact = minimize_risk(rows, values, link=link, ridge=0.01 * n, tilt=np.zeros(dimension))
    direction = rng.normal(size=dimension)
    return np.asarray(
        exact + direction / np.linalg.norm(direction) * rng.gamma(dimension, 2 / epsilon)
    )


def _descend(
    rows: FloatArray, targets: FloatArray, link: Any, tau: float, rng: np.random.Generator
) -> Fitted:
    """Noisy gradient descent: every step pays the claimed ε."""
    n, dimension = rows.shape
    theta = np.zeros(dimension)
    if link == "linear":
        linear, quadratic = targets @ rows / n, rows.T @ rows / n
        squared = 0.0
        for _ in range(STEPS):
            squared += (float(np.linalg.norm(theta)) + 1) ** 2
            theta = theta - (quadratic @ theta - linear + tau * rng.normal(size=dimension))
        return Fitted(theta, math.sqrt(squared / STEPS))
    # Every step is a pass over the rows: single precision, whose error is far below the noise.
    small, wanted = rows.astype(np.float32), targets.astype(np.float32)
    for _ in range(STEPS):
        gradient = (expit(small @ theta.astype(np.float32)) - wanted) @ small / n
        theta = theta - 4 * (gradient + tau * rng.normal(size=dimension))
    return Fitted(theta)
