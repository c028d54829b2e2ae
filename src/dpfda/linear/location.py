"""Where each column lies and how wide it is, from yes/no answers alone.

Column j on its public range, called [0, 1] here, is taken to exceed t with probability
F((m_j - t)/s_j), F logistic; a small share of people may be anywhere. What is known of (m_j, s_j)
is a posterior on a public grid. Columns of one table resemble each other, so each begins from a
prior that is fitted to all of them (empirical Bayes). Nobody's label is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from dpfda._validate import FloatArray, IntArray

_POWERS = 2.0 ** (-np.arange(2, 23) / 2)
THRESHOLDS: FloatArray = np.unique(
    np.round(np.concatenate([_POWERS, 1 - _POWERS, np.linspace(0.01, 0.99, 99)]), 6)
)
"""Where people may be asked whether they lie above: dense near the ends, as skewed columns are."""

_LOCATIONS: FloatArray = np.r_[0.0, THRESHOLDS, 1.0]
_SCALES: FloatArray = np.asarray(0.5 ** np.arange(2.0, 12.0))  # widest first
_OUTLIERS = 0.04  # people anywhere
_OFFSETS = np.array([-1.1, 0.0, 1.1])  # thresholds in units of s around a guess of m
_TO_DEVIATION = 1.8  # a logistic law of scale s has standard deviation 1.81 s
_NARROW = 0.25  # which quantile of the posterior of log s is taken: too wide loses more
_PUBLIC_COLUMNS = 4.0  # the public prior counts as many columns as this among the pooled ones
_POOLINGS = 25


@cache
def _cells() -> tuple[FloatArray, FloatArray, FloatArray]:
    """m and s of each cell, and the probability of exceeding each threshold there."""
    m, s = np.repeat(_LOCATIONS, len(_SCALES)), np.tile(_SCALES, len(_LOCATIONS))
    steps = np.clip((m[:, None] - THRESHOLDS) / s[:, None], -40, 40)
    return m, s, _OUTLIERS / 2 + (1 - _OUTLIERS) / (1 + np.exp(-steps))


@cache
def public_prior(
    *, curves: bool = False, center_known: bool = False, free_share: float | None = None
) -> FloatArray:
    """What is expected of a column before anybody is asked, on the grid's cells.

    Columns of a table, two thirds: anywhere on the range or near one of its ends, rather wide than
    narrow. One third: in the middle and as wide as its range, as careful people state ranges.
    Coefficients of curves are nearly always of the second kind, and a sixth of their range wide.
    How likely the first kind is may be said otherwise.
    """
    between = np.gradient(_LOCATIONS)
    anywhere = 0.5 * between / between.sum() + 0.5 / len(_LOCATIONS)
    free = np.outer(anywhere, 0.75 ** np.arange(len(_SCALES)))
    middle = np.exp(-0.5 * ((_LOCATIONS - 0.5) / 0.12) ** 2)
    widths = np.zeros(len(_SCALES))
    if curves:
        middle = middle * between
        widths[:5] = (0.1, 0.3, 0.35, 0.2, 0.05)
    else:
        widths[:2] = 0.5
    share = 0.85 if curves else 0.35
    if free_share is not None:
        share = 1 - free_share
    central = np.outer(middle / middle.sum(), widths)
    prior = (1 - share) * free / free.sum() + share * central
    if center_known:
        prior[np.abs(_LOCATIONS - 0.5) > 1e-9] = 0.0
        prior += 1e-12
    return np.asarray((prior / prior.sum()).ravel())


@dataclass
class Whereabouts:
    """The posterior of every column's (m, s), as answers come in.

    Attributes:
        counts: answers no and yes by column and threshold, shape (d, T, 2).
        public: what is expected of each cell before the first answer, and
        prior: after some answers about all columns; the same for every column.
        alpha: truth probability of an answer.
        alone: what is expected of the first columns, one row each, where they have nothing in
            common with the others.
    """

    counts: FloatArray
    public: FloatArray
    prior: FloatArray
    alpha: float
    alone: FloatArray = field(default_factory=lambda: np.zeros((0, len(_cells()[0]))))

    @classmethod
    def unknown(
        cls, columns: int, *, alpha: float, public: FloatArray, **alone: FloatArray
    ) -> Whereabouts:
        """Before the first answer."""
        return cls(np.zeros((columns, len(THRESHOLDS), 2)), public, public, alpha, **alone)

    def posterior(self) -> FloatArray:
        """Probability of every cell, one row a column."""
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
        """Of the answers about each column in each cell, the largest being 1."""
        above = self.alpha * (_cells()[2] - 0.5)
        yes, no = np.log(0.5 + above), np.log(0.5 - above)
        log = self.counts[..., 1] @ yes.T + self.counts[..., 0] @ no.T
        return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))

    def found(self, caution: float = _NARROW) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of each column: location (posterior median), what is not known of it, a cautious width.

        The second is a posterior standard deviation, the third a standard deviation of people: this
        quantile of what is known of it.
        """
        cells = self.posterior().reshape(-1, len(_LOCATIONS), len(_SCALES))
        at = cells.sum(axis=2)
        location = _LOCATIONS[np.argmax(at.cumsum(axis=1) >= 0.5, axis=1)]
        doubt = np.sqrt((at * (_LOCATIONS - location[:, None]) ** 2).sum(axis=1))
        narrow_first, log = cells.sum(axis=1)[:, ::-1].cumsum(axis=1), np.log(_SCALES[::-1])
        half = np.log(2) / 2
        ends = np.concatenate([[log[0] - half], log + half])
        scale = [np.exp(np.interp(caution, np.r_[0.0, row], ends)) for row in narrow_first]
        return location, doubt, _TO_DEVIATION * np.array(scale)


def _normalized(weights: FloatArray) -> FloatArray:
    """Rows that add up to 1."""
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def thresholds(posterior: FloatArray, columns: IntArray, uniforms: FloatArray) -> IntArray:
    """Which threshold each person is asked about, for the columns chosen for them.

    A cell drawn from the posterior, and its m or m ± 1.1 s: the more is known of a column, the
    closer the questions come to where the answer is not known yet.

    Args:
        posterior: as `Whereabouts.posterior`.
        columns: shape (n, k).
        uniforms: public, shape (n, 2 k).
    """
    k = columns.shape[1]
    m, s, _ = _cells()
    cumulated = posterior.cumsum(axis=1)
    cell = np.empty(columns.shape, dtype=np.int64)
    for column in np.unique(columns):
        here = columns == column
        cell[here] = np.searchsorted(cumulated[column], uniforms[:, :k][here])
    cell = np.minimum(cell, len(m) - 1)
    step = _OFFSETS[(uniforms[:, k:] * len(_OFFSETS)).astype(np.int64)]
    place = np.searchsorted(THRESHOLDS, m[cell] + s[cell] * step)
    return np.asarray(np.minimum(place, len(THRESHOLDS) - 1))
