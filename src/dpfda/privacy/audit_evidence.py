"""Evidence against a claim: events, bounds from their counts, and dependence of reports.

An event distinguishes two inputs, and its counts bound the privacy loss from below. A guarantee may
be void although each report has the correct distribution: if two people, or two coordinates of one
person, share their noise, the difference of the reports reveals the data. Such reports are detected
by their ranks, which are uncorrelated if reports are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import betaincinv, ndtr, ndtri

from dpfda._validate import FloatArray
from dpfda.privacy.calibration import gaussian_epsilon

Chance = FloatArray | float
"""A probability or a count, or an array of them."""
CONFIDENCE = 0.999
POWER = 0.95
"""The probability of detecting a violation of the size that `Claim.detects` states."""
_ERROR = 1 - CONFIDENCE
_Z, _SEEN = -float(ndtri(_ERROR / 2)), float(ndtri(POWER))
_ROOT = math.sqrt(2 * math.pi)
_COMMON = 1000  # counts from which the normal approximation is used
_LARGEST_VIOLATION = 10.0


@dataclass(frozen=True)
class Claim:
    """The claim to be disproved: ε (with δ), or μ for a Gaussian release.

    A Gaussian claim is tested by Φ⁻¹(p) - Φ⁻¹(q) ≤ μ for the probabilities of every event (Dong,
    Roth & Su 2022). Common events can violate this as well as rare ones.

    Examples:
        >>> claim = Claim(1.0, 0.0)
        >>> float(claim.bound(7310, 2690, 10_000)) < 1.0 < float(claim.distance(0.7311, 0.2689))
        True
    """

    epsilon: float
    delta: float
    mu: float | None = None

    @property
    def size(self) -> float:
        """The claimed ε or μ, with which the bound of an event is compared."""
        return self.epsilon if self.mu is None else self.mu

    def distance(self, likely: Chance, unlikely: Chance) -> FloatArray:
        """Distance between the inputs, in ε or μ, implied by an event with these probabilities."""
        if self.mu is not None:
            return np.asarray(ndtri(likely) - ndtri(unlikely))
        usable = np.asarray(likely) > self.delta
        rest = np.where(usable, np.asarray(likely) - self.delta, 1.0)
        return np.where(usable, np.log(rest / unlikely), -math.inf)

    def bound(self, hits: Chance, misses: Chance, total: int) -> FloatArray:
        """A lower bound on the distance from these counts, with 99.9 % confidence.

        The first bound uses the intervals of Clopper & Pearson (1934), each with half of the error.
        If the event and its complement are common under both inputs, a second bound uses the
        standard error of the distance. It is often larger, because both frequencies rarely deviate
        in the unfavorable direction at once. It uses half of the error as well, as an allowance for
        the normal approximation.
        """
        hits, misses = np.asarray(hits, dtype=np.float64), np.asarray(misses, dtype=np.float64)
        common = self._joint(hits / total, misses / total, total, _Z)
        return np.maximum(self.sure(hits, misses, total), common)

    def sure(self, hits: Chance, misses: Chance, total: int) -> FloatArray:
        """The first of the two bounds: exact, and valid for rare and common events alike."""
        hits, misses = np.asarray(hits, dtype=np.float64), np.asarray(misses, dtype=np.float64)
        low = betaincinv(np.maximum(hits, 1), total - hits + 1, _ERROR / 2)
        high = betaincinv(misses + 1, np.maximum(total - misses, 1), 1 - _ERROR / 2)
        return self.distance(np.where(hits > 0, low, 0.0), np.where(misses < total, high, 1.0))

    def _joint(self, likely: Chance, unlikely: Chance, total: int, z: float) -> FloatArray:
        """The distance minus z standard errors, if the normal approximation is usable."""
        p, q = np.asarray(likely, dtype=np.float64), np.asarray(unlikely, dtype=np.float64)
        room = total * np.minimum(np.minimum(p - self.delta, 1 - p), np.minimum(q, 1 - q))
        common = (room >= _COMMON) & (p >= 2 * self.delta)
        p, q = np.where(common, p, 0.5), np.where(common, q, 0.5)
        if self.mu is None:
            slopes = 1 / (p - self.delta), 1 / q
        else:
            slopes = tuple(_ROOT * np.exp(ndtri(chance) ** 2 / 2) for chance in (p, q))
        variance = slopes[0] ** 2 * p * (1 - p) + slopes[1] ** 2 * q * (1 - q)
        apart = self.distance(p, q) - z * np.sqrt(variance / total)
        return np.where(common, apart, -math.inf)

    def expected(self, likely: Chance, unlikely: Chance, total: int) -> FloatArray:
        """Approximate `bound` after `total` draws: a quick estimate to rank events."""
        p, q = np.asarray(likely), np.asarray(unlikely)
        low = p - _Z * np.sqrt(p * (1 - p) / total) - _Z**2 / total
        high = q + _Z * np.sqrt(q * (1 - q) / total) + _Z**2 / total
        fits = (low > 5 / total) & (high < 1)
        apart = self.distance(np.where(fits, low, 0.5), np.where(fits, high, 0.5))
        return np.maximum(np.where(fits, apart, -math.inf), self._joint(p, q, total, _Z))

    def as_epsilon(self, bound: float) -> float:
        """Convert a bound on the distance to a bound on ε at the claimed δ."""
        if self.mu is None or not bound > 0:
            return max(0.0, bound)
        return gaussian_epsilon(delta=self.delta, multiplier=1 / bound)

    def detects(self, likely: float, unlikely: float, total: int) -> float | None:
        """The smallest relative violation that `total` draws detect with probability `POWER`.

        The event has the given probabilities. A violation by r changes them so that their distance
        is multiplied by 1 + r. The initial distance is capped at the claim.
        """
        apart = min(float(self.distance(likely, unlikely)), self.size)
        if not apart > 0 or not 0 < likely < 1:
            return None

        def shown(violation: float) -> bool:
            wide = (1 + violation) * apart
            if self.mu is None:
                p, q = likely, (likely - self.delta) * math.exp(-wide)
            else:
                middle = float(ndtri(likely) + ndtri(unlikely)) / 2
                p, q = float(ndtr(middle + wide / 2)), float(ndtr(middle - wide / 2))
            if self._joint(p, q, total, _Z + _SEEN) > self.size:
                return True
            hits = stats.binom.ppf(1 - POWER, total, p)
            misses = stats.binom.ppf(POWER, total, q)
            return bool(self.bound(hits, misses, total) > self.size)

        return smallest(shown)


def smallest(shown: Callable[[float], bool]) -> float | None:
    """The smallest detected violation, to three digits; None above the largest one of interest."""
    low, high = 0.0, _LARGEST_VIOLATION
    if not shown(high):
        return None
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


LogLikelihood = Callable[[FloatArray, Any], FloatArray]
Statistic = Callable[[FloatArray], FloatArray]
Inputs = tuple[FloatArray, FloatArray]
_CANDIDATES = 400  # thresholds tried for one statistic
_MOST_COLUMNS = 8
_MOST_PAIRED = 5  # columns whose pairwise differences are used
_PRIMES = np.array([2.0, 3, 5, 7, 11, 13, 17, 19])


@dataclass(frozen=True)
class AuditEvent:
    """An event in a report: a statistic above, below or at a value.

    Attributes:
        inputs: the two inputs that it distinguishes; it is more likely under the first.
        statistic: maps reports to numbers.
        kind: 0 for above or at, 1 for below or at, 2 for at.
        value: the threshold.
        frequencies: of the event under the two inputs, estimated from a few draws.
        stated: whether the frequencies were computed from the stated likelihood.
    """

    inputs: Inputs
    statistic: Statistic
    kind: int
    value: float
    frequencies: tuple[float, float]
    stated: bool = False

    def count(self, reports: FloatArray) -> float:
        """Number of reports in which the event occurs."""
        ordered = np.sort(self.statistic(reports))
        return float(counts(ordered, np.array([self.value]))[self.kind, 0])


def statistics(
    likelihood: LogLikelihood | None, inputs: Inputs, columns: int
) -> Iterator[Statistic]:
    """Statistics of a report that an attacker might use."""
    if likelihood is not None:
        yield lambda reports: log_ratio(likelihood, inputs, reports)
    difference = np.ravel(inputs[0] - inputs[1]) if inputs[0].shape == inputs[1].shape else None
    if difference is not None and difference.size == columns:
        yield lambda reports: reports @ difference
    if columns > 1:
        # Square roots of primes are linearly independent over the rationals, so different patterns
        # of integers get different values.
        yield lambda reports: reports[:, :_MOST_COLUMNS] @ np.sqrt(_PRIMES[: min(columns, 8)])
    for one, other in combinations(range(min(columns, _MOST_PAIRED)), 2):
        # The difference of two numbers cancels the noise that they share.
        yield lambda reports, i=one, j=other: reports[:, i] - reports[:, j]  # type: ignore[misc]
    for column in range(min(columns, _MOST_COLUMNS)):
        yield lambda reports, column=column: reports[:, column]  # type: ignore[misc]
        yield lambda reports, column=column: lowest_bit(reports[:, column])  # type: ignore[misc]


def lowest_bit(numbers: FloatArray) -> FloatArray:
    """Exponent of the lowest set bit of each float, which is the spacing of its grid."""
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
    """Number of times the statistic is ≥, ≤ and = each value, as three rows."""
    below = np.searchsorted(ordered, values, side="left")
    up_to = np.searchsorted(ordered, values, side="right")
    return np.stack([len(ordered) - below, up_to, up_to - below]).astype(np.float64)


def log_ratio(likelihood: LogLikelihood, inputs: Inputs, reports: FloatArray) -> FloatArray:
    """Log-likelihood of each report under the first input, minus that under the second."""
    shaped = reports if inputs[0].ndim > 1 else reports[:, 0]
    return likelihood(shaped, inputs[0]) - likelihood(shaped, inputs[1])


DEPENDENT = 6.0
"""Standard errors; a valid mechanism exceeds them in one of 10^7 audits."""
_COLUMNS = 8  # columns of a report that are tested
_FEWEST = 100  # reports needed for a test of ranks


class Dependence:
    """Rank correlations between reports of one input at a time.

    Each row is one person. It is compared with the next row, the second next row, and the row half
    a batch later.

    Args:
        added: number of coordinates with added noise, which must be uncorrelated. For reports of
            another width only the rows are compared.

    Examples:
        >>> noise = np.random.default_rng(0).normal(size=(1000, 3))
        >>> alone, shared = Dependence(added=3), Dependence(added=3)
        >>> alone.add(noise)
        >>> shared.add(noise[:, [0, 1, 1]])
        >>> alone.largest < DEPENDENT < shared.largest
        True
    """

    def __init__(self, *, added: int = 0) -> None:
        self._added = added
        self._sums: dict[str, float] = {}
        self._pairs: dict[str, int] = {}

    def add(self, reports: FloatArray) -> None:
        """Add reports about one input, in the order in which they were drawn."""
        size = len(reports)
        if size < _FEWEST:
            return
        columns = [_ranks(column) for column in reports[:, :_COLUMNS].T]
        for number, column in enumerate(columns):
            for name, lag in (("next", 1), ("next but one", 2), ("far", size // 2)):
                self._note(f"people {name}, {number}", column[lag:], column[:-lag])
        alike = reports.shape[1] == self._added
        for one, other in combinations(range(len(columns)) if alike else (), 2):
            self._note(f"coordinates {one}, {other}", columns[one], columns[other])

    def _note(self, what: str, one: FloatArray, other: FloatArray) -> None:
        self._sums[what] = self._sums.get(what, 0.0) + float(one @ other)
        self._pairs[what] = self._pairs.get(what, 0) + len(one)

    @property
    def largest(self) -> float:
        """The largest correlation, in standard errors; 0 if too few reports were drawn."""
        found = (abs(total) / math.sqrt(self._pairs[what]) for what, total in self._sums.items())
        return max(found, default=0.0)


def _ranks(column: FloatArray) -> FloatArray:
    """Ranks scaled to mean 0 and variance 1; all 0 if the values are equal."""
    ranks = stats.rankdata(column)
    ranks -= ranks.mean()
    return np.asarray(ranks / max(float(ranks.std()), 1e-9))
