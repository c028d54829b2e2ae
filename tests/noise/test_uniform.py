"""Uniform integers, subsets, fair signs and odds."""

from __future__ import annotations

import math
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpfda.noise import SimulationSource
from dpfda.noise.uniform import below, coin_signs, faded, odds, subsets, weights

LEVEL = 1e-5  # of each chi-square comparison; seeds are fixed


class Words:
    """A source that hands out given words."""

    sampler = "simulation"

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> np.ndarray:
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 64, 1000])
def test_below_is_uniform(bound: int) -> None:
    draws = below(bound, 100_000, SimulationSource(bound))
    counts = np.bincount(draws.astype(np.int64), minlength=bound)
    assert counts.size == bound
    assert bound == 1 or stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("bound", [(1 << 63) + 1, 3 << 61, (1 << 64) - 1, 1 << 64])
def test_below_is_uniform_near_the_end_of_a_word(bound: int) -> None:
    """Half of all words are rejected for 2^63 + 1; a bare modulo would prefer small numbers."""
    draws = below(bound, 50_000, SimulationSource(1))
    assert all(int(draw) < bound for draw in draws[:100])
    counts = np.bincount((draws.astype(np.float64) / bound * 16).astype(np.int64).clip(0, 15))
    assert stats.chisquare(counts).pvalue > LEVEL


def test_below_rejects_the_incomplete_block() -> None:
    # 2^64 = 3 · m + 1: only the very last word is rejected.
    source = Words(2**64 - 1, 4, 5, 2**64 - 1, 7)
    assert below(3, 3, source).tolist() == [1, 1, 2]  # positions: 7 (replacing), 4, 5
    assert source.left == []


@pytest.mark.parametrize(("bound", "excess"), [(7, 2), (10, 6), (1000, 616), (3 << 40, 1 << 40)])
def test_below_rejects_no_more_and_no_less(bound: int, excess: int) -> None:
    """The last `excess` words are no whole block: a tester may hold more than one."""
    first, last = 2**64 - excess, 2**64 - 1
    for word in (first, last):
        source = Words(word, 5)
        assert below(bound, 1, source).tolist() == [5]
    assert below(bound, 1, Words(first - 1)).tolist() == [bound - 1]


@pytest.mark.parametrize("bound", [2, 1 << 31, 1 << 32, 1 << 63])
def test_below_a_power_of_two_keeps_its_low_bits(bound: int) -> None:
    assert below(bound, 2, Words(2**64 - 1, bound)).tolist() == [bound - 1, 0]


def test_words_that_cannot_be_written_to_are_replaced_in_a_copy() -> None:
    class Frozen(Words):
        def words(self, count: int) -> np.ndarray:
            taken = super().words(count)
            taken.flags.writeable = False
            return taken

    assert below(3, 2, Frozen(2**64 - 1, 4, 5)).tolist() == [2, 1]


def test_a_word_gives_sixty_four_signs() -> None:
    source = Words(0xFF, 0, 7)
    signs = coin_signs(128, source)
    assert signs.tolist() == [1] * 8 + [-1] * 120
    assert source.left == [7]


def test_signs_are_fair_and_independent() -> None:
    signs = coin_signs(1 << 17, SimulationSource(2))
    assert set(np.unique(signs)) == {-1, 1}
    patterns = (signs.reshape(-1, 4) > 0) @ np.array([1, 2, 4, 8])
    assert stats.chisquare(np.bincount(patterns, minlength=16)).pvalue > LEVEL


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65])
def test_signs_come_in_any_number(size: int) -> None:
    assert coin_signs(size, SimulationSource(0)).shape == (size,)


def test_subsets_are_uniform() -> None:
    rows = subsets(60_000, choose=2, among=4, source=SimulationSource(4))
    pairs = list(permutations(range(4), 2))
    counts = [int(((rows == pair).all(axis=1)).sum()) for pair in pairs]
    assert sum(counts) == 60_000
    assert stats.chisquare(counts).pvalue > LEVEL


def test_equal_keys_are_drawn_again() -> None:
    source = Words(9, 9, 1, 5, 3, 4)
    assert subsets(1, choose=3, among=3, source=source).tolist() == [[1, 2, 0]]
    assert source.left == []


@given(
    epsilon=st.floats(min_value=0, max_value=22),
    bits=st.integers(min_value=0, max_value=62),
)
def test_odds_are_the_floor(epsilon: float, bits: int) -> None:
    """h/D ≤ e^ε < (h+1)/D, in 400-bit arithmetic."""
    denominator = 1 << bits
    h = odds(epsilon, denominator=denominator)
    with mpmath.workprec(400):
        exact = mpmath.exp(mpmath.mpf(epsilon)) * denominator
        assert h <= exact < h + 1


@pytest.mark.parametrize("epsilon", [10.0, 22.0, 23.0, 700.0])
@pytest.mark.parametrize("bits", [0, 62, 200])
def test_odds_of_many_digits_are_the_floor(epsilon: float, bits: int) -> None:
    h = odds(epsilon, denominator=1 << bits)
    with mpmath.workprec(4000):
        exact = mpmath.exp(mpmath.mpf(min(epsilon, 22.0))) * (1 << bits)
        assert h <= exact < h + 1


@given(epsilon=st.floats(min_value=1e-6, max_value=22))
def test_odds_never_spend_more_than_epsilon(epsilon: float) -> None:
    h = odds(epsilon, denominator=1 << 30)
    with mpmath.workprec(400):
        assert mpmath.log(mpmath.mpf(h) / (1 << 30)) <= mpmath.mpf(epsilon)


def test_odds_beyond_22_are_those_of_22() -> None:
    assert odds(40.0, denominator=1 << 30) == odds(22.0, denominator=1 << 30)


@given(
    epsilon=st.floats(min_value=1e-6, max_value=60),
    likely=st.integers(min_value=1, max_value=1 << 20),
    others=st.integers(min_value=2, max_value=1 << 21),
    bits=st.integers(min_value=61, max_value=62),
)
def test_weights_fit_into_their_bits_and_are_as_fine_as_can_be(
    epsilon: float, likely: int, others: int, bits: int
) -> None:
    high, low = weights(epsilon, likely=likely, others=others, bits=bits)
    assert high == odds(epsilon, denominator=low)
    total = likely * high + others * low
    assert total <= 1 << bits < 2.0001 * total


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, math.log(3), 5.0, 21.9, 22.0, 1e6])
@pytest.mark.parametrize(("likely", "others", "bits"), [(1, 2, 61), (1, 2**30, 61), (91, 256, 62)])
def test_weights_are_as_fine_as_their_sum_allows(
    epsilon: float, likely: int, others: int, bits: int
) -> None:
    high, low = weights(epsilon, likely=likely, others=others, bits=bits)
    with mpmath.workdps(60):
        exact = mpmath.exp(mpmath.mpf(min(epsilon, 22.0)))
        assert high == mpmath.floor(low * exact)
    assert low & (low - 1) == 0
    assert likely * high + others * low <= 2**bits < 2 * low * (likely * exact + others)


@pytest.mark.parametrize("exponent", [0.0, 1e-9, 0.3, 1.0, 11.0, 40.0, 1e5])
@pytest.mark.parametrize("of", [1, 1 << 20, 1 << 32])
def test_what_is_left_after_fading_is_rounded_down(exponent: float, of: int) -> None:
    with mpmath.workdps(60):
        assert faded(exponent, of=of) == mpmath.floor(of * mpmath.exp(-mpmath.mpf(exponent)))
