"""Codewords near a direction: weights, coins, and what is read out of a report."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from codewords import CODEBOOKS, on_sphere
from planted import Words

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.mechanisms.codebook import Codebook, codebook_size
from dpfda.noise import SimulationSource

HALF_WIDTH = 1 << 20


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 5.0, 21.9, 22.0, 100.0, 1000.0])
@pytest.mark.parametrize("size", [2, 64, 512])
def test_weights_are_whole_numbers_with_odds_rounded_down(epsilon: float, size: int) -> None:
    mechanism = CapIndex(epsilon=epsilon, dimension=2, codewords=size)
    (high, low), cap = mechanism._weights, mechanism.cap
    with mpmath.workprec(300):
        assert high == int(mpmath.floor(mpmath.exp(mpmath.mpf(min(epsilon, 22.0))) * low))
    assert mechanism._total == cap * high + (size - cap) * low
    assert 1 << 60 < mechanism._total <= 1 << 62
    book = Codebook(size, 2)
    assert cap == book.best_cap(min(epsilon, 22.0))
    gain, along, across = book.moments(min(epsilon, 22.0), cap=cap)
    assert mechanism.gain == gain
    found = mechanism.variance([[0.3, 0.4]])[0]
    expected = [
        (across + (along - across) * 0.36) / gain**2 - 0.09,
        (across + (along - across) * 0.64) / gain**2 - 0.16,
    ]
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


def test_the_best_report_of_a_vector() -> None:
    for epsilon in 0.5, 5.0, 30.0:
        found = CapIndex.best(epsilon=epsilon, dimension=8)
        assert (found.epsilon, found.dimension) == (epsilon, 8)
        assert found.codewords == codebook_size(8, min(epsilon, 22.0))


def report(mechanism: CapIndex, row: list[float], *, turn: int, book: int, coin: int) -> int:
    found = mechanism.randomize([row], Words(turn, book, coin))
    assert found[0, 0] == book
    return int(found[0, 1])


@pytest.mark.parametrize(("epsilon", "size"), [(1.0, 8), (2.0, 32), (5.0, 64)])
@pytest.mark.parametrize("turned", [False, True])
def test_every_coin_is_another_codeword_and_the_first_ones_are_the_cap(
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
    scores = on_sphere(book, size, 3) @ np.array(row) * (-1 if turned else 1)
    assert set(words[:cap]) == set(np.argsort(-scores)[:cap].tolist())
    # The stated probability of each: 3/4 straight on, 1/4 turned round.
    every = np.column_stack([np.full(size, float(book)), np.arange(size)])
    ahead, behind = (
        np.isin(np.arange(size), np.argsort(-sign * (on_sphere(book, size, 3) @ row))[:cap])
        for sign in (1, -1)
    )
    share = (low + (high - low) * (0.75 * ahead + 0.25 * behind)) / mechanism._total
    np.testing.assert_allclose(
        mechanism.log_likelihood(every, [row]), np.log(share) - math.log(CODEBOOKS), rtol=1e-12
    )


def test_a_sent_codeword_is_divided_by_the_gain() -> None:
    mechanism = CapIndex(epsilon=2.0, dimension=3, codewords=16)
    found = mechanism.debias(np.array([[5.0, 3.0], [5.0, 11.0], [5.0, 8.0]])) * mechanism.gain
    np.testing.assert_allclose(found, on_sphere(5, 16, 3)[[3, 11, 8]], atol=6e-4)


def test_totals_of_many_people_are_added_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = CapIndex(epsilon=1.0, dimension=2, codewords=4)
    reports = mechanism.randomize(np.tile([[0.3, 0.1]], (25, 1)), SimulationSource(0))
    monkeypatch.setattr("dpfda.mechanisms.cap_index.PEOPLE", 10)
    np.testing.assert_allclose(mechanism.totals(reports), mechanism.debias(reports).sum(axis=0))
    assert mechanism.totals(reports[:0]).tolist() == [0.0, 0.0]


def test_only_numbers_of_codewords_are_reports() -> None:
    mechanism = CapIndex(epsilon=2.0, dimension=3, codewords=16)
    good = [[0.0, 0.0], [CODEBOOKS - 1.0, 15.0]]
    bad = [[0.0, 16.0], [CODEBOOKS, 0.0], [-1.0, 0.0], [0.0, -1.0], [0.5, 0.0], [0.0, 0.5]]
    assert mechanism.allows(np.array(good + bad)).tolist() == [True] * 2 + [False] * 6


def test_long_vectors_are_refused_or_shortened() -> None:
    mechanism = CapIndex(epsilon=1.0, dimension=2, codewords=8)
    with pytest.raises(InvalidData, match="length at most 1"):
        mechanism.randomize([[0.6, 0.8 + 1e-6]], SimulationSource(0))
    long, short = (
        mechanism.randomize([row], SimulationSource(0), clip=True)
        for row in ([3.0, 4.0], [0.6, 0.8])
    )
    assert long.tolist() == short.tolist()


@pytest.mark.parametrize("wrong", [{"dimension": 0}, {"codewords": 3}, {"epsilon": 0.0}])
def test_other_shapes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        CapIndex(**({"epsilon": 1.0} | wrong))
