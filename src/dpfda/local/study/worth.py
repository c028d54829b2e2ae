"""The choice of questions: those that reduce the expected loss most per participant.

The loss is the posterior variance of the log odds that the classifier gives people: from d, m (in
widths), log s, r and logit π. To first order, answers reduce these variances as in a normal model.

A center is worth knowing before its d is known, because answers about d at a wrong threshold carry
little information. Its worth is what this costs at the end of the study.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.local.study.answers import Questions, above, farther
from dpfda.local.study.design import most_questions
from dpfda.local.study.posterior import Posterior
from dpfda.mechanisms.randomized_response import QuestionResponse

_OFFSETS = np.array([-1.3, -0.7, 0.0, 0.7, 1.3])
"""Candidate thresholds: this many standard deviations from the center, as far as it is known."""
_DISTANCES = np.array([0.5, 0.9, 1.3, 1.7, 2.2])
"""Candidate distances from the center, in standard deviations, if classes may differ in spread."""
_GRID = 2.0**-20  # thresholds are multiples of it, so that rounding does not change a question
_STEPS = 8  # greedy steps for a batch
_PEAK = 0.64  # 4 φ(0)²: information about d in a noise-free answer at the center
_WORSE = 0.7  # of the best worth: beyond a k that is so much worse, no larger k is tried
_TARGETS = 4  # d, m, log s, r
_EVEN = np.array([0.3, 0.5, 0.2])
"""Of the evenly spread questions: plain, labelled, label."""


class Batch(NamedTuple):
    """The questions of a batch of participants.

    Attributes:
        per_person: k, questions in one reply.
        alpha: probability that a reply is true.
        questions: all candidates; `offsets` of each feature, then `offsets` of each distance.
        offsets: number of candidates of each.
        folds: the centers of distances, where there are any.
        plain: share of participants with each plain question; where k > 1, share of the k - 1
            plain questions of every participant.
        labelled: share of participants with each labelled question.
        label: share of participants with the label alone.
        expected: predicted means of true answers: plain, labelled, label.
    """

    per_person: int
    alpha: float
    questions: Questions
    offsets: int
    folds: FloatArray
    plain: FloatArray
    labelled: FloatArray
    label: float
    expected: tuple[FloatArray, FloatArray, float]


class _Forecast(NamedTuple):
    """Joint posterior moments of targets and answers.

    Attributes:
        thresholds: t, shape (features, candidates); distances after offsets.
        folds: centers of the distances.
        means: of true answers, shape (features, 2 candidates): plain, then labelled.
        covariance: of targets and mean answers, shape (features, 4 + 2 candidates, same).
        differs: (E d)² + 4 (E r)², by feature: a center matters as far as classes differ there.
        prior_variance: variance of d, by feature.
        share: mean of π.
        log_odds: variance of logit π.
    """

    thresholds: FloatArray
    folds: FloatArray
    means: FloatArray
    covariance: FloatArray
    differs: FloatArray
    prior_variance: FloatArray
    share: float
    log_odds: float


class _Allocation(NamedTuple):
    """Greedy counts of the candidates, and the loss that they save."""

    worth: float
    per_person: int
    alpha: float
    counts: FloatArray  # (features, 2 candidates)
    label: float


def best_batch(posterior: Posterior, people: int, *, left: int, epsilon: float) -> Batch:
    """The questions for `people` participants, if `left` others come after them."""
    forecast = _forecast(posterior)
    features = len(forecast.differs)
    alpha = QuestionResponse(epsilon=epsilon, questions=1).truth_probability
    later = _PEAK * alpha**2 * left / features  # information about each d in later answers
    best = _Allocation(-math.inf, 1, alpha, np.zeros_like(forecast.means), 0.0)
    for k in range(1, most_questions(features) + 1):
        alpha = QuestionResponse(epsilon=epsilon, questions=k).truth_probability
        allocation = _allocation(forecast, people / _STEPS, per_person=k, alpha=alpha, later=later)
        if allocation.worth > best.worth:
            best = allocation
        elif allocation.worth < _WORSE * best.worth:
            break
    return _with_even_part(best, forecast, posterior)


def _forecast(posterior: Posterior) -> _Forecast:
    particles = posterior.particles
    center, log_width, d, r = np.moveaxis(particles.points, 2, 0)
    width = np.exp(log_width)
    mean_center, mean_width = particles.mean(center), np.sqrt(particles.mean(width**2))
    reach = np.sqrt(mean_width**2 + particles.variance(center))[:, None]
    thresholds = _rounded(mean_center[:, None] + reach * _OFFSETS)
    law, folds = [values[:, None] for values in (center, width, d, r)], np.zeros(0)
    ones, others = above(thresholds[..., None], *law)
    if posterior.prior.spread_differs:
        folds, distances = _rounded(mean_center), _rounded(reach * _DISTANCES)
        thresholds = np.concatenate([thresholds, distances], axis=1)
        far = farther(distances[..., None], folds[:, None, None], *law)
        ones, others = (
            np.concatenate(both, axis=1) for both in zip((ones, others), far, strict=True)
        )
    share, doubt = posterior.share
    plain, labelled = share * ones + (1 - share) * others, share * ones - (1 - share) * others
    off_center = (center - mean_center[:, None]) / mean_width[:, None]
    targets = np.stack([d, off_center, log_width, r], axis=1)
    values, weights = np.concatenate([targets, plain, labelled], axis=1), particles.weights[:, None]
    means = (values * weights).sum(axis=2)
    off = values - means[..., None]
    covariance = (off * weights) @ np.swapaxes(off, 1, 2)
    # The uncertainty of π makes answers less certain.
    slope = np.concatenate([0 * targets, ones - others, ones + others], axis=1)
    slope = (slope * weights).sum(axis=2)
    covariance += doubt * slope[:, :, None] * slope[:, None]
    return _Forecast(
        thresholds=thresholds,
        folds=folds,
        means=means[:, _TARGETS:],
        covariance=covariance,
        differs=particles.mean(d) ** 2 + 4 * particles.mean(r) ** 2,
        prior_variance=covariance[:, 0, 0].copy(),
        share=share,
        log_odds=0.0 if posterior.prior.class_share is not None else posterior.log_odds[1] ** 2,
    )


def _loss(forecast: _Forecast, variances: FloatArray, later: float) -> FloatArray:
    """The loss by feature, given variances of the targets, shape (features, 4, ...).

    A person z widths from the center has 2 r (z² - 1) more log odds: 8 times the variance of r.
    """
    shape = (-1,) + (1,) * (variances.ndim - 2)
    differs, before = forecast.differs.reshape(shape), forecast.prior_variance.reshape(shape)
    d, center, width, wider = np.moveaxis(variances, 1, 0)
    # Near a center with variance v, answers about d have (1 + 2 v)^-½ of their information.
    blunt = 1 / (1 / np.maximum(before, 1e-9) + later / np.sqrt(1 + 2 * np.maximum(center, 0)))
    places = (1 + differs) * (d + blunt) + differs * (center + (1 + differs) * width)
    return np.asarray(4 * places + 8 * wider)


def _allocation(
    forecast: _Forecast, step: float, *, per_person: int, alpha: float, later: float
) -> _Allocation:
    """Greedy: in each step, `step` participants get the question that reduces the loss most."""
    covariance, log_odds = forecast.covariance.copy(), forecast.log_odds
    means, share = forecast.means, forecast.share
    noise = (1 - (alpha * means) ** 2) / (alpha**2 * step)
    reaction = 2 * share * (1 - share)  # derivative of the mean label answer by logit π
    label_noise = (1 - (alpha * (2 * share - 1)) ** 2) / (alpha**2 * step)
    counts, label, half = np.zeros_like(means), 0.0, means.shape[1] // 2

    def losses() -> FloatArray:
        return _loss(forecast, np.einsum("jtt->jt", covariance[:, :_TARGETS, :_TARGETS]), later)

    def condition(feature: int, place: int) -> None:
        column = covariance[feature][:, _TARGETS + place].copy()
        total = column[_TARGETS + place] + noise[feature, place]
        covariance[feature] -= np.outer(column, column) / total

    before = losses().sum() + log_odds
    for _ in range(_STEPS):
        of_label = (log_odds * reaction) ** 2 / (log_odds * reaction**2 + label_noise)
        if per_person == 1:
            gain = losses()[:, None] - _loss(forecast, _after(covariance, noise), later)
            feature, place = divmod(int(np.argmax(gain)), 2 * half)
            if of_label > gain[feature, place]:
                label, log_odds = label + step, log_odds - of_label
                continue
            counts[feature, place] += step
            condition(feature, place)
            continue
        label, log_odds = label + step, log_odds - of_label
        free = np.ones(len(counts), dtype=bool)  # features that this row does not contain yet
        for _ in range(per_person - 1):
            gain = losses()[:, None] - _loss(forecast, _after_both(covariance, noise), later)
            gain[~free] = -math.inf
            feature, place = divmod(int(np.argmax(gain)), half)
            counts[feature, place] += step
            free[feature] = False
            condition(feature, place)
            condition(feature, place + half)
    worth = float(before - losses().sum() - log_odds)
    return _Allocation(worth, per_person, alpha, counts, label)


def _after(covariance: FloatArray, noise: FloatArray) -> FloatArray:
    """Variances of the targets after each answer, shape (features, 4, answers)."""
    cross = covariance[:, :_TARGETS, _TARGETS:]
    total = np.einsum("jqq->jq", covariance[:, _TARGETS:, _TARGETS:]) + noise
    before = np.einsum("jtt->jt", covariance[:, :_TARGETS, :_TARGETS])
    return np.asarray(before[..., None] - cross**2 / total[:, None])


def _after_both(covariance: FloatArray, noise: FloatArray) -> FloatArray:
    """The same after a plain and a labelled answer together, shape (features, 4, candidates)."""
    half = noise.shape[1] // 2
    plain, labelled = slice(_TARGETS, _TARGETS + half), slice(_TARGETS + half, None)
    total = np.einsum("jqq->jq", covariance[:, plain, plain]) + noise[:, :half]
    between = np.einsum("jqq->jq", covariance[:, plain, labelled])
    second = np.einsum("jqq->jq", covariance[:, labelled, labelled]) + noise[:, half:]
    second = second - between**2 / total
    cross = covariance[:, :_TARGETS, plain]
    rest = covariance[:, :_TARGETS, labelled] - cross * (between / total)[:, None]
    before = np.einsum("jtt->jt", covariance[:, :_TARGETS, :_TARGETS])
    fall = cross**2 / total[:, None] + rest**2 / second[:, None]
    return np.asarray(before[..., None] - fall)


def _with_even_part(best: _Allocation, forecast: _Forecast, posterior: Posterior) -> Batch:
    """The best questions for most participants, and all questions for some."""
    offsets = len(_OFFSETS)

    def listed(values: FloatArray) -> FloatArray:
        """Candidates of the features, then those of the distances."""
        blocks = np.split(values, values.shape[1] // offsets, axis=1)
        return np.concatenate([block.ravel() for block in blocks])

    half, features = forecast.means.shape[1] // 2, len(forecast.differs)
    thresholds, plain, labelled = map(
        listed, (forecast.thresholds, best.counts[:, :half], best.counts[:, half:])
    )
    rows = len(thresholds) // offsets
    feature = np.repeat(np.tile(np.arange(features), rows // features), offsets)
    center = np.full(len(thresholds), np.nan)
    center[features * offsets :] = forecast.folds.repeat(offsets)
    # Two thresholds beside the center, which inform most about center and width, and the center;
    # of distances, the one that informs most about which class is wider.
    beside, at_center = np.zeros((rows, offsets)), np.zeros((rows, offsets))
    beside[:features] = np.array([0.0, 0.4, 0.2, 0.4, 0.0]) / features
    at_center[:, offsets // 2] = 1 / rows
    even = posterior.prior.beliefs.even
    if best.per_person > 1:
        beside = (beside + at_center) / 2 if rows > features else beside
        plain = (1 - even) * plain / plain.sum() + even * beside.ravel()
        labelled, label = 0 * plain, 0.0
    else:
        total = plain.sum() + labelled.sum() + best.label
        known = posterior.prior.class_share is not None
        parts = even * _EVEN * (1, 1, not known)
        parts *= even / parts.sum()
        plain = (1 - even) * plain / total + parts[0] * beside.ravel()
        labelled = (1 - even) * labelled / total + parts[1] * at_center.ravel()
        label = float((1 - even) * best.label / total + parts[2])
    return Batch(
        per_person=best.per_person,
        alpha=best.alpha,
        questions=Questions(feature, thresholds, center),
        offsets=offsets,
        folds=forecast.folds,
        plain=plain,
        labelled=labelled,
        label=label,
        expected=(
            listed(forecast.means[:, :half]),
            listed(forecast.means[:, half:]),
            2 * forecast.share - 1,
        ),
    )


def _rounded(thresholds: FloatArray) -> FloatArray:
    """Thresholds on the grid, inside the range of a feature."""
    return np.asarray(np.round(np.clip(thresholds, -1, 1 - _GRID) / _GRID) * _GRID)
