"""Posterior of θ, updated by gradient reports (docs/methods/gradient-boosting.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.local.boosting.logistic import information, probabilities
from dpfda.local.boosting.requests.gradient import GradientRequest

_FLOOR = 1e-3  # curvature that every direction is given, so that F can be inverted
_SIMULATED_OWNERS = 1500


@dataclass
class Posterior:
    """A Gaussian belief about θ: precision matrix and precision times mean.

    Attributes:
        precision: shape (P, P), P = (K - 1) D.
        shift: precision times mean, shape (P,).
        classes: K.
    """

    precision: FloatArray
    shift: FloatArray
    classes: int

    @property
    def coefficients(self) -> FloatArray:
        """The mean of θ, shape (K - 1, D)."""
        mean = np.linalg.solve(self.precision, self.shift)
        return np.asarray(mean.reshape(self.classes - 1, -1))


@dataclass(frozen=True, eq=False)
class View:
    """Where a round looks: k directions of the whitened gradient.

    Attributes:
        projection: F^{-½} Q, shape (P, k); owners apply it to their gradient.
        design: Qᵀ F^{½}, shape (k, P); a report's mean is A times design @ (θ* - θ).
        doubt: posterior variance along each direction, shape (k,).
    """

    projection: FloatArray
    design: FloatArray
    doubt: FloatArray


def best_view(
    belief: Posterior, features: FloatArray, *, owners: int, rows: float, gain: float
) -> View:
    """The k directions in which reports of `owners` owners with `rows` rows teach most.

    Args:
        belief: the present posterior.
        features: φ of the data user's own rows, shape (n, D).
        owners: H.
        rows: N.
        gain: m of their reports, on average.
    """
    theta = belief.coefficients
    fisher = information(features, probabilities(features, theta))
    fisher += _FLOOR * np.eye(len(fisher))
    values, vectors = np.linalg.eigh(fisher)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse_root = (vectors / np.sqrt(values)) @ vectors.T
    doubt, axes = np.linalg.eigh(root @ np.linalg.solve(belief.precision, root))
    doubt, axes = np.maximum(doubt[::-1], 0.0), axes[:, ::-1]
    number = _directions(doubt, owners=owners, rows=rows, gain=gain)
    chosen = axes[:, :number]
    return View(inverse_root @ chosen, chosen.T @ root, doubt[:number])


def _directions(doubt: FloatArray, *, owners: int, rows: float, gain: float) -> int:
    """k: more directions tell more, but each less clearly; at least 2."""
    k = np.arange(1, len(doubt) + 1)
    samples = owners * rows / (k / gain**2 + 1)  # clean rows that reports in k directions are worth
    below = np.tril(np.ones((len(k), len(k)), dtype=bool))
    worth = doubt**2 * samples[:, None] / (1 + doubt * samples[:, None])
    best = int(np.argmax(np.where(below, worth, 0.0).sum(axis=1))) + 1
    return max(min(2, len(doubt)), best)


def absorb(
    belief: Posterior,
    view: View,
    *,
    mean: FloatArray,
    variance: float,
    slope: float,
) -> Posterior:
    """The belief after a round whose reports have this mean; `variance` is that of the mean.

    While θ is uncertain so is the model's curvature: the mean doubt is added to the noise, which
    keeps early rounds from being believed too much.
    """
    weight = 1 / (variance / slope**2 + float(view.doubt.mean()))
    theta = belief.coefficients.ravel()
    seen = view.design @ theta + mean / slope
    return Posterior(
        belief.precision + weight * view.design.T @ view.design,
        belief.shift + weight * view.design.T @ seen,
        belief.classes,
    )


def report_slope(
    request: GradientRequest,
    features: FloatArray,
    *,
    sizes: IntArray,
    generator: np.random.Generator,
) -> float:
    """A: how far the mean report moves when θ* does, by simulating owners whose model is right.

    A shortened gradient v of covariance I/N around its mean has slope N E[G·v]/k (Stein).
    """
    draws = generator.choice(sizes, _SIMULATED_OWNERS)
    most = int(draws.max())
    picked = features[generator.integers(0, len(features), (_SIMULATED_OWNERS, most))]
    chances = probabilities(picked, request.coefficients)
    uniform = generator.random((*chances.shape[:2], 1))
    above = np.cumsum(chances, axis=2)
    hit = (uniform < above) & (uniform >= above - chances)
    residual = (hit - chances) * (np.arange(most) < draws[:, None])[..., None]
    gradient = np.einsum("hnk,hnd->hkd", residual, picked, optimize=True)
    projected = gradient.reshape(_SIMULATED_OWNERS, -1) @ request.projection / draws[:, None]
    length = np.linalg.norm(projected, axis=1)
    shortened = np.minimum(length / request.longest(draws), 1.0)
    return float(np.mean(draws * length * shortened)) / request.directions
