"""Ties between a random word and the leading digits of a threshold: the once-in-2^64 path."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from planted import Words

from dpfda.noise.discrete import _geometric_digits
from dpfda.noise.inversion import Thresholds, enclosed


def thirds(context: Context) -> list[Decimal]:
    return [Decimal(k) / 3 for k in (1, 2)]


FIRST, SECOND = (math.floor(Fraction(k, 3) * 2**64) for k in (1, 2))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (0, 0),
        (FIRST - 1, 0),
        (FIRST + 1, 1),
        (SECOND - 1, 1),
        (SECOND + 1, 2),
        (2**64 - 1, 2),
    ],
)
def test_conclusive_words_need_no_more_digits(word: int, expected: int) -> None:
    source = Words(word)
    assert Thresholds(thirds).count_below(1, source).tolist() == [expected]
    assert source.left == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([0], 0),
        ([FIRST - 1], 0),
        ([FIRST + 1], 1),  # the digits of 1/3 repeat: the next 64 are those of FIRST again
        ([FIRST, FIRST - 1], 0),
        ([FIRST, FIRST, FIRST + 1], 1),
    ],
)
def test_a_tie_is_decided_by_further_digits(more: list[int], expected: int) -> None:
    source = Words(FIRST, *more)
    assert Thresholds(thirds).count_below(1, source).tolist() == [expected]
    assert source.left == []


@pytest.mark.parametrize(("more", "heads"), [([0], True), ([FIRST], None), ([2**64 - 1], False)])
def test_a_tied_coin_is_decided_by_further_digits(more: list[int], heads: bool | None) -> None:
    if heads is None:
        more, heads = [*more, FIRST - 1], True
    source = Words(FIRST, *more)
    assert Thresholds(thirds).exceed_uniform(np.array([0]), source).tolist() == [heads]
    assert source.left == []


def test_ties_in_a_batch_leave_the_others_alone() -> None:
    source = Words(5, FIRST, 2**64 - 1, SECOND, 0, 2**64 - 1)
    assert Thresholds(thirds).count_below(4, source).tolist() == [0, 0, 2, 2]


def test_thresholds_that_share_their_first_word_are_told_apart() -> None:
    """Close to 1 many thresholds begin with 64 ones; a tie must look at all of them."""

    def crowded(context: Context) -> list[Decimal]:
        return [1 - Decimal(2) ** -k for k in (70, 80, 90)]

    thresholds = Thresholds(crowded)
    last = 2**64 - 1
    assert thresholds.count_below(1, Words(last, 0)).tolist() == [0]
    assert thresholds.count_below(1, Words(last, last)).tolist() == [3]
    between = 2**64 - 1 - (1 << (128 - 85))
    assert thresholds.count_below(1, Words(last, between)).tolist() == [2]


def test_a_tie_in_a_real_table_is_decided() -> None:
    table = _geometric_digits(1)[0]  # thresholds 1 - e^{-k}
    leading = math.floor((1 - Context(prec=60).exp(Decimal(-1))) * 2**64)
    assert table.count_below(1, Words(leading, 0)).tolist() == [0]
    assert table.count_below(1, Words(leading, 2**64 - 1)).tolist() == [1]


@pytest.mark.parametrize("bits", [64, 128, 256, 1024])
def test_enclosures_are_right_and_as_narrow_as_can_be(bits: int) -> None:
    import mpmath

    def values(context: Context) -> list[Decimal]:
        return [(-Decimal(k)).exp(context) for k in (1, 20, 200)]

    with mpmath.workprec(bits + 400):
        expected = [int(mpmath.floor(mpmath.exp(-k) * 2**bits)) for k in (1, 20, 200)]
    assert enclosed(values, bits) == (expected, [floor + 1 for floor in expected])


def test_a_value_next_to_an_integer_is_enclosed_on_both_sides() -> None:
    """2^64 x = 5 - 10^-50: whether a word is above shows only in later ones."""

    def values(context: Context) -> list[Decimal]:
        return [(Decimal(5) - Decimal(10) ** -50) / Decimal(2**64)]

    assert enclosed(values, 64) == ([4], [6])
    table = Thresholds(values)
    assert table.count_below(1, Words(5, 1)).tolist() == [1]
    assert table.count_below(1, Words(4, 2**64 - 2)).tolist() == [0]
    assert table.exceed_uniform(np.array([0]), Words(4, 7)).tolist() == [True]
    assert table.exceed_uniform(np.array([0]), Words(5, 1)).tolist() == [False]


def test_forty_digits_may_be_lost() -> None:
    """2^64 x = 3 - 10^-22, found as a difference of numbers beyond 10^40: enclosed as if it were
    known exactly."""

    def values(context: Context) -> list[Decimal]:
        x = (Decimal(3) - Decimal(10) ** -22) / Decimal(2**64)
        return [Decimal(10) ** 40 + x - Decimal(10) ** 40]

    assert enclosed(values, 64) == ([2], [3])


def test_a_probability_of_one_fits_into_a_word() -> None:
    assert enclosed(lambda _: [Decimal(0), Decimal(1)], 64) == ([0, 2**64 - 1], [1, 2**64])
    coins = Thresholds(lambda _: [Decimal(1)])
    assert coins.exceed_uniform(np.zeros(2, dtype=np.int64), Words(0, 2**64 - 2)).all()


@pytest.mark.parametrize("scale", [1, 300, 70_001, 5 << 20])
def test_a_first_look_at_a_word_says_what_the_whole_word_says(scale: int) -> None:
    """Beside every threshold and at both ends of what a first look sees, a word at a time."""
    for table in _geometric_digits(scale):
        low, high = enclosed(table._values, 64)
        edges = {place << 52 for place in range(1, 1 << 12)}
        words = {word + by for word in {*low, *high, *edges} for by in (-2, -1, 0, 1)}
        sure = [word for word in words | {0, 2**64 - 1} if 0 <= word < 2**64]
        sure = [
            w for w in sorted(sure) if not any(a <= w < b for a, b in zip(low, high, strict=True))
        ]
        source = Words(*sure)
        found = table.count_below(len(sure), source)
        assert not source.left
        assert (
            found.tolist() == np.searchsorted(np.array(high, dtype=object), sure, "right").tolist()
        )
        assert len(set(found.tolist())) > 1


def test_a_first_look_decides_nearly_always() -> None:
    first, *_, last = _geometric_digits(5 << 20)
    for table in (first, last):
        assert np.mean(table._guide < 0) <= 256 / 4096


def test_ties_among_many_words_are_decided_in_their_order() -> None:
    clear = [5] * 600
    source = Words(*clear, FIRST, *clear, SECOND, 0, 2**64 - 1)
    found = Thresholds(thirds).count_below(1202, source).tolist()
    assert (found[600], found[1201]) == (0, 2)
    assert source.left == []


def test_a_first_look_is_unsure_where_a_threshold_is_and_nowhere_else() -> None:
    place = 5 << 52
    for beyond, unsure in ((2, {5}), (0, {4, 5}), (-2, {4})):  # a word is in doubt on either side
        at = (Decimal(place) + beyond) / (1 << 64)
        guide = Thresholds(lambda _, at=at: [at])._guide.tolist()
        told = [number < 5 for number in range(1 << 12)]
        assert guide == [-1 if k in unsure else int(not told[k]) for k in range(1 << 12)]


def test_few_words_are_searched_for_and_many_looked_up() -> None:
    table = Thresholds(thirds)
    table.count_below(511, Words(*range(511)))
    assert "_guide" not in vars(table)
    table.count_below(512, Words(*range(512)))
    assert "_guide" in vars(table)
