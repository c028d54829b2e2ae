"""Newer private regressions of the literature, to compare with; simulations with float noise.

Each takes rows in the unit ball and a target in [0, 1] (or 0/1) and has the guarantee that its
paper states: for a row that is left out, or set to zero, which is weaker than for one that is
replaced. Written from the papers and the authors' public programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from dpfda._validate import FloatArray
from dpfda.privacy.calibration import gaussian_mu, gaussian_sigma

Predict = Callable[[FloatArray], FloatArray]
_ROUNDS_OF_MIXING = 3
_SKETCH = 6.0  # rows of a sketch, over max(d, log(4 T/ϱ))


def hessian_mixing(
    X: FloatArray, y: FloatArray, *, epsilon: float, delta: float, rng: np.random.Generator
) -> Predict:
    """Iterative Hessian mixing (Lev et al. 2026): Newton steps with sketched second moments.

    Half of ε pays for three Gaussian sketches of the rows and the smallest eigenvalue, half for
    three noisy gradients, as in the authors' program.
    """
    rows, targets = _with_constant(X), 2 * y - 1
    d = rows.shape[1]
    steps, failure = _ROUNDS_OF_MIXING, delta / 10
    size = int(max(_SKETCH * d, _SKETCH * math.log(4 * steps / failure)))
    gamma = _mixing_noise(size, steps, epsilon=epsilon / 2, delta=delta / 4)
    margin = math.sqrt(2 * math.log(max(4 / delta, 4 / failure)))
    least = float(np.linalg.eigvalsh(rows.T @ rows)[0])
    known = max(0.0, least - gamma / math.sqrt(size) * (margin - rng.standard_normal()))
    spread = math.sqrt(max(0.0, gamma - known))
    sigma = math.sqrt(steps) * gaussian_sigma(epsilon=epsilon / 2, delta=delta / 4)
    theta = np.zeros(d)
    # A Gaussian sketch S X has the law of G R with RᵀR = XᵀX: no sketch of all rows is drawn.
    root = np.linalg.cholesky(rows.T @ rows + 1e-9 * np.eye(d)).T
    for _ in range(steps):
        sketch = rng.standard_normal((size, d)) @ root + spread * rng.standard_normal((size, d))
        residual = np.clip(targets - rows @ theta, -1, 1)
        noisy = rows.T @ residual + sigma * rng.standard_normal(d)
        theta = theta + np.linalg.solve(sketch.T @ sketch / size, noisy)
    return lambda others: np.asarray((_with_constant(others) @ theta + 1) / 2)


def _mixing_noise(size: int, steps: int, *, epsilon: float, delta: float) -> float:
    """γ of `steps` sketches with `size` rows each, by Rényi divergences of Wishart matrices."""

    def spent(log_gamma: float) -> float:
        gamma = math.exp(log_gamma)

        def at(alpha: float) -> float:
            ratio = size / (2 * (alpha - 1))
            mixing = ratio * (alpha * math.log1p(-1 / gamma) - math.log1p(-alpha / gamma))
            converted = math.log(1 / delta) + (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha)
            return steps * mixing + converted / (alpha - 1)

        found = minimize_scalar(at, bounds=(1 + 1e-6, gamma * (1 - 1e-9)), method="bounded")
        eigenvalue = math.sqrt(2 * math.log(1.25 / delta)) * math.sqrt(size) / gamma
        return float(found.fun) + eigenvalue - epsilon

    return math.exp(brentq(spent, math.log(1.01), math.log(1e9), xtol=1e-6))


def _with_constant(X: FloatArray) -> FloatArray:
    return np.asarray(np.column_stack([X, np.ones(len(X))]) / math.sqrt(2))


_BINS, _LEAVES, _ROUNDS, _RATE = 32, 3, 300, 0.01
_BIN_SHARE = 0.1  # of ε
"""What InterpretML's program has by default."""


def explainable_boosting(
    X: FloatArray,
    y: FloatArray,
    *,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    logistic: bool = False,
) -> Predict:
    """DP-EBM (Nori et al. 2021): an additive model, a random shallow tree of one feature at a time.

    A tenth of ε pays for noisy histograms of the features, the rest for 300 noisy sums of residuals
    a feature and leaf, composed as Gaussian releases.
    """
    n, d = X.shape
    reach = math.sqrt(d)  # prepared rows: every feature lies in [-1, 1]/√D
    edges, bins, counts = [], np.empty((d, n), dtype=np.int64), []
    blur = math.sqrt(d) / gaussian_mu(epsilon=_BIN_SHARE * epsilon, delta=delta / 2)
    for k in range(d):
        cuts, weights = _private_bins(X[:, k] * reach, n, blur, rng)
        edges.append(cuts)
        bins[k] = np.searchsorted(cuts, X[:, k] * reach, side="right")
        counts.append(weights)
    mu = gaussian_mu(epsilon=(1 - _BIN_SHARE) * epsilon, delta=delta / 2)
    sigma = math.sqrt(_ROUNDS * d) / mu  # targets and probabilities have range 1
    tables = [np.zeros(len(weights)) for weights in counts]
    score = np.zeros(n)
    middle = 0.0 if logistic else 0.5
    for _ in range(_ROUNDS):
        for k in range(d):
            guess = expit(score) if logistic else score + middle
            sums = np.bincount(bins[k], np.clip(y - guess, -1, 1), minlength=len(counts[k]))
            size = len(sums)
            splits = rng.choice(size - 1, min(_LEAVES, size) - 1, replace=False) + 1
            starts = np.concatenate([[0], np.sort(splits)])
            leaf = np.add.reduceat(sums, starts) + sigma * rng.standard_normal(len(starts))
            held = np.add.reduceat(counts[k], starts)
            change = np.repeat(_RATE * leaf / held, np.diff(np.append(starts, size)))
            tables[k] += change
            score += change[bins[k]]

    def predict(others: FloatArray) -> FloatArray:
        found = sum(
            table[np.searchsorted(cuts, others[:, k] * reach, side="right")]
            for k, (table, cuts) in enumerate(zip(tables, edges, strict=True))
        )
        return np.asarray(expit(found) if logistic else found + middle)

    return predict


def _private_bins(
    values: FloatArray, n: int, blur: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Inner edges and noisy counts: a fine noisy histogram, joined until each bin holds n/32."""
    fine = np.linspace(-1, 1, 2 * _BINS + 1)
    seen = np.histogram(np.clip(values, -1, 1), fine)[0] + blur * rng.standard_normal(2 * _BINS)
    least, cuts, weights, held = n / _BINS, [], [], 0.0
    for place, count in enumerate(seen):
        held += max(float(count), 0.0)
        if held >= least and place < len(seen) - 1:
            cuts.append(fine[place + 1])
            weights.append(held)
            held = 0.0
    return np.array(cuts), np.array([*weights, max(held, 1.0)])


def rivals(link: str) -> dict[str, Any]:
    """Which of them predict such a target."""
    mixing = {"iterative Hessian mixing": hessian_mixing}  # labels 0 and 1 are numbers, too
    if link == "linear":
        return mixing | {"DP-EBM": explainable_boosting}

    def logistic(X: FloatArray, y: FloatArray, **how: Any) -> Predict:
        return explainable_boosting(X, y, **how, logistic=True)

    return mixing | {"DP-EBM": logistic}
