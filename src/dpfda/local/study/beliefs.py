"""The prior of a study: what is assumed about the population before anyone answers.

The working model of two classes: a share π of the population has label 1. Feature j of a person
with label y = ±1 is normal with mean m_j + y d_j s_j and standard deviation s_j, independently of
the other features. If the classes may differ in spread, the standard deviation is s_j exp(y r_j).
The model decides which questions are asked and how answers are weighed. The privacy guarantee does
not depend on it.

`Beliefs` holds every number of the prior, with the reason for it. `Prior` combines these numbers
with the public facts of one study. Four quantities are common to all features and lie on small
grids: the scale of the first feature, how fast scales fall with the order of a feature, how far
centers are from 0, and which class is wider. Through them, answers about one feature inform the
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from dpfda._validate import FloatArray, IntArray

FIRST_LOG_ODDS = np.array([-3.0, -2.0, -1.2, -0.5, 0.0, 0.5, 1.2, 2.0, 3.0])
"""Grid of logit π on which a study begins; later grids follow the posterior."""
_ALMOST_ZERO = 0.05  # standard deviation, in units of s, of a center that is 0 by construction
_ALMOST_ONE = 0.98  # prior probability that a feature differs, at most
_HALF_LOG_2_PI = 0.5 * np.log(2 * np.pi)


def _belief(value: Any, why: str) -> Any:
    return field(default=value, metadata={"why": why})


@dataclass(frozen=True, kw_only=True)
class Beliefs:
    """Every number of the prior, with the reason for it.

    Examples:
        >>> Beliefs().nothing, Beliefs.reason("matter")
        (0.1, 'If any feature differs, one, three or all are expected to; equally likely.')
    """

    width: float = _belief(
        0.3, "The first feature's standard deviation is 0.3 of half the public range, over a slack."
    )
    slacks: tuple[float, ...] = _belief(
        (0.78, 2.3, 7.0, 21.0, 63.0),
        "Slack: public ranges fit, or are up to sixty times too wide if nobody looked at data.",
    )
    slack_odds: tuple[float, ...] = _belief(
        (0.25, 0.3, 0.2, 0.15, 0.1),
        "Ranges up to seven times too wide are common, wider ones are rarer.",
    )
    falls: tuple[float, ...] = _belief(
        (0.0, 1.0, 2.0),
        "Standard deviations of ordered features fall like (1 + j)^-fall, "
        "like those of noise, of continuous curves and of smooth curves.",
    )
    own_width: float = _belief(
        0.55, "A feature's standard deviation differs from the common law by a factor of about 1.7."
    )
    centers: tuple[float, ...] = _belief(
        (0.5, 1.5, 4.0),
        "Centers scatter by this many standard deviations around 0; each is equally likely.",
    )
    level: float = _belief(
        0.4, "A level, or a table column, may lie anywhere in its range: ±0.4 of half of the range."
    )
    apart: float = _belief(
        0.4, "Scale of d: half of the features that differ have means over 0.6 deviations apart."
    )
    tails: float = _belief(
        3.0, "Large d occur: Student's law with 3 degrees of freedom; more make them rarer."
    )
    wider: tuple[float, ...] = _belief(
        (-0.5, 0.0, 0.5), "A class that is wider in one feature tends to be wider in all."
    )
    own_wider: float = _belief(0.25, "Standard deviation of r around its common value.")
    nothing: float = _belief(
        0.1, "In one study of ten no feature differs, because most studies expect a difference."
    )
    matter: tuple[float, ...] = _belief(
        (1.0, 3.0), "If any feature differs, one, three or all are expected to; equally likely."
    )
    orders: tuple[float, ...] = _belief(
        (0.0, 1.0, 2.0, 4.0),
        "In ordered features, early ones are more likely to differ: like (1 + j)^-order.",
    )
    balanced: float = _belief(0.5, "Half of all studies are designed to have equal classes.")
    nearly: float = _belief(0.15, "Standard deviation of log odds of classes designed to be equal.")
    uneven: float = _belief(
        1.4, "The same for others: two in three shares are between one in five and four in five."
    )
    even: float = _belief(
        0.2, "A fifth of each batch is spread over all questions, to detect errors of the model."
    )
    better: float = _belief(
        0.005, "A rule is better than guessing if it errs at least half a point less."
    )

    @classmethod
    def reason(cls, name: str) -> str:
        """The reason for a number."""
        return str(cls.__dataclass_fields__[name].metadata["why"])


_DEFAULT = Beliefs()
_CURRENT: ContextVar[Beliefs] = ContextVar("beliefs", default=_DEFAULT)


def current() -> Beliefs:
    """The beliefs with which a study begins."""
    return _CURRENT.get()


@contextmanager
def believing(beliefs: Beliefs) -> Iterator[None]:
    """Use other beliefs in all studies that begin inside this context.

    Examples:
        >>> with believing(Beliefs(nothing=0.5)):
        ...     float(Prior(turns=(0,), levels=(True,)).hypothesis_odds[0])
        0.5
    """
    token = _CURRENT.set(beliefs)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@dataclass(frozen=True, kw_only=True)
class SlopeBeliefs:
    """Every number of the prior of a study by vector reports, in addition to `Beliefs`.

    Examples:
        >>> SLOPES.separations[0], SLOPES.discrepancy
        (0.1, 0.3)
    """

    separations: tuple[float, ...] = _belief(
        (0.1, 0.313, 0.979, 3.06, 9.59, 30.0),
        "Squared length of slopes: two classes overlap by nearly half, or hardly at all.",
    )
    explained: tuple[float, ...] = _belief(
        (0.01, 0.0246, 0.0605, 0.149, 0.366, 0.9),
        "Features explain this share of the variance of a number.",
    )
    slabs: tuple[tuple[float, float], ...] = _belief(
        ((0.1, 0.5), (1.0, 0.3), (6.0, 0.2)),
        "Slopes are unequal: half have a tenth of a common variance, a fifth six times as much.",
    )
    target_centers: tuple[tuple[float, float], ...] = _belief(
        ((0.02, 0.5), (0.5, 0.5)),
        "Variance of the mean of a number that was standardized well, or badly; equally likely.",
    )
    most_explained: float = _belief(
        0.9, "Features leave a tenth of the variance of a number unexplained."
    )
    discrepancy: float = _belief(
        0.3, "Away from the query, the working model errs by 0.3 of the variance of a signal."
    )
    off_for_curves: float = _belief(
        5e-5,
        "Squared error that the model of answers keeps however many answer, in units of a limit.",
    )
    off_for_columns: float = _belief(
        1.25e-3, "The same for columns of a table, which are skewed, counts or yes/no more often."
    )
    worth_explaining: float = _belief(
        0.01, "A prediction is better than the mean if it explains at least 0.01 of the variance."
    )


SLOPES = SlopeBeliefs()


@dataclass(frozen=True, kw_only=True)
class Prior:
    """The prior of one study.

    Attributes:
        turns: the order of each feature, 0 for a level or a table column.
        levels: whether the center of each feature may lie anywhere in its range.
        ordered: whether early features are more likely to differ.
        center_known: whether all centers are 0 by construction.
        class_share: the share of label 1, if it is public.
        spread_differs: whether the classes may differ in spread.
        beliefs: the numbers of the prior.
    """

    turns: tuple[int, ...]
    levels: tuple[bool, ...]
    ordered: bool = True
    center_known: bool = False
    class_share: float | None = None
    spread_differs: bool = False
    beliefs: Beliefs = field(default_factory=current)

    @property
    def features(self) -> int:
        """The number of features."""
        return len(self.turns)

    @cached_property
    def common(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """All combinations of the common quantities: log scale, fall, centers, wider class."""
        beliefs = self.beliefs
        scales = np.log(beliefs.width / np.array(beliefs.slacks))
        falls = beliefs.falls if any(self.turns) else beliefs.falls[:1]
        centers = [_ALMOST_ZERO] if self.center_known else beliefs.centers
        wider = beliefs.wider if self.spread_differs else [0.0]
        scale, fall, center, wide = np.meshgrid(scales, falls, centers, wider, indexing="ij")
        return scale.ravel(), fall.ravel(), center.ravel(), wide.ravel()

    @cached_property
    def common_odds(self) -> FloatArray:
        """Prior probability of each combination."""
        odds = np.array(self.beliefs.slack_odds)
        odds = np.repeat(odds, len(self.common[0]) // len(odds))
        return np.asarray(odds / odds.sum())

    @cached_property
    def included(self) -> FloatArray:
        """Hypotheses: the probability that each feature differs, shape (hypotheses, d)."""
        place = 1.0 + np.array(self.turns)
        orders = self.beliefs.orders if self.ordered else self.beliefs.orders[:1]
        few = (number for number in self.beliefs.matter if number < self.features)
        numbers = (*few, self.features)
        rows = [_summing_to(place**-order, number) for order in orders for number in numbers]
        return np.array([np.zeros(self.features), *rows])

    @cached_property
    def hypothesis_odds(self) -> FloatArray:
        """Prior probability of each hypothesis; the first is that no feature differs."""
        others, nothing = len(self.included) - 1, self.beliefs.nothing
        return np.array([nothing] + [(1 - nothing) / others] * others)

    def width_means(self, feature: int) -> FloatArray:
        """Mean of log s_j given each combination."""
        scale, fall, *_ = self.common
        return np.asarray(scale - fall * np.log1p(self.turns[feature]))

    def places(self, feature: int, normals: FloatArray) -> FloatArray:
        """Prior draws of (m, log s), from rows of at least three standard normals."""
        which = self._combination(normals)
        width = self.width_means(feature)[which] + self.beliefs.own_width * normals[:, 1]
        spread = self._center_spread(feature, width, self.common[2][which])
        return np.column_stack([spread * normals[:, 2], width])

    def log_places(self, feature: int, places: FloatArray) -> FloatArray:
        """Log density of (m, log s) given each combination, shape (n, combinations)."""
        center, width = places[:, 0, None], places[:, 1, None]
        density = _log_normal(width - self.width_means(feature), self.beliefs.own_width)
        spread = self._center_spread(feature, width, self.common[2])
        return np.asarray(density + _log_normal(center, spread))

    def differences(self, chances: FloatArray) -> FloatArray:
        """Prior draws of d, if the feature differs, from uniforms."""
        apart, tails = self.beliefs.apart, self.beliefs.tails
        return np.asarray(apart * stdtrit(tails, np.clip(chances, 1e-6, 1 - 1e-6)))

    def log_differences(self, d: FloatArray) -> FloatArray:
        """Log density of d if the feature differs."""
        from scipy.stats import t as student  # slow to import

        return np.asarray(student.logpdf(d, self.beliefs.tails, scale=self.beliefs.apart))

    def spreads(self, normals: FloatArray) -> FloatArray:
        """Prior draws of r, if the feature differs; the last normal is the feature's own part."""
        common = self.common[3][self._combination(normals)]
        return np.asarray(common + self.beliefs.own_wider * normals[:, -1])

    def log_spreads(self, r: FloatArray) -> FloatArray:
        """Log density of r given each combination, shape (n, combinations)."""
        return _log_normal(r[:, None] - self.common[3], self.beliefs.own_wider)

    def share_odds(self, log_odds: FloatArray) -> FloatArray:
        """Prior weights of some increasing values of logit π, as cells of a grid."""
        if self.class_share is not None:
            return np.ones(len(log_odds))
        between = (log_odds[1:] + log_odds[:-1]) / 2
        edges = np.concatenate([[2 * log_odds[0] - between[0]], between])
        edges = np.append(edges, 2 * log_odds[-1] - between[-1])
        beliefs = self.beliefs
        equal, other = (
            np.diff(ndtr(edges / spread)) for spread in (beliefs.nearly, beliefs.uneven)
        )
        return np.asarray(beliefs.balanced * equal + (1 - beliefs.balanced) * other)

    def _combination(self, normals: FloatArray) -> IntArray:
        """The combination of common quantities that the first normal of each row determines."""
        which = np.searchsorted(np.cumsum(self.common_odds), ndtr(normals[:, 0]))
        return np.asarray(np.minimum(which, len(self.common_odds) - 1))

    def _center_spread(self, feature: int, width: FloatArray, near: FloatArray) -> Any:
        """Standard deviation of m given log s and the typical distance of centers."""
        anywhere = self.levels[feature] and not self.center_known
        return self.beliefs.level if anywhere else np.exp(width) * near


def evidence(before: float, after: float) -> float:
    """Posterior probability of a signal at even prior odds, from probabilities of no signal.

    Examples:
        >>> evidence(0.1, 0.1), round(evidence(0.1, 0.01), 3)
        (0.5, 0.917)
    """
    some = (1 - after) / (1 - before)
    return float(some / (some + after / before))


def _summing_to(weights: FloatArray, number: float) -> FloatArray:
    """Probabilities in proportion to the weights, capped, and with this sum if possible."""
    low, high = 0.0, number / weights.min()
    for _ in range(60):
        factor = (low + high) / 2
        if np.minimum(factor * weights, _ALMOST_ONE).sum() < number:
            low = factor
        else:
            high = factor
    return np.asarray(np.minimum(high * weights, _ALMOST_ONE))


def _log_normal(x: FloatArray, spread: FloatArray | float) -> FloatArray:
    return np.asarray(-0.5 * (x / spread) ** 2 - np.log(spread) - _HALF_LOG_2_PI)
