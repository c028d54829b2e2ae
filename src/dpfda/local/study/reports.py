"""Vector reports about labels or numbers: what is asked, and what θ would make of the mean report.

White features ψ of everybody are taken as standard normal; public rows stand for them. Labels: θ
are the coefficients of a logistic regression, with one row for two classes and one for each of
several, and reports are residuals times features, cut as they are asked. Numbers: the same with a
linear regression. Studies of several classes begin with a linear discriminant: θ are share and
share times mean of each class, until residuals of the regression are worth more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit, ndtr

from dpfda._validate import FloatArray
from dpfda.local.study.beliefs import SLOPES, current
from dpfda.local.study.moments import FeatureMap, Reply, axes, public_rows
from dpfda.local.study.slopes import Around, Event, Family, Slopes, priors
from dpfda.protocol.linear_scores import chances

_RADIUS = 0.8
"""Vectors are cut at this share of their root mean square length: longer ones cost everybody."""
_PATIENCE = 1.2  # standard deviations of a number's residual that are not cut: skew moves a mean
_NO_CUT = 1e9
_PUBLIC_ANSWERS = 1e6  # a public share is believed as if so many people had reported their label
_WORLDS = 256  # draws of θ in which a rule is judged
_LEAST, _SAME = 1e-9, 1e-6
_CHORD = ((0.113, 5 / 18), (0.5, 8 / 18), (0.887, 5 / 18))  # Gauss's rule for a mean over [0, 1]
_PLANS = np.linspace(0, 1, 9)  # shares of the remaining people who may report for a discriminant


class Scores(NamedTuple):
    """The rule that follows.

    Attributes:
        theta: coefficients of (1, ψ), shape (m, p).
        covariance: of all of them, shape (m, p, m, p).
        guessing: share of all labels but the most frequent one, and its standard error.
    """

    theta: FloatArray
    covariance: FloatArray
    guessing: tuple[float, float] = (0.0, 0.0)

    @property
    def blocks(self) -> FloatArray:
        """Covariance of each row, shape (m, p, p)."""
        return np.asarray(np.einsum("kikj->kij", self.covariance))


class Query(NamedTuple):
    """The vector that people report.

    Attributes:
        statistic: of the task.
        theta: where, shape (m, p).
        directions: of ψ, one a row.
        weights: of 1 and of these.
        reach: weighted (1, ψ) longer than this is shortened to it.
        limit: so is the whole vector, to this.
    """

    statistic: str
    theta: FloatArray
    directions: FloatArray
    weights: FloatArray
    reach: float
    limit: float


class Kind(ABC):
    """The predicted quantity and the reports about it.

    Attributes:
        batches: each is asked at what is known by then; later ones are larger.
        totals: grid of the variances of all slopes of a row together.
        constants: variances that the intercept may have, and how likely each is.
    """

    batches = 12
    totals: FloatArray
    constants: Sequence[tuple[float, float]]

    def __init__(self, epsilon: float, rows: int = 1) -> None:
        self.epsilon, self.rows = epsilon, rows

    def priors(self, importance: FloatArray, bases: Sequence[FloatArray]) -> list[Family]:
        """The priors of θ."""
        return priors(importance, self.totals, self.constants, bases)

    def reply(self, query: Query) -> Reply:
        """Noise and length of one reply to a query."""
        return Reply.of(self.rows * len(query.weights), self.epsilon)

    def next_stage(self, slopes: Slopes, people: int, batch: int) -> Slopes:
        """The posterior with which the next batch is asked, of so many people still to come."""
        return slopes

    @abstractmethod
    def query(self, slopes: Slopes, people: int) -> Query:
        """The most informative query, given the number of people still to come."""

    @abstractmethod
    def fields(self, query: Query, features: FeatureMap) -> dict[str, Any]:
        """The fields of the task."""

    @abstractmethod
    def event(self, query: Query, report: FloatArray, people: int) -> Event:
        """The mean report of so many people."""

    @abstractmethod
    def scores(self, slopes: Slopes) -> Scores:
        """The scores of the model."""

    @abstractmethod
    def better(self, scores: Scores) -> float:
        """Probability that the rule is better than guessing, if there are slopes."""

    def without(self, slopes: Slopes) -> FloatArray:
        """θ if there were no slopes."""
        return np.asarray(slopes.theta * np.eye(slopes.theta.shape[1])[0])


def poured(variances: FloatArray, answers: float) -> FloatArray:
    """The shares of so much precision that leave least unknown of all numbers together.

    The least precise number is worth it most, so precisions are filled up to a common level.

    Examples:
        >>> poured(np.array([1.0, 0.5, 0.01]), 3.0)
        array([0.66666667, 0.33333333, 0.        ])
    """
    precision = 1 / variances
    above = precision - precision.min()  # a few answers would be lost beside a large number
    steps = np.sort(above)
    levels = (answers + np.cumsum(steps)) / np.arange(1, len(steps) + 1)
    share = np.maximum(levels[np.flatnonzero(levels > steps)[-1]] - above, 0.0)
    return np.asarray(share / share.sum())


def _attentive(covariance: FloatArray, answers: float) -> tuple[FloatArray, FloatArray, float]:
    """Directions of ψ, weights of 1 and of these, and where to cut, for least doubt about θ."""
    _, directions = axes(covariance[1:, 1:])
    values = np.diag(directions @ covariance[1:, 1:] @ directions.T)
    unknown = np.maximum(np.r_[covariance[0, 0], values], _LEAST)
    even = current().even
    share = (1 - even) * poured(unknown, answers) + even / len(unknown)
    weights = np.sqrt(share / share.max())
    return directions, weights, _RADIUS * float(np.linalg.norm(weights))


def _weighted(query: Query) -> tuple[FloatArray, FloatArray]:
    """Directions of weighted (1, ψ) of public people, and their lengths, cut at the reach."""
    rows = public_rows(query.directions.shape[1])
    turned = np.column_stack([rows[:, 0], rows[:, 1:] @ query.directions.T]) * query.weights
    lengths = np.linalg.norm(turned, axis=1)
    return turned / lengths[:, None], np.minimum(lengths, query.reach)


@dataclass(frozen=True, kw_only=True)
class _Residuals(Event):
    """A mean of (e - p) times weighted (1, ψ), e the indicator of the label, in units of the limit.

    Attributes:
        along: directions of weighted (1, ψ) of public people, shape (n, r).
        p: probabilities where it was asked, shape (n, K).
        factor: by which e - p is multiplied for each label, since it is cut; shape (n, K).
        scores: one of two classes, else K.
    """

    along: FloatArray
    p: FloatArray
    factor: FloatArray
    scores: int

    def expected(self, theta: FloatArray) -> FloatArray:
        """The expected report for labels distributed as θ states."""
        likely = _likely(_unfolded(theta, self.scores)) * self.factor
        residual = likely - self.p * likely.sum(axis=1, keepdims=True)
        return _folded(residual[:, -self.scores :].T @ self.along / len(self.p))

    def slope(self, theta: FloatArray) -> FloatArray:
        """Slope of the chord between both ends, where it is nearly exact."""
        m, n = self.scores, len(self.p)
        rise = np.zeros((n, m, m))
        for place, share in _CHORD:
            now = _likely(_unfolded(self.theta + place * (theta - self.theta), m))
            passed = (now * self.factor).sum(axis=1, keepdims=True)
            change = now * (self.factor - passed)  # of the sum of them, by each score
            both = (
                self.p[:, :, None] * change[:, None]
                + (now * self.factor)[:, :, None] * now[:, None]
            )
            each = np.eye(now.shape[1]) * (now * self.factor)[:, None] - both
            rise += share * each[:, -m:, -m:]
        rows = public_rows(theta.shape[1] // m - 1)
        pairs = (self.along[:, :, None] * rows[:, None]).reshape(n, -1)
        slopes = rise.reshape(n, -1).T @ pairs / n
        r, p = self.along.shape[1], rows.shape[1]
        return slopes.reshape(m, m, r, p).transpose(2, 0, 3, 1).reshape(1, r * m, p * m)


def _folded(theta: FloatArray) -> FloatArray:
    """One row for all scores, coefficient by coefficient."""
    return np.asarray(theta.T.reshape(1, -1))


def _unfolded(theta: FloatArray, scores: int) -> FloatArray:
    """One row for each score."""
    return np.asarray(theta.reshape(-1, scores).T)


def _likely(theta: FloatArray) -> FloatArray:
    """Probabilities of the classes for public people, shape (n, K)."""
    return chances(public_rows(theta.shape[1] - 1) @ theta.T)


def _squares(p: FloatArray, scores: int) -> FloatArray:
    """|e - p|² for each label, shape (n, K); of one score, that of class 1 alone."""
    if scores == 1:
        return (1 - p) ** 2
    return np.asarray(1 - 2 * p + (p**2).sum(axis=1, keepdims=True))


def _centered(theta: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same rule and its covariance, where scores of several classes add up to 0."""
    if (m := len(theta)) == 1:
        return theta, covariance
    center = np.eye(m) - 1 / m
    covariance = np.einsum("ab,bicj,dc->aidj", center, covariance, center, optimize=True)
    return center @ theta, covariance


class Labels(Kind):
    """Residuals e - p of a logistic regression, times features."""

    def query(self, slopes: Slopes, people: int) -> Query:
        """The query at the present θ."""
        return self._at(self.scores(slopes), people)

    def _at(self, rule: Scores, people: int) -> Query:
        m, size = rule.theta.shape
        p = _likely(rule.theta)
        varied = float(np.mean((p * _squares(p, m)).sum(axis=1)))
        noise = Reply.of(m * size, self.epsilon).noise
        answers = varied * people / (_RADIUS**2 * noise * max(m - 1, 1) ** 2)
        directions, weights, reach = _attentive(rule.blocks.mean(axis=0), answers)
        limit = reach * float(np.sqrt(varied))
        return Query("residual", rule.theta, directions, weights, reach, limit)

    def fields(self, query: Query, features: FeatureMap) -> dict[str, Any]:
        """The fields of the task."""
        theta = np.column_stack([query.theta[:, 0], query.theta[:, 1:] @ query.directions.T])
        return features.then(query.directions).public() | {"theta": theta, "reach": query.reach}

    def event(self, query: Query, report: FloatArray, people: int) -> Event:
        """The mean report of so many people."""
        (along, lengths), p, reply = _weighted(query), _likely(query.theta), self.reply(query)
        residual = np.sqrt(np.maximum(_squares(p, self.rows), _LEAST))
        return _Residuals(
            theta=_folded(query.theta),
            report=_folded(report.reshape(self.rows, -1)),
            people=people,
            noise=reply.noise,
            longest=reply.longest,
            along=along,
            p=p,
            factor=np.minimum(lengths[:, None], query.limit / residual) / query.limit,
            scores=self.rows,
        )

    def scores(self, slopes: Slopes) -> Scores:
        """θ; of several classes, so that scores add up to 0."""
        m = self.rows
        theta = _unfolded(slopes.theta, m)
        size = theta.shape[1]
        covariance = slopes.covariance.reshape(size, m, size, m).transpose(1, 0, 3, 2)
        theta, covariance = _centered(theta, covariance)
        shares = (p := _likely(theta)).mean(axis=0)
        first = int(shares.argmax())
        error = float(np.mean(p[:, first] * (1 - p[:, first])))
        row = min(first, m - 1)
        error *= float(covariance[row, 0, row, 0] ** 0.5)
        return Scores(theta, covariance, (float(1 - shares[first]), error))

    def better(self, scores: Scores) -> float:
        """Probability that the classifier is better than the largest class, if there are slopes."""
        m, size = scores.theta.shape
        rows, off = public_rows(size - 1), _drawn(scores.covariance.reshape(m * size, -1))
        chosen = chances(rows @ scores.theta.T).argmax(axis=1)[:, None]
        right, largest = np.zeros(_WORLDS), np.zeros(_WORLDS)
        for number, world in enumerate(scores.theta + off.reshape(-1, m, size)):
            likely = chances(rows @ world.T)
            right[number] = np.take_along_axis(likely, chosen, axis=1).mean()
            largest[number] = likely.mean(axis=0).max()
        return float(np.mean(right > largest + current().better))

    def without(self, slopes: Slopes) -> FloatArray:
        """The shares of the labels alone."""
        rule = self.scores(slopes).theta
        shares = _likely(rule).mean(axis=0)
        constant = np.log(shares) if self.rows > 1 else logit(shares[1:])
        return _folded(constant[:, None] * np.eye(rule.shape[1])[0])


class TwoClasses(Labels):
    """A study of two classes: one row of slopes.

    Args:
        epsilon: of a report.
        share: of label 1, where it is public.
    """

    totals = np.array(SLOPES.separations)

    def __init__(self, epsilon: float, share: float | None) -> None:
        super().__init__(epsilon)
        self.share, beliefs = share, current()
        equal, other = beliefs.nearly**2, beliefs.uneven**2
        self.constants = ((equal, beliefs.balanced), (other, 1 - beliefs.balanced))

    def known_share(self, directions: int) -> Event | None:
        """A public share, as if very many people had reported their label."""
        if self.share is None:
            return None
        theta = logit(self.share) * np.eye(1, directions + 1)
        p = _likely(theta)
        return _Residuals(
            theta=theta,
            report=np.zeros((1, 1)),
            people=1,
            noise=self.share * (1 - self.share) / _PUBLIC_ANSWERS,
            longest=1.0,
            exact=True,
            along=np.ones((len(p), 1)),
            p=p,
            factor=np.ones_like(p),
            scores=1,
        )


class ManyClasses(Labels):
    """A linear discriminant of normal classes at first, then residuals of the regression.

    The discriminant is learnt from the mean of (1, ψ) in each class. That is asked for as a class
    with a vector, or as the residuals of a rule that knows only shares, whichever says more at this
    ε. Its slopes are off by a share of themselves that no further report of this kind can show.
    """

    batches = 6

    def __init__(self, epsilon: float, classes: int) -> None:
        super().__init__(epsilon, classes)
        self.constants = tuple(((part / classes) ** 2, 0.5) for part in SLOPES.unequal)
        self.totals = np.array(SLOPES.distances) * (classes - 1) / classes**3
        self.discriminant = True

    def next_stage(self, slopes: Slopes, people: int, batch: int) -> Slopes:
        """Residuals from here on, if that leaves less unknown of slopes in the end."""
        if not (self.discriminant and slopes.events):
            return slopes
        regression, size = self._regression(slopes), slopes.theta.shape[1] - 1
        query = self._at(regression, people)
        worth = _precision(super().event(query, np.zeros(regression.theta.size), 1), self.rows)
        # A slope is a mean, turned by the inverse of what varies within classes, over a share.
        scale = np.trace(self._picture(slopes)[3]) / size / self.rows
        more = _precision(self.event(self.query(slopes, people), 0 * slopes.theta, 1)) * scale**2
        known = size * self.rows / np.trace(regression.blocks[:, 1:, 1:].sum(axis=0))
        off = float(np.mean(SLOPES.off)) * _strength(regression)
        left = 1 / (known + more * people * _PLANS) + off
        left = 1 / (1 / left + worth * people * (1 - _PLANS))
        if _PLANS[left.argmin()] * people > batch / 2:
            return slopes
        self.discriminant = False
        around = self._around(slopes, regression)
        return Slopes(around, 1, place=slopes.place, constants=self.rows)

    def _around(self, slopes: Slopes, regression: Scores) -> list[Family]:
        """Priors of the regression: no slopes, or those of the discriminant, more or less."""
        m, size = regression.theta.shape
        eye, nothing = np.eye(size * m), slopes.nothing
        constant = np.arange(size * m) < m
        shares = np.log(self._picture(slopes)[0])[:, None] * np.eye(size)[0]
        spread = regression.covariance.transpose(1, 0, 3, 2).reshape(size * m, -1)
        alone = spread * np.outer(constant, constant) + _LEAST * eye
        off = np.array(SLOPES.off)[:, None, None] * _strength(regression) * eye
        around = np.repeat(_folded(regression.theta)[None], len(off), axis=0)
        return [
            Around(np.array([nothing]), _folded(shares)[None], alone[None, None]),
            Around(np.full(len(off), (1 - nothing) / len(off)), around, (spread + off)[:, None]),
        ]

    def reply(self, query: Query) -> Reply:
        """Noise and length of one reply to a query."""
        if query.statistic == "classes":
            return Reply.of(len(query.weights), self.epsilon, n_classes=self.rows)
        return super().reply(query)

    def query(self, slopes: Slopes, people: int) -> Query:
        """The more informative of the two kinds of reports for a discriminant."""
        if not self.discriminant:
            return super().query(slopes, people)
        both = self._about_means(slopes, people)
        return max(both, key=lambda one: _precision(self.event(one, 0 * slopes.theta, 1)))

    def _about_means(self, slopes: Slopes, people: int) -> list[Query]:
        """A class with a vector, and residuals of a rule that knows only shares."""
        shares, means, spreads, within = self._picture(slopes)
        size, least = len(within), slopes.covariance[:, 0, 0].mean() * self.rows**2
        # How far from the mean of the own class, in units of what varies around it.
        into = np.linalg.inv(np.linalg.cholesky(within))
        theta = np.column_stack([shares - 1 / self.rows, shares[:, None] * means])
        bases = {"classes": (theta, into), "residual": (theta * np.eye(size + 1)[0], np.eye(size))}
        queries = []
        for statistic, (where, basis) in bases.items():
            unknown = np.zeros((size + 1, size + 1))
            unknown[0, 0] = least
            unknown[1:, 1:] = basis @ np.einsum("k,kij->ij", shares, spreads) @ basis.T
            query = Query(statistic, where, basis, np.ones(size + 1), _NO_CUT, 1.0)
            noise, varied = self.reply(query).noise, 1.0
            if statistic == "residual":
                varied = float(1 - shares @ shares)
            answers = people / (_RADIUS**2 * noise * varied * self.rows**2)
            directions, weights, reach = _attentive(unknown, answers)
            limit = reach * float(np.sqrt(varied))
            queries.append(Query(statistic, where, directions @ basis, weights, _NO_CUT, limit))
        return queries

    def fields(self, query: Query, features: FeatureMap) -> dict[str, Any]:
        """The fields of the task, with an offset for each class, or of the rule of class shares."""
        if not self.discriminant:
            return super().fields(query, features)
        if query.statistic == "residual":
            theta = query.theta.copy()
            theta[:, 0] = np.log(theta[:, 0] + 1 / self.rows)
            return super().fields(query._replace(theta=theta), features)
        seen = features.then(query.directions)
        return seen.public() | {"offsets": seen.offset - self._means(query) @ query.directions.T}

    def _means(self, query: Query) -> FloatArray:
        return np.asarray(query.theta[:, 1:] / (query.theta[:, :1] + 1 / self.rows))

    def event(self, query: Query, report: FloatArray, people: int) -> Event:
        """The mean report of so many people."""
        if not self.discriminant:
            return super().event(query, report, people)
        shares, reply = query.theta[:, 0] + 1 / self.rows, self.reply(query)
        joined = query.statistic == "classes"
        residual = np.ones(self.rows) if joined else np.sqrt(_squares(shares[None], self.rows)[0])
        vectors = (public_rows(len(query.directions)) * query.weights) ** 2
        lengths = np.sqrt(vectors.sum(axis=1, keepdims=True))
        shortened = np.minimum(1.0, query.limit / (residual * lengths))
        passed = shortened.T @ vectors / vectors.sum(axis=0)  # of each entry, by class
        matrix = np.tile(np.eye(len(query.weights)), (self.rows, 1, 1))
        matrix[:, 1:, 1:] = query.directions
        if joined:
            matrix[:, 1:, 0] = -self._means(query) @ query.directions.T
        matrix *= (query.weights * passed)[:, :, None] / query.limit
        return _ClassMeans(
            theta=query.theta,
            report=report.reshape(self.rows, -1),
            people=people,
            noise=reply.noise,
            longest=reply.longest,
            matrix=matrix,
            common=0 * shares if joined else shares,
        )

    def _picture(self, slopes: Slopes) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Shares, means, what is not known of each mean, and the covariance around them."""
        k, theta = self.rows, slopes.theta
        shares = np.maximum(1 / k + theta[:, 0], SLOPES.rarest / k)
        shares = shares / shares.sum()
        means = theta[:, 1:] / shares[:, None]
        spreads = slopes.covariance[:, 1:, 1:] / (shares**2)[:, None, None]
        # ψ is centered, as far as that is known.
        doubt = float(np.einsum("k,kii->", shares**2, spreads)) / means.shape[1]
        means = means - doubt / (doubt + slopes.place) * (shares @ means)
        values, vectors = np.linalg.eigh((means.T * shares) @ means)
        between = (vectors * np.minimum(values, SLOPES.most_explained)) @ vectors.T
        within = np.eye(len(values)) - between + np.tensordot(shares, spreads, 1)
        return shares, means, spreads, within

    def _regression(self, slopes: Slopes) -> Scores:
        """Regression of the linear discriminant; uncertainty of means counts as variance."""
        shares, means, spreads, within = self._picture(slopes)
        into, size = np.linalg.inv(within), len(within)
        theta = np.column_stack([np.log(shares), means @ into])
        theta[:, 0] -= 0.5 * (theta[:, 1:] * means).sum(axis=1)
        covariance = np.zeros((self.rows, size + 1, self.rows, size + 1))
        for k, spread in enumerate(spreads):
            covariance[k, 0, k, 0] = slopes.covariance[k, 0, 0] / shares[k] ** 2
            covariance[k, 1:, k, 1:] = into @ spread @ into
        error = float(slopes.covariance[shares.argmax(), 0, 0] ** 0.5)
        return Scores(theta, covariance, (float(1 - shares.max()), error))

    def scores(self, slopes: Slopes) -> Scores:
        """The scores, weighted by the evidence for the discriminant."""
        if not self.discriminant:
            return super().scores(slopes)
        rule = self._regression(slopes)
        m, size = rule.theta.shape
        off = float(np.mean(SLOPES.off)) * _strength(rule) * np.eye(m * size)
        off = rule.covariance + off.reshape(m, size, m, size)
        return Scores(*_centered(rule.theta, off), rule.guessing)

    def without(self, slopes: Slopes) -> FloatArray:
        """The shares of the labels alone."""
        return Kind.without(self, slopes) if self.discriminant else super().without(slopes)


def _drawn(covariance: FloatArray) -> FloatArray:
    """Public draws of what θ may differ by."""
    normals = np.random.default_rng(0).normal(size=(_WORLDS, len(covariance)))
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # the same on every machine
    return np.asarray(normals @ root)


def _strength(rule: Scores) -> float:
    """Mean square of a slope."""
    return float((rule.theta[:, 1:] ** 2).mean())


def _precision(event: Event, constants: int = 1) -> float:
    """Information of one person about a slope: the mean precision over slopes."""
    slope = event.slope(event.theta)[:, :, constants:]
    return float((slope**2).sum() / (slope.shape[0] * slope.shape[2] * event.noise))


@dataclass(frozen=True, kw_only=True)
class _ClassMeans(Event):
    """A mean of (1, ψ) by class, less what classes have in common; θ is without the share 1/K.

    Attributes:
        matrix: shape (m, r, p).
        common: share of the sum over classes that is taken off each class, shape (m,).
    """

    matrix: FloatArray
    common: FloatArray

    def expected(self, theta: FloatArray) -> FloatArray:
        """Linear in θ."""
        whole = theta + np.eye(theta.shape[1])[0] / len(theta)
        every = np.einsum("krp,kp->kr", self.matrix, whole)
        return np.asarray(every - self.common[:, None] * every.sum(axis=0))

    def slope(self, theta: FloatArray) -> FloatArray:
        """Everywhere the same; what classes have in common does not change."""
        return self.matrix


class Numbers(Kind):
    """Residuals of a linear regression of the standardized target, times features."""

    totals = np.array(SLOPES.explained)
    constants = SLOPES.target_centers

    def residual(self, slopes: Slopes) -> float:
        """Standard deviation of what θ leaves unexplained, and of what is not known of θ."""
        unknown = float(np.trace(slopes.covariance[0]))
        return float(np.sqrt(_unexplained(slopes.theta[0]) ** 2 + unknown))

    def query(self, slopes: Slopes, people: int) -> Query:
        """The query at the present θ."""
        residual = _PATIENCE * self.residual(slopes)
        noise = Reply.of(slopes.theta.shape[1], self.epsilon).noise / people
        answers = 1 / ((_RADIUS * residual) ** 2 * noise)
        directions, weights, reach = _attentive(slopes.covariance[0], answers)
        return Query("cross", slopes.theta, directions, weights, reach, reach * residual)

    def fields(self, query: Query, features: FeatureMap) -> dict[str, Any]:
        """The target in the first row of the map, then ψ: asked for is the residual, then ψ."""
        size = len(query.directions) + 1
        turn = np.zeros((size, size))
        turn[0, 0], turn[0, 1:], turn[1:, 1:] = 1.0, -query.theta[0, 1:], query.directions
        shift = query.theta[0, 0] * np.eye(size)[0]
        return features.then(turn, shift).public() | {"reach": query.reach}

    def event(self, query: Query, report: FloatArray, people: int) -> Event:
        """The mean report of so many people."""
        (along, lengths), reply = _weighted(query), self.reply(query)
        return _Regression(
            theta=query.theta,
            report=report[None],
            people=people,
            noise=reply.noise,
            longest=reply.longest,
            gain=along * (lengths / query.limit)[:, None],
            cut=query.limit / lengths,
        )

    def scores(self, slopes: Slopes) -> Scores:
        """θ."""
        return Scores(slopes.theta, slopes.covariance[:, :, None])

    def better(self, scores: Scores) -> float:
        """Probability that the prediction is better than the mean alone, if there are slopes."""
        off = _drawn(scores.covariance[0, 1:, 0, 1:])
        explained = ((scores.theta[0, 1:] + off) ** 2).sum(axis=1) - (off**2).sum(axis=1)
        return float(np.mean(explained > SLOPES.worth_explaining))


@dataclass(frozen=True, kw_only=True)
class _Regression(Event):
    """A mean of residuals of a number times weighted (1, ψ), in units of their limit.

    Attributes:
        gain: what one more of a residual adds to the report of public people.
        cut: where their residuals are cut.
    """

    gain: FloatArray
    cut: FloatArray

    def expected(self, theta: FloatArray) -> FloatArray:
        """The expected report by the chord."""
        return np.asarray((self.slope(theta)[0] @ (theta - self.theta)[0])[None])

    def slope(self, theta: FloatArray) -> FloatArray:
        """Slope of the chord, which is exact at both ends."""
        rows = public_rows(theta.shape[1] - 1)
        moved = rows @ (theta - self.theta)[0]
        moved = np.where(np.abs(moved) < _SAME, _SAME, moved)
        rise = _clipped_mean(moved, _unexplained(theta[0]), self.cut) / moved
        return np.asarray((self.gain * rise[:, None]).T @ rows / len(rows))[None]


def _unexplained(theta: FloatArray) -> float:
    """Standard deviation of what is left of a standardized number."""
    return float(max(1 - float(theta[1:] @ theta[1:]), 1 - SLOPES.most_explained) ** 0.5)


def _clipped_mean(mean: FloatArray, deviation: float, cut: FloatArray) -> FloatArray:
    """Mean of normal numbers that are clipped to ±cut."""
    low, high = (-cut - mean) / deviation, (cut - mean) / deviation
    inside = ndtr(high) - ndtr(low)
    density = (np.exp(-0.5 * low**2) - np.exp(-0.5 * high**2)) / np.sqrt(2 * np.pi)
    return np.asarray(cut * (ndtr(-high) - ndtr(low)) + mean * inside + deviation * density)
