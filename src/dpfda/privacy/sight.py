"""Events by which an attacker tells two inputs apart: what is looked for in reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dpfda._validate import FloatArray

LogLikelihood = Callable[[FloatArray, Any], FloatArray]
Statistic = Callable[[FloatArray], FloatArray]
Inputs = tuple[FloatArray, FloatArray]
_CANDIDATES = 400  # thresholds tried for one statistic
_MOST_COLUMNS = 8
_MOST_PAIRED = 5  # columns of which all differences are looked at
_PRIMES = np.array([2.0, 3, 5, 7, 11, 13, 17, 19])


@dataclass(frozen=True)
class Sight:
    """What an attacker looks for in a report: a statistic above, below or at a value.

    Attributes:
        inputs: the two inputs that it tells apart; it is likelier under the first.
        statistic: of reports.
        kind: 0 for above or at, 1 for below or at, 2 for at.
        value: the threshold.
        frequencies: under the two inputs, as far as a few draws show.
        stated: whether the stated likelihood gave the frequencies.
    """

    inputs: Inputs
    statistic: Statistic
    kind: int
    value: float
    frequencies: tuple[float, float]
    stated: bool = False

    def count(self, reports: FloatArray) -> float:
        """In how many reports it is seen."""
        ordered = np.sort(self.statistic(reports))
        return float(counts(ordered, np.array([self.value]))[self.kind, 0])


def statistics(
    likelihood: LogLikelihood | None, inputs: Inputs, columns: int
) -> Iterator[Statistic]:
    """What an attacker might look at in a report."""
    if likelihood is not None:
        yield lambda reports: log_ratio(likelihood, inputs, reports)
    difference = np.ravel(inputs[0] - inputs[1]) if inputs[0].shape == inputs[1].shape else None
    if difference is not None and difference.size == columns:
        yield lambda reports: reports @ difference
    if columns > 1:
        # Square roots of primes are independent over the rationals: every pattern of discrete
        # numbers gets a value of its own.
        yield lambda reports: reports[:, :_MOST_COLUMNS] @ np.sqrt(_PRIMES[: min(columns, 8)])
    for one, other in combinations(range(min(columns, _MOST_PAIRED)), 2):
        # Noise that two numbers share is gone from their difference.
        yield lambda reports, i=one, j=other: reports[:, i] - reports[:, j]  # type: ignore[misc]
    for column in range(min(columns, _MOST_COLUMNS)):
        yield lambda reports, column=column: reports[:, column]  # type: ignore[misc]
        yield lambda reports, column=column: lowest_bit(reports[:, column])  # type: ignore[misc]


def lowest_bit(numbers: FloatArray) -> FloatArray:
    """Exponent of the lowest set bit of each float: how fine a grid it lies on."""
    mantissa, exponent = np.frexp(numbers)
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = (integer & -integer).astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.where(numbers == 0, 1100.0, np.log2(lowest) + exponent)


def candidates(pooled: FloatArray) -> FloatArray:
    """Values of a statistic at which an event may begin or end."""
    values = np.unique(pooled)
    if len(values) > _CANDIDATES:
        tails = np.geomspace(20 / len(pooled), 0.5, _CANDIDATES // 2)
        values = np.unique(np.quantile(pooled, np.concatenate([tails, 1 - tails])))
    return values


def counts(ordered: FloatArray, values: FloatArray) -> FloatArray:
    """How often the statistic is ≥, ≤ and = each value, as three rows."""
    below = np.searchsorted(ordered, values, side="left")
    up_to = np.searchsorted(ordered, values, side="right")
    return np.stack([len(ordered) - below, up_to, up_to - below]).astype(np.float64)


def log_ratio(likelihood: LogLikelihood, inputs: Inputs, reports: FloatArray) -> FloatArray:
    """Log-likelihood of each report under the first input, less that under the second."""
    shaped = reports if inputs[0].ndim > 1 else reports[:, 0]
    return likelihood(shaped, inputs[0]) - likelihood(shaped, inputs[1])
