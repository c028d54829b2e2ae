"""What beliefs and answers say together, by importance sampling: weighted points.

Given the share π and what features have in common, features are independent. So every feature has
points (m, log s, d, r), weighted by prior over proposal, and others with d = r = 0 for the
hypothesis that it says nothing; π and the common numbers are on small grids, and sums over all of
them are matrix products. Where few points carry a feature's weight, new ones are drawn around them
and the answers so far are weighed again. All of it is public and deterministic.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaincinv, gammaln, logit, logsumexp, ndtr, ndtri
from scipy.stats import qmc

from dpfda._validate import FloatArray
from dpfda.local.study.answers import Answers, Labels, log_likelihoods
from dpfda.local.study.beliefs import FIRST_LOG_ODDS, Prior, evidence

_POINTS = (192, 96)  # of a feature that says something, and of one that does not
_FEW = 1 / 6  # of the points: where fewer carry the weight, new ones are drawn
_SOME = 12.0  # points that new ones are drawn around, at least: one would draw itself again
_ATTEMPTS = 15  # to draw better ones, after each batch of answers; one or two are enough as a rule
_KEPT = 5  # every fifth point stays as the beliefs drew it, whatever answers say
_WIDER = 1.2  # than the weighted points: the variance that new ones are drawn with
_STUDENT = 6.0  # degrees of freedom of their law
_SHARES, _REACH = 9, 3.0  # values of logit π, and how many deviations they reach
_WIDEST = 30.0  # |log s|: beyond that numbers are not normal, and no belief is there
_CLOSER = 0.35  # of the distance of two values: the least deviation that is seen between them
_FEW_SHARES = 3.0  # values of logit π that carry the weight, at least
_AT_AN_END = 0.02  # weight of the first or the last, at most
_LEAST = 1e-300


class Cloud(NamedTuple):
    """Points of every feature with their weights.

    Attributes:
        points: (m, log s, d, r), shape (features, K, 4).
        weights: shape (features, K), each row with sum 1.
    """

    points: FloatArray
    weights: FloatArray

    def mean(self, values: FloatArray) -> FloatArray:
        """Of values at the points, by feature."""
        return np.asarray((self.weights * values).sum(axis=1))

    def variance(self, values: FloatArray) -> FloatArray:
        """Of values at the points, by feature."""
        return self.mean((values - self.mean(values)[:, None]) ** 2)


class _Half:
    """The points of all features, if they say something of the label, or if they do not.

    Attributes:
        points: shape (features, K, 4).
        prior: prior over proposal at each, given each combination of common numbers, beside its
            peak.
        peak: logarithm of the largest of them at each: a prior may be far below the least number.
        told: log likelihood of all answers, as coefficients of 1, π and π².
    """

    def __init__(self, prior: Prior, *, says: bool) -> None:
        self._prior, self._says = prior, says
        self._normals, self._first, first_prior = _first(prior, says)
        self.points = self._first.copy()
        self.peak, self.prior = _peaked(first_prior)
        self.told = np.zeros((*self.points.shape[:2], 3))

    def hear(self, answers: Answers) -> None:
        """Weigh some answers more."""
        heard = log_likelihoods(answers, self.points[answers.feature])
        np.add.at(self.told, answers.feature, heard)

    def redraw(self, feature: int, log_weights: FloatArray, answers: Answers) -> None:
        """Points of one feature, drawn around those that carry the weight."""
        dims = (4 if self._prior.spread_differs else 3) if self._says else 2
        own, size = self.points[feature, :, :dims], self.points.shape[1]
        weights = _flattened(log_weights)
        center = weights @ own
        spread = _WIDER * ((own - center).T * weights) @ (own - center) + 1e-8 * np.eye(dims)
        root, kept = np.linalg.cholesky(spread), size // _KEPT
        chances = np.clip(ndtr(self._normals[:, -1]), 1e-6, 1 - 1e-6)
        stretched = np.sqrt(_STUDENT / 2 / gammaincinv(_STUDENT / 2, chances))
        new = center + (self._normals[:, :dims] * stretched[:, None]) @ root.T
        new[:, 1] = np.clip(new[:, 1], -_WIDEST, _WIDEST)
        new[:kept] = self._first[feature, :kept, :dims]
        self.points[feature, :, :dims] = new
        near = _log_student(np.linalg.solve(root, (new - center).T).T) - np.log(np.diag(root)).sum()
        believed = self._log_prior(feature)
        whole = logsumexp(believed + np.log(self._prior.common_odds), axis=1)
        share = kept / size
        drawn = np.logaddexp(near + np.log1p(-share), whole + np.log(share))
        believed -= drawn[:, None] + np.log(size)
        self.peak[feature], self.prior[feature] = _peaked(believed)
        points = np.broadcast_to(self.points[feature], (len(answers.feature), size, 4))
        self.told[feature] = log_likelihoods(answers, points).sum(axis=0)

    def _log_prior(self, feature: int) -> FloatArray:
        points = self.points[feature]
        found = self._prior.log_places(feature, points[:, :2])
        if self._says:
            found = found + self._prior.log_differences(points[:, 2])[:, None]
        if self._says and self._prior.spread_differs:
            found = found + self._prior.log_spreads(points[:, 3])
        return found


class Posterior:
    """What is believed by now.

    Attributes:
        prior: before anyone answered.
        answers: all about features.
        shares: values of π.
        share_weights: how likely each is.
        hypotheses: how likely each of the beliefs' hypotheses is.
        says: how likely each feature is to say something.
    """

    def __init__(self, prior: Prior) -> None:
        self.prior, self.answers = prior, Answers.none()
        self._labels: list[Labels] = []
        self._halves = _Half(prior, says=True), _Half(prior, says=False)
        if prior.class_share is None:
            self._log_odds = FIRST_LOG_ODDS
        else:
            self._log_odds = np.array([logit(prior.class_share)])
        self._weigh()

    def told(self, answers: Answers, labels: list[Labels]) -> None:
        """Take in answers."""
        self.answers = Answers.all_of([self.answers, answers])
        self._labels += labels
        for half in self._halves:
            half.hear(answers)
        self._weigh()
        for _ in range(_ATTEMPTS):
            if not self._redrawn():
                break
            self._weigh()
        for _ in range(_ATTEMPTS):
            if self.prior.class_share is not None or not self._shares_are_poor:
                break
            middle, spread = self.log_odds
            spread = max(spread, _CLOSER * float(np.diff(self._log_odds).max()))
            self._log_odds = middle + spread * np.linspace(-_REACH, _REACH, _SHARES)
            self._weigh()

    @property
    def shares(self) -> FloatArray:
        """Values of π."""
        return np.asarray(expit(self._log_odds))

    @property
    def log_odds(self) -> tuple[float, float]:
        """Mean and standard deviation of logit π."""
        middle = float(self.share_weights @ self._log_odds)
        return middle, float(np.sqrt(self.share_weights @ (self._log_odds - middle) ** 2 + 1e-4))

    @property
    def share(self) -> tuple[float, float]:
        """Mean and variance of π."""
        middle = float(self.share_weights @ self.shares)
        return middle, float(self.share_weights @ (self.shares - middle) ** 2)

    @property
    def cloud(self) -> Cloud:
        """All points."""
        points = np.concatenate([half.points for half in self._halves], axis=1)
        weights = np.concatenate(self._weights, axis=1)
        return Cloud(points, weights / weights.sum(axis=1, keepdims=True))

    @property
    def _shares_are_poor(self) -> bool:
        """Whether few values of π carry the weight, or those at an end."""
        weights = self.share_weights
        return bool(1 / (weights**2).sum() < _FEW_SHARES or weights[[0, -1]].max() > _AT_AN_END)

    def _redrawn(self) -> bool:
        """Draw new points where few carry the weight; whether any were."""
        some = False
        for half, weights, logs in zip(self._halves, self._weights, self._log_weights, strict=True):
            total = weights.sum(axis=1)
            size = total**2 / np.maximum((weights**2).sum(axis=1), _LEAST)
            poor = (size < _FEW * weights.shape[1]) & (total > 1e-6)
            for feature in np.flatnonzero(poor).tolist():
                half.redraw(feature, logs[feature], self.answers.of(feature))
                some = True
        return some

    def _weigh(self) -> None:
        """Sum over hypotheses, shares and common numbers."""
        prior, shares = self.prior, self.shares
        powers = np.stack([np.ones_like(shares), shares, shares**2])
        logs = [half.told @ powers + half.peak[..., None] for half in self._halves]
        top = np.maximum(*(log.max(axis=1) for log in logs))  # (features, shares)
        likely = [np.exp(log - top[:, None]) for log in logs]  # (features, K, shares)
        says, not_ = (
            np.swapaxes(one, 1, 2) @ half.prior
            for one, half in zip(likely, self._halves, strict=True)
        )  # (features, shares, common)
        included = prior.included[:, :, None, None]
        mixed = included * says + (1 - included) * not_ + _LEAST
        of_labels = sum((one.log_likelihood(shares) for one in self._labels), np.zeros(len(shares)))
        of_share = np.log(prior.share_odds(self._log_odds) + _LEAST) + of_labels
        of_share += top.sum(axis=0)
        logs_all = (
            np.log(mixed).sum(axis=1)
            + np.log(prior.hypothesis_odds)[:, None, None]
            + of_share[:, None]
            + np.log(prior.common_odds)
        )
        joint = np.exp(logs_all - logs_all.max())
        joint /= joint.sum()  # (hypotheses, shares, common)
        self.hypotheses, self.share_weights = joint.sum(axis=(1, 2)), joint.sum(axis=(0, 2))
        each = joint[:, None] / mixed
        parts = (each * included).sum(axis=0), (each * (1 - included)).sum(axis=0)
        self._weights = [
            ((one @ part) * half.prior).sum(axis=2)
            for one, part, half in zip(likely, parts, self._halves, strict=True)
        ]
        self.says = self._weights[0].sum(axis=1)
        # The same, nearly, of points whose weights are below the least number: which of them are
        # nearest to what answers say still shows where new ones belong.
        common = joint.sum(axis=(0, 1))
        self._log_weights = [
            logsumexp(log + np.log(self.share_weights + _LEAST), axis=2)
            + np.log(half.prior @ common + _LEAST)
            for log, half in zip(logs, self._halves, strict=True)
        ]

    @property
    def evidence(self) -> float:
        """How likely it is that any feature says something, if it was as likely as not before."""
        return evidence(self.prior.hypothesis_odds[0], self.hypotheses[0])


def _peaked(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest of each row, and all as shares of it."""
    peak = logs.max(axis=-1)
    return peak, np.exp(logs - peak[..., None])


def _flattened(logs: FloatArray) -> FloatArray:
    """A power of the weights, given as logarithms, that some points carry, with sum 1."""
    logs, power = logs - logs.max(), 1.0
    while True:
        flat = np.exp(power * logs)
        flat /= flat.sum()
        if 1 / (flat**2).sum() >= _SOME:
            return np.asarray(flat)
        power /= 2


def _log_student(rows: FloatArray) -> FloatArray:
    """Log density of a Student law at standardized rows."""
    dims = rows.shape[1]
    scale = gammaln((_STUDENT + dims) / 2) - gammaln(_STUDENT / 2)
    scale -= dims / 2 * np.log(_STUDENT * np.pi)
    tail = np.log1p((rows**2).sum(axis=1) / _STUDENT)
    return np.asarray(scale - (_STUDENT + dims) / 2 * tail)


@lru_cache(maxsize=8)
def _first(prior: Prior, says: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Public normals, points that the beliefs draw with them, log prior over proposal there."""
    size, columns = (_POINTS[0], 5 + prior.spread_differs) if says else (_POINTS[1], 4)
    chances = qmc.Sobol(columns, scramble=True, seed=1 + says).random_base2(10)[:size]
    normals = ndtri(np.clip(chances, 1e-9, 1 - 1e-9))
    points = np.zeros((prior.features, size, 4))
    weights = np.zeros((prior.features, size, len(prior.common_odds)))
    for feature in range(prior.features):
        points[feature, :, :2] = prior.places(feature, normals)
        if says:
            points[feature, :, 2] = prior.differences(normals[:, 3], chances[:, 4])
        if says and prior.spread_differs:
            points[feature, :, 3] = prior.spreads(normals)
        believed = prior.log_places(feature, points[feature, :, :2])
        if says and prior.spread_differs:
            believed = believed + prior.log_spreads(points[feature, :, 3])
        drawn = logsumexp(believed + np.log(prior.common_odds), axis=1)
        ratio = believed - drawn[:, None]
        weights[feature] = ratio - logsumexp(ratio, axis=0)  # all points are one whole
    return normals, points, weights
