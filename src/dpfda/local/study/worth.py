"""What people are asked next: what lowers the expected loss most, at the price of one person each.

The loss is the variance of the log-odds that a rule would give people, for everything that is still
open: how far classes are apart (d), where the middle is (m, in widths), how wide a feature is, and
how frequent the labels are. To first order, answers lower variances as if everything were normal.

A middle is worth something before its d is known: questions about d that are asked beside it say
little. What that costs at the end of the study is its worth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.local.study.answers import above
from dpfda.local.study.design import most_questions
from dpfda.local.study.posterior import Posterior
from dpfda.mechanisms.question_response import QuestionResponse

_OFFSETS = np.array([-1.3, -0.7, 0.0, 0.7, 1.3])
"""Thresholds that are tried: so many deviations from the middle, as far as it is known."""
_STEPS = 8  # parts of a batch; each is asked what is best after those before
_EVEN = 0.2  # of each batch: asked about everything, so that a wrong belief is noticed
_MIDDLE = 0.64  # 4 φ(0)²: what an answer at the middle says of d, without noise
_BEATEN = 0.7  # of the best worth: fewer questions were better, so that more are not tried
_TARGETS = 3  # d, m, log s
_EVEN_PLAIN, _EVEN_JOINED, _EVEN_LABEL = 0.3, 0.5, 0.2
"""Of those who are asked about everything: features alone, with the label, the label alone."""


class Batch(NamedTuple):
    """What some people are asked.

    Attributes:
        questions: k, how many each of them answers.
        alpha: probability that all their answers are true.
        thresholds: t, shape (features, offsets).
        plain: share of the people who are asked "is your feature above t?", of this shape. Where
            k > 1, of the k - 1 questions of everybody, who is asked for the label as well.
        joined: share who are asked the same with their label.
        label: share who are asked for their label alone.
        expected: mean true answers, of both kinds and of the label.
    """

    questions: int
    alpha: float
    thresholds: FloatArray
    plain: FloatArray
    joined: FloatArray
    label: float
    expected: tuple[FloatArray, FloatArray, float]


class _Outlook(NamedTuple):
    """What is believed of the answers to come.

    Attributes:
        thresholds: t, shape (features, offsets).
        means: of true answers, shape (features, 2 offsets): plain ones, then those with the label.
        covariance: of targets and mean answers, shape (features, 3 + 2 offsets, same).
        apart: (E d)², by feature: a middle matters as far as classes are believed apart there.
        before: variance of d, by feature.
        share: mean of π.
        odds: variance of logit π.
    """

    thresholds: FloatArray
    means: FloatArray
    covariance: FloatArray
    apart: FloatArray
    before: FloatArray
    share: float
    odds: float


def best_batch(posterior: Posterior, people: int, *, left: int, epsilon: float) -> Batch:
    """What to ask `people`, where `left` others come after them."""
    ahead = _outlook(posterior)
    features = len(ahead.apart)
    alpha = QuestionResponse(epsilon=epsilon, questions=1).truth_probability
    info = _MIDDLE * alpha**2 * left / features
    known = posterior.beliefs.class_share is not None
    best = _Allotted(-math.inf, 1, alpha, np.zeros_like(ahead.means), 0.0)
    for questions in range(1, most_questions(features) + 1):
        alpha = QuestionResponse(epsilon=epsilon, questions=questions).truth_probability
        found = _allotted(ahead, people / _STEPS, questions=questions, alpha=alpha, info=info)
        if found.worth > best.worth:
            best = found
        elif found.worth < _BEATEN * best.worth:
            break
    return _spread(best, ahead, known=known)


class _Allotted(NamedTuple):
    worth: float
    questions: int
    alpha: float
    counts: FloatArray  # (features, 2 offsets)
    label: float


def _outlook(posterior: Posterior) -> _Outlook:
    cloud = posterior.cloud
    middle, log_width, d = np.moveaxis(cloud.points, 2, 0)
    width = np.exp(log_width)
    mean_middle, mean_width = cloud.mean(middle), np.sqrt(cloud.mean(width**2))
    reach = np.sqrt(mean_width**2 + cloud.variance(middle))
    thresholds = mean_middle[:, None] + reach[:, None] * _OFFSETS
    ones, others = above(thresholds[..., None], middle[:, None], width[:, None], d[:, None])
    share, doubt = posterior.share
    plain, joined = share * ones + (1 - share) * others, share * ones - (1 - share) * others
    targets = np.stack([d, (middle - mean_middle[:, None]) / mean_width[:, None], log_width], 1)
    values = np.concatenate([targets, plain, joined], axis=1)
    weights = cloud.weights[:, None]
    means = (values * weights).sum(axis=2)
    off = values - means[..., None]
    covariance = (off * weights) @ np.swapaxes(off, 1, 2)
    # That π is not known makes answers less certain.
    slope = np.concatenate([0 * targets, ones - others, ones + others], axis=1)
    slope = (slope * weights).sum(axis=2)
    covariance += doubt * slope[:, :, None] * slope[:, None]
    odds = 0.0 if posterior.beliefs.class_share is not None else posterior.log_odds[1] ** 2
    return _Outlook(
        thresholds=thresholds,
        means=means[:, _TARGETS:],
        covariance=covariance,
        apart=cloud.mean(d) ** 2,
        before=covariance[:, 0, 0].copy(),
        share=share,
        odds=odds,
    )


def _loss(ahead: _Outlook, variances: FloatArray, info: float) -> FloatArray:
    """Of features whose targets have such variances, shape (features, 3, ...)."""
    shape = (-1,) + (1,) * (variances.ndim - 2)
    apart, before = ahead.apart.reshape(shape), ahead.before.reshape(shape)
    d, middle, width = np.moveaxis(variances, 1, 0)
    # Answers about d beside the middle say (1 + 2 v)^-½ of what they would say at it.
    blunt = 1 / (1 / np.maximum(before, 1e-9) + info / np.sqrt(1 + 2 * np.maximum(middle, 0)))
    return np.asarray(4 * ((1 + apart) * (d + blunt) + apart * (middle + (1 + apart) * width)))


def _allotted(
    ahead: _Outlook, step: float, *, questions: int, alpha: float, info: float
) -> _Allotted:
    """Step by step, the question that lowers the loss most."""
    covariance, odds = ahead.covariance.copy(), ahead.odds
    noise = (1 - (alpha * ahead.means) ** 2) / (alpha**2 * step)
    reaction = 2 * ahead.share * (1 - ahead.share)  # of the mean label to logit π
    label_noise = (1 - (alpha * (2 * ahead.share - 1)) ** 2) / (alpha**2 * step)
    counts, label = np.zeros_like(ahead.means), 0.0

    def losses() -> FloatArray:
        return _loss(ahead, np.einsum("jtt->jt", covariance[:, :_TARGETS, :_TARGETS]), info)

    def told(feature: int, place: int) -> None:
        column = covariance[feature][:, _TARGETS + place].copy()
        total = column[_TARGETS + place] + noise[feature, place]
        covariance[feature] -= np.outer(column, column) / total

    before = losses().sum() + odds
    half = len(_OFFSETS)
    for _ in range(_STEPS):
        of_label = (odds * reaction) ** 2 / (odds * reaction**2 + label_noise)
        if questions == 1:
            gain = losses()[:, None] - _loss(ahead, _after(covariance, noise), info)
            feature, place = divmod(int(np.argmax(gain)), 2 * half)
            if of_label > gain[feature, place]:
                label, odds = label + step, odds - of_label
                continue
            counts[feature, place] += step
            told(feature, place)
            continue
        label, odds = label + step, odds - of_label
        others = np.ones(len(counts), dtype=bool)  # features that such a row is not about yet
        for _ in range(questions - 1):
            gain = losses()[:, None] - _loss(ahead, _after_both(covariance, noise), info)
            gain[~others] = -math.inf
            feature, place = divmod(int(np.argmax(gain)), half)
            counts[feature, place] += step
            others[feature] = False
            told(feature, place)
            told(feature, place + half)
    worth = float(before - losses().sum() - odds)
    return _Allotted(worth, questions, alpha, counts, label)


def _after(covariance: FloatArray, noise: FloatArray) -> FloatArray:
    """Variances of the targets after one step of each question, shape (features, 3, questions)."""
    cross = covariance[:, :_TARGETS, _TARGETS:]
    total = np.einsum("jqq->jq", covariance[:, _TARGETS:, _TARGETS:]) + noise
    before = np.einsum("jtt->jt", covariance[:, :_TARGETS, :_TARGETS])
    return np.asarray(before[..., None] - cross**2 / total[:, None])


def _after_both(covariance: FloatArray, noise: FloatArray) -> FloatArray:
    """The same after both kinds of answers at each threshold, shape (features, 3, offsets)."""
    half = len(_OFFSETS)
    plain, joined = slice(_TARGETS, _TARGETS + half), slice(_TARGETS + half, None)
    total = np.einsum("jqq->jq", covariance[:, plain, plain]) + noise[:, :half]
    between = np.einsum("jqq->jq", covariance[:, plain, joined])
    of_joined = np.einsum("jqq->jq", covariance[:, joined, joined]) + noise[:, half:]
    of_joined = of_joined - between**2 / total
    cross = covariance[:, :_TARGETS, plain]
    second = covariance[:, :_TARGETS, joined] - cross * (between / total)[:, None]
    before = np.einsum("jtt->jt", covariance[:, :_TARGETS, :_TARGETS])
    fall = cross**2 / total[:, None] + second**2 / of_joined[:, None]
    return np.asarray(before[..., None] - fall)


def _spread(best: _Allotted, ahead: _Outlook, *, known: bool) -> Batch:
    """The best questions to most people, all questions to some."""
    features, half = len(ahead.apart), len(_OFFSETS)
    # Two thresholds beside the middle, which say most of middle and width, and the middle itself.
    beside = np.tile([0.0, 0.4, 0.2, 0.4, 0.0], (features, 1)) / features
    at_middle = np.tile([0.0, 0.0, 1.0, 0.0, 0.0], (features, 1)) / features
    plain, joined = best.counts[:, :half], best.counts[:, half:]
    expected = ahead.means[:, :half], ahead.means[:, half:], 2 * ahead.share - 1
    if best.questions > 1:
        even = (1 - _EVEN) * plain / plain.sum() + _EVEN * beside
        return Batch(best.questions, best.alpha, ahead.thresholds, even, 0 * joined, 0.0, expected)
    total = plain.sum() + joined.sum() + best.label
    parts = np.array([_EVEN_PLAIN, _EVEN_JOINED, 0.0 if known else _EVEN_LABEL])
    parts *= _EVEN / parts.sum()
    return Batch(
        1,
        best.alpha,
        ahead.thresholds,
        (1 - _EVEN) * plain / total + parts[0] * beside,
        (1 - _EVEN) * joined / total + parts[1] * at_middle,
        float((1 - _EVEN) * best.label / total + parts[2]),
        expected,
    )
