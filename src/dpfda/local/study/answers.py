"""The likelihood of answers: the working model gives the mean answer to every question.

Participants answer k questions through a k-question response: with probability α all answers are
true, otherwise all are coin flips. Let u = (m - t)/s and F = 2Φ - 1. True answers ±1 have these
means (if the classes differ in spread, u + d and u - d become (u + d) exp(-r) and (u - d) exp(r)):

- plain, "Is your feature above t?":                 π F(u + d) + (1 - π) F(u - d),
- labelled, "Is that so and is your label 1, or neither?":  π F(u + d) - (1 - π) F(u - d).

"Is your label 1?" is the labelled question with t = -∞. "Is your feature farther than t from c?"
has the mean 1 + A(c + t) - A(c - t) in each class, where A is the mean of "above t?". It is asked
if the classes may differ in spread.

A participant with k > 1 questions answers the label and k - 1 plain questions; the products of
label and plain answers are labelled answers. Means of many answers are nearly normal around α times
the means above. These are linear in π, so the log likelihood of a feature's parameters is a
polynomial of degree two in π.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from dpfda._validate import FloatArray, IntArray

_SMOOTHING = 4.0  # predicted answers that are added before a variance is estimated
_MOST_CORRELATED = 0.9  # limit of the estimated correlation of a participant's two answers


class Questions(NamedTuple):
    """Questions about features, plain or labelled.

    Attributes:
        feature: index of the feature of each question.
        threshold: t; -∞ in the question about the label.
        center: c if t is a distance; otherwise NaN.
    """

    feature: IntArray
    threshold: FloatArray
    center: FloatArray

    def at(self, which: Any) -> Questions:
        """Some of the questions."""
        return Questions(*(values[which] for values in self))


class Answers(NamedTuple):
    """Mean answers to n questions.

    Attributes:
        questions: n of them.
        alpha: probability that a participant's answers are true.
        means: plain and labelled, shape (n, 2); 0 if there are none.
        weights: inverse covariance of both, shape (n, 3): plain, between, labelled; 0 if there are
            none.
    """

    questions: Questions
    alpha: FloatArray
    means: FloatArray
    weights: FloatArray

    def of(self, feature: int) -> Answers:
        """The answers about one feature."""
        which = self.questions.feature == feature
        return Answers(self.questions.at(which), *(values[which] for values in self[1:]))

    def and_also(self, others: Answers) -> Answers:
        """These answers and the others together."""
        pairs = zip((*self.questions, *self[1:]), (*others.questions, *others[1:]), strict=True)
        joined: list[Any] = [np.concatenate(pair) for pair in pairs]
        return Answers(Questions(*joined[:3]), *joined[3:])


def mean_answers(
    questions: Questions,
    count: FloatArray,
    total: FloatArray,
    *,
    alpha: float,
    expected: FloatArray,
    label: float | None = None,
) -> Answers:
    """Means and their weights from sums of answers.

    Args:
        questions: n questions; those without answers are left out.
        count: number of plain and of labelled answers, shape (n, 2).
        total: their sums.
        alpha: probability that a participant's answers are true.
        expected: predicted means of true answers.
        label: if participants gave both answers, the mean answer about the label, which is the
            mean product of both.
    """
    some = count.any(axis=1)
    count, total = count[some], total[some]
    # Means for the variances are restricted to ±α, like the means of honest answers.
    smoothed = (total + _SMOOTHING * alpha * expected[some]) / (count + _SMOOTHING)
    plain, labelled = np.clip(smoothed, -alpha, alpha).T
    of_plain, of_labelled, between = 1 - plain**2, 1 - labelled**2, np.zeros(len(count))
    if label is not None:
        most = _MOST_CORRELATED * np.sqrt(of_plain * of_labelled)
        between = np.clip(label - plain * labelled, -most, most) * count.all(axis=1)
    weights = np.column_stack([of_labelled, -between, of_plain]) * count[:, [0, 1, 1]]
    return Answers(
        questions.at(some),
        np.full(len(count), alpha),
        total / np.maximum(count, 1),
        weights / (of_plain * of_labelled - between**2)[:, None],
    )


def above(
    threshold: FloatArray, center: FloatArray, width: FloatArray, d: FloatArray, r: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """F(u + d) and F(u - d): mean answers to "above t?" of label 1, and of the other label."""
    u, wider = (center - threshold) / width, np.exp(r)
    return 2 * ndtr((u + d) / wider) - 1, 2 * ndtr((u - d) * wider) - 1


def farther(
    distance: FloatArray, center: FloatArray, *law: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean answers to "farther than t from c?" of label 1, and of the other label."""
    over, under = above(center + distance, *law), above(center - distance, *law)
    return 1 + over[0] - under[0], 1 + over[1] - under[1]


def log_likelihoods(answers: Answers, points: FloatArray) -> FloatArray:
    """Log likelihoods of (m, log s, d, r), as coefficients of 1, π and π².

    Args:
        answers: n answers.
        points: one set for each answer, shape (n, K, 4).

    Returns:
        Shape (n, K, 3).
    """
    _, threshold, from_center = answers.questions
    alpha = answers.alpha[:, None]
    center, log_width, d, r = np.moveaxis(points, -1, 0)
    law = center, np.exp(log_width), d, r
    ones, others = above(threshold[:, None], *law)
    far = np.isfinite(from_center)
    if far.any():
        distance, origin = threshold[far, None], from_center[far, None]
        ones[far], others[far] = farther(distance, origin, *(values[far] for values in law))
    # The mean plain answer is others + π (ones - others), the labelled -others + π (ones + others).
    # The log likelihood is a quadratic form in the observed means minus these.
    a, b = answers.means[:, 0, None] - alpha * others, answers.means[:, 1, None] + alpha * others
    da, db = alpha * (others - ones), -alpha * (others + ones)
    plain, between, labelled = answers.weights.T[:, :, None]
    return np.stack(
        [
            -0.5 * (plain * a**2 + 2 * between * a * b + labelled * b**2),
            -(plain * a * da + between * (a * db + b * da) + labelled * b * db),
            -0.5 * (plain * da**2 + 2 * between * da * db + labelled * db**2),
        ],
        axis=-1,
    )
