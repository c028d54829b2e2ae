"""How far people are from the middle of each feature: medians t_j of |z_j - c_j|, by yes or no.

The logarithm of a distance is taken to be logistic around log t_j. Features have something in
common: log t_j lies around a common place that is not known either, relative to what is usual, so
that few answers about each of them are enough.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from dpfda._validate import FloatArray, IntArray
from dpfda.questions.location import counted

BATCHES = 3
"""Each is asked close to what those before found."""

_GRID: FloatArray = np.linspace(np.log(1 / 2000), np.log(2.0), 106)  # logarithms of t
_USUAL = 0.42  # t of a normal feature whose half-width is 1
_LOGISTIC = 0.6  # scale of the logarithm of a normal number's size
_OUTLIERS = 0.02
_COMMON = {True: (-0.3, 0.8), False: (-0.3, 0.5)}  # mean and spread of the common place:
_OWN = {True: 0.4, False: 0.7}  # and of features around it, of curves and of columns
_MIDDLE = (0.25, 0.75)


class Widths:
    """What people said so far of how far they are from the middles.

    Args:
        features: how many there are.
        alpha: truth probability of an answer.
        alike: whether they are those of a curve.
    """

    def __init__(self, features: int, *, alpha: float, alike: bool) -> None:
        self.alpha, self.common, self.own = alpha, _COMMON[alike], _OWN[alike]
        self.counts: FloatArray = np.zeros((features, len(_GRID), 2))

    def posterior(self, scales: FloatArray) -> FloatArray:
        """Probability of each place of the grid, one row a feature with this public half-width."""
        usual = np.log(_USUAL * scales)[:, None, None]
        above = self.alpha * (1 - _OUTLIERS) * (expit((_GRID[:, None] - _GRID) / _LOGISTIC) - 0.5)
        yes, no = np.log(0.5 + above), np.log(0.5 - above)
        log = self.counts[..., 1] @ yes.T + self.counts[..., 0] @ no.T
        likelihood = np.exp(log - log.max(axis=1, keepdims=True))
        mean, spread = self.common
        shifts = mean + spread * np.linspace(-3, 3, 61)
        off = (_GRID - usual - shifts[:, None]) / self.own
        given = np.exp(-0.5 * off**2)  # of each place, by feature and shift
        given /= given.sum(axis=2, keepdims=True)
        told = np.log(np.einsum("dsg,dg->ds", given, likelihood) + 1e-300)
        prior = -0.5 * ((shifts - mean) / spread) ** 2
        others = prior + told.sum(axis=0) - told  # what all other features say of the shift
        weight = np.exp(others - others.max(axis=1, keepdims=True))
        found = np.einsum("ds,dsg->dg", weight, given) * likelihood
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def thresholds(
        self, scales: FloatArray, features: IntArray, uniforms: FloatArray
    ) -> FloatArray:
        """Where people are asked whether they are farther, for the features chosen for them.

        Args:
            scales: as in `posterior`.
            features: shape (n, k).
            uniforms: public, shape (n, k).
        """
        below = self.posterior(scales).cumsum(axis=1)
        low, high = _MIDDLE
        wanted = low + (high - low) * uniforms
        place = np.empty(features.shape, dtype=np.int64)
        for feature in np.unique(features):
            here = features == feature
            place[here] = np.searchsorted(below[feature], wanted[here])
        return np.exp(_GRID[np.minimum(place, len(_GRID) - 1)])

    def counted(self, features: IntArray, asked: FloatArray, replies: FloatArray) -> FloatArray:
        """Answers by feature and threshold, as in `counts`."""
        own = (features == feature for feature in range(len(self.counts)))
        return np.stack([counted(_GRID, np.log(asked[one]), replies[one]) for one in own])

    def found(self, scales: FloatArray) -> tuple[FloatArray, FloatArray]:
        """t_j, and the standard deviation of what is known of its logarithm."""
        posterior = self.posterior(scales)
        mean = posterior @ _GRID
        return np.exp(mean), np.sqrt(np.maximum(posterior @ _GRID**2 - mean**2, 0))
