"""Public rules: how big a study's groups and models are, from N, ε and public ranges alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mechanisms.question_response import best_questions, information

_MOST_QUESTIONS = 30


def effective_people(n_people: int, epsilon: float) -> float:
    """N_eff = N max_k k α_k²: how many clean answers the study is worth.

    Example:
        >>> round(effective_people(3000, 0.5))
        180
    """
    best = best_questions(epsilon, most=_MOST_QUESTIONS)
    return n_people * information(epsilon, questions=best)


def number_of_features(effective: float, *, most: int) -> int:
    """How many ordered features to use, between 1 and `most`.

    The larger of 0.53 N_eff^{1/3} and 1.25 N_eff^0.215: more from the start than the ½ N_eff^{1/3} of
    methods 8.2, because late features are asked about less often and believed less.

    Example:
        >>> [number_of_features(n, most=8) for n in (8, 64, 640, 10_000)]
        [1, 3, 5, 8]
    """
    wished = max(0.53 * math.cbrt(effective), 1.25 * math.pow(effective, 0.215))
    return max(1, min(most, math.floor(wished)))


def asking_weights(d: int, *, ordered: bool) -> FloatArray:
    """How often each feature is asked about, relative to the others: (j + 1)^{-1/2} if ordered."""
    return np.asarray((1.0 + np.arange(d)) ** (-0.5 if ordered else 0.0))


@dataclass(frozen=True)
class Groups:
    """How many people answer in each part of a study.

    Attributes:
        centre: find the middle of each feature.
        direction: which stumps are right.
        intercept: where to put the threshold.
        evaluation: how often the finished classifier is right.
    """

    centre: int
    direction: int
    intercept: int
    evaluation: int


def groups(
    n_people: int, effective: float, *, centre_known: bool, evaluation_share: float
) -> Groups:
    """Split N people; a centre is only sought where there are enough answers to find it."""
    evaluation = math.floor(evaluation_share * n_people)
    left = n_people - evaluation
    centre = 0 if centre_known or effective < 60 else math.floor(0.2 * left)
    intercept = math.floor(0.2 * left * min(1.0, effective / 500))
    return Groups(centre, left - centre - intercept, intercept, evaluation)


def split_evenly(people: int, parts: int) -> list[int]:
    """Sizes of `parts` groups that differ by at most one."""
    return [people // parts + (part < people % parts) for part in range(parts)]
