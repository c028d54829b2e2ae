"""Numbers that a server estimates from randomized replies, with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpfda import _validate
from dpfda._registry import Portable
from dpfda._validate import FloatArray
from dpfda.mechanisms.randomized_response import RandomizedResponse


@dataclass(frozen=True)
class Estimate(Portable):
    """An unbiased estimate and its standard error, which is infinite without answers.

    Examples:
        >>> Estimate(0.8, 0.05, 400).interval(0.95)
        (0.7020018007729973, 0.8979981992270027)
        >>> Estimate(0.0, None, 0).interval(0.95)  # JSON writes null for infinity
        (-inf, inf)
    """

    value: float
    standard_error: float
    people: int

    def __post_init__(self) -> None:
        if self.standard_error is None:
            object.__setattr__(self, "standard_error", math.inf)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A two-sided normal interval; (-inf, inf) without answers."""
        half = float(ndtri((1 + _validate.fraction("level", level)) / 2)) * self.standard_error
        return self.value - half, self.value + half

    def shown(self, level: float = 0.95, *, share: bool = False) -> tuple[float, float, float]:
        """Value and interval as people see them.

        Args:
            level: of the interval.
            share: whether the number is a part of a whole: what noise leads beyond 0 and 1 is cut.

        Examples:
            >>> Estimate(5.504, 4.34, 4).shown(share=True)
            (1.0, 0.0, 1.0)
        """
        numbers = self.value, *self.interval(level)
        if not share:
            return numbers
        value, low, high = as_share(numbers)
        return value, low, high

    def complement(self) -> Estimate:
        """The estimate of one minus the number: an error from an accuracy."""
        return Estimate(1 - self.value, self.standard_error, self.people)


def as_share(numbers: Iterable[float]) -> tuple[float, ...]:
    """Numbers that estimate a share, which noise may have led beyond 0 and 1: cut there.

    Examples:
        >>> as_share((-2.99, 5.504, 0.25))
        (0.0, 1.0, 0.25)
    """
    return tuple(min(max(float(number), 0.0), 1.0) for number in numbers)


def accuracy_estimate(*, total: float, people: int, epsilon: float) -> Estimate:
    """The accuracy behind `people` randomized ±1 verdicts that add up to `total`.

    Examples:
        >>> accuracy_estimate(total=200.0, people=400, epsilon=1.0).value.__round__(3)
        1.041
    """
    value, error = accuracies_behind(total, people, epsilon=epsilon)
    return Estimate(float(value), float(error), people)


def accuracies_behind(totals: Any, people: Any, *, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Accuracies behind sums of randomized ±1 verdicts ("right on me": +1), and standard errors.

    r̃ = (r̂ + q - 1)/(2q - 1), Eq. (8) of 001; Var r̃ = p(1-p)/(n (2q-1)²), p = qr + (1-q)(1-r): the
    randomized response is in it (C5). The variance is taken at the estimated p, kept inside
    [1/2n, 1 - 1/2n]. Where nobody answered, r̃ = ½ and the error is infinite.
    """
    q, n = RandomizedResponse(epsilon=epsilon).keep_probability, np.maximum(people, 1)
    said_right = (np.asarray(totals) / n + 1) / 2
    p = np.clip(said_right, 1 / (2 * n), 1 - 1 / (2 * n))
    error = np.sqrt(p * (1 - p) / n) / (2 * q - 1)
    known = np.asarray(people) > 0
    return np.where(known, (said_right + q - 1) / (2 * q - 1), 0.5), np.where(known, error, np.inf)


def wilson(share: float, people: int, level: float) -> tuple[float, float]:
    """Wilson's interval for a proportion.

    Examples:
        >>> [round(end, 3) for end in wilson(0.1, 100, 0.95)]
        [0.055, 0.174]
    """
    if people == 0:
        return 0.0, 1.0
    z = float(ndtri((1 + level) / 2))
    middle = (share + z * z / (2 * people)) / (1 + z * z / people)
    half = (
        z * math.sqrt(share * (1 - share) / people + z * z / (4 * people**2)) / (1 + z * z / people)
    )
    return middle - half, middle + half
