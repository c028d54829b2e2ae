"""How likely answers are: each kind of question is an event whose mean the working model knows.

People answer k questions through a k-question response: with probability α all answers are true,
otherwise all are coins. With u = (m - t)/s and F = 2Φ - 1, true answers ±1 have the means
(where classes differ in spread, (u + d) exp(-r) and (u - d) exp(r) stand for u + d and u - d)

- "is your feature above t?":            P = π F(u + d) + (1 - π) F(u - d),
- "is that so, and is your label 1, or neither?": R = π F(u + d) - (1 - π) F(u - d),
- "is your label 1?":                    L = 2π - 1.

"Is your feature farther than t from c?" has the mean 1 + A(c + t) - A(c - t) in each class, where
A(t) is that of "above t?"; it is asked where classes may differ in spread.

Who answers the last two in one row has answered the first as well: their product. Means of many
answers are normal around α times these to all purposes. All means are linear in π, so that the log
likelihood of a feature's place and difference is a polynomial of degree two in π: three numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from dpfda._validate import FloatArray, IntArray

_SMOOTHED = 4.0  # answers as expected that are added where a variance is estimated from few
_TIED = 0.9  # correlation of two answers of one person, at most: that of all ties is not known


class Questions(NamedTuple):
    """About features, one entry each.

    Attributes:
        feature: which.
        threshold: t.
        center: c, where t is a distance; otherwise not a number.
    """

    feature: IntArray
    threshold: FloatArray
    center: FloatArray


class Answers(NamedTuple):
    """Means of answers about features, one entry for each question that was asked.

    Attributes:
        feature: which.
        threshold: t.
        center: c, where t is a distance; otherwise not a number.
        alpha: probability of a true row.
        plain: mean of "is your feature above t?"; 0 where it was not asked.
        joined: mean of the same times the label.
        weights: inverse covariance of both, shape (n, 3): plain, between, joined; 0 where not
            asked.
    """

    feature: IntArray
    threshold: FloatArray
    center: FloatArray
    alpha: FloatArray
    plain: FloatArray
    joined: FloatArray
    weights: FloatArray

    @classmethod
    def none(cls) -> Answers:
        """No answers yet."""
        nothing = np.zeros(0)
        none = np.zeros(0, np.int64), nothing, nothing
        return cls(*none, nothing, nothing, nothing, np.zeros((0, 3)))

    @classmethod
    def all_of(cls, several: Sequence[Answers]) -> Answers:
        """Several of them together."""
        return cls(*(np.concatenate(parts) for parts in zip(*several, strict=True)))

    def of(self, feature: int) -> Answers:
        """Those about one feature."""
        own = self.feature == feature
        return Answers(*(part[own] for part in self))


class Labels(NamedTuple):
    """The mean of so many answers to "is your label 1?", with its precision."""

    mean: float
    alpha: float
    precision: float

    def log_likelihood(self, share: FloatArray) -> FloatArray:
        """Of shares of label 1."""
        off = self.mean - self.alpha * (2 * share - 1)
        return np.asarray(-0.5 * self.precision * off**2)


def label_answers(total: float, asked: float, *, alpha: float, expected: float) -> Labels:
    """From the sum of so many answers; `expected` is the mean of true ones before they came."""
    smoothed = float(_smoothed(total, asked, alpha, expected))
    return Labels(total / asked, alpha, asked / (1 - smoothed**2))


def one_kind(
    questions: Questions,
    total: FloatArray,
    asked: FloatArray,
    *,
    alpha: float,
    expected: FloatArray,
    joined: bool,
) -> Answers:
    """Of people who answered one question each, with their label or without."""
    smoothed = _smoothed(total, asked, alpha, expected)
    precision, nothing = asked / (1 - smoothed**2), np.zeros(len(asked))
    mean, certain = total / asked, np.full(len(asked), alpha)
    if joined:
        weights = np.column_stack([nothing, nothing, precision])
        return Answers(*questions, certain, nothing, mean, weights)
    weights = np.column_stack([precision, nothing, nothing])
    return Answers(*questions, certain, mean, nothing, weights)


def both_kinds(
    questions: Questions,
    plain: FloatArray,
    joined: FloatArray,
    asked: FloatArray,
    *,
    alpha: float,
    expected: tuple[FloatArray, FloatArray],
    label: float,
) -> Answers:
    """Of people who told their label, mean `label`, and answered about features in the same row.

    Their label counts once, elsewhere; here it says how far both answers go together.
    """
    near = [
        _smoothed(total, asked, alpha, mean)
        for total, mean in zip((plain, joined), expected, strict=True)
    ]
    of_plain, of_joined = 1 - near[0] ** 2, 1 - near[1] ** 2
    most = _TIED * np.sqrt(of_plain * of_joined)
    between = np.clip(label - near[0] * near[1], -most, most)
    weights = np.column_stack([of_joined, -between, of_plain])
    weights *= (asked / (of_plain * of_joined - between**2))[:, None]
    certain = np.full(len(asked), alpha)
    return Answers(*questions, certain, plain / asked, joined / asked, weights)


def _smoothed(total: Any, asked: Any, alpha: float, expected: Any) -> FloatArray:
    """A mean of answers for their variance: within ±α, as that of honest people is."""
    mean = (total + _SMOOTHED * alpha * expected) / (asked + _SMOOTHED)
    return np.asarray(np.clip(mean, -alpha, alpha))


def above(
    threshold: FloatArray, middle: FloatArray, width: FloatArray, d: FloatArray, r: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """F(u + d) and F(u - d): mean answers "above t" of people with label 1, and of the others."""
    u, wider = (middle - threshold) / width, np.exp(r)
    return 2 * ndtr((u + d) / wider) - 1, 2 * ndtr((u - d) * wider) - 1


def away(
    distance: FloatArray, center: FloatArray, *law: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same of "farther than t from c"."""
    over, under = above(center + distance, *law), above(center - distance, *law)
    return 1 + over[0] - under[0], 1 + over[1] - under[1]


def log_likelihoods(answers: Answers, points: FloatArray) -> FloatArray:
    """Of (m, log s, d, r), as coefficients of 1, π and π².

    Args:
        answers: n of them.
        points: one set for each answer, shape (n, K, 4).

    Returns:
        Shape (n, K, 3).
    """
    alpha, weights = answers.alpha[:, None], answers.weights.T[:, :, None]
    middle, log_width, d, r = np.moveaxis(points, -1, 0)
    law = middle, np.exp(log_width), d, r
    ones, others = above(answers.threshold[:, None], *law)
    far = np.isfinite(answers.center)
    if far.any():
        distance, center = answers.threshold[far, None], answers.center[far, None]
        ones[far], others[far] = away(distance, center, *(part[far] for part in law))
    # plain = others + π (ones - others), joined = -others + π (ones + others)
    plain, joined = (
        answers.plain[:, None] - alpha * others,
        answers.joined[:, None] + alpha * others,
    )
    rises = alpha * (ones - others), alpha * (ones + others)
    own, between, label = weights
    return np.stack(
        [
            -0.5 * (own * plain**2 + 2 * between * plain * joined + label * joined**2),
            own * plain * rises[0]
            + between * (plain * rises[1] + joined * rises[0])
            + label * joined * rises[1],
            -0.5
            * (own * rises[0] ** 2 + 2 * between * rises[0] * rises[1] + label * rises[1] ** 2),
        ],
        axis=-1,
    )
