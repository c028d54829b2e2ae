"""A class and a vector told by one codeword: buckets, signs, coins, moments."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from codewords import CODEBOOKS, WORD, mixed, on_sphere
from planted import Words

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.mechanisms.class_index import ClassIndex, best_buckets, places
from dpfda.mechanisms.codebook import Codebook, codebook_size, limit_gain
from dpfda.noise import SimulationSource

HALF_WIDTH = 1 << 20
STEP = 0xD1B54A32D192ED03
SHAPES = [(3, 1), (5, 2), (4, 4), (1, 1)]  # classes, buckets


def placed(book: int, classes: int, buckets: int) -> tuple[list[int], list[float]]:
    """Buckets and signs, in plain Python."""
    if classes == buckets:
        return list(range(classes)), [1.0] * classes
    bits = [mixed((mixed(book ^ STEP) + (k + 1) * STEP) & WORD) for k in range(classes)]
    keys = [b & (WORD >> 1) for b in bits]
    ranks = [sorted(keys).index(key) for key in keys]
    return [rank % buckets for rank in ranks], [1.0 if b >> 63 else -1.0 for b in bits]


@pytest.mark.parametrize(("classes", "buckets"), [*SHAPES, (26, 6)])
def test_anybody_can_look_up_buckets_and_signs(classes: int, buckets: int) -> None:
    books = [0, 1, 77, CODEBOOKS - 1]
    found = places(np.array(books, dtype=np.uint64), classes=classes, buckets=buckets)
    for row, book in enumerate(books):
        where, signs = placed(book, classes, buckets)
        assert found[0][row].tolist() == where
        assert found[1][row].tolist() == signs


def test_buckets_and_signs_are_even() -> None:
    """Over many codebooks; five standard deviations."""
    n = 20_000
    buckets, signs = places(np.arange(n).astype(np.uint64), classes=5, buckets=2)
    assert set(buckets.sum(axis=1).tolist()) == {2}  # three in the first, two in the second
    np.testing.assert_allclose(buckets.mean(axis=0), 0.4, atol=5 * 0.49 / math.sqrt(n))
    assert np.abs(signs.T @ signs / n - np.eye(5)).max() < 5 / math.sqrt(n)
    assert np.abs(signs.mean(axis=0)).max() < 5 / math.sqrt(n)
    apart = (signs - signs.mean(axis=0)).T @ (buckets - buckets.mean(axis=0)) / n
    assert np.abs(apart).max() < 5 * 0.49 / math.sqrt(n)
    together = (buckets[:, 0] == buckets[:, 3]).mean()
    expected = ClassIndex(epsilon=1.0, classes=5, buckets=2)._shared
    assert expected == pytest.approx((3 * 2 + 2 * 1) / 20)
    assert together == pytest.approx(expected, abs=5 * 0.49 / math.sqrt(n))


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 5.0, 22.0, 100.0])
@pytest.mark.parametrize(("classes", "buckets"), SHAPES)
def test_weights_are_whole_numbers_with_odds_rounded_down(
    epsilon: float, classes: int, buckets: int
) -> None:
    mechanism = ClassIndex(
        epsilon=epsilon, dimension=2, classes=classes, buckets=buckets, codewords=16
    )
    (high, low), cap = mechanism._weights, mechanism.cap
    with mpmath.workprec(300):
        assert high == int(mpmath.floor(mpmath.exp(mpmath.mpf(min(epsilon, 22.0))) * low))
    assert mechanism._total == cap * high + (16 * buckets - cap) * low
    assert 1 << 60 < mechanism._total <= 1 << 62
    assert cap == Codebook(16, 2).best_cap(min(epsilon, 22.0), buckets=buckets)
    moments = Codebook(16, 2).moments(min(epsilon, 22.0), cap=cap, buckets=buckets)
    assert (mechanism.moments, mechanism.gain) == (moments, moments.gain)


@pytest.mark.parametrize(("classes", "buckets"), SHAPES)
@pytest.mark.parametrize("turned", [False, True])
def test_every_coin_is_another_word_and_the_first_ones_are_the_cap(
    classes: int, buckets: int, *, turned: bool
) -> None:
    size, book, own = 8, 4321, min(2, classes - 1)
    mechanism = ClassIndex(
        epsilon=2.0, dimension=3, classes=classes, buckets=buckets, codewords=size
    )
    row = [float(own), 0.3, 0.0, -0.4]
    (high, low), cap, count = mechanism._weights, mechanism.cap, buckets * size
    turn = 3 * HALF_WIDTH // 2 - (0 if turned else 1)

    def word(coin: int) -> int:
        found = mechanism.randomize([row], Words(turn, book, coin))
        assert found[0, 0] == book
        return int(found[0, 1])

    words = [word(k * high) for k in range(cap)]
    assert words == [word((k + 1) * high - 1) for k in range(cap)]
    others = [word(cap * high + j * low) for j in range(count - cap)]
    assert others == [word(cap * high + (j + 1) * low - 1) for j in range(count - cap)]
    assert sorted(words + others) == list(range(count))

    where, signs = placed(book, classes, buckets)
    scores = on_sphere(book, size, 3) @ np.array(row[1:]) * signs[own]
    ahead, behind = (where[own] * size + np.argsort(-sign * scores)[:cap] for sign in (1, -1))
    assert set(words) == set((behind if turned else ahead).tolist())
    every = np.column_stack([np.full(count, float(book)), np.arange(count)])
    share = 0.75 * np.isin(np.arange(count), ahead) + 0.25 * np.isin(np.arange(count), behind)
    np.testing.assert_allclose(
        mechanism.log_likelihood(every, [row]),
        np.log((low + (high - low) * share) / mechanism._total) - math.log(CODEBOOKS),
        rtol=1e-12,
    )


@pytest.mark.parametrize(("classes", "buckets"), SHAPES)
def test_what_a_report_says_of_every_class(classes: int, buckets: int) -> None:
    mechanism = ClassIndex(epsilon=2.0, dimension=3, classes=classes, buckets=buckets, codewords=8)
    numbers = np.arange(8 * buckets)
    reports = np.column_stack([numbers // 2 + 9.0, numbers])
    found = mechanism.debias(reports) * mechanism.gain
    assert found.shape == (8 * buckets, classes, 3)
    for number, entry in zip(numbers.tolist(), found, strict=True):
        book = number // 2 + 9
        where, signs = placed(book, classes, buckets)
        codeword = on_sphere(book, 8, 3)[number % 8]
        told = [s if w == number // 8 else 0.0 for w, s in zip(where, signs, strict=True)]
        np.testing.assert_allclose(entry, np.outer(told, codeword), atol=6e-4)
    np.testing.assert_allclose(mechanism.totals(reports), mechanism.debias(reports).sum(axis=0))


def test_totals_of_many_people_are_added_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = ClassIndex(epsilon=1.0, dimension=2, classes=3, buckets=2, codewords=4)
    rows = np.tile([[1.0, 0.3, 0.1]], (25, 1))
    reports = mechanism.randomize(rows, SimulationSource(0))
    whole = mechanism.debias(reports).sum(axis=0)
    monkeypatch.setattr("dpfda.mechanisms.class_index.PEOPLE", 10)
    np.testing.assert_allclose(mechanism.totals(reports), whole)
    assert np.array_equal(mechanism.randomize(rows, SimulationSource(0)), reports)
    assert mechanism.totals(reports[:0]).tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize(("classes", "buckets"), SHAPES)
def test_variance_adds_up_over_all_words(classes: int, buckets: int) -> None:
    """Against the exact mean over all words of many codebooks; 2 % is five of its deviations."""
    mechanism = ClassIndex(epsilon=2.0, dimension=2, classes=classes, buckets=buckets, codewords=4)
    row = np.array([[0.0, 0.48, 0.64]])
    books, count = 20_000, 4 * buckets
    numbers = np.tile(np.arange(count), books)
    reports = np.column_stack([np.repeat(np.arange(books), count), numbers]).astype(float)
    share = np.exp(mechanism.log_likelihood(reports, row)) * CODEBOOKS
    assert share.reshape(books, count).sum(axis=1) == pytest.approx(np.ones(books), rel=1e-9)
    sent = mechanism.debias(reports)
    first = np.tensordot(share, sent, axes=1) / books
    np.testing.assert_allclose(first, mechanism.target(row)[0], atol=0.03)
    square = np.tensordot(share, sent**2, axes=1) / books
    stated = mechanism.variance(row)[0] + mechanism.target(row)[0] ** 2
    np.testing.assert_allclose(square, stated, rtol=0.02)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize(("classes", "buckets"), SHAPES)
def test_no_word_is_more_likely_than_it_may_be(epsilon: float, classes: int, buckets: int) -> None:
    """Every word of some codebooks, for every class and vectors of all kinds, 0 and tiny ones."""
    size, generator = 6, np.random.default_rng(2)
    mechanism = ClassIndex(
        epsilon=epsilon, dimension=2, classes=classes, buckets=buckets, codewords=size
    )
    long = generator.normal(size=(6, 2))
    long /= np.linalg.norm(long, axis=1, keepdims=True)
    vectors = [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [5e-324, 0.0], [1e-200, -1e-200]]
    rows = np.concatenate([long, long / 2, vectors])
    for book in generator.integers(0, CODEBOOKS, 5).tolist():
        words = np.column_stack([np.full(buckets * size, book), np.arange(buckets * size)])
        found = np.array(
            [
                mechanism.log_likelihood(words.astype(float), [[own, *row]])
                for own in range(classes)
                for row in rows
            ]
        )
        shares = np.exp(found + math.log(CODEBOOKS))
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-9)
        assert (found.max(axis=0) - found.min(axis=0)).max() <= min(epsilon, 22.0) + 1e-13


def test_one_class_is_a_cap_index() -> None:
    one = ClassIndex(epsilon=2.0, dimension=3, classes=1, buckets=1, codewords=16)
    other = CapIndex(epsilon=2.0, dimension=3, codewords=16)
    rows = np.random.default_rng(0).normal(size=(20, 3)) / 3
    reports = one.randomize(np.insert(rows, 0, 0.0, axis=1), SimulationSource(1), clip=True)
    assert np.array_equal(reports, other.randomize(rows, SimulationSource(1), clip=True))
    np.testing.assert_allclose(one.totals(reports), other.debias(reports).sum(axis=0)[None])
    np.testing.assert_allclose(
        one.variance([[0.0, 0.1, 0.2, 0.3]])[:, 0], other.variance([[0.1, 0.2, 0.3]]), rtol=1e-12
    )


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0, 5.0, 10.0])
@pytest.mark.parametrize("classes", [1, 2, 7, 26])
def test_buckets_with_the_least_noise(epsilon: float, classes: int) -> None:
    """Those tried are powers of two, one and a half of them, and one for each class."""

    def noise(buckets: int) -> float:
        return 1 / (buckets * limit_gain(4, epsilon, buckets=buckets) ** 2)

    tried = [b for b in (1, 2, 3, 4, 6, 8, 12, 16, 24) if b <= classes] + [classes]
    best = best_buckets(4, epsilon, classes=classes)
    assert best == min(tried, key=noise)
    assert noise(best) <= 1.02 * min(noise(b) for b in range(1, classes + 1))
    found = ClassIndex.best(epsilon=epsilon, dimension=4, classes=classes)
    assert (found.epsilon, found.classes, found.buckets) == (epsilon, classes, best)
    assert found.codewords == codebook_size(4, epsilon, buckets=best)


def test_information_of_26_classes() -> None:
    """Limits for B → ∞ (docs/methods/codeword-reports.md); the chosen B keeps 98 %."""
    for epsilon, buckets, worth in (1, 1, 0.16), (2, 2, 0.66), (3, 6, 2.0), (5, 26, 14.7):
        found = ClassIndex.best(epsilon=float(epsilon), dimension=16, classes=26)
        assert found.buckets == buckets
        assert found.buckets * found.gain**2 == pytest.approx(worth, rel=0.04)


def test_only_words_are_reports() -> None:
    mechanism = ClassIndex(epsilon=2.0, dimension=3, classes=3, buckets=2, codewords=8)
    good = [[0.0, 0.0], [CODEBOOKS - 1.0, 15.0]]
    bad = [[0.0, 16.0], [CODEBOOKS, 0.0], [-1.0, 0.0], [0.0, -1.0], [0.5, 0.0], [0.0, 0.5]]
    assert mechanism.allows(np.array(good + bad)).tolist() == [True] * 2 + [False] * 6


def test_classes_out_of_range_are_refused_or_moved() -> None:
    mechanism = ClassIndex(epsilon=1.0, dimension=2, classes=3, codewords=8)
    for wrong in -1.0, 3.0, 0.5:
        with pytest.raises(InvalidData, match="class from 0 to 2"):
            mechanism.randomize([[wrong, 0.0, 0.0]], SimulationSource(0))
    for given, used in (-4.0, 0), (2.6, 2), (9.0, 2), (1.2, 1):
        own, rows = mechanism._split([[given, 3.0, 4.0]], clip=True)
        assert own.tolist() == [used]
        np.testing.assert_allclose(rows, [[0.6, 0.8]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"classes": 0}, {"classes": (1 << 12) + 1}, {"buckets": 0}, {"buckets": 3},
        {"dimension": 0}, {"codewords": 7}, {"epsilon": 0.0},
    ],
)  # fmt: skip
def test_other_shapes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ClassIndex(**({"epsilon": 1.0, "classes": 2} | wrong))
    assert ClassIndex(epsilon=1.0, classes=1 << 12, buckets=1 << 12).buckets == 1 << 12
