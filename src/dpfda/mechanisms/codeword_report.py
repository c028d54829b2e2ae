"""A report of one public codeword: what `CapIndex` and `ClassIndex` have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.base import Mechanism
from dpfda.mechanisms.codebook import CODEBOOKS, HALF_WIDTH, Codebook, Moments
from dpfda.noise import Source
from dpfda.noise.source import Words
from dpfda.noise.uniform import below, capped, weights


@dataclass(frozen=True, kw_only=True)
class CodewordReport(Mechanism):
    """Of L buckets with B public codewords each, s words are e^ε times as likely as the others.

    A report is (number of the codebook, number of the word). A vector v shorter than 1 is turned
    round with probability (1 - |v|)/2 first, which makes the mean proportional to v.

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
        """L."""
        return 1

    @property
    def words(self) -> int:
        """How many words there are in one codebook: L B."""
        return self.buckets * self.codewords

    @cached_property
    def codebook(self) -> Codebook:
        """What anybody can look up."""
        return Codebook(self.codewords, self.dimension)

    @cached_property
    def cap(self) -> int:
        """s, the number of likely words that makes reports most informative."""
        return self.codebook.best_cap(capped(self.epsilon), buckets=self.buckets)

    @cached_property
    def moments(self) -> Moments:
        """Of a sent codeword, 0 in a bucket that is not one's own."""
        return self.codebook.moments(capped(self.epsilon), cap=self.cap, buckets=self.buckets)

    @property
    def gain(self) -> float:
        """m, the mean of a sent codeword along the private direction, in one's own bucket."""
        return self.moments.gain

    @cached_property
    def _weights(self) -> tuple[int, int]:
        return weights(self.epsilon, likely=self.cap, others=self.words)

    @cached_property
    def _total(self) -> int:
        high, low = self._weights
        return self.cap * high + (self.words - self.cap) * low

    def allows(self, reports: FloatArray) -> npt.NDArray[np.bool_]:
        """Which rows are numbers of a codebook and of a word in it."""
        whole = (reports == np.rint(reports)) & (reports >= 0)
        return np.asarray((whole & (reports < [CODEBOOKS, self.words])).all(axis=1))

    def _drawn(
        self, lengths: Words, source: Source
    ) -> tuple[npt.NDArray[np.bool_], Words, IntArray]:
        """For each person: turn round? which codebook? which rank, the s likely words first?"""
        people = len(lengths)
        turned = below(2 * HALF_WIDTH, people, source) >= np.uint64(HALF_WIDTH) + lengths
        books = below(CODEBOOKS, people, source)
        coins = below(self._total, people, source)
        high, low = self._weights
        likely = np.uint64(self.cap * high)
        outside = np.uint64(self.cap) + (coins - likely) // np.uint64(low)
        rank = np.where(coins < likely, coins // np.uint64(high), outside).astype(np.int64)
        return turned, books, rank

    def _log_chance(self, lengths: Words, ahead: Any, behind: Any) -> FloatArray:
        """Of a word that is likely for u (`ahead`) or for -u (`behind`), mixed over turning."""
        kept = (HALF_WIDTH + lengths.astype(np.float64)) / (2 * HALF_WIDTH)
        inside = kept * ahead + (1 - kept) * behind
        high, low = self._weights
        return np.asarray(np.log((low + inside * (high - low)) / self._total) - math.log(CODEBOOKS))
