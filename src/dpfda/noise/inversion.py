"""Exact draws from probabilities with infinitely many binary digits.

A threshold such as e^{-1/3} has infinitely many binary digits. We enclose its first 64 between two
integers, and compare them with a random word. The comparison is conclusive unless the word lies
between the two. Only then (once in 2^64 draws for one threshold) more digits of both are computed.
The result has exactly the required distribution, and no floating-point number is involved.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpfda.noise.source import Source, Words

Values = Callable[[Context], list[Decimal]]
"""Computes probabilities in a decimal context, losing at most 40 digits to cancellation."""

_GUARD = 30  # correct digits after all losses
_PADDING = np.uint64(2**64 - 1)
_LATER = np.uint64(52)  # low bits that the first comparison ignores; the other 12 mostly suffice
_MANY = 512  # number of words above which a table is quicker than a search


class Thresholds:
    """Increasing probabilities c_1 ≤ c_2 ≤ ... of any precision, compared with uniforms.

    Args:
        values: computes every c_k.
    """

    def __init__(self, values: Values) -> None:
        self._values = values
        low, high = enclosed(values, 64)
        # A word below `_low` is certainly below its threshold, a word above `_last` above it.
        self._low: Words = np.array([*low, _PADDING], dtype=np.uint64)
        self._last: Words = np.array([bound - 1 for bound in high], dtype=np.uint64)

    @cached_property
    def _guide(self) -> npt.NDArray[np.int16]:
        """Number of c_k below a word with these first bits; -1 if they do not determine it."""
        begins = np.arange(1 << (64 - int(_LATER)), dtype=np.uint64) << _LATER
        ends = begins + np.uint64((1 << int(_LATER)) - 1)
        count = np.searchsorted(self._last, begins, side="left")
        # No enclosure of a threshold lies between the two words.
        alike = (count == np.searchsorted(self._last, ends, side="left")) & (
            (ends < self._low[count]) | (count == self._last.size)
        )
        return np.where(alike, count, -1).astype(np.int16)

    def count_below(self, size: int, source: Source) -> npt.NDArray[np.int64]:
        """For `size` new uniforms u on [0, 1): the number of c_k ≤ u (inversion of a CDF)."""
        words = source.words(size)
        if size < _MANY:
            return self._searched(words, source)
        index = self._guide[(words >> _LATER).astype(np.int64)].astype(np.int64)
        unsure = (index < 0).nonzero()[0]
        index[unsure] = self._searched(words[unsure], source)
        return index

    def _searched(self, words: Words, source: Source) -> npt.NDArray[np.int64]:
        index = np.searchsorted(self._last, words, side="left")
        for row in (self._low[index] <= words).nonzero()[0]:
            if index[row] < self._last.size:
                index[row] = refined(self._values, int(words[row]), source)
        return index

    def exceed_uniform(self, which: npt.NDArray[np.int64], source: Source) -> npt.NDArray[np.bool_]:
        """For each entry k of `which`: whether a new uniform number is below c_k."""
        words = source.words(which.size)
        heads = words < self._low[which]
        for row in (~heads & (words <= self._last[which])).nonzero()[0]:
            only = slice(which[row], which[row] + 1)
            heads[row] = not refined(self._values, int(words[row]), source, only=only)
        return heads


def refined(values: Values, word: int, source: Source, *, only: slice = slice(None)) -> int:
    """Number of probabilities in `only` that are at most the uniform whose first bits are `word`.

    The uniform is extended until it lies outside every enclosure.
    """
    bits, uniform = 64, word
    while True:
        low, high = enclosed(values, bits)
        sure = sum(bound <= uniform for bound in high[only])
        if sure == sum(bound <= uniform for bound in low[only]):
            return sure
        bits += 64
        uniform = (uniform << 64) | int(source.words(1)[0])


def enclosed(values: Values, bits: int) -> tuple[list[int], list[int]]:
    """Integers low ≤ 2^bits x < high for each x in [0, 1]; high - low is 1 nearly always."""
    with localcontext(Context(prec=int(bits * 0.30103) + 41 + _GUARD)) as context:
        scale, slack = Decimal(1 << bits), Decimal(10) ** -_GUARD
        scaled = [x * scale for x in values(context)]
        low = [max(0, int(x - slack)) for x in scaled]
        return low, [min(int(x + slack) + 1, 1 << bits) for x in scaled]
