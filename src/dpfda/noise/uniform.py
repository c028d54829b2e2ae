"""Uniform integers and exact coins, from 64-bit words and integer comparisons only."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpfda.noise.source import Source, Words


def below(bound: int, size: int, source: Source) -> Words:
    """`size` independent integers, uniform on {0, ..., bound - 1}, for 1 ≤ bound ≤ 2^64.

    A word modulo `bound` is uniform once the incomplete last block of words is rejected.
    """
    words = source.words(size)
    if bound == 1 << 64:
        return words
    excess = (1 << 64) % bound
    if excess:
        last_accepted = np.uint64((1 << 64) - excess - 1)
        while (rejected := (words > last_accepted).nonzero()[0]).size:
            words = words.copy() if not words.flags.writeable else words
            words[rejected] = source.words(rejected.size)
    if bound & (bound - 1) == 0:
        return words & np.uint64(bound - 1)
    return words % np.uint64(bound)


def coin_signs(size: int, source: Source) -> npt.NDArray[np.int64]:
    """`size` fair signs, -1 or +1, 64 from each word."""
    octets = source.words(-(-size // 64)).view(np.uint8)
    return 2 * np.unpackbits(octets, count=size).astype(np.int64) - 1


def subsets(size: int, *, choose: int, among: int, source: Source) -> npt.NDArray[np.int64]:
    """`size` ordered subsets of `choose` out of `among` items, each uniform, as rows of indices.

    Sorting random keys gives a uniform permutation as soon as the keys of a row differ; a row with
    two equal keys (probability below among²/2^65) is drawn again, so the result is exact.
    """
    keys = source.words(size * among).reshape(size, among)
    order = np.argsort(keys, axis=1)
    ranked = np.take_along_axis(keys, order, axis=1)
    tied = np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).any(axis=1))
    if tied.size:
        order[tied] = subsets(tied.size, choose=among, among=among, source=source)
    return order[:, :choose]


def weights(epsilon: float, *, likely: int, others: int, bits: int = 62) -> tuple[int, int]:
    """Integers (high, low) with high/low just below e^ε, as precise as sums up to 2^bits allow.

    The sum is `likely` times high plus `others` times low. Low is the largest power of two for
    which likely ⌊2^64 e^ε⌋ + others 2^64 is at most 2^(bits + 64) / low. This uses integers only,
    so every device and language computes the same weights.

    Examples:
        >>> weights(1.0, likely=1, others=4, bits=4)
        (5, 2)
    """
    total = likely * odds(epsilon, denominator=1 << 64) + (others << 64)
    low = 1 << (bits + 64 - (total - 1).bit_length())
    return odds(epsilon, denominator=low), low


def capped(epsilon: float) -> float:
    """ε, at most 22: beyond that, 64-bit weights cannot represent the odds."""
    return min(epsilon, 22.0)


@lru_cache(maxsize=1024)
def odds(epsilon: float, *, denominator: int) -> int:
    """The largest integer h with h/denominator ≤ e^ε (`capped`): rounded towards more privacy.

    Examples:
        >>> odds(0.0, denominator=10), odds(1.0, denominator=10)
        (10, 27)
    """
    epsilon = capped(epsilon)
    # e^22 has ten digits, so forty remain after the decimal point of the product.
    context = Context(prec=50 + len(str(denominator)), rounding=ROUND_FLOOR)
    # `exp` rounds to half even, so one unit in the last place is taken off to stay below.
    power = context.next_minus(Decimal(epsilon).exp(context)) if epsilon else Decimal(1)
    # e^ε ≥ 1 also if the digits do not show it, as for an ε of 10^-100.
    return max(denominator, int(context.multiply(power, Decimal(denominator))))


@lru_cache(maxsize=1024)
def faded(exponent: float, *, of: int) -> int:
    """The largest integer h ≤ `of` times e^{-exponent}, for an exponent ≥ 0.

    Examples:
        >>> faded(0.0, of=10), faded(1.0, of=10)
        (10, 3)
    """
    # Forty digits after the decimal point, more than any comparison needs.
    context = Context(prec=40 + len(str(of)))
    return int(context.multiply((-Decimal(exponent)).exp(context), Decimal(of)))
