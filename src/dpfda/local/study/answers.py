"""The likelihood of answers: every question is an event whose mean the working model gives.

Participants answer k questions through a k-question response: with probability α all answers are
true, otherwise all are coin flips. Let u = (m - t)/s and F = 2Φ - 1. True answers ±1 have these
means (if the classes differ in spread, u + d and u - d become (u + d) exp(-r) and (u - d) exp(r)):

- plain, "Is your feature above t?":                 π F(u + d) + (1 - π) F(u - d),
- labelled, "Is that so and is your label 1, or neither?":  π F(u + d) - (1 - π) F(u - d),
- label, "Is your label 1?":                         2π - 1.

"Is your feature farther than t from c?" has the mean 1 + A(c + t) - A(c - t) in each class, where A
is the mean of "above t?". It is asked where the classes may differ in spread.

A participant with k > 1 answers the label and k - 1 plain questions; their products are labelled
answers. Means of many answers are nearly normal around α times the means above. These are linear in
π, so the log likelihood of a feature's parameters is a polynomial of degree two in π.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from dpfda._validate import FloatArray, IntArray

_SMOOTHING = 4.0  # expected answers that are added where a variance is estimated from few
_MOST_CORRELATED = 0.9  # two answers of one participant: the correlation of few is badly estimated


class Questions(NamedTuple):
    """Questions about features.

    Attributes:
        feature: index of the feature of each question.
        threshold: t.
        center: c, where t is a distance; otherwise not a number.
    """

    feature: IntArray
    threshold: FloatArray
    center: FloatArray

    def at(self, which: Any) -> Questions:
        """Some of the questions."""
        return Questions(*(values[which] for values in self))


class Answers(NamedTuple):
    """Mean answers to questions about features.

    Attributes:
        feature: index of the feature of each question.
        threshold: t.
        center: c, where t is a distance; otherwise not a number.
        alpha: probability that a participant's answers are true.
        plain: mean plain answer; 0 where there is none.
        labelled: mean labelled answer; 0 where there is none.
        weights: inverse covariance of both, shape (n, 3): plain, between, labelled; 0 where there
            is none.
    """

    feature: IntArray
    threshold: FloatArray
    center: FloatArray
    alpha: FloatArray
    plain: FloatArray
    labelled: FloatArray
    weights: FloatArray

    @classmethod
    def none(cls) -> Answers:
        """No answers."""
        zero = np.zeros(0)
        return cls(np.zeros(0, np.int64), zero, zero, zero, zero, zero, np.zeros((0, 3)))

    @classmethod
    def all_of(cls, several: Sequence[Answers]) -> Answers:
        """Several sets of answers together."""
        return cls(*(np.concatenate(values) for values in zip(*several, strict=True)))

    def of(self, feature: int) -> Answers:
        """The answers about one feature."""
        return Answers(*(values[self.feature == feature] for values in self))


class Labels(NamedTuple):
    """The mean of answers to "Is your label 1?", and its precision."""

    mean: float
    alpha: float
    precision: float

    def log_likelihood(self, share: FloatArray) -> FloatArray:
        """Log likelihood of shares of label 1."""
        return np.asarray(-0.5 * self.precision * (self.mean - self.alpha * (2 * share - 1)) ** 2)


def label_answers(total: float, count: float, *, alpha: float, expected: float) -> Labels:
    """Likelihood terms from a sum of answers; `expected` is the predicted mean of true ones."""
    smoothed = float(_smoothed(total, count, alpha, expected))
    return Labels(total / count, alpha, count / (1 - smoothed**2))


def single_answers(
    questions: Questions,
    total: FloatArray,
    count: FloatArray,
    *,
    alpha: float,
    expected: FloatArray,
    labelled: bool,
) -> Answers:
    """Likelihood terms from sums over participants who answered one question each."""
    smoothed, nothing = _smoothed(total, count, alpha, expected), np.zeros(len(count))
    precision, mean = count / (1 - smoothed**2), total / count
    of_person = np.full(len(count), alpha)
    plain, products = (nothing, mean) if labelled else (mean, nothing)
    weights = [nothing, nothing, precision] if labelled else [precision, nothing, nothing]
    return Answers(*questions, of_person, plain, products, np.column_stack(weights))


def row_answers(
    questions: Questions,
    totals: tuple[FloatArray, FloatArray],
    count: FloatArray,
    *,
    alpha: float,
    expected: tuple[FloatArray, FloatArray],
    label: float,
) -> Answers:
    """Likelihood terms from sums over participants who answered label and questions in one row.

    Args:
        questions: the plain questions.
        totals: sums of plain and of labelled answers.
        count: number of answers.
        alpha: probability that a row is true.
        expected: predicted means of true answers.
        label: mean answer about the label, which is the correlation of plain and labelled answers;
            its own information is in `Labels`.
    """
    plain, labelled = (
        _smoothed(total, count, alpha, mean) for total, mean in zip(totals, expected, strict=True)
    )
    of_plain, of_labelled = 1 - plain**2, 1 - labelled**2
    most = _MOST_CORRELATED * np.sqrt(of_plain * of_labelled)
    between = np.clip(label - plain * labelled, -most, most)
    weights = np.column_stack([of_labelled, -between, of_plain])
    weights *= (count / (of_plain * of_labelled - between**2))[:, None]
    of_person = np.full(len(count), alpha)
    return Answers(*questions, of_person, totals[0] / count, totals[1] / count, weights)


def _smoothed(total: Any, count: Any, alpha: float, expected: Any) -> FloatArray:
    """A mean of answers for its variance: within ±α, as the mean of honest answers is."""
    mean = (total + _SMOOTHING * alpha * expected) / (count + _SMOOTHING)
    return np.asarray(np.clip(mean, -alpha, alpha))


def above(
    threshold: FloatArray, center: FloatArray, width: FloatArray, d: FloatArray, r: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """F(u + d) and F(u - d): mean answers to "above t?" of label 1, and of the other label."""
    u, wider = (center - threshold) / width, np.exp(r)
    return 2 * ndtr((u + d) / wider) - 1, 2 * ndtr((u - d) * wider) - 1


def farther(
    distance: FloatArray, center: FloatArray, *law: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same for "farther than t from c?"."""
    over, under = above(center + distance, *law), above(center - distance, *law)
    return 1 + over[0] - under[0], 1 + over[1] - under[1]


def log_likelihoods(answers: Answers, points: FloatArray) -> FloatArray:
    """Log likelihoods of (m, log s, d, r), as coefficients of 1, π and π².

    Args:
        answers: n of them.
        points: one set for each answer, shape (n, K, 4).

    Returns:
        Shape (n, K, 3).
    """
    alpha, weights = answers.alpha[:, None], answers.weights.T[:, :, None]
    center, log_width, d, r = np.moveaxis(points, -1, 0)
    law = center, np.exp(log_width), d, r
    ones, others = above(answers.threshold[:, None], *law)
    far = np.isfinite(answers.center)
    if far.any():
        distance, origin = answers.threshold[far, None], answers.center[far, None]
        ones[far], others[far] = farther(distance, origin, *(values[far] for values in law))
    # The mean plain answer is others + π (ones - others), the labelled -others + π (ones + others).
    plain = answers.plain[:, None] - alpha * others
    labelled = answers.labelled[:, None] + alpha * others
    slope, slope_labelled = alpha * (ones - others), alpha * (ones + others)
    w, w_between, w_labelled = weights
    return np.stack(
        [
            -0.5 * (w * plain**2 + 2 * w_between * plain * labelled + w_labelled * labelled**2),
            w * plain * slope
            + w_between * (plain * slope_labelled + labelled * slope)
            + w_labelled * labelled * slope_labelled,
            -0.5
            * (
                w * slope**2
                + 2 * w_between * slope * slope_labelled
                + w_labelled * slope_labelled**2
            ),
        ],
        axis=-1,
    )
