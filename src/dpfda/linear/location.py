"""Where each column lies and how wide it is, from yes/no answers alone.

A column has one of a public list of shapes; what is known of it is a posterior over them. Columns
of one table resemble each other, so each begins from a prior that is fitted to all of them
(empirical Bayes). Nobody's label is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.linear.shapes import THRESHOLDS, shapes

_OUTLIERS = 0.04  # people anywhere
_BETWEEN = (0.16, 0.5, 0.84)  # the median and one standard deviation to either side
_PUBLIC_COLUMNS = 4.0  # the public prior counts as many columns as this among the pooled ones
_POOLINGS = 25


@dataclass
class Whereabouts:
    """The posterior of every column's shape, as answers come in.

    Attributes:
        counts: answers no and yes by column and threshold, shape (d, T, 2).
        public: what is expected of each shape before the first answer, and
        prior: after some answers about all columns; the same for every column.
        alpha: truth probability of an answer.
        alone: what is expected of the first columns, one row each, where they have nothing in
            common with the others.
    """

    counts: FloatArray
    public: FloatArray
    prior: FloatArray
    alpha: float
    alone: FloatArray = field(default_factory=lambda: np.zeros((0, len(shapes().mean))))

    @classmethod
    def unknown(
        cls, columns: int, *, alpha: float, public: FloatArray, **alone: FloatArray
    ) -> Whereabouts:
        """Before the first answer."""
        return cls(np.zeros((columns, len(THRESHOLDS), 2)), public, public, alpha, **alone)

    def posterior(self) -> FloatArray:
        """Probability of every shape, one row a column."""
        likelihood, own = self._likelihood(), len(self.alone)
        likelihood[:own] *= self.alone
        likelihood[own:] *= self.prior
        return _normalized(likelihood)

    def pool(self) -> None:
        """Let every column learn from the others.

        The prior that explains the answers best, found by the EM algorithm from the public one,
        which keeps the weight of a few columns: with few columns, or few answers, it stays close.
        """
        likelihood, prior = self._likelihood()[len(self.alone) :], self.public
        columns = len(likelihood)
        for _ in range(_POOLINGS):
            learnt = _normalized(likelihood * prior).sum(axis=0)
            prior = (learnt + _PUBLIC_COLUMNS * self.public) / (columns + _PUBLIC_COLUMNS)
        self.prior = prior

    def _likelihood(self) -> FloatArray:
        """Of the answers about each column under each shape, the largest being 1."""
        yes, no = _answers(self.alpha)
        log = self.counts[..., 1] @ yes.T + self.counts[..., 0] @ no.T
        return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))

    def found(self, *, alike: float | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of each column: location (posterior median), what is not known of it, a cautious width.

        The second is a posterior standard deviation, the third a standard deviation of people: the
        median of what is known of it, and no less than what is not known of the location. Who does
        not know where a column is cannot know how far from there somebody lies.

        Args:
            alike: standard deviation of the logarithms of widths over columns, where it is known
                that widths resemble each other.
        """
        every, posterior = shapes(), self.posterior()
        low, location, high = (_quantile(posterior, every.mean, share) for share in _BETWEEN)
        doubt = np.sqrt((posterior * (every.mean - location[:, None]) ** 2).sum(axis=1))
        logs = np.log(every.width)
        width = np.exp(
            _quantile(posterior, logs, 0.5) if alike is None else _alike(posterior, logs, alike)
        )
        return location, doubt, np.hypot(width, np.sqrt((high - location) * (location - low)))

    def widths(self) -> tuple[FloatArray, FloatArray]:
        """Of each column: posterior mean and posterior standard deviation of its width."""
        width, posterior = shapes().width, self.posterior()
        mean = posterior @ width
        return mean, np.sqrt(np.maximum(posterior @ width**2 - mean**2, 0.0))


@lru_cache(maxsize=8)
def _answers(alpha: float) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the probabilities of yes and no, by shape and threshold."""
    above = alpha * (1 - _OUTLIERS) * (shapes().above - 0.5)
    return np.log(0.5 + above), np.log(0.5 - above)


def _alike(posterior: FloatArray, values: FloatArray, spread: float) -> FloatArray:
    """Posterior means of values that lie around an unknown common one, one row a column."""
    own = posterior @ values
    doubt = posterior @ values**2 - own**2 + 1e-9
    common = np.average(own, weights=1 / (doubt + spread**2))
    return np.asarray(own + (common - own) * doubt / (doubt + spread**2))


def _quantile(posterior: FloatArray, values: FloatArray, share: float) -> FloatArray:
    """Of values with these probabilities, one row a column, halfway between two of them."""
    points, place = np.unique(values, return_inverse=True)
    gathered = np.zeros((len(points), len(posterior)))
    np.add.at(gathered, place, posterior.T)
    before = gathered.cumsum(axis=0) - gathered / 2
    return np.array([np.interp(share, row, points) for row in before.T])


def _normalized(weights: FloatArray) -> FloatArray:
    """Rows that add up to 1."""
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def thresholds(posterior: FloatArray, columns: IntArray, uniforms: FloatArray) -> IntArray:
    """Which threshold each person is asked about, for the columns chosen for them.

    A shape drawn from the posterior, and one of its three thresholds: the more is known of a
    column, the closer the questions come to where the answer is not known yet.

    Args:
        posterior: as `Whereabouts.posterior`.
        columns: shape (n, k).
        uniforms: public, shape (n, 2 k).
    """
    k = columns.shape[1]
    every = shapes().asked
    cumulated = posterior.cumsum(axis=1)
    shape = np.empty(columns.shape, dtype=np.int64)
    for column in np.unique(columns):
        here = columns == column
        shape[here] = np.searchsorted(cumulated[column], uniforms[:, :k][here])
    shape = np.minimum(shape, len(every) - 1)
    chosen = every[shape, (uniforms[:, k:] * every.shape[1]).astype(np.int64)]
    place = np.searchsorted(THRESHOLDS, chosen)
    return np.asarray(np.minimum(place, len(THRESHOLDS) - 1))
