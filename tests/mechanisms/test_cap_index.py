"""Codewords near a direction: the public codebook, the cap, and every rank, one by one."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from planted import Words
from scipy import integrate, stats

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.cap_index import (
    CODEBOOKS,
    CapIndex,
    _best_cap,
    _cap_moments,
    _moments,
    _polar,
    codewords,
)
from dpfda.noise import SimulationSource

WORD = (1 << 64) - 1
HALF_WIDTH = 1 << 20


def mixed(z: int) -> int:
    """SplitMix64's output function, as published."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def by_hand(book: int, word: int, dimension: int) -> list[float]:
    golden, pairs = 0x9E3779B97F4A7C15, (dimension + 1) // 2
    start = mixed((book * golden + 1) & WORD)
    cosines, sines = [], []
    for step in range(1, pairs + 1):
        bits = mixed(((word * pairs + step) * golden + start) & WORD)
        low, high = bits & 0xFFFFFFFF, bits >> 32
        radius = math.sqrt(-2 * math.log((low + 0.5) / 2**32))
        cosines.append(radius * math.cos(2 * math.pi * high / 2**32))
        sines.append(radius * math.sin(2 * math.pi * high / 2**32))
    return [*cosines, *sines][:dimension]


@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_anybody_can_look_up_any_codeword(dimension: int) -> None:
    books, words = [0, 7, CODEBOOKS - 1], [0, 1, 5, 1000]
    found = codewords(
        np.array(books, dtype=np.uint64),
        np.array([words], dtype=np.uint64),
        dimension=dimension,
    )
    expected = [[by_hand(book, word, dimension) for word in words] for book in books]
    np.testing.assert_allclose(found, expected, atol=2e-5)


def unmixed(z: int) -> int:
    """The state whose output is z."""
    for shift, factor in (31, None), (27, 0x94D049BB133111EB), (30, 0xBF58476D1CE4E5B9):
        if factor is not None:
            z = (z * pow(factor, -1, 1 << 64)) & WORD
        z ^= (z >> shift) ^ (z >> 2 * shift)
    return z


def test_no_codeword_is_infinite() -> None:
    """The word whose uniform number is 0: half a step is added before its logarithm is taken."""
    bits = 5 << 32  # the lower half is 0
    assert mixed(unmixed(bits)) == bits
    start, golden = mixed(1), 0x9E3779B97F4A7C15
    word = ((unmixed(bits) - start) * pow(golden, -1, 1 << 64) - 1) & WORD
    found = codewords(np.zeros(1, np.uint64), np.array([[word]], dtype=np.uint64), dimension=1)
    assert found[0, 0, 0] == pytest.approx(math.sqrt(2 * 33 * math.log(2)), rel=1e-5)


def sums_of_the_largest(half: int, s: int) -> tuple[float, float]:
    """E Σ t and E Σ t² over the s largest of some half-normal numbers, by quadrature."""

    def among(t: float) -> float:
        return float(
            half * stats.halfnorm.pdf(t) * stats.binom.cdf(s - 1, half - 1, 2 * stats.norm.sf(t))
        )

    one, two = (
        integrate.quad(lambda t, p=power: t**p * among(t), 0, 12, points=[1, 2, 3, 5], limit=200)[0]
        for power in (1, 2)
    )
    return one, two


@pytest.mark.parametrize("half", [1, 2, 5, 600])
def test_sums_over_the_cap(half: int) -> None:
    every = np.arange(1, half + 1)
    found = _cap_moments(2 * half, every)
    chosen = {1, 2, half // 2, 256, 257, 300, half - 1, half} & set(every.tolist())
    for s in chosen:
        assert tuple(found[:, s - 1]) == pytest.approx(sums_of_the_largest(half, s), rel=2e-6)


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 8), (1.0, 64), (3.0, 256), (6.0, 256)])
def test_the_cap_is_the_best_one(epsilon: float, size: int) -> None:
    ratio = math.exp(epsilon)

    def moments(s: int) -> tuple[float, float]:
        one, two = _cap_moments(size, np.array([s]))[:, 0]
        total = s * ratio + (size - s)
        # Codewords outside of the cap: all of them have mean 0 and mean square 1.
        return (one * ratio - one) / total, (two * ratio + size - two) / total

    gains = {s: moments(s)[0] for s in range(1, size // 2 + 1)}
    best = max(gains, key=gains.__getitem__)
    mechanism = CapIndex(epsilon=epsilon, codewords=size)
    assert mechanism.cap == _best_cap(epsilon, size) == best
    assert mechanism.gain == pytest.approx(gains[best], rel=1e-12)
    assert _moments(epsilon, size, best) == pytest.approx(moments(best), rel=1e-12)
    square, rows = moments(best)[1], np.array([[0.6]])
    assert mechanism.variance(rows)[0, 0] == pytest.approx(square / gains[best] ** 2 - 0.36)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 5.0, 21.9, 22.0, 100.0, 1000.0])
@pytest.mark.parametrize("size", [2, 64, 512])
def test_weights_are_whole_numbers_with_odds_rounded_down(epsilon: float, size: int) -> None:
    mechanism = CapIndex(epsilon=epsilon, codewords=size)
    (high, low), cap = mechanism._weights, mechanism.cap
    with mpmath.workprec(300):
        assert high == int(mpmath.floor(mpmath.exp(mpmath.mpf(min(epsilon, 22.0))) * low))
    assert mechanism._total == cap * high + (size - cap) * low
    assert 1 << 60 < mechanism._total <= 1 << 62
    assert cap == _best_cap(min(epsilon, 22.0), size)
    gain, square = _moments(min(epsilon, 22.0), size, cap)
    assert mechanism.gain == gain
    assert mechanism.variance([[1.0]])[0, 0] == pytest.approx(square / gain**2 - 1, rel=1e-12)


def report(mechanism: CapIndex, row: list[float], *, turn: int, book: int, coin: int) -> int:
    found = mechanism.randomize([row], Words(turn, book, coin))
    assert found[0, 0] == book
    return int(found[0, 1])


@pytest.mark.parametrize(("epsilon", "size"), [(1.0, 8), (2.0, 32), (5.0, 64)])
@pytest.mark.parametrize("turned", [False, True])
def test_every_rank_is_another_codeword_and_the_first_ones_are_the_cap(
    epsilon: float, size: int, *, turned: bool
) -> None:
    mechanism = CapIndex(epsilon=epsilon, dimension=3, codewords=size)
    row, book = [0.3, 0.0, -0.4], 12345
    (high, low), cap = mechanism._weights, mechanism.cap
    # Length 1/2: turned round by the last quarter of the coins.
    turn = 3 * HALF_WIDTH // 2 - (0 if turned else 1)
    inside = [k * high for k in range(cap)] + [(k + 1) * high - 1 for k in range(cap)]
    outside = [cap * high + j * low for j in range(size - cap)]
    last = [cap * high + (j + 1) * low - 1 for j in range(size - cap)]
    words = [report(mechanism, row, turn=turn, book=book, coin=c) for c in inside]
    others = [report(mechanism, row, turn=turn, book=book, coin=c) for c in outside]
    assert words[:cap] == words[cap:]
    assert others == [report(mechanism, row, turn=turn, book=book, coin=c) for c in last]
    assert sorted(words[:cap] + others) == list(range(size))
    halves = [by_hand(book, word, 3) for word in range(size // 2)]
    every = np.array(halves + [[-x for x in word] for word in halves])
    scores = every @ np.array(row) * (-1 if turned else 1)
    assert set(words[:cap]) == set(np.argsort(-scores)[:cap].tolist())


def test_a_sent_codeword_is_divided_by_the_gain() -> None:
    mechanism = CapIndex(epsilon=2.0, dimension=3, codewords=16)
    found = mechanism.debias(np.array([[5.0, 3.0], [5.0, 11.0], [5.0, 8.0]])) * mechanism.gain
    expected = [by_hand(5, 3, 3), [-x for x in by_hand(5, 3, 3)], [-x for x in by_hand(5, 0, 3)]]
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_directions_and_lengths() -> None:
    tiny = 5e-324
    rows = np.array([[0.3, -0.4], [0.0, 0.0], [tiny, 0.0], [0.0, -1.0 - 1e-10]])
    directions, lengths = _polar(rows)
    np.testing.assert_allclose(directions[[0, 1, 3]], [[0.6, -0.8], [1.0, 0.0], [0.0, -1.0]])
    assert np.isfinite(directions).all()
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    assert lengths.tolist() == [HALF_WIDTH // 2, 0, 0, HALF_WIDTH]


def test_long_vectors_are_refused_or_shortened() -> None:
    mechanism = CapIndex(epsilon=1.0, dimension=2, codewords=8)
    with pytest.raises(InvalidData, match="length at most 1"):
        mechanism.randomize([[0.6, 0.8 + 1e-6]], SimulationSource(0))
    for given, used in ([3.0, 4.0], [0.6, 0.8]), ([0.3, 0.4], [0.3, 0.4]):
        rows = mechanism._rows([given], clip=True)
        np.testing.assert_allclose(rows, [used], rtol=1e-15)
    # A length that is 1 but for rounding is 1.
    assert mechanism.randomize([[1.0 + 8e-10, 0.0]], SimulationSource(0)).shape == (1, 2)


def test_people_are_worked_on_in_parts_that_fit() -> None:
    for size, dimension, people in (2, 1, 10**5), (256, 4, 1000), (1 << 12, 1 << 10, 3):
        mechanism = CapIndex(epsilon=1.0, dimension=dimension, codewords=size)
        parts = mechanism._parts(people)
        covered = [place for part in parts for place in range(*part.indices(people))]
        assert covered == list(range(people))
        room = (1 << 16) // (size // 2 * dimension)
        assert parts[0].stop == max(1, room)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimension": 0}, {"dimension": (1 << 16) + 1}, {"codewords": 0}, {"codewords": 3},
        {"codewords": 1}, {"codewords": (1 << 16) + 2},
    ],
)  # fmt: skip
def test_other_shapes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        CapIndex(epsilon=1.0, **wrong)
    assert CapIndex(epsilon=1.0, dimension=1 << 16, codewords=1 << 16).codewords == 1 << 16
