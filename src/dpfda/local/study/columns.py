"""Location and width of each column, from yes-or-no answers about single columns.

A column has one of a public list of shapes on its public range, here scaled to [0, 1]. A shape
gives the probability that a person's value exceeds t:

* hill: logistic around m with scale s, F((m - t)/s);
* slope: some people lie exactly at one end, and the distances of the others from it are exponential
  with scale θ (counts, amounts of money, grey values);
* ends: everybody lies at one of the two ends (yes/no columns).

The posterior of a column is over these shapes. Columns of a table are similar, so their prior is
fitted to all of them (empirical Bayes). Labels are not used.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray, IntArray

_POWERS = 2.0 ** (-np.arange(2, 23) / 2)
THRESHOLDS: FloatArray = np.unique(
    np.round(np.concatenate([_POWERS, 1 - _POWERS, np.linspace(0.01, 0.99, 99)]), 6)
)
"""Possible thresholds of questions; they are dense near the ends, for skewed columns."""

_LOCATIONS: FloatArray = np.r_[0.0, THRESHOLDS, 1.0]
_SCALES: FloatArray = np.asarray(0.5 ** np.arange(2.0, 12.0))  # widest first
_SHARES: FloatArray = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
_TAILS: FloatArray = np.asarray(0.5 ** np.arange(0.0, 11.0))
_STEPS = np.array([-1.1, 0.0, 1.1])  # thresholds for a hill, in units of s around m
_FRACTIONS = np.array([0.02, 0.5, 1.5])  # thresholds for a slope, in units of θ from its end
_TO_DEVIATION = 1.8  # a logistic law of scale s has standard deviation 1.81 s
_FROM_ABSOLUTE = 1.25  # a normal law's standard deviation over its mean absolute deviation

_HILLS, _SLOPES, _ENDS = 0.7, 0.15, 0.15
"""Prior probability of each kind of shape for a column of a table."""
_NARROWER = 0.75  # prior probability of a hill divided by that of a hill of twice its width
_ELSEWHERE = 0.3
"""Prior probability that a coefficient of curves is a hill anywhere in its range. Otherwise it is a
hill in the center, with about a sixth of the width, as for curves that fill their range."""
_MIDDLE, _SIXTH = 0.12, np.array([0.1, 0.3, 0.35, 0.2, 0.05])
_OUTLIERS = 0.04  # share of people with values anywhere
_THRESHOLDS_ASKED = 8  # of a column, in one batch
_BETWEEN = (0.16, 0.5, 0.84)  # the median and one standard deviation to either side
_PUBLIC_COLUMNS = 4.0  # weight of the public prior in the pooled one, in columns
_POOLINGS = 25  # steps of the EM algorithm


class Shapes(NamedTuple):
    """All shapes, with one entry for each; the first ones are hills.

    Attributes:
        mean: mean of a column.
        width: its width, comparable to a standard deviation.
        above: probability of exceeding each threshold, shape (shapes, T).
        informative: the three most informative thresholds, shape (shapes, 3).
    """

    mean: FloatArray
    width: FloatArray
    above: FloatArray
    informative: FloatArray


@cache
def shapes() -> Shapes:
    """The public list of shapes."""
    m, s = np.repeat(_LOCATIONS, len(_SCALES)), np.tile(_SCALES, len(_LOCATIONS))
    hill = 1 / (1 + np.exp(-np.clip((m[:, None] - THRESHOLDS) / s[:, None], -40, 40)))
    share, tail = np.repeat(_SHARES, len(_TAILS)), np.tile(_TAILS, len(_SHARES))
    low = share[:, None] * np.exp(-THRESHOLDS / tail[:, None])
    high = 1 - share[:, None] * np.exp(-(1 - THRESHOLDS) / tail[:, None])
    amount = share * tail * -np.expm1(-1 / tail)  # the mean distance from the end
    # The mean absolute deviation is twice the integral of P(x > t) from the mean to the end.
    absolute = 2 * share * tail * (np.exp(-amount / tail) - np.exp(-1 / tail))
    slope = _FROM_ABSOLUTE * absolute
    near = tail[:, None] * _FRACTIONS
    ends = np.broadcast_to(_SHARES[:, None], (len(_SHARES), len(THRESHOLDS)))
    between = np.broadcast_to([0.25, 0.5, 0.75], (len(_SHARES), 3))
    return Shapes(
        mean=np.concatenate([m, amount, 1 - amount, _SHARES]),
        width=np.concatenate([_TO_DEVIATION * s, slope, slope, np.sqrt(_SHARES * (1 - _SHARES))]),
        above=np.concatenate([hill, low, high, ends]),
        informative=np.concatenate([m[:, None] + s[:, None] * _STEPS, near, 1 - near, between]),
    )


@cache
def expected(*, curves: bool, center_known: bool = False) -> FloatArray:
    """Prior probability of each shape.

    Hills may lie anywhere in the range, or near an end; wide hills are likelier than narrow ones.
    """
    between = np.gradient(_LOCATIONS)
    anywhere = 0.5 * between / between.sum() + 0.5 / len(_LOCATIONS)
    widths = _NARROWER ** np.arange(len(_SCALES))
    hills, kinds = np.outer(anywhere, widths / widths.sum()), (_HILLS, _SLOPES, _ENDS)
    if curves:
        middle = between * np.exp(-0.5 * ((_LOCATIONS - 0.5) / _MIDDLE) ** 2)
        sixth = np.pad(_SIXTH, (0, len(_SCALES) - len(_SIXTH)))
        central = np.outer(middle / middle.sum(), sixth)
        hills, kinds = _ELSEWHERE * hills + (1 - _ELSEWHERE) * central, (1.0, 0.0, 0.0)
    if center_known:
        hills[np.abs(_LOCATIONS - 0.5) > 1e-9] = 0.0
        hills, kinds = (hills + 1e-12) / (hills + 1e-12).sum(), (1.0, 0.0, 0.0)
    slopes = 2 * len(_SHARES) * len(_TAILS)
    # Ends with nearly everybody on one side are less likely a priori: a slope explains them as
    # well, and a column that is wrongly taken for wide causes the larger error.
    mixed = (_SHARES * (1 - _SHARES)) ** 2
    slope = np.full(slopes, kinds[1] / slopes)
    return np.concatenate([kinds[0] * hills.ravel(), slope, kinds[2] * mixed / mixed.sum()])


@cache
def _informative() -> FloatArray:
    """Indicators of the most informative thresholds of each shape, shape (shapes, T)."""
    places = np.minimum(np.searchsorted(THRESHOLDS, shapes().informative), len(THRESHOLDS) - 1)
    return np.asarray(np.eye(len(THRESHOLDS))[places].sum(axis=1))


class Columns:
    """The posterior of every column's shape, updated by answers.

    Args:
        prior: prior probabilities of shapes, one row per column, or one row for all columns.
            Similar columns must have the same row.
        reach: half the width of the range of each column, which is centered at 0.
        alpha: truth probability of an answer.
        alone: the number of first columns whose priors are not pooled with the others.
    """

    def __init__(self, prior: FloatArray, reach: FloatArray, *, alpha: float, alone: int) -> None:
        d = len(reach)
        self.reach, self.alpha, self._alone = reach, alpha, alone
        self._public = np.broadcast_to(prior, (d, prior.shape[-1])).copy()
        self._counts = np.zeros((d, len(THRESHOLDS), 2))  # numbers of answers no and yes
        self.posterior = self._public.copy()

    def asked(self) -> IntArray:
        """The next thresholds, shape (d, 8), each for the same number of people.

        Every shape has three informative thresholds. The next thresholds are quantiles of these
        under the posterior, so they concentrate where answers are still uncertain.
        """
        likely = self.posterior @ _informative()
        rising = np.cumsum(likely, axis=1)
        levels = (np.arange(_THRESHOLDS_ASKED) + 0.5) / _THRESHOLDS_ASKED
        found = [np.searchsorted(row, levels * row[-1]) for row in rising]
        return np.asarray(np.minimum(np.array(found), len(THRESHOLDS) - 1), dtype=np.int64)

    def update(self, asked: IntArray, counts: FloatArray) -> None:
        """Update by the numbers of "no" and "yes" answers; columns share a fitted prior.

        The common prior maximizes the likelihood of all answers by the EM algorithm. The public
        prior has the weight of a few columns in it.
        """
        every = np.arange(len(asked))[:, None]
        np.add.at(self._counts, (every, asked), counts.reshape(*asked.shape, 2))
        above = self.alpha * (1 - _OUTLIERS) * (shapes().above - 0.5)
        yes, no = np.log(0.5 + above), np.log(0.5 - above)
        log = self._counts[..., 1] @ yes.T + self._counts[..., 0] @ no.T
        log[self._public == 0] = -np.inf
        likelihood = np.exp(log - log.max(axis=1, keepdims=True))
        prior, others = self._public.copy(), likelihood[self._alone :]
        if len(others):
            public = common = self._public[-1]
            for _ in range(_POOLINGS):
                posterior = common * (others.T @ (1 / (others @ common)))  # summed over columns
                common = (posterior + _PUBLIC_COLUMNS * public) / (len(others) + _PUBLIC_COLUMNS)
            prior[self._alone :] = common
        weights = likelihood * prior
        self.posterior = np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def thresholds(self, columns: IntArray, asked: IntArray) -> FloatArray:
        """The thresholds with these numbers, in units of features."""
        return np.asarray(self.reach[columns] * (2 * THRESHOLDS[asked] - 1))

    def placed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Location (posterior median) of each column, its uncertainty, and a conservative width.

        The uncertainty is a posterior standard deviation. The width is a standard deviation over
        people: the posterior median, enlarged by the uncertainty of the location.
        """
        every, posterior = shapes(), self.posterior
        low, location, high = (_quantile(posterior, every.mean, share) for share in _BETWEEN)
        doubt = np.sqrt((posterior * (every.mean - location[:, None]) ** 2).sum(axis=1))
        width = np.exp(_quantile(posterior, np.log(every.width), 0.5))
        width = np.hypot(width, np.sqrt((high - location) * (location - low)))
        return self.reach * (2 * location - 1), 2 * self.reach * doubt, 2 * self.reach * width

    def widths(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation of the width of each column."""
        width, unit = shapes().width, 2 * self.reach
        mean = self.posterior @ width
        return unit * mean, unit * np.sqrt(np.maximum(self.posterior @ width**2 - mean**2, 0.0))


def _quantile(posterior: FloatArray, values: FloatArray, share: float) -> FloatArray:
    """Quantiles of values with these probabilities, one row for each column."""
    points, place = np.unique(values, return_inverse=True)
    gathered = np.zeros((len(points), len(posterior)))
    np.add.at(gathered, place, posterior.T)
    before = gathered.cumsum(axis=0) - gathered / 2
    return np.array([np.interp(share, row, points) for row in before.T])
