"""Which directions of the features to ask about, and how loudly, before any label is used."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray
from dpfda.linear.reports import entry_noise

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_POWERS = (0.0, 0.5, 1.0)
_SIGNAL = 0.3  # expected share of the label's variance, over all directions
_CURVE_CLASSES = 1.0  # the same of several classes of curves, each of them a shape of its own
_MOST_SIGNAL = 0.6  # in one of them
_EVEN = 0.5
_CONSTANT = 1.0  # weight of the constant 1 beside the strongest direction


def principal(
    covariance: FloatArray, favor: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Eigenvalues, whitening directions (rows) and how much each is favored, best first.

    Args:
        covariance: of the features.
        favor: how much a feature is expected to say about the label, relative to others.
    """
    values, vectors = np.linalg.eigh(covariance)
    liked = (vectors**2).T @ favor
    order = np.argsort(-values * liked, kind="stable")
    values, vectors, liked = values[order], vectors[:, order], liked[order]
    return values, (vectors / np.sqrt(values)).T, liked


def weights(
    values: FloatArray,
    favor: FloatArray,
    *,
    people: float,
    epsilon: float,
    n_classes: int,
    ordered: bool = False,
) -> FloatArray:
    """a_1 = 1 ≥ a_j: weights of the first q whitened directions in a report.

    q and the power p of a_j² = λ_j^p are those that keep most of the signal that is to be expected:
    Σ τ²/(τ + noise). One half of it is expected where features vary most, the other half anywhere:
    what features have in common may say nothing about the label.
    """
    strong = values * favor
    share = (1 - _EVEN) * strong / strong.sum() + _EVEN * favor / favor.sum()
    expected = _CURVE_CLASSES if ordered and n_classes > 2 else _SIGNAL
    signal = np.minimum(expected * (n_classes - 1) * share, _MOST_SIGNAL)
    joined = n_classes if n_classes > 2 else 1
    best, chosen = -1.0, np.ones(1)
    for q in sorted({min(len(values), count) for count in (*_COUNTS, len(values))}):
        noise = joined**2 * entry_noise(q + 1, epsilon, n_classes=joined) / people
        for power in _POWERS:
            square = values[:q] ** power
            own = noise * (square.sum() + _CONSTANT * square[0]) / square
            kept = float((signal[:q] ** 2 / (signal[:q] + own)).sum())
            if kept > best * (1 + 1e-9):
                best, chosen = kept, np.sqrt(square / square[0])
    return np.asarray(chosen)
