"""Report one codeword of a public codebook, chosen near a private direction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.mechanisms.base import Mechanism
from dpfda.mechanisms.codebook import (
    CODEBOOKS,
    HALF_WIDTH,
    PEOPLE,
    Codebook,
    WordMoments,
    codebook_size,
    in_ball,
    polar,
)
from dpfda.noise import Source
from dpfda.noise.source import Words
from dpfda.noise.uniform import below, capped, weights


@dataclass(frozen=True, kw_only=True)
class CodewordReport(Mechanism):
    """Report one of the public codewords in L buckets of B; s of them are e^ε times as likely.

    A report is (number of the codebook, number of the word). A vector v shorter than 1 is first
    reversed with probability (1 - |v|)/2, so that the mean is proportional to v.

    Attributes:
        dimension: d.
        codewords: B, an even number; codeword b + B/2 is the opposite of codeword b.
    """

    dimension: int = 1
    codewords: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.codebook

    @property
    def buckets(self) -> int:
        """The number of buckets L."""
        return 1

    @property
    def words(self) -> int:
        """Number of words in one codebook: L B."""
        return self.buckets * self.codewords

    @cached_property
    def codebook(self) -> Codebook:
        """The public codebook."""
        return Codebook(self.codewords, self.dimension)

    @cached_property
    def cap(self) -> int:
        """s, the number of likely words, chosen to make reports most informative."""
        return self.codebook.best_cap(capped(self.epsilon), buckets=self.buckets)

    @cached_property
    def moments(self) -> WordMoments:
        """Moments of a sent codeword, which counts as 0 outside the person's bucket."""
        return self.codebook.moments(capped(self.epsilon), cap=self.cap, buckets=self.buckets)

    @property
    def gain(self) -> float:
        """m, the mean of a sent codeword along the private direction, in the person's bucket."""
        return self.moments.gain

    @cached_property
    def _weights(self) -> tuple[int, int]:
        return weights(self.epsilon, likely=self.cap, others=self.words)

    @cached_property
    def _total(self) -> int:
        high, low = self._weights
        return self.cap * high + (self.words - self.cap) * low

    def allows(self, reports: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether each row is a valid pair of a codebook number and a word number."""
        whole = (reports == np.rint(reports)) & (reports >= 0)
        return np.asarray((whole & (reports < [CODEBOOKS, self.words])).all(axis=1))

    def _drawn(
        self, lengths: Words, source: Source
    ) -> tuple[npt.NDArray[np.bool_], Words, IntArray]:
        """Reversal, codebook, and rank of each person's word (the s likely words first)."""
        people = len(lengths)
        turned = below(2 * HALF_WIDTH, people, source) >= np.uint64(HALF_WIDTH) + lengths
        books = below(CODEBOOKS, people, source)
        coins = below(self._total, people, source)
        high, low = self._weights
        likely = np.uint64(self.cap * high)
        outside = np.uint64(self.cap) + (coins - likely) // np.uint64(low)
        rank = np.where(coins < likely, coins // np.uint64(high), outside).astype(np.int64)
        return turned, books, rank

    def _log_chance(
        self, lengths: Words, ahead: npt.NDArray[np.bool_], behind: npt.NDArray[np.bool_]
    ) -> FloatArray:
        """Log-probability of a word that is likely for u (`ahead`) or -u (`behind`)."""
        kept = (HALF_WIDTH + lengths.astype(np.float64)) / (2 * HALF_WIDTH)
        inside = kept * ahead + (1 - kept) * behind
        high, low = self._weights
        return np.asarray(np.log((low + inside * (high - low)) / self._total) - math.log(CODEBOOKS))


@dataclass(frozen=True, kw_only=True)
class CapIndex(CodewordReport, name="cap_index"):
    """Send the number of a random codeword; those near the vector are e^ε times as likely.

    A public codebook has B/2 random codewords of one length and their opposites. The s codewords
    with the largest inner products with the private direction, called its cap, have weight e^ε
    each; the others have weight 1. A vector v shorter than 1 is first reversed with probability
    (1 - |v|)/2, so that the mean is proportional to v. The report is (number of the codebook,
    number of the codeword). Each person draws a codebook independently of the data, so the errors
    of single codebooks average out.

    Privacy:
        ε-LDP for one vector in the unit ball. For every vector and codebook exactly s codewords
        have weight e^ε, so each has probability in [1, e^ε]/(s e^ε + B - s); the reversal mixes two
        such distributions. Floating-point arithmetic decides only *which* s codewords are in the
        cap, and the bound holds for every choice. The draw is an exact integer draw with odds
        rounded down (docs/methods/codeword-reports.md; the finite form of the PrivUnit mechanism).

    Attributes:
        dimension: d.
        codewords: B, an even number; codeword b + B/2 is the opposite of codeword b.

    Examples:
        >>> from dpfda.noise import SimulationSource
        >>> mechanism = CapIndex.best(epsilon=3.0, dimension=2)
        >>> mechanism.codewords, mechanism.cap, round(mechanism.gain**2, 2)
        (64, 15, 1.09)
        >>> reports = mechanism.randomize(np.tile([[0.6, 0.0]], (20_000, 1)), SimulationSource(0))
        >>> mechanism.debias(reports).mean(axis=0).round(1) + 0.0
        array([0.6, 0. ])
    """

    @classmethod
    def best(cls, *, epsilon: float, dimension: int) -> Self:
        """The most informative report of a vector, with few codewords."""
        size = codebook_size(dimension, capped(epsilon))
        return cls(epsilon=epsilon, dimension=dimension, codewords=size)

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Numbers of codebooks and codewords, shape (n, 2)."""
        rows = in_ball(values, self.dimension, clip=clip)
        directions, lengths = polar(rows)
        turned, books, rank = self._drawn(lengths, source)
        directions = np.where(turned[:, None], -directions, directions)
        words = self.codebook.word_at(rank, self.cap, directions, books)
        return np.column_stack([books.astype(np.float64), words.astype(np.float64)])

    def debias(self, reports: FloatArray) -> FloatArray:
        """The sent codewords divided by the gain, shape (n, d)."""
        books, numbers = reports[:, 0].astype(np.uint64), reports[:, 1].astype(np.int64)
        return self.codebook.words(books, numbers) / self.gain

    def totals(self, reports: FloatArray) -> FloatArray:
        """The sum of `debias` over people, shape (d,), in little memory."""
        found = np.zeros(self.dimension)
        for start in range(0, len(reports), PEOPLE):
            found += self.debias(reports[start : start + PEOPLE]).sum(axis=0)
        return found

    def variance(self, values: ArrayLike) -> FloatArray:
        """(a + (τ - a) u²)/m² - v²; τ is the mean square of a codeword along u, a across it."""
        rows = in_ball(values, self.dimension, clip=False)
        directions, _ = polar(rows)
        gain, along, across = self.moments
        return np.asarray((across + (along - across) * directions**2) / gain**2 - rows**2)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each report: a mixture over the reversal (caps of u and -u)."""
        rows = in_ball(values, self.dimension, clip=False)
        directions, lengths = polar(np.broadcast_to(rows, (len(reports), self.dimension)))
        books, words = reports[:, 0].astype(np.uint64), reports[:, 1].astype(np.int64)
        ahead, behind = self.codebook.in_cap(words, self.cap, directions, books)
        return self._log_chance(lengths, ahead, behind)

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Opposite directions, a direction and the zero vector, orthogonal directions."""
        first = np.zeros((1, self.dimension))
        first[0, 0] = 1.0
        last = np.zeros((1, self.dimension))
        last[0, -1] = -1.0
        return [(first, -first), (first, np.zeros_like(first)), (first, last)]

    @classmethod
    def examples(cls) -> list[Self]:
        """Few and many codewords, small and large ε."""
        return [
            cls(epsilon=1.0, dimension=2, codewords=8),
            cls(epsilon=3.0, dimension=4, codewords=16),
            cls(epsilon=5.0, dimension=1, codewords=32),
        ]
