"""The exponential mechanism: choose one of finitely many candidates by integer scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source
from dpfda.noise.inversion import Thresholds

_SHARES = (0.03, 0.2, 1.0)  # odds of the rare candidate in worst cases


@dataclass(frozen=True, kw_only=True)
class Exponential(Mechanism, name="exponential"):
    """Choose candidate k with probability ∝ prior_k e^{-ε s_k/2} for integer scores s_k.

    Privacy:
        ε-DP when a neighbor changes every score by at most 1 (McSherry & Talwar 2007). The draw is
        exact (`Thresholds`): cumulative probabilities are computed to as many digits as are needed
        to compare them with the random word.

    Attributes:
        prior: public positive integer weights, one for each candidate.

    Examples:
        >>> from dpfda.noise import SimulationSource
        >>> chosen = Exponential(epsilon=50.0, prior=(1, 1, 1))
        >>> chosen.randomize([[9, 0, 9]], SimulationSource(0))
        array([1.])
    """

    model = "central"  # the curator computes the scores

    prior: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        prior = tuple(_validate.whole("prior", weight) for weight in self.prior)
        if len(prior) < 2:
            raise InvalidParameter("prior", "at least two weights", self.prior)
        object.__setattr__(self, "prior", prior)

    @cached_property
    def _rate(self) -> Decimal:
        return Decimal(self.epsilon) / 2  # a binary fraction: exact in decimal

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Chosen candidates, shape (n,), one for each row of scores."""
        scores = self._scores(values)
        if (scores == scores[:1]).all():
            return self._draw(scores[0], len(scores), source).astype(np.float64)
        rows, groups = np.unique(scores, axis=0, return_inverse=True)
        groups = groups.reshape(-1)
        chosen = np.empty(groups.size)
        for number, row in enumerate(rows):  # equal rows are drawn together
            members = np.flatnonzero(groups == number)
            chosen[members] = self._draw(row, members.size, source)
        return chosen

    def _draw(self, scores: IntArray, size: int, source: Source) -> IntArray:
        def cumulative(context: Context) -> list[Decimal]:
            best = int(scores.min())
            weights = [
                weight * (-self._rate * (int(score) - best)).exp()
                for weight, score in zip(self.prior, scores, strict=True)
            ]
            total = sum(weights)
            return [running / total for running in accumulate(weights[:-1])]

        return Thresholds(cumulative).count_below(size, source)

    def _scores(self, values: ArrayLike) -> IntArray:
        rows = _validate.batch("values", values, columns=len(self.prior), bound=2.0**53)
        if not np.all(rows == np.rint(rows)):
            raise InvalidData("values", "integer scores")
        return rows.astype(np.int64)

    def log_probabilities(self, values: ArrayLike) -> FloatArray:
        """Logarithm of the probability of every candidate, shape (n, K)."""
        scores = self._scores(values)
        logs = np.log(np.array(self.prior, dtype=np.float64)) - self.epsilon / 2 * (
            scores - scores.min(axis=1, keepdims=True)
        )
        top = logs.max(axis=1, keepdims=True)
        return np.asarray(logs - top - np.log(np.exp(logs - top).sum(axis=1, keepdims=True)))

    def target(self, values: ArrayLike) -> FloatArray:
        """Probability of every candidate, shape (n, K)."""
        return np.asarray(np.exp(self.log_probabilities(values)))

    def debias(self, reports: FloatArray) -> FloatArray:
        """Indicators of the chosen candidates, shape (n, K)."""
        chosen = np.asarray(reports)[:, None] == np.arange(len(self.prior))
        return np.asarray(chosen, dtype=np.float64)

    def variance(self, values: ArrayLike) -> FloatArray:
        """Variance of each indicator, shape (n, K)."""
        p = self.target(values)
        return p * (1 - p)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each choice."""
        logs = np.broadcast_to(self.log_probabilities(values), (np.size(reports), len(self.prior)))
        chosen = np.asarray(reports).astype(np.int64).reshape(-1, 1)
        return np.asarray(np.take_along_axis(logs, chosen, axis=1)[:, 0])

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Pairs in which only the rarest candidate gains, and a pair in which all scores change.

        The odds of the rarest candidate change by e^ε. Its probability changes almost as much if it
        is small. A draw that is much too sharp never chooses a candidate of small probability; the
        pairs in which the rarest candidate is more likely detect such a draw.
        """
        rarest, rest = int(np.argmin(self.prior)), sum(self.prior) - min(self.prior)
        good = np.ones((1, len(self.prior)))
        good[0, rarest] = 0
        cases = [(np.ones_like(good), np.zeros_like(good))]
        for share in reversed(_SHARES):
            behind = math.ceil(2 / self.epsilon * math.log(min(self.prior) / (share * rest)))
            more = np.where(good == 0, max(0, behind), 0)
            cases.insert(0, (good + more, 1 - good + more))
        return cases

    @classmethod
    def examples(cls) -> list[Self]:
        """Two candidates of which one is rare, a steep prior, and two equal ones."""
        return [
            cls(epsilon=1.0, prior=(1, 50)),
            cls(epsilon=1.0, prior=tuple(1 << k for k in range(6))),
            cls(epsilon=0.5, prior=(1, 1)),
        ]
