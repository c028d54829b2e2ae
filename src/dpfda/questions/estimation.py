"""What a server concludes from answers: pure functions of sums (methods 8.2).

Notation: α is the truth probability of the k-question response, so that answer/α is unbiased for
the true ±1 answer; n_j is how many people were asked about coordinate j; ``precision`` n_j α² is
how many clean answers that is worth.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from dpfda._validate import FloatArray

_LEAD_PRIOR = 0.25  # variance of the strongest stump's correlation r_j before any answer
_OTHER_PRIOR = 0.03  # variance of any other stump's, where features have no order
_DOUBT = 2.5  # evidence that an ordered feature must bring before it is believed at all
_PAIR_PRIOR = 0.02  # variance of the correlation of two stumps before any answer
_RIDGE = 0.1
_SMALLEST_EIGENVALUE = 0.2


def shift_center(
    center: FloatArray,
    uncertainty: FloatArray,
    *,
    total: FloatArray,
    asked: FloatArray,
    width: FloatArray,
    alpha: float,
) -> tuple[FloatArray, FloatArray]:
    """Move the center of each coordinate towards where half of the people are.

    A dithered answer sgn(z - c - wU) has mean (z - c)/w for |z - c| ≤ w, so total/(n α) estimates
    the offset in units of w. How large offsets are is learnt from all coordinates together
    (empirical Bayes): where none stands out of the noise, the public center stays.

    Returns:
        The new center and the variance that is left of `uncertainty`.
    """
    offset = total / np.maximum(asked, 1) / alpha
    noise = 1 / np.maximum(asked * alpha**2, 1e-3)
    spread = max(0.0, float(np.mean(offset**2 - noise)))
    gain = spread / (spread + noise)
    certain = uncertainty / (uncertainty + width**2 * noise)
    left = np.where(
        gain > 0, uncertainty * (1 - certain), np.minimum(uncertainty, width**2 * noise)
    )
    return center + gain * width * np.clip(offset, -1, 1), left


def direction(
    *,
    total: FloatArray,
    asked: FloatArray,
    pair_total: FloatArray,
    pair_asked: FloatArray,
    alpha: float,
    whiten: bool,
    ordered: bool,
) -> tuple[FloatArray, FloatArray]:
    """Slopes θ from the answers to "is this stump right on you?".

    r_j = mean/α is the correlation of label and stump j, shrunk against its noise; correlated
    stumps are whitened by their estimated products. Reversal needs no rule: it is the sign of r_j.

    Returns:
        θ and the unshrunk r, both of shape (d,).
    """
    precision = np.maximum(asked, 0.5) * alpha**2
    raw = total / np.maximum(asked, 1) / alpha
    r = raw * _shrinkage(raw, precision, ordered=ordered)
    u = np.linalg.solve(_correlations(pair_total, pair_asked, alpha), r) if whiten else r
    return 4 * u / (1 - np.clip(u @ r, 0, 0.9)), raw


def _shrinkage(raw: FloatArray, precision: FloatArray, *, ordered: bool) -> FloatArray:
    """How much of each correlation to believe.

    Ordered features: the signal-to-noise ratio, n α² r² less 2.5 times its mean under noise alone,
    is taken to fall with the order (isotonic regression), so that one noisy late feature by itself
    is not believed. Without an order: a common prior. The strongest stump has a prior of its own:
    something must be believed.
    """
    evidence = precision * raw**2
    if ordered:
        signal = np.maximum(isotonic_regression(evidence - _DOUBT, increasing=False).x, 0)
        believed = signal / (signal + 1)
    else:
        believed = _OTHER_PRIOR / (_OTHER_PRIOR + 1 / precision)
    lead = int(np.argmax(evidence))
    believed[lead] = _LEAD_PRIOR / (_LEAD_PRIOR + 1 / precision[lead])
    return np.asarray(believed)


def _correlations(pair_total: FloatArray, pair_asked: FloatArray, alpha: float) -> FloatArray:
    """Estimated correlations of the stumps, shrunk, with eigenvalues kept away from 0."""
    precision = np.maximum(pair_asked, 0.5) * alpha**2
    pairs = pair_total / np.maximum(pair_asked, 1) / alpha
    pairs *= _PAIR_PRIOR / (_PAIR_PRIOR + 1 / precision)
    np.fill_diagonal(pairs, 1 + _RIDGE)
    values, vectors = np.linalg.eigh(pairs)
    return np.asarray((vectors * np.maximum(values, _SMALLEST_EIGENVALUE)) @ vectors.T)


def step_intercept(
    intercept: float,
    information: float,
    *,
    total: float,
    people: int,
    questions: int,
    sensitivity: float,
    alpha: float,
) -> tuple[float, float]:
    """One Newton step of the intercept towards E[y - tanh((a + s)/2)] = 0.

    Args:
        intercept: a so far.
        information: its precision so far (inverse variance).
        total: sum over people of their mean answer.
        people: how many answered.
        questions: k.
        sensitivity: κ, how strongly the equation reacts to a.
        alpha: truth probability.

    Returns:
        The new intercept and its precision.
    """
    variance = 4 * (1 / alpha**2 - 1 + 1 / questions)
    information = information + people * sensitivity**2 / variance
    step = sensitivity / variance * 2 * (total / alpha) / information
    return intercept + step, information
