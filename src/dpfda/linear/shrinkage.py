"""How much of noisy effects to believe: a posterior over how strong, spread and sparse they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from dpfda._validate import FloatArray

_DECAYS = np.array([0.0, 0.5, 1.0, 2.0])
_SHARES = np.array([1.0, 0.3, 0.1])  # of directions that matter at all
_FEW = 6  # with fewer directions sparsity is not considered
_LEAST, _MOST, _STEPS = 0.15, 0.8, 8  # of the total signal, in units of the label's variance
_FAINTEST = 0.02  # the same, where the question is whether there is any: little is more than none


class Believed(NamedTuple):
    """What noisy effects say.

    Attributes:
        kept: the share of each direction's estimate to keep, between 0 and 1, shape (q,).
        fit: how much better effects explain the estimates than none of them being there, as a
            logarithm.
    """

    kept: FloatArray
    fit: float


def believed(
    estimates: FloatArray,
    noise: FloatArray,
    importance: FloatArray,
    *,
    freedom: int = 1,
    least: float = _LEAST,
    most: float = _MOST,
) -> Believed:
    """How much of each direction's estimate to keep, and whether there is anything to keep.

    Effects are N(0, t_j) with probability π and 0 otherwise; t_j falls with the direction's
    importance. The grid over total, decay and π is averaged by its likelihood.

    Args:
        estimates: one row a class (one row for two classes), shape (K, q).
        noise: the variance of an entry, shape (q,).
        importance: eigenvalue of each direction, positive.
        freedom: how many rows are free.
        least: total signal that is thought of at least, in units of the label's variance, and
        most: at most.

    Examples:
        >>> found = believed(np.array([[3.0, 0.1]]), np.array([0.01, 0.01]), np.ones(2))
        >>> found.kept.round(2), found.fit > 100
        (array([0.98, 0.98]), True)
    """
    energy = (estimates**2).sum(axis=0)
    relative = importance / importance.mean()
    how = {"noise": noise, "relative": relative, "freedom": freedom, "most": most}
    kept, better = _on_grid(energy, least=least, **how)
    weight = np.exp(better - better.max())
    _, faint = _on_grid(energy, least=min(least, _FAINTEST), **how)
    return Believed(
        kept=np.asarray(np.einsum("tdsq,tds->q", kept, weight / weight.sum())),
        fit=float(logsumexp(faint) - np.log(faint.size)),
    )


def _on_grid(
    energy: FloatArray,
    *,
    noise: FloatArray,
    relative: FloatArray,
    freedom: int,
    least: float,
    most: float,
) -> tuple[FloatArray, FloatArray]:
    """What to keep at each (total, decay, share), and how much better that explains the energy."""
    q = len(energy)
    shape = relative ** _DECAYS[:, None]
    shape /= shape.mean(axis=1, keepdims=True)
    totals = np.geomspace(least, most, _STEPS) / q
    shares = _SHARES[: 1 if q < _FEW else None]
    # (total, decay, share, direction)
    signal = totals[:, None, None, None] * shape[:, None, :] / shares[:, None]
    total = signal + noise
    gain = 0.5 * (energy * signal / (noise * total) - freedom * np.log(total / noise))
    on = np.log(shares)[:, None] + gain
    with np.errstate(divide="ignore"):
        off = np.log1p(-shares)[:, None]
    either = np.logaddexp(on, off)
    return np.exp(on - either) * signal / total, either.sum(axis=-1)
