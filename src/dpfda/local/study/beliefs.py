"""What is held likely of people before anybody answers: the prior of a study of two classes.

The working model: a share π of the people has label 1; feature j of somebody with label y = ±1 is
normal with mean m_j + y d_j s_j and standard deviation s_j, independently of the other features.
Where classes may differ in spread, the standard deviation is s_j exp(y r_j).
It decides what is asked and how answers are weighed, never who is protected.

Every constant below is a belief, with the reason for it. Three numbers are common to all features
and unknown: how wide the first feature is, how fast widths fall with the order of a feature, and
how far middles are from 0 (and a fourth, which class is wider, where spreads may differ). They are
on small grids, so that answers about one feature say something about the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincinv, gammaln, ndtr

from dpfda._validate import FloatArray, IntArray

_WIDTHS = np.array([0.25, -0.85, -1.95, -3.05, -4.15])
_WIDTH_ODDS = np.array([0.25, 0.3, 0.2, 0.15, 0.1])
"""Logarithm of the first feature's width beside a third of the public range's half: a range that is
just wide enough, or up to sixty times too wide. The wider, the rarer."""
WIDTH = np.log(0.3)
"""Of the first feature beside the public range's half, as a logarithm: a third."""
FALLS = np.array([0.0, 1.0, 2.0])
"""Widths fall like (1 + j)^-fall: as those of noise, of continuous and of smooth curves."""
OWN_WIDTH = 0.55
"""A feature's width may be 1.7 times what the common numbers say, or as much less."""
MIDDLES = np.array([0.5, 1.5, 4.0])
"""How far middles are from 0, in units of the feature's width: curves have a mean of their own."""
LEVEL = 0.4
"""Of the public range's half: a level, or a column of a table, may lie anywhere in its range."""
_EXACT = 0.05
"""Of a width: how far a middle that is 0 by construction may be from it."""
APART, _TAILS = 0.4, 3.0
"""Classes that differ in a feature are about one width apart (2 d), seldom three: a Student law
with so many degrees of freedom."""
_WIDER, _OWN_WIDER = np.array([-0.5, 0.0, 0.5]), 0.25
"""Where classes may differ in spread: a class that is wider in one feature is so in others; r is
one of the first numbers, common to all, give or take the second."""
NOTHING = 0.1
"""How likely it is that no feature says anything of the label: few hold a study of nothing."""
MATTER = (1.0, 3.0)
"""Otherwise: so many features do, or all of them."""
_ORDERS = (0.0, 1.0, 2.0, 4.0)
"""In ordered features, the first rather than the last: falling like (1 + j)^-order."""
_ALMOST = 0.98
"""How likely a feature is to matter, at most."""
BALANCED, NEARLY, UNEVEN = 0.5, 0.15, 1.4
"""Classes are as often made to be equally frequent (their log-odds within 0.15 of 0) as not (within
1.4: from one in five to four in five, seldom one in twenty)."""
EVEN = 0.2
"""Of what is asked: about everything alike, so that a wrong belief is noticed."""
BETTER = 0.005
"""Half a point fewer errors: what counts as better than guessing."""
FIRST_LOG_ODDS = np.array([-3.0, -2.0, -1.2, -0.5, 0.0, 0.5, 1.2, 2.0, 3.0])
"""Values of logit π that a study begins with."""
_HALF_LOG_2_PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, kw_only=True)
class Beliefs:
    """About the features of an encoder.

    Attributes:
        turns: the order of each feature, 0 for a level or a column.
        levels: whether each feature may lie anywhere in its range.
        ordered: whether the first features matter most.
        center_known: whether all middles are 0 by construction.
        class_share: the share of label 1, where it is public.
        spread_differs: whether one class may be wider than the other.
    """

    turns: tuple[int, ...]
    levels: tuple[bool, ...]
    ordered: bool = True
    center_known: bool = False
    class_share: float | None = None
    spread_differs: bool = False

    @property
    def features(self) -> int:
        """How many."""
        return len(self.turns)

    @cached_property
    def common(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """All combinations of what features have in common: width, fall, middle, wider class."""
        falls = FALLS if any(self.turns) else FALLS[:1]
        middles = np.array([_EXACT]) if self.center_known else MIDDLES
        wider = _WIDER if self.spread_differs else np.zeros(1)
        every = np.meshgrid(_WIDTHS, falls, middles, wider, indexing="ij")
        width, fall, middle, wider = (one.ravel() for one in every)
        return width, fall, middle, wider

    @cached_property
    def common_odds(self) -> FloatArray:
        """How likely each of them is."""
        odds = np.repeat(_WIDTH_ODDS, len(self.common[0]) // len(_WIDTHS))
        return np.asarray(odds / odds.sum())

    @cached_property
    def included(self) -> FloatArray:
        """Hypotheses: how likely each feature is to say something, shape (hypotheses, d)."""
        place = 1.0 + np.array(self.turns)
        orders = _ORDERS if self.ordered else _ORDERS[:1]
        numbers = (*(number for number in MATTER if number < self.features), self.features)
        some = [_adding_up(place**-order, number) for order in orders for number in numbers]
        return np.array([np.zeros(self.features), *some])

    @cached_property
    def hypothesis_odds(self) -> FloatArray:
        """How likely each hypothesis is; the first is that nothing says anything."""
        some = len(self.included) - 1
        return np.array([NOTHING] + [(1 - NOTHING) / some] * some)

    def width_means(self, feature: int) -> FloatArray:
        """Of log s_j, for each combination."""
        width, fall, *_ = self.common
        return np.asarray(WIDTH + width - fall * np.log1p(self.turns[feature]))

    def places(self, feature: int, normals: FloatArray) -> FloatArray:
        """Draws of (m, log s) as the beliefs have it, from rows of three standard normals."""
        which = self._which(normals)
        width = self.width_means(feature)[which] + OWN_WIDTH * normals[:, 1]
        spread = LEVEL if self._anywhere(feature) else np.exp(width) * self.common[2][which]
        return np.column_stack([spread * normals[:, 2], width])

    def log_places(self, feature: int, places: FloatArray) -> FloatArray:
        """Log density of (m, log s) given each combination, shape (n, combinations)."""
        middle, width = places[:, 0, None], places[:, 1, None]
        own = _log_normal(width - self.width_means(feature), OWN_WIDTH)
        if self._anywhere(feature):
            return np.asarray(own + _log_normal(middle, LEVEL))
        return np.asarray(own + _log_normal(middle, np.exp(width) * self.common[2]))

    def spreads(self, normals: FloatArray) -> FloatArray:
        """Draws of r where a feature says something, from the same normals and their last."""
        return np.asarray(self.common[3][self._which(normals)] + _OWN_WIDER * normals[:, -1])

    def log_spreads(self, r: FloatArray) -> FloatArray:
        """Log density of r given each combination, shape (n, combinations)."""
        return _log_normal(r[:, None] - self.common[3], _OWN_WIDER)

    def _which(self, normals: FloatArray) -> IntArray:
        """The combination that the first normal draws."""
        which = np.searchsorted(np.cumsum(self.common_odds), ndtr(normals[:, 0]))
        return np.asarray(np.minimum(which, len(self.common_odds) - 1))

    def _anywhere(self, feature: int) -> bool:
        return self.levels[feature] and not self.center_known

    def share_odds(self, log_odds: FloatArray) -> FloatArray:
        """How likely each of some rising values of logit π is, as cells of a grid."""
        if self.class_share is not None:
            return np.ones(len(log_odds))
        middles = (log_odds[1:] + log_odds[:-1]) / 2
        edges = np.concatenate([[2 * log_odds[0] - middles[0]], middles])
        edges = np.append(edges, 2 * log_odds[-1] - middles[-1])
        even, uneven = (np.diff(ndtr(edges / spread)) for spread in (NEARLY, UNEVEN))
        return np.asarray(BALANCED * even + (1 - BALANCED) * uneven)


def differences(normals: FloatArray, chances: FloatArray) -> FloatArray:
    """Draws of d where a feature says something, from normals and chances (of the tails)."""
    stretched = gammaincinv(_TAILS / 2, np.clip(chances, 1e-6, 1 - 1e-6)) * 2 / _TAILS
    return np.asarray(APART * normals / np.sqrt(stretched))


def log_differences(d: FloatArray) -> FloatArray:
    """Log density of d where a feature says something."""
    scale = gammaln((_TAILS + 1) / 2) - gammaln(_TAILS / 2) - 0.5 * np.log(_TAILS * np.pi)
    tail = -(_TAILS + 1) / 2 * np.log1p((d / APART) ** 2 / _TAILS)
    return np.asarray(scale - np.log(APART) + tail)


def evidence(before: float, after: float) -> float:
    """Posterior probability of a signal if it were 1/2 before, from those of no signal.

    Examples:
        >>> evidence(0.1, 0.1), round(evidence(0.1, 0.01), 3)
        (0.5, 0.917)
    """
    some = (1 - after) / (1 - before)
    return float(some / (some + after / before))


def _adding_up(weights: FloatArray, number: float) -> FloatArray:
    """Probabilities in proportion to the weights that add up to a number, as far as they can."""
    low, high = 0.0, number / weights.min()
    for _ in range(60):
        factor = (low + high) / 2
        if np.minimum(factor * weights, _ALMOST).sum() < number:
            low = factor
        else:
            high = factor
    return np.asarray(np.minimum(high * weights, _ALMOST))


def _log_normal(x: FloatArray, spread: FloatArray | float) -> FloatArray:
    return np.asarray(-0.5 * (x / spread) ** 2 - np.log(spread) - _HALF_LOG_2_PI)
