"""What people are asked next: what lowers the expected loss most, at the price of one person each.

The loss is the variance of the log-odds that a rule would give people, for everything that is still
open: how far classes are apart (d), where the middle is (m, in widths), how wide a feature is, how
much wider one class is (r), and how frequent the labels are. To first order, answers lower
variances as if everything were normal.

A middle is worth something before its d is known: questions about d that are asked beside it say
little. What that costs at the end of the study is its worth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.local.study.answers import above, away
from dpfda.local.study.design import most_questions
from dpfda.local.study.posterior import Posterior
from dpfda.mechanisms.randomized_response import QuestionResponse

_OFFSETS = np.array([-1.3, -0.7, 0.0, 0.7, 1.3])
"""Thresholds that are tried: so many deviations from the middle, as far as it is known."""
_DISTANCES = np.array([0.5, 0.9, 1.3, 1.7, 2.2])
"""From the middle, in deviations: tried as well where classes may differ in spread."""
_GRID = 2.0**-20  # thresholds are multiples of it: machines that round otherwise ask the same
_STEPS = 8  # parts of a batch; each is asked what is best after those before
_MIDDLE = 0.64  # 4 φ(0)²: what an answer at the middle says of d, without noise
_BEATEN = 0.7  # of the best worth: fewer questions were better, so that more are not tried
_TARGETS = 4  # d, m, log s, r
_EVEN_PLAIN, _EVEN_JOINED, _EVEN_LABEL = 0.3, 0.5, 0.2
"""Of those who are asked about everything: features alone, with the label, the label alone."""


class Batch(NamedTuple):
    """What some people are asked.

    Attributes:
        questions: k, how many each of them answers.
        alpha: probability that all their answers are true.
        thresholds: t, shape (features, offsets); where there are folds, distances from them follow
            as if they were other features.
        folds: c, from which distances are.
        plain: share of the people who are asked "is your feature above t?", of this shape. Where
            k > 1, of the k - 1 questions of everybody, who is asked for the label as well.
        joined: share who are asked the same with their label.
        label: share who are asked for their label alone.
        expected: mean true answers, of both kinds and of the label.
    """

    questions: int
    alpha: float
    thresholds: FloatArray
    folds: FloatArray
    plain: FloatArray
    joined: FloatArray
    label: float
    expected: tuple[FloatArray, FloatArray, float]


class _Outlook(NamedTuple):
    """What is believed of the answers to come.

    Attributes:
        thresholds: t, shape (features, questions); distances after offsets.
        folds: c of the distances.
        means: of true answers, shape (features, 2 questions): plain, then those with the label.
        covariance: of targets and mean answers, shape (features, 4 + 2 questions, same).
        apart: (E d)² + 4 (E r)², by feature: a middle matters as far as classes differ there.
        before: variance of d, by feature.
        share: mean of π.
        odds: variance of logit π.
    """

    thresholds: FloatArray
    folds: FloatArray
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
    known = posterior.prior.class_share is not None
    best = _Allotted(-math.inf, 1, alpha, np.zeros_like(ahead.means), 0.0)
    for questions in range(1, most_questions(features) + 1):
        alpha = QuestionResponse(epsilon=epsilon, questions=questions).truth_probability
        found = _allotted(ahead, people / _STEPS, questions=questions, alpha=alpha, info=info)
        if found.worth > best.worth:
            best = found
        elif found.worth < _BEATEN * best.worth:
            break
    return _spread(best, ahead, even=posterior.prior.beliefs.even, known=known)


class _Allotted(NamedTuple):
    worth: float
    questions: int
    alpha: float
    counts: FloatArray  # (features, 2 questions)
    label: float


def _outlook(posterior: Posterior) -> _Outlook:
    cloud = posterior.cloud
    middle, log_width, d, r = np.moveaxis(cloud.points, 2, 0)
    width = np.exp(log_width)
    mean_middle, mean_width = cloud.mean(middle), np.sqrt(cloud.mean(width**2))
    reach = np.sqrt(mean_width**2 + cloud.variance(middle))
    thresholds = rounded(mean_middle[:, None] + reach[:, None] * _OFFSETS)
    law, folds = [one[:, None] for one in (middle, width, d, r)], np.zeros(0)
    ones, others = above(thresholds[..., None], *law)
    if posterior.prior.spread_differs:
        folds = rounded(mean_middle)
        distances = rounded(reach[:, None] * _DISTANCES)
        thresholds = np.concatenate([thresholds, distances], axis=1)
        far = away(distances[..., None], folds[:, None, None], *law)
        ones = np.concatenate([ones, far[0]], axis=1)
        others = np.concatenate([others, far[1]], axis=1)
    share, doubt = posterior.share
    plain, joined = share * ones + (1 - share) * others, share * ones - (1 - share) * others
    off_middle = (middle - mean_middle[:, None]) / mean_width[:, None]
    targets = np.stack([d, off_middle, log_width, r], axis=1)
    values = np.concatenate([targets, plain, joined], axis=1)
    weights = cloud.weights[:, None]
    means = (values * weights).sum(axis=2)
    off = values - means[..., None]
    covariance = (off * weights) @ np.swapaxes(off, 1, 2)
    # That π is not known makes answers less certain.
    slope = np.concatenate([0 * targets, ones - others, ones + others], axis=1)
    slope = (slope * weights).sum(axis=2)
    covariance += doubt * slope[:, :, None] * slope[:, None]
    odds = 0.0 if posterior.prior.class_share is not None else posterior.log_odds[1] ** 2
    return _Outlook(
        thresholds=thresholds,
        folds=folds,
        means=means[:, _TARGETS:],
        covariance=covariance,
        apart=cloud.mean(d) ** 2 + 4 * cloud.mean(r) ** 2,
        before=covariance[:, 0, 0].copy(),
        share=share,
        odds=odds,
    )


def _loss(ahead: _Outlook, variances: FloatArray, info: float) -> FloatArray:
    """Of features whose targets have such variances, shape (features, 4, ...).

    Where a person is z widths from the middle, r adds 2 r (z² - 1) to the log-odds: 8 times its
    variance.
    """
    shape = (-1,) + (1,) * (variances.ndim - 2)
    apart, before = ahead.apart.reshape(shape), ahead.before.reshape(shape)
    d, middle, width, wider = np.moveaxis(variances, 1, 0)
    # Answers about d beside the middle say (1 + 2 v)^-½ of what they would say at it.
    blunt = 1 / (1 / np.maximum(before, 1e-9) + info / np.sqrt(1 + 2 * np.maximum(middle, 0)))
    places = (1 + apart) * (d + blunt) + apart * (middle + (1 + apart) * width)
    return np.asarray(4 * places + 8 * wider)


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
    half = counts.shape[1] // 2
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
    """Variances of the targets after one step of each question, shape (features, 4, questions)."""
    cross = covariance[:, :_TARGETS, _TARGETS:]
    total = np.einsum("jqq->jq", covariance[:, _TARGETS:, _TARGETS:]) + noise
    before = np.einsum("jtt->jt", covariance[:, :_TARGETS, :_TARGETS])
    return np.asarray(before[..., None] - cross**2 / total[:, None])


def _after_both(covariance: FloatArray, noise: FloatArray) -> FloatArray:
    """The same after both kinds of answers at each threshold, shape (features, 4, questions)."""
    half = noise.shape[1] // 2
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


def _spread(best: _Allotted, ahead: _Outlook, *, even: float, known: bool) -> Batch:
    """The best questions to most people, all questions to some."""

    def stacked(values: FloatArray) -> FloatArray:
        """Distances as if they were other features."""
        return np.concatenate(np.split(values, values.shape[1] // len(_OFFSETS), axis=1))

    half = best.counts.shape[1] // 2
    thresholds, plain, joined = map(
        stacked, (ahead.thresholds, best.counts[:, :half], best.counts[:, half:])
    )
    expected = stacked(ahead.means[:, :half]), stacked(ahead.means[:, half:]), 2 * ahead.share - 1
    # Two thresholds beside the middle, which say most of middle and width, and the middle itself;
    # of distances, those that tell best which class is wider.
    rows, own = len(thresholds), len(ahead.apart)
    beside, at_middle = np.zeros((rows, len(_OFFSETS))), np.zeros((rows, len(_OFFSETS)))
    beside[:own] = np.array([0.0, 0.4, 0.2, 0.4, 0.0]) / own
    at_middle[:, 2] = 1 / rows
    if best.questions > 1:
        beside = (beside + at_middle) / 2 if rows > own else beside
        shares = (1 - even) * plain / plain.sum() + even * beside
        return Batch(
            best.questions, best.alpha, thresholds, ahead.folds, shares, 0 * joined, 0.0, expected
        )
    total = plain.sum() + joined.sum() + best.label
    parts = np.array([_EVEN_PLAIN, _EVEN_JOINED, 0.0 if known else _EVEN_LABEL])
    parts *= even / parts.sum()
    return Batch(
        1,
        best.alpha,
        thresholds,
        ahead.folds,
        (1 - even) * plain / total + parts[0] * beside,
        (1 - even) * joined / total + parts[1] * at_middle,
        float((1 - even) * best.label / total + parts[2]),
        expected,
    )


def rounded(thresholds: FloatArray) -> FloatArray:
    """On a grid, and where a feature can be above it."""
    return np.asarray(np.round(np.clip(thresholds, -1, 1 - _GRID) / _GRID) * _GRID)
