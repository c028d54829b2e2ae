"""Exact draws from probabilities that no computer word can hold.

A threshold such as e^{-1/3} has infinitely many binary digits. We keep its first 64, and compare
them with a random word. The comparison is conclusive unless all 64 agree; then, and only then
(once in 2^64 draws for one threshold), more digits of both are computed. The result is exactly the
wished distribution and no floating-point number takes part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext

import numpy as np
import numpy.typing as npt

from dpfda.noise.source import Source, Words

Digits = Callable[[int], list[int]]
"""Maps a number of bits b to [floor(2^b x) for each threshold x]."""


class Thresholds:
    """Increasing probabilities c_1 < c_2 < ... known to any precision, compared with uniforms.

    Args:
        digits: returns floor(2^b c_k) for every k, for any number of bits b.
    """

    def __init__(self, digits: Digits) -> None:
        self._digits = digits
        self._leading: Words = np.array(digits(64), dtype=np.uint64)
        self._padded: Words = np.append(self._leading, np.uint64(2**64 - 1))

    def count_below(self, size: int, source: Source) -> npt.NDArray[np.int64]:
        """For `size` fresh uniforms u on [0, 1): how many c_k are ≤ u (inversion of a CDF)."""
        words = source.words(size)
        index = np.searchsorted(self._leading, words, side="left")
        for row in np.flatnonzero(self._padded[index] == words):
            if index[row] < self._leading.size:
                index[row] = self._refine(int(words[row]), range(self._leading.size), source)
        return index

    def exceed_uniform(self, which: npt.NDArray[np.int64], source: Source) -> npt.NDArray[np.bool_]:
        """For each entry k of `which` and a fresh uniform u: is u < c_k? (a coin with odds c_k)."""
        words = source.words(which.size)
        leading = self._leading[which]
        heads = words < leading
        for row in np.flatnonzero(words == leading):
            heads[row] = self._refine(int(words[row]), [int(which[row])], source) == 0
        return heads

    def _refine(self, word: int, candidates: Sequence[int], source: Source) -> int:
        """Extend the uniform until it differs from every candidate; count those below it."""
        bits, uniform = 64, word
        while True:
            bits += 64
            uniform = (uniform << 64) | int(source.words(1)[0])
            exact = self._digits(bits)
            if all(exact[k] != uniform for k in candidates):
                return sum(exact[k] < uniform for k in candidates)


def certified_floors(values: Callable[[Context], list[Decimal]], bits: int) -> list[int]:
    """floor(2^bits x) for irrational x in (0, 1), each certified.

    Args:
        values: computes every x in a decimal context, losing at most 40 digits to cancellation.
        bits: binary digits wanted.
    """
    guard = 30
    while True:
        digits = int(bits * 0.30103) + 41 + guard
        with localcontext(Context(prec=digits)) as context:
            scale, slack = Decimal(1 << bits), Decimal(10) ** (-guard)
            scaled = [x * scale for x in values(context)]
            low = [int(x - slack) for x in scaled]
            if low == [int(x + slack) for x in scaled]:
                return low
        guard *= 2
