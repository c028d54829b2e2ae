"""How often each candidate is right, estimated from people's randomized verdicts.

Everything here is a function of sums and of public numbers, so it spends nothing. Arrays may have
any leading axes: one study has shape (B,), a simulation of R studies (R, B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.protocol.estimate import accuracies_behind


@dataclass(frozen=True, eq=False)
class Accuracies:
    """Unbiased accuracies r̃ of candidates and their standard errors.

    Attributes:
        value: r̃; it may lie outside [0, 1].
        standard_error: the randomized response is in it (C5); infinite where nobody answered.
        people: how many answered.

    Examples:
        >>> found = accuracies([30.0, -10.0], [50, 50], epsilon=1.0)
        >>> found.value.round(2).tolist(), found.standard_error.round(2).tolist()
        ([1.15, 0.28], [0.12, 0.15])
    """

    value: FloatArray
    standard_error: FloatArray
    people: FloatArray

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Two-sided normal intervals: lower and upper ends."""
        half = float(ndtri((1 + _validate.fraction("level", level)) / 2)) * self.standard_error
        return self.value - half, self.value + half


def accuracies(totals: Any, people: Any, *, epsilon: float) -> Accuracies:
    """Accuracies behind sums of randomized verdicts, as `accuracies_behind` says.

    Args:
        totals: sums of verdicts, shape (..., B).
        people: how many verdicts, broadcast against `totals`.
        epsilon: ε_v of the randomized response.
    """
    counts = np.broadcast_to(np.asarray(people, dtype=np.float64), np.shape(totals))
    value, error = accuracies_behind(totals, counts, epsilon=epsilon)
    return Accuracies(value=value, standard_error=error, people=counts)


def largest_standard_error(people: Any, *, epsilon: float) -> FloatArray:
    """The bound (e^ε + 1)/(2 (e^ε - 1) √n) of Theorem 3 of 001; it needs no data.

    Examples:
        >>> round(float(largest_standard_error(50, epsilon=1.0)), 3)
        0.153
    """
    q = RandomizedResponse(epsilon=epsilon).keep_probability
    n = np.asarray(people, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (2 * (2 * q - 1) * np.sqrt(n)))


def directions(accuracy: Any) -> FloatArray:
    """-1 where r̃ < ½ (the candidate is reversed), +1 elsewhere: Eq. (9) of 001; ½ keeps it.

    Examples:
        >>> directions([0.3, 0.5, 1.2]).tolist()
        [-1.0, 1.0, 1.0]
    """
    return np.where(np.asarray(accuracy) < 0.5, -1.0, 1.0)


def strengths(accuracy: Any) -> FloatArray:
    """r̃* = max(r̃, 1 - r̃), what averaging weighs by.

    It is biased upwards (a coin flip judged by 50 people at ε = 0.5 has mean 0.73), so it is a
    weight and never an accuracy: that comes from people who judged nothing before.

    Examples:
        >>> strengths([0.3, 0.5, 1.2]).tolist()
        [0.7, 0.5, 1.2]
    """
    value = np.asarray(accuracy, dtype=np.float64)
    return np.maximum(value, 1 - value)
