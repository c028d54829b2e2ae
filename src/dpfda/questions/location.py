"""Where the features of curves lie in a range that is far too wide, from yes/no answers alone.

Feature j of a curve is taken to be logistic around m_j with scale ρ_j S_j, S_0 = S_1 = S and
S_j = S/j: one unknown width S for all features, so that each of them tells about the others. The
level m_0 may be anywhere in the range, other m_j are of the size of S_j. What is known is a
posterior on a public grid; whom to ask about which threshold is drawn from it, so that questions
close in on where the answer is not known yet.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logsumexp

from dpfda._validate import FloatArray, IntArray

ComplexArray = npt.NDArray[np.complex128]

FEATURES = 3
"""How many features are located; the scale of later ones follows from theirs."""

_CELLS = 1024
_GRID: FloatArray = (np.arange(_CELLS) + 0.5) / _CELLS * 2 - 1
_WIDTHS: FloatArray = np.geomspace(1 / 600, 1 / 3, 14)  # of S: 1/3 is a range that fits
_RATIOS: FloatArray = np.array([0.08, 0.18, 0.4])  # ρ, and how likely each is
_RATIO_PRIOR: FloatArray = np.array([0.25, 0.5, 0.25])
_OUTLIERS = 0.02
_WIDER = 0.7  # the prior of S grows like this power: few ranges are a hundred times too wide
_CAUTION = 1.5  # by what S is taken wider than found
_OFFSETS: FloatArray = np.array([-1.1, 0.0, 1.1])  # thresholds around m, in units of ρ S_j


def nearest(thresholds: FloatArray) -> IntArray:
    """The cells of the grid that thresholds lie in.

    Example:
        >>> int(nearest(np.array([0.0005]))[0])
        512
    """
    cells = np.rint((np.asarray(thresholds) + 1) / 2 * _CELLS - 0.5).astype(np.int64)
    return np.clip(cells, 0, _CELLS - 1)


def counted(features: IntArray, thresholds: FloatArray, replies: FloatArray) -> FloatArray:
    """Answers no and yes by feature and threshold, shape (FEATURES, cells, 2)."""
    place = np.ravel_multi_index(
        (features.ravel(), nearest(thresholds).ravel(), (replies.ravel() > 0).astype(np.int64)),
        (FEATURES, _CELLS, 2),
    )
    counts = np.bincount(place, minlength=FEATURES * _CELLS * 2)
    return counts.reshape(FEATURES, _CELLS, 2).astype(np.float64)


def nobody_asked() -> FloatArray:
    """Before the first answer."""
    return np.zeros((FEATURES, _CELLS, 2))


class Whereabouts:
    """What answers say of m_j, ρ_j and S.

    Args:
        counts: as `counted`, added up.
        alpha: truth probability of an answer.
    """

    def __init__(self, counts: FloatArray, *, alpha: float) -> None:
        log = np.stack([_prior(j) + _log_likelihood(j, counts[j], alpha) for j in range(FEATURES)])
        by_width = logsumexp(log, axis=(2, 3))  # (features, widths)
        joint = by_width.sum(axis=0) + _WIDER * np.log(_WIDTHS)
        self.widths = np.exp(joint - logsumexp(joint))
        # What is known of (ρ_j, m_j) given S, times what all features together say of S.
        self.cells = np.exp(log - by_width[..., None, None]) * self.widths[:, None, None]

    def thresholds(self, features: IntArray, uniforms: FloatArray) -> FloatArray:
        """Where people are asked whether they lie above, for the features chosen for them.

        Args:
            features: shape (n, k).
            uniforms: public, shape (n, 2 k).
        """
        k = features.shape[1]
        found = np.empty(features.shape)
        for j in np.unique(features):
            here = features == j
            cumulated = self.cells[j].ravel().cumsum()
            drawn = np.searchsorted(cumulated, uniforms[:, :k][here] * cumulated[-1])
            width, ratio, cell = np.unravel_index(
                np.minimum(drawn, cumulated.size - 1), self.cells[j].shape
            )
            step = _OFFSETS[(uniforms[:, k:][here] * len(_OFFSETS)).astype(np.int64)]
            found[here] = _GRID[cell] + step * _RATIOS[ratio] * _WIDTHS[width] / max(j, 1)
        return np.asarray(_GRID[nearest(found)])

    @property
    def centers(self) -> FloatArray:
        """The median of each m_j, shape (FEATURES,)."""
        at = self.cells.sum(axis=(1, 2)).cumsum(axis=1)
        return np.asarray(_GRID[np.argmax(at >= at[:, -1:] / 2, axis=1)])

    @property
    def width(self) -> float:
        """S, rather too wide than too narrow: questions about centers reach as far as it does."""
        return float(_CAUTION * np.exp(self.widths @ np.log(_WIDTHS)))


@lru_cache(maxsize=FEATURES)
def _prior(feature: int) -> FloatArray:
    """Logarithm of what is expected given S, shape (widths, ratios, cells)."""
    spread = (_WIDTHS / max(feature, 1))[:, None]
    place = -0.5 * (_GRID / spread) ** 2 if feature else np.zeros((len(_WIDTHS), _CELLS))
    place = place - logsumexp(place, axis=1, keepdims=True)
    return np.asarray(np.log(_RATIO_PRIOR)[:, None] + place[:, None, :])


def _log_likelihood(feature: int, counts: FloatArray, alpha: float) -> FloatArray:
    """Of the answers about one feature, shape (widths, ratios, cells).

    Only m - t matters, so that the sum over thresholds is a convolution.
    """
    no, yes = _answers(feature, alpha)
    told = np.fft.rfft(counts, 4 * _CELLS, axis=0)
    log = np.fft.irfft(no * told[:, 0] + yes * told[:, 1], 4 * _CELLS, axis=-1)
    return np.asarray(log[..., _CELLS - 1 : 2 * _CELLS - 1])


@lru_cache(maxsize=4 * FEATURES)
def _answers(feature: int, alpha: float) -> tuple[ComplexArray, ComplexArray]:
    """Transforms of log P(no) and log P(yes) as functions of m - t."""
    lag = (np.arange(2 * _CELLS - 1) - (_CELLS - 1)) / _CELLS * 2
    scale = _WIDTHS[:, None, None] / max(feature, 1) * _RATIOS[:, None]
    above = alpha * (1 - _OUTLIERS) * (expit(lag / scale) - 0.5)
    no, yes = (np.fft.rfft(np.log(0.5 + side * above), 4 * _CELLS) for side in (-1, 1))
    return no, yes
