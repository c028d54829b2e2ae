"""Vector reports about labels or numbers: the queries, and the expected mean report given θ.

White features ψ are assumed to be standard normal, and represented by public rows. For labels, θ
contains the coefficients of a logistic regression, one row for two classes and one per class for
several. A report is the residual of the label times the features, shortened to a public length. For
numbers, the regression is linear.
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
from dpfda.local.study.slopes import Event, Slopes
from dpfda.protocol.linear_scores import chances

_RADIUS = 0.8
"""Vectors are shortened to this share of their root mean square length; a larger limit would add
noise to all reports."""
_PATIENCE = 1.2  # standard deviations at which a number's residual is cut; cutting causes bias
_PUBLIC_ANSWERS = 1e6  # number of labels whose information a public class share equals
_DRAWS = 256  # posterior draws of θ in which a rule is compared with guessing
_LEAST, _SAME = 1e-9, 1e-6


class Scores(NamedTuple):
    """The scores of the model.

    Attributes:
        theta: coefficients of (1, ψ), shape (m, p).
        covariance: posterior covariance of all coefficients, shape (m, p, m, p).
        guessing: error of always predicting the most frequent label, and its standard error.
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
        statistic: statistic of the task.
        theta: the θ at which residuals are computed, shape (m, p).
        directions: directions of ψ, one per row.
        weights: weights of 1 and of these directions.
        reach: largest length of weighted (1, ψ).
        limit: largest length of the whole vector.
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
        totals: grid of the total prior variance of the slopes in a row.
        constants: possible prior variances of the intercept, and their probabilities.
    """

    totals: FloatArray
    constants: Sequence[tuple[float, float]]

    def __init__(self, epsilon: float, rows: int = 1) -> None:
        self.epsilon, self.rows = epsilon, rows

    def reply(self, query: Query) -> Reply:
        """Noise and length of one reply to a query."""
        return Reply.of(self.rows * len(query.weights), self.epsilon)

    @abstractmethod
    def query(self, slopes: Slopes, people: int) -> Query:
        """The most informative query, given the number of remaining people."""

    @abstractmethod
    def fields(self, query: Query, features: FeatureMap) -> dict[str, Any]:
        """The fields of the task."""

    @abstractmethod
    def event(self, query: Query, report: FloatArray, people: int) -> Event:
        """The mean report of so many people as an event."""

    @abstractmethod
    def scores(self, slopes: Slopes) -> Scores:
        """The scores of the model."""

    @abstractmethod
    def better(self, scores: Scores) -> float:
        """Probability that the rule is better than guessing, if slopes are not 0."""

    def without(self, slopes: Slopes) -> FloatArray:
        """θ under the hypothesis that all slopes are 0."""
        return np.asarray(slopes.theta * np.eye(slopes.theta.shape[1])[0])


def poured(variances: FloatArray, answers: float) -> FloatArray:
    """The division of additional precision among numbers that minimizes their total variance.

    Precisions are filled up to a common level, beginning with the least precise number.

    Examples:
        >>> poured(np.array([1.0, 0.5, 0.01]), 3.0)
        array([0.66666667, 0.33333333, 0.        ])
    """
    precision = 1 / variances
    above = precision - precision.min()  # the difference avoids rounding errors of large numbers
    steps = np.sort(above)
    levels = (answers + np.cumsum(steps)) / np.arange(1, len(steps) + 1)
    share = np.maximum(levels[np.flatnonzero(levels > steps)[-1]] - above, 0.0)
    return np.asarray(share / share.sum())


def _attentive(covariance: FloatArray, answers: float) -> tuple[FloatArray, FloatArray, float]:
    """Directions of ψ, weights of 1 and of these, and the largest length, for precise θ."""
    _, directions = axes(covariance[1:, 1:])
    values = np.diag(directions @ covariance[1:, 1:] @ directions.T)
    unknown = np.maximum(np.r_[covariance[0, 0], values], _LEAST)
    even = current().even
    share = (1 - even) * poured(unknown, answers) + even / len(unknown)
    weights = np.sqrt(share / share.max())
    return directions, weights, _RADIUS * float(np.linalg.norm(weights))


def _weighted(query: Query) -> tuple[FloatArray, FloatArray]:
    """Directions of weighted (1, ψ) of public people, and their lengths, at most the reach."""
    rows = public_rows(query.directions.shape[1])
    turned = np.column_stack([rows[:, 0], rows[:, 1:] @ query.directions.T]) * query.weights
    lengths = np.linalg.norm(turned, axis=1)
    return turned / lengths[:, None], np.minimum(lengths, query.reach)


@dataclass(frozen=True, kw_only=True)
class _Residuals(Event):
    """A mean of (e - p) times weighted (1, ψ) over the limit, with e the indicator of the label.

    Attributes:
        along: directions of weighted (1, ψ) of public people, shape (n, r).
        p: probabilities at the θ of the query, shape (n, K).
        factor: factor of e - p for each label, which includes the shortening; shape (n, K).
    """

    along: FloatArray
    p: FloatArray
    factor: FloatArray

    def expected(self, theta: FloatArray) -> FloatArray:
        """The expected report if labels follow the model with θ."""
        kept = _likely(theta) * self.factor
        residual = kept - self.p * kept.sum(axis=1, keepdims=True)
        return np.asarray(residual[:, -len(theta) :].T @ self.along / len(self.p))

    def slope(self, theta: FloatArray) -> FloatArray:
        """Slope with respect to each score, half-way between the query and θ.

        Scores of several classes add up to 0, so a change of one score changes all others.
        """
        m, now = len(theta), _likely((self.theta + theta) / 2)
        kept = now * self.factor
        passed = kept.sum(axis=1, keepdims=True)
        rise = kept * (1 - now) - self.p * (kept - now * passed)
        together = m / max(m - 1, 1)
        rows = public_rows(theta.shape[1] - 1)
        weighted = rise.T[-m:, None] * self.along.T
        return np.asarray(together * weighted @ rows / len(rows))


def _likely(theta: FloatArray) -> FloatArray:
    """Probabilities of the classes for public people, shape (n, K)."""
    return chances(public_rows(theta.shape[1] - 1) @ theta.T)


def _squares(p: FloatArray, scores: int) -> FloatArray:
    """|e - p|² for each label, shape (n, K); with one score, only the entry of class 1."""
    if scores == 1:
        return (1 - p) ** 2
    return np.asarray(1 - 2 * p + (p**2).sum(axis=1, keepdims=True))


class Labels(Kind):
    """Residuals e - p of a logistic regression, times features.

    Args:
        epsilon: ε of a report.
        classes: the number of classes.
        share: for two classes, the public share of label 1, if there is one.
    """

    totals = np.array(SLOPES.separations)

    def __init__(self, epsilon: float, classes: int, share: float | None = None) -> None:
        super().__init__(epsilon, 1 if classes == 2 else classes)
        self.share, beliefs = share, current()
        equal, other = beliefs.nearly**2, beliefs.uneven**2
        self.constants = ((equal, beliefs.balanced), (other, 1 - beliefs.balanced))

    def known_share(self, directions: int) -> Event | None:
        """A public class share, as the report of very many labels."""
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
        )

    def query(self, slopes: Slopes, people: int) -> Query:
        """The query at the current θ."""
        rule = self.scores(slopes)
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
        """The mean report of so many people as an event."""
        (along, lengths), p, reply = _weighted(query), _likely(query.theta), self.reply(query)
        residual = np.sqrt(np.maximum(_squares(p, self.rows), _LEAST))
        return _Residuals(
            theta=query.theta,
            report=report.reshape(self.rows, -1),
            people=people,
            noise=reply.noise,
            longest=reply.longest,
            along=along,
            p=p,
            factor=np.minimum(lengths[:, None], query.limit / residual) / query.limit,
        )

    def scores(self, slopes: Slopes) -> Scores:
        """Posterior mean and covariance of θ; scores of several classes are centered to sum 0."""
        m = len(slopes.theta)
        center = np.eye(m) - 1 / m if m > 1 else np.eye(1)
        theta = center @ slopes.theta
        covariance = np.einsum("ab,bij,db->aidj", center, slopes.covariance, center, optimize=True)
        shares = (p := _likely(theta)).mean(axis=0)
        first = int(shares.argmax())
        error = float(np.mean(p[:, first] * (1 - p[:, first])))
        row = min(first, m - 1)
        error *= float(covariance[row, 0, row, 0] ** 0.5)
        return Scores(theta, covariance, (float(1 - shares[first]), error))

    def better(self, scores: Scores) -> float:
        """Probability that the classifier is better than the largest class, if slopes are not 0."""
        m, size = scores.theta.shape
        rows, off = public_rows(size - 1), _drawn(scores.covariance.reshape(m * size, -1))
        chosen = chances(rows @ scores.theta.T).argmax(axis=1)[:, None]
        right, largest = np.zeros(_DRAWS), np.zeros(_DRAWS)
        for number, world in enumerate(scores.theta + off.reshape(-1, m, size)):
            likely = chances(rows @ world.T)
            right[number] = np.take_along_axis(likely, chosen, axis=1).mean()
            largest[number] = likely.mean(axis=0).max()
        return float(np.mean(right > largest + current().better))

    def without(self, slopes: Slopes) -> FloatArray:
        """θ with the posterior mean shares of labels, and slopes 0."""
        shares = _likely(self.scores(slopes).theta).mean(axis=0)
        constant = np.log(shares) if self.rows > 1 else logit(shares[1:])
        return np.asarray(constant[:, None] * np.eye(slopes.theta.shape[1])[0])


def _drawn(covariance: FloatArray) -> FloatArray:
    """Public normal draws with this covariance."""
    normals = np.random.default_rng(0).normal(size=(_DRAWS, len(covariance)))
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # the same on every machine
    return np.asarray(normals @ root)


class Numbers(Kind):
    """Residuals of a linear regression of the standardized target, times features."""

    totals = np.array(SLOPES.explained)
    constants = SLOPES.target_centers

    def residual(self, slopes: Slopes) -> float:
        """Standard deviation of the residual, including the uncertainty of θ."""
        unknown = float(np.trace(slopes.covariance[0]))
        return float(np.sqrt(_unexplained(slopes.theta[0]) ** 2 + unknown))

    def query(self, slopes: Slopes, people: int) -> Query:
        """The query at the current θ."""
        residual = _PATIENCE * self.residual(slopes)
        noise = Reply.of(slopes.theta.shape[1], self.epsilon).noise / people
        answers = 1 / ((_RADIUS * residual) ** 2 * noise)
        directions, weights, reach = _attentive(slopes.covariance[0], answers)
        return Query("cross", slopes.theta, directions, weights, reach, reach * residual)

    def fields(self, query: Query, features: FeatureMap) -> dict[str, Any]:
        """The fields of the task; the map has the residual of the target as first row, then ψ."""
        size = len(query.directions) + 1
        turn = np.zeros((size, size))
        turn[0, 0], turn[0, 1:], turn[1:, 1:] = 1.0, -query.theta[0, 1:], query.directions
        shift = query.theta[0, 0] * np.eye(size)[0]
        return features.then(turn, shift).public() | {"reach": query.reach}

    def event(self, query: Query, report: FloatArray, people: int) -> Event:
        """The mean report of so many people as an event."""
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
        """Posterior mean and covariance of θ."""
        return Scores(slopes.theta, slopes.covariance[:, :, None])

    def better(self, scores: Scores) -> float:
        """Probability that the prediction is better than the mean alone, if slopes are not 0."""
        off = _drawn(scores.covariance[0, 1:, 0, 1:])
        explained = ((scores.theta[0, 1:] + off) ** 2).sum(axis=1) - (off**2).sum(axis=1)
        return float(np.mean(explained > SLOPES.worth_explaining))


@dataclass(frozen=True, kw_only=True)
class _Regression(Event):
    """A mean of residuals of a number times weighted (1, ψ), divided by the limit.

    Attributes:
        gain: derivative of the report by the residual, for public people.
        cut: the size at which their residuals are cut.
    """

    gain: FloatArray
    cut: FloatArray

    def expected(self, theta: FloatArray) -> FloatArray:
        """The expected report, from `slope`."""
        return np.asarray((self.slope(theta)[0] @ (theta - self.theta)[0])[None])

    def slope(self, theta: FloatArray) -> FloatArray:
        """Slope of the chord between the query and θ, with which `expected` is exact."""
        rows = public_rows(theta.shape[1] - 1)
        moved = rows @ (theta - self.theta)[0]
        moved = np.where(np.abs(moved) < _SAME, _SAME, moved)
        rise = _clipped_mean(moved, _unexplained(theta[0]), self.cut) / moved
        return np.asarray((self.gain * rise[:, None]).T @ rows / len(rows))[None]


def _unexplained(theta: FloatArray) -> float:
    """Standard deviation of the residual of a standardized number."""
    return float(max(1 - float(theta[1:] @ theta[1:]), 1 - SLOPES.most_explained) ** 0.5)


def _clipped_mean(mean: FloatArray, deviation: float, cut: FloatArray) -> FloatArray:
    """Mean of normal numbers that are clipped to ±cut."""
    low, high = (-cut - mean) / deviation, (cut - mean) / deviation
    inside = ndtr(high) - ndtr(low)
    density = (np.exp(-0.5 * low**2) - np.exp(-0.5 * high**2)) / np.sqrt(2 * np.pi)
    return np.asarray(cut * (ndtr(-high) - ndtr(low)) + mean * inside + deviation * density)
