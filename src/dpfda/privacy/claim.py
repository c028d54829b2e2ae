"""A claim that an audit tries to disprove, and what counts of an event say about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from dpfda.privacy.calibration import gaussian_epsilon

CONFIDENCE = 0.999
POWER = 0.95
"""With which a violation of the size that `Claim.detects` says is seen."""
_ERROR = 1 - CONFIDENCE
_Z, _SEEN = float(stats.norm.isf(_ERROR / 2)), float(stats.norm.ppf(POWER))
_COMMON = 1000  # counts from which a normal law is trusted
_LARGEST_VIOLATION = 10.0


@dataclass(frozen=True)
class Claim:
    """What is to be disproved: ε (with δ), or μ where the release is Gaussian.

    A Gaussian claim is tested as one: Φ⁻¹(p) - Φ⁻¹(q) ≤ μ for the probabilities of every event
    (Dong, Roth & Su 2022), which common events show as well as rare ones.

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
        """The number that an event's bound is compared with."""
        return self.epsilon if self.mu is None else self.mu

    def distance(self, likely: Any, unlikely: Any) -> Any:
        """How far apart an event of these two probabilities puts the inputs, in ε or μ."""
        if self.mu is not None:
            return stats.norm.ppf(likely) - stats.norm.ppf(unlikely)
        usable = np.asarray(likely) > self.delta
        rest = np.where(usable, np.asarray(likely) - self.delta, 1.0)
        return np.where(usable, np.log(rest / unlikely), -math.inf)

    def bound(self, hits: Any, misses: Any, total: int) -> Any:
        """The least distance that these counts allow, with 99.9 % confidence.

        Clopper & Pearson 1934, each probability at half the error; where an event and its opposite
        are common in both, also by the standard error of their distance, at half the error again
        for what a normal law lacks there: chance seldom moves both the wrong way.
        """
        hits, misses = np.asarray(hits, dtype=np.float64), np.asarray(misses, dtype=np.float64)
        common = self._joint(hits / total, misses / total, total, _Z)
        return np.maximum(self.sure(hits, misses, total), common)

    def sure(self, hits: Any, misses: Any, total: int) -> Any:
        """The first of the two bounds, which is exact, and does not prefer common events."""
        hits, misses = np.asarray(hits, dtype=np.float64), np.asarray(misses, dtype=np.float64)
        low = stats.beta.ppf(_ERROR / 2, np.maximum(hits, 1), total - hits + 1)
        high = stats.beta.ppf(1 - _ERROR / 2, misses + 1, np.maximum(total - misses, 1))
        return self.distance(np.where(hits > 0, low, 0.0), np.where(misses < total, high, 1.0))

    def _joint(self, likely: Any, unlikely: Any, total: int, z: float) -> Any:
        """The distance less z of its standard errors, where these are known well."""
        p, q = np.asarray(likely, dtype=np.float64), np.asarray(unlikely, dtype=np.float64)
        room = total * np.minimum(np.minimum(p - self.delta, 1 - p), np.minimum(q, 1 - q))
        common = (room >= _COMMON) & (p >= 2 * self.delta)
        p, q = np.where(common, p, 0.5), np.where(common, q, 0.5)
        if self.mu is None:
            slopes = 1 / (p - self.delta), 1 / q
        else:
            slopes = tuple(1 / stats.norm.pdf(stats.norm.ppf(chance)) for chance in (p, q))
        variance = slopes[0] ** 2 * p * (1 - p) + slopes[1] ** 2 * q * (1 - q)
        apart = self.distance(p, q) - z * np.sqrt(variance / total)
        return np.where(common, apart, -math.inf)

    def expected(self, likely: Any, unlikely: Any, total: int) -> Any:
        """About what `bound` will say after `total` draws: a quick guess to compare events by."""
        p, q = np.asarray(likely), np.asarray(unlikely)
        low = p - _Z * np.sqrt(p * (1 - p) / total) - _Z**2 / total
        high = q + _Z * np.sqrt(q * (1 - q) / total) + _Z**2 / total
        fits = (low > 5 / total) & (high < 1)
        apart = self.distance(np.where(fits, low, 0.5), np.where(fits, high, 0.5))
        return np.maximum(np.where(fits, apart, -math.inf), self._joint(p, q, total, _Z))

    def as_epsilon(self, bound: float) -> float:
        """A bound on the distance as one on ε at the claimed δ."""
        if self.mu is None or not bound > 0:
            return max(0.0, bound)
        return gaussian_epsilon(delta=self.delta, multiplier=1 / bound)

    def detects(self, likely: float, unlikely: float, total: int) -> float | None:
        """The smallest relative violation that `total` draws show with the wanted power.

        The event has these probabilities; a violation by r moves them until their distance is
        1 + r times as large. Never more than the claim is credited to the event itself.
        """
        apart = min(float(self.distance(likely, unlikely)), self.size)
        if not apart > 0 or not 0 < likely < 1:
            return None

        def shown(violation: float) -> bool:
            wide = (1 + violation) * apart
            if self.mu is None:
                p, q = likely, (likely - self.delta) * math.exp(-wide)
            else:
                middle = float(stats.norm.ppf(likely) + stats.norm.ppf(unlikely)) / 2
                p, q = stats.norm.cdf(middle + wide / 2), stats.norm.cdf(middle - wide / 2)
            if self._joint(p, q, total, _Z + _SEEN) > self.size:
                return True
            hits = stats.binom.ppf(1 - POWER, total, p)
            misses = stats.binom.ppf(POWER, total, q)
            return bool(self.bound(hits, misses, total) > self.size)

        return smallest(shown)


def smallest(shown: Callable[[float], bool]) -> float | None:
    """The smallest violation that is shown, to three digits; None where no sensible one is."""
    low, high = 0.0, _LARGEST_VIOLATION
    if not shown(high):
        return None
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high
