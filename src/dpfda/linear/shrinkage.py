"""How much of noisy effects to believe: a posterior over how strong, spread and sparse they are."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray

_DECAYS = np.array([0.0, 0.5, 1.0, 2.0])
_SHARES = np.array([1.0, 0.3, 0.1])  # of directions that matter at all
_FEW = 6  # with fewer directions sparsity is not considered
_LEAST, _MOST, _STEPS = 0.15, 0.8, 8  # of the total signal, in units of the label's variance


def believed(
    estimates: FloatArray,
    noise: FloatArray,
    importance: FloatArray,
    *,
    freedom: int = 1,
    least: float = _LEAST,
    most: float = _MOST,
) -> FloatArray:
    """The share of each direction's estimate to keep, between 0 and 1; shape (q,).

    Effects are N(0, t_j) with probability π and 0 otherwise; t_j falls with the direction's
    importance. The grid over total, decay and π is averaged by its likelihood.

    Args:
        estimates: one row a class (one row for two classes), shape (K, q).
        noise: the variance of an entry, shape (q,).
        importance: eigenvalue of each direction, positive.
        freedom: how many rows are free.
        least: total signal that is thought of at least, in units of the label's variance, and
        most: at most.

    Example:
        >>> kept = believed(np.array([[3.0, 0.1]]), np.array([0.01, 0.01]), np.ones(2))
        >>> kept.round(2)
        array([0.98, 0.98])
    """
    q = estimates.shape[1]
    energy = (estimates**2).sum(axis=0)
    relative = importance / importance.mean()
    shape = relative ** _DECAYS[:, None]
    shape /= shape.mean(axis=1, keepdims=True)
    totals = np.geomspace(least, most, _STEPS) / q
    shares = _SHARES[: 1 if q < _FEW else None]
    # (total, decay, share, direction)
    signal = totals[:, None, None, None] * shape[:, None, :] / shares[:, None]
    total = signal + noise
    on = np.log(shares)[:, None] - 0.5 * (freedom * np.log(total) + energy / total)
    with np.errstate(divide="ignore"):
        off = np.log1p(-shares)[:, None] - 0.5 * (freedom * np.log(noise) + energy / noise)
    either = np.logaddexp(on, off)
    kept = np.exp(on - either) * signal / total
    likelihood = either.sum(axis=-1)
    weight = np.exp(likelihood - likelihood.max())
    return np.asarray(np.einsum("tdsq,tds->q", kept, weight / weight.sum()))
