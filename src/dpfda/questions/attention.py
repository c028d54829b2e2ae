"""Which stumps to ask about next: those of which most is unknown, after what was answered so far.

Where features have no order, a few of many may say nearly all. The first answers tell which cannot
be among them; the others are asked about more often from then on. Of what was tried, the same for
ordered features gained nothing beyond its noise: their first ones are asked about more anyway.
"""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray

PARTS = 2
"""Of a batch of people asked about directions: each is asked about what others left unknown."""

FROM = 30  # effective people; of fewer, the answers of a part say next to nothing
_SIZES = np.array([0.01, 0.03, 0.1, 0.3])  # variances of correlations that are there, and
_SHARES = np.array([1.0, 0.3, 0.1])  # how many of them are, each as likely as the others
_FEW = 6  # with fewer features all are thought to be there
_EVEN = 0.4  # of the answers: about every feature as often as at first


def asking(
    raw: FloatArray, precision: FloatArray, at_first: FloatArray, *, answers: float, room: float
) -> FloatArray:
    """How often to ask about each stump; together as often as at first.

    Args:
        raw: correlations r_j as they were answered.
        precision: how many clean answers that was.
        at_first: how often each was asked about before anything was known.
        answers: how many clean ones are still to come.
        room: by how much unbalanced classes make prior variances small.

    Examples:
        >>> raw, heard = np.array([0.7, 0.0, 0.1, -0.1, 0.0, 0.1]), np.full(6, 20.0)
        >>> asking(raw, heard, np.ones(6), answers=20.0, room=1.0).round(2)
        array([4. , 0.4, 0.4, 0.4, 0.4, 0.4])
    """
    share = poured(unknown(raw, 1 / precision, room=room), answers)
    return np.asarray((1 - _EVEN) * at_first.sum() * share + _EVEN * at_first)


def unknown(raw: FloatArray, noise: FloatArray, *, room: float) -> FloatArray:
    """Posterior variances of correlations r_j that were seen with this noise.

    They are N(0, τ²) with probability π and else 0; the grid over τ² and π is averaged by its
    likelihood.
    """
    shares = _SHARES[: 1 if len(raw) < _FEW else None]
    signal = (room * _SIZES)[:, None, None]  # (size, share, feature)
    total = signal + noise
    gain = 0.5 * (raw**2 * signal / (noise * total) - np.log(total / noise))
    there = np.log(shares)[:, None] + gain
    with np.errstate(divide="ignore"):
        either = np.logaddexp(there, np.log1p(-shares)[:, None])
    likely, kept = np.exp(there - either), signal / total
    fit = either.sum(axis=-1)
    weight = np.exp(fit - fit.max())
    weight /= weight.sum()
    mean, square = (np.einsum("tsq,ts->q", likely * kept**power, weight) for power in (1, 2))
    return np.asarray(mean * noise + (square - mean**2) * raw**2)


def poured(variances: FloatArray, answers: float) -> FloatArray:
    """The shares of so many answers that leave least unknown of all numbers together.

    Each answer adds 1 to the precision of its number, and the least precise is worth it most, so
    precisions are filled up to a common level.

    Examples:
        >>> poured(np.array([1.0, 0.5, 0.01]), 3.0)
        array([0.66666667, 0.33333333, 0.        ])
    """
    precision = 1 / variances
    above = precision - precision.min()  # a few answers would be lost beside a large number
    steps = np.sort(above)
    levels = (answers + np.cumsum(steps)) / np.arange(1, len(steps) + 1)
    level = levels[np.flatnonzero(levels > steps)[-1]]
    added = np.maximum(level - above, 0)
    return np.asarray(added / added.sum())
