"""Vector reports about labels or numbers: what is asked, and what θ would make of the mean report.

White features ψ of everybody are taken as standard normal; public rows stand for them. Two classes:
θ are the coefficients of a logistic regression, and reports are residuals times features, cut as
they are asked. Numbers: the same with a linear regression. Several classes: θ are share and share
times mean of each class, and reports are features, told together with the class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr

from dpfda._validate import FloatArray
from dpfda.local.study.beliefs import current
from dpfda.local.study.moments import FeatureMap, entry_noise, public_rows
from dpfda.local.study.slopes import Event, Family, Slopes, priors

_RADIUS = 0.8
"""Vectors are cut at this share of their root mean square length: longer ones cost everybody."""
_PATIENCE = 1.2  # standard deviations of a number's residual that are not cut: skew moves a mean
_MOST_EXPLAINED = 0.9  # of a number's variance, or of that of a direction, by classes
_FEWEST = 0.1  # least share of a class, in units of 1/K
_NO_CUT = 1e9
_PUBLIC_ANSWERS = 1e6  # a public share is believed as if so many had told their label
_WORLDS = 256  # draws of θ in which a rule is judged
_LEAST, _SAME = 1e-9, 1e-6


class Scores(NamedTuple):
    """What follows of ψ.

    Attributes:
        intercept: shape (m,).
        slopes: shape (m, q).
        covariance: of the slopes, shape (m, q, q).
        doubt: mean variance of each score over people, shape (m,).
        guessing: share of all labels but the most frequent one, and its standard error.
    """

    intercept: FloatArray
    slopes: FloatArray
    covariance: FloatArray
    doubt: FloatArray
    guessing: tuple[float, float]


class Asked(NamedTuple):
    """A vector that people are asked for.

    Attributes:
        theta: where, shape (m, p).
        turn: directions of ψ, one a row.
        weights: of 1 and of these.
        reach: weighted (1, ψ) longer than this is shortened to it.
        limit: so is the whole vector, to this.
    """

    theta: FloatArray
    turn: FloatArray
    weights: FloatArray
    reach: float
    limit: float


class Kind(ABC):
    """What is predicted, and by which reports.

    Attributes:
        epsilon: of a report.
        rows: of θ.
    """

    statistic: ClassVar[str]
    totals: ClassVar[FloatArray]
    constants: Sequence[tuple[float, float]]
    batches: ClassVar[int] = 12
    """Each is asked at what is known by then; later ones are larger."""

    def __init__(self, epsilon: float, rows: int = 1) -> None:
        self.epsilon, self.rows = epsilon, rows

    def priors(self, importance: FloatArray, bases: Sequence[FloatArray]) -> list[Family]:
        """Of θ."""
        return priors(importance, self.totals, self.constants, bases)

    def noise(self, directions: int) -> float:
        """Variance of an entry of one report, in units of its limit."""
        return entry_noise(directions + 1, self.epsilon)

    @abstractmethod
    def ask(self, known: Slopes, people: int) -> Asked:
        """What is worth most, where so many people are still to come."""

    @abstractmethod
    def fields(self, asked: Asked, features: FeatureMap) -> dict[str, Any]:
        """Of the task."""

    @abstractmethod
    def event(self, asked: Asked, total: FloatArray, people: int) -> Event:
        """The sum of so many reports."""

    @abstractmethod
    def scores(self, known: Slopes) -> Scores:
        """What follows."""

    def better(self, known: Slopes) -> float:
        """How likely the result is better than guessing, if there are slopes."""
        return 1.0


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
    values, vectors = np.linalg.eigh(covariance[1:, 1:])
    unknown = np.maximum(np.r_[covariance[0, 0], values[::-1]], _LEAST)
    even = current().even
    share = (1 - even) * poured(unknown, answers) + even / len(unknown)
    weights = np.sqrt(share / share.max())
    return vectors[:, ::-1].T, weights, _RADIUS * float(np.linalg.norm(weights))


def _along(asked: Asked) -> tuple[FloatArray, FloatArray]:
    """Directions of weighted (1, ψ) of public people, and their lengths, cut at the reach."""
    rows = public_rows(asked.turn.shape[1])
    turned = np.column_stack([rows[:, 0], rows[:, 1:] @ asked.turn.T]) * asked.weights
    lengths = np.linalg.norm(turned, axis=1)
    return turned / lengths[:, None], np.minimum(lengths, asked.reach)


@dataclass(frozen=True)
class _Residuals(Event):
    """A mean of residuals times (1, ψ), in units of their limit.

    Attributes:
        gain: what one more of a residual adds to the report of public people.
        cut: where residuals of public people are cut; of two classes `gain` allows for it.
    """

    gain: FloatArray
    cut: FloatArray | None = None

    def slope(self, theta: FloatArray) -> FloatArray:
        """Of the chord, so that it is right at both ends."""
        rows = public_rows(theta.shape[1] - 1)
        before, now = rows @ self.asked[0], rows @ theta[0]
        moved = np.where(np.abs(now - before) < _SAME, _SAME, now - before)
        if self.cut is None:
            rise = (expit(before + moved) - expit(before)) / moved
        else:
            rise = _clipped_mean(moved, _unexplained(theta[0]), self.cut) / moved
        return np.asarray((self.gain * rise[:, None]).T @ rows / len(rows))[None]


class _PublicShare(_Residuals):
    """A mean of labels that is no estimate."""

    exact: ClassVar[bool] = True


class TwoClasses(Kind):
    """Residuals y - p of a logistic regression, times features.

    Args:
        epsilon: of a report.
        share: of label 1, where it is public.
    """

    statistic = "residual"
    totals = np.geomspace(0.1, 30.0, 6)
    """Of |θ|²: classes that overlap by nearly half, or hardly at all."""

    def __init__(self, epsilon: float, share: float | None) -> None:
        super().__init__(epsilon)
        self.share, beliefs = share, current()
        equal, other = beliefs.nearly**2, beliefs.uneven**2
        self.constants = ((equal, beliefs.balanced), (other, 1 - beliefs.balanced))

    def known_share(self, directions: int) -> Event | None:
        """A public share, as if very many had told their label."""
        if self.share is None:
            return None
        theta = np.r_[logit(self.share), np.zeros(directions)]
        gain, none = np.ones((len(public_rows(directions)), 1)), np.zeros((1, 1))
        noise = np.array([self.share * (1 - self.share) / _PUBLIC_ANSWERS])
        return _PublicShare(theta[None], none, none, noise, gain)

    def ask(self, known: Slopes, people: int) -> Asked:
        """At the present θ."""
        rows = public_rows(known.theta.shape[1] - 1)
        p = expit(rows @ known.theta[0])
        varied = float(np.mean(p * (1 - p)))
        answers = varied * people / (_RADIUS**2 * self.noise(rows.shape[1] - 1))
        turn, weights, reach = _attentive(known.covariance[0], answers)
        return Asked(known.theta, turn, weights, reach, reach * float(np.sqrt(varied)))

    def fields(self, asked: Asked, features: FeatureMap) -> dict[str, Any]:
        """Of the task."""
        theta = np.r_[asked.theta[0, 0], asked.turn @ asked.theta[0, 1:]]
        seen = features.then(asked.turn).public()
        return seen | {"theta": theta, "reach": asked.reach}

    def event(self, asked: Asked, total: FloatArray, people: int) -> Event:
        """The sum of so many reports."""
        along, lengths = _along(asked)
        p = expit(public_rows(len(asked.turn)) @ asked.theta[0])
        one, zero = (np.minimum(r * lengths, asked.limit) / asked.limit for r in (1 - p, p))
        return _Residuals(
            asked=asked.theta,
            told=total[None] / people,
            expected=np.asarray((p * one - (1 - p) * zero)[None] @ along / len(p)),
            noise=np.array([self.noise(len(asked.turn)) / people]),
            gain=along * (one + zero)[:, None],
        )

    def better(self, known: Slopes) -> float:
        """How likely the classifier is better than the larger class, if there are slopes."""
        (theta,), (covariance,) = known.theta, known.covariance
        rows = public_rows(len(theta) - 1)
        normals = np.random.default_rng(0).normal(size=(_WORLDS, len(theta)))
        values, axes = np.linalg.eigh(covariance)
        worlds = theta + (normals * np.sqrt(np.maximum(values, 0.0))) @ axes.T
        chances, ones = expit(rows @ worlds.T), (rows @ theta >= 0)[:, None]
        error, share = np.where(ones, 1 - chances, chances).mean(axis=0), chances.mean(axis=0)
        return float(np.mean(error < np.minimum(share, 1 - share) - current().better))

    def scores(self, known: Slopes) -> Scores:
        """θ."""
        (theta,), (covariance,) = known.theta, known.covariance
        p = expit(public_rows(len(theta) - 1) @ theta)
        share, error = float(p.mean()), float(np.mean(p * (1 - p)) * covariance[0, 0] ** 0.5)
        return Scores(
            theta[:1],
            theta[None, 1:],
            covariance[None, 1:, 1:],
            np.array([np.trace(covariance)]),
            (min(share, 1 - share), error),
        )


class Numbers(Kind):
    """Residuals of a linear regression of the standardized target, times features."""

    statistic = "cross"
    totals = np.geomspace(0.01, _MOST_EXPLAINED, 6)
    """Share of the target's variance that is explained."""
    constants = ((0.02, 0.5), (0.5, 0.5))
    """Variances of the mean of a target that was standardized well, or badly."""

    def residual(self, known: Slopes) -> float:
        """Standard deviation of what θ leaves unexplained, and of what is not known of θ."""
        unknown = float(np.trace(known.covariance[0]))
        return float(np.sqrt(_unexplained(known.theta[0]) ** 2 + unknown))

    def ask(self, known: Slopes, people: int) -> Asked:
        """At the present θ."""
        residual = _PATIENCE * self.residual(known)
        noise = self.noise(known.theta.shape[1] - 1) / people
        answers = 1 / ((_RADIUS * residual) ** 2 * noise)
        turn, weights, reach = _attentive(known.covariance[0], answers)
        return Asked(known.theta, turn, weights, reach, reach * residual)

    def fields(self, asked: Asked, features: FeatureMap) -> dict[str, Any]:
        """The target in the first row of the map, then ψ: asked for is the residual, then ψ."""
        turn = np.zeros((len(asked.turn) + 1, len(asked.turn) + 1))
        turn[0, 0], turn[0, 1:], turn[1:, 1:] = 1.0, -asked.theta[0, 1:], asked.turn
        shift = np.r_[asked.theta[0, 0], np.zeros(len(asked.turn))]
        return features.then(turn, shift).public() | {"reach": asked.reach}

    def event(self, asked: Asked, total: FloatArray, people: int) -> Event:
        """The sum of so many reports."""
        along, lengths = _along(asked)
        return _Residuals(
            asked=asked.theta,
            told=total[None] / people,
            expected=np.zeros((1, len(total))),
            noise=np.array([self.noise(len(asked.turn)) / people]),
            gain=along * (lengths / asked.limit)[:, None],
            cut=asked.limit / lengths,
        )

    def scores(self, known: Slopes) -> Scores:
        """θ."""
        slopes, covariance = known.theta[:, 1:], known.covariance[:, 1:, 1:]
        doubt = np.trace(known.covariance, axis1=1, axis2=2)
        return Scores(known.theta[:, 0], slopes, covariance, doubt, (0.0, 0.0))


class ManyClasses(Kind):
    """Features, told together with the class: a linear discriminant of normal classes."""

    statistic = "classes"
    batches = 2
    """Means are linear in reports: once as far from 0, once from what was found."""

    def __init__(self, epsilon: float, classes: int) -> None:
        super().__init__(epsilon, classes)
        self.constants = tuple(((part / classes) ** 2, 0.5) for part in (0.1, 0.5))
        self.totals = np.geomspace(0.1, 8.0, 6) * (classes - 1) / classes**3  # type: ignore[misc]

    def noise(self, directions: int) -> float:
        """Variance of an entry of one report, in units of its limit."""
        return entry_noise(directions + 1, self.epsilon, n_classes=self.rows)

    def ask(self, known: Slopes, people: int) -> Asked:
        """How far from the mean of one's class, in units of what varies around it."""
        shares, means, own, within = self._picture(known)
        into = np.linalg.inv(np.linalg.cholesky(within))
        unknown = np.zeros((len(into) + 1, len(into) + 1))
        unknown[0, 0] = known.covariance[:, 0, 0].mean() * self.rows**2
        unknown[1:, 1:] = into @ np.einsum("k,kij->ij", shares, own) @ into.T
        answers = people / (_RADIUS**2 * self.noise(len(into)) * self.rows**2)
        turn, weights, limit = _attentive(unknown, answers)
        at = np.column_stack([shares - 1 / self.rows, shares[:, None] * means])
        return Asked(at, turn @ into, weights, _NO_CUT, limit)

    def fields(self, asked: Asked, features: FeatureMap) -> dict[str, Any]:
        """With an offset for each class."""
        seen = features.then(asked.turn)
        return seen.public() | {"offsets": seen.offset - self._middles(asked) @ asked.turn.T}

    def _middles(self, asked: Asked) -> FloatArray:
        return np.asarray(asked.theta[:, 1:] / (asked.theta[:, :1] + 1 / self.rows))

    def event(self, asked: Asked, total: FloatArray, people: int) -> Event:
        """The sum of so many reports; θ is without the equal share that is expected."""
        lengths = np.linalg.norm(public_rows(len(asked.turn)) * asked.weights, axis=1)
        passed = np.mean(lengths * np.minimum(lengths, asked.limit)) / np.mean(lengths**2)
        matrix = np.tile(np.eye(len(asked.weights)), (self.rows, 1, 1))
        matrix[:, 1:, 1:] = asked.turn
        matrix[:, 1:, 0] = -self._middles(asked) @ asked.turn.T
        matrix *= (asked.weights * passed / asked.limit)[:, None]
        whole = asked.theta + np.eye(len(asked.weights))[0] / self.rows
        return _Linear(
            asked=asked.theta,
            told=total.reshape(self.rows, -1) / people,
            expected=np.einsum("krp,kp->kr", matrix, whole),
            noise=np.full(self.rows, self.noise(len(asked.turn)) / people),
            matrix=matrix,
        )

    def _picture(self, known: Slopes) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Shares, means, what is not known of each mean, and the covariance around them."""
        k = self.rows
        shares = np.maximum(1 / k + known.theta[:, 0], _FEWEST / k)
        shares = shares / shares.sum()
        means = known.theta[:, 1:] / shares[:, None]
        own = known.covariance[:, 1:, 1:] / (shares**2)[:, None, None]
        # ψ is centered, as far as that is known.
        doubt = float(np.einsum("k,kii->", shares**2, own)) / means.shape[1]
        means = means - doubt / (doubt + known.place) * (shares @ means)
        values, axes = np.linalg.eigh((means.T * shares) @ means)
        explained = (axes * np.minimum(values, _MOST_EXPLAINED)) @ axes.T
        return shares, means, own, np.eye(len(values)) - explained + np.tensordot(shares, own, 1)

    def scores(self, known: Slopes) -> Scores:
        """Of the linear discriminant; what is not known of means counts as what varies."""
        shares, means, own, within = self._picture(known)
        into = np.linalg.inv(within)
        slopes = means @ into
        spread = into @ own @ into
        intercept = np.log(shares) - 0.5 * (slopes * means).sum(axis=1)
        error = float(known.covariance[shares.argmax(), 0, 0] ** 0.5)
        doubt = np.trace(spread, axis1=1, axis2=2)
        return Scores(intercept, slopes, spread, doubt, (float(1 - shares.max()), error))


@dataclass(frozen=True)
class _Linear(Event):
    """A mean report that is linear in θ."""

    matrix: FloatArray

    def slope(self, theta: FloatArray) -> FloatArray:
        """Everywhere the same."""
        return self.matrix


def _unexplained(theta: FloatArray) -> float:
    """Standard deviation of what is left of a standardized number."""
    return float(max(1 - float(theta[1:] @ theta[1:]), 1 - _MOST_EXPLAINED) ** 0.5)


def _clipped_mean(mean: FloatArray, deviation: float, cut: FloatArray) -> FloatArray:
    """Of normal numbers that are clipped to ±cut."""
    low, high = (-cut - mean) / deviation, (cut - mean) / deviation
    inside = ndtr(high) - ndtr(low)
    density = (np.exp(-0.5 * low**2) - np.exp(-0.5 * high**2)) / np.sqrt(2 * np.pi)
    return np.asarray(cut * (ndtr(-high) - ndtr(low)) + mean * inside + deviation * density)
