"""Where a number lies that everybody has, from yes/no answers alone: noisy halving.

The number is taken to be logistic around m with scale s; what is known of (m, s) is a posterior on
a public grid. Thresholds are drawn from the middle half of what is known of m, where answers tell
most, so that each batch of people closes in on m however wide the range was.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from dpfda._validate import FloatArray, IntArray

_OUTLIERS = 0.02  # people anywhere
_MIDDLE = (0.25, 0.75)
_NEARLY_ALL = (0.05, 0.95)
_OFFSETS: FloatArray = np.array([0.0, -1.1, 0.0, 1.1])  # thresholds around m, in units of s


@dataclass(frozen=True, eq=False)
class Search:
    """What answers say of m and s.

    Attributes:
        grid: equally spaced places where m may lie, and thresholds too.
        scales: values of s.
        prior: logarithm of what is expected, up to a constant, shape (scales, grid).
        counts: answers no and yes by threshold, shape (grid, 2).
        alpha: truth probability of an answer.

    Examples:
        >>> grid = np.linspace(0, 1, 101)
        >>> counts = counted(grid, np.array([0.2, 0.4]), np.array([1.0, -1.0]))
        >>> search = Search(grid, np.array([0.01]), np.zeros((1, 101)), counts, alpha=1.0)
        >>> round(search.median, 2)
        0.3
    """

    grid: FloatArray
    scales: FloatArray
    prior: FloatArray
    counts: FloatArray
    alpha: float

    @cached_property
    def posterior(self) -> FloatArray:
        """Probability of each (s, m), shape (scales, grid).

        Only m - t matters, so that the sum over thresholds is a convolution.
        """
        cells = len(self.grid)
        step = float(self.grid[1] - self.grid[0])
        no, yes = _answers(cells, tuple((self.scales / step).tolist()), self.alpha)
        told = np.fft.rfft(self.counts, 4 * cells, axis=0)
        log = np.fft.irfft(no * told[:, 0] + yes * told[:, 1], 4 * cells, axis=-1)
        return np.asarray(softmax(self.prior + log[:, cells - 1 : 2 * cells - 1]))

    @cached_property
    def _places(self) -> FloatArray:
        """Probability of each m."""
        return np.asarray(self.posterior.sum(axis=0))

    @property
    def median(self) -> float:
        """Of what is known of m."""
        return float(self.grid[self._quantile(0.5)])

    @property
    def doubt(self) -> float:
        """Standard deviation of what is known of m, around its median."""
        return float(np.sqrt(self._places @ (self.grid - self.median) ** 2))

    @property
    def margin(self) -> float:
        """Half of the length on which m lies nine times of ten: outliers do not stretch it."""
        low, high = (float(self.grid[self._quantile(share)]) for share in _NEARLY_ALL)
        return (high - low) / 2

    @property
    def scale(self) -> float:
        """The typical s."""
        return float(np.exp(self.posterior.sum(axis=1) @ np.log(self.scales)))

    def thresholds(self, uniforms: FloatArray) -> FloatArray:
        """Where people are asked whether they lie above, shape (n, k).

        Args:
            uniforms: public, shape (n, 2 k).
        """
        k = uniforms.shape[1] // 2
        low, high = _MIDDLE
        place = self._quantile(low + (high - low) * uniforms[:, :k])
        turn = (uniforms[:, k : k + 1] * len(_OFFSETS)).astype(np.int64) + np.arange(k)
        asked = self.grid[place] + self.scale * _OFFSETS[turn % len(_OFFSETS)]
        return np.asarray(self.grid[_nearest(self.grid, asked)])

    def _quantile(self, share: FloatArray | float) -> IntArray:
        return np.asarray(np.searchsorted(self._places.cumsum(), share))


@lru_cache(maxsize=16)
def _answers(
    cells: int, scales: tuple[float, ...], alpha: float
) -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128]]:
    """Transforms of log P(no) and log P(yes) as functions of m - t, in steps of the grid."""
    lag = np.arange(2 * cells - 1) - (cells - 1)
    above = alpha * (1 - _OUTLIERS) * (expit(lag / np.array(scales)[:, None]) - 0.5)
    no, yes = (np.fft.rfft(np.log(0.5 + side * above), 4 * cells) for side in (-1, 1))
    return no, yes


def _nearest(grid: FloatArray, values: FloatArray) -> IntArray:
    """The places of an equally spaced grid that values lie at."""
    cells = np.rint((values - grid[0]) / (grid[1] - grid[0])).astype(np.int64)
    return np.asarray(np.clip(cells, 0, len(grid) - 1))


def counted(grid: FloatArray, thresholds: FloatArray, replies: FloatArray) -> FloatArray:
    """Answers no and yes by threshold, shape (grid, 2)."""
    place = 2 * _nearest(grid, thresholds.ravel()) + (replies.ravel() > 0)
    return np.bincount(place, minlength=2 * len(grid)).reshape(-1, 2).astype(np.float64)
