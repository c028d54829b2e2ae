"""Public codebooks: every codeword, every rank, and sums over caps by quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from codewords import CODEBOOKS, on_sphere
from scipy import integrate, special, stats

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms import codebook
from dpfda.mechanisms.codebook import Codebook, cap_sums, codebook_size, in_ball, limit_gain, polar

HALF_WIDTH = 1 << 20


def test_codewords_have_one_length_and_the_later_half_are_opposites() -> None:
    assert codebook.CODEBOOKS == CODEBOOKS
    book, every = Codebook(6, 3), np.arange(6)
    found = book.words(np.full(6, 9, dtype=np.uint64), every)
    expected = on_sphere(9, 6, 3)
    np.testing.assert_allclose(found, expected, atol=6e-4)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), math.sqrt(3), rtol=1e-7)


def sums_of_the_largest(dimension: int, half: int, s: int) -> tuple[float, float]:
    """E Σ t and E Σ t² over the s largest of some √D |x|, x on a unit sphere, by quadrature."""
    other = (dimension - 1) / 2

    def among(angle: float) -> float:
        above = special.betainc(other, 0.5, math.sin(angle) ** 2)
        density = 2 * math.sin(angle) ** (dimension - 2) / special.beta(0.5, other)
        return float(half * density * stats.binom.cdf(s - 1, half - 1, above))

    def power(angle: float, p: int) -> float:
        return (math.sqrt(dimension) * math.cos(angle)) ** p * among(angle)

    cuts = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.7, 1.0, 1.3, 1.5, 1.56]
    one, two = (
        integrate.quad(
            power, 0, math.pi / 2, args=(p,), points=cuts, limit=400, epsabs=0, epsrel=1e-11
        )[0]
        for p in (1, 2)
    )
    return one, two


@pytest.mark.parametrize("dimension", [2, 3, 8, 700])
@pytest.mark.parametrize("half", [1, 2, 5, 600])
def test_sums_over_the_cap(dimension: int, half: int) -> None:
    for s in {1, 2, half // 2, 256, half - 1, half} & set(range(1, half + 1)):
        found = cap_sums(dimension, half, s)
        assert found == pytest.approx(sums_of_the_largest(dimension, half, s), rel=1e-8)


def test_in_one_dimension_every_codeword_has_size_one() -> None:
    assert cap_sums(1, 8, 3) == (3.0, 3.0)
    # Randomized response: m = (e^ε - 1)/(e^ε + 1), all of it along the line.
    found = Codebook(16, 1).moments(2.0, cap=8)
    assert found.gain == pytest.approx(math.tanh(1.0), rel=1e-12)
    assert found.along == pytest.approx(1.0, rel=1e-12)
    assert Codebook(16, 1).best_cap(2.0) == 8


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize(
    ("epsilon", "size", "dimension"), [(0.5, 8, 2), (3.0, 64, 3), (6.0, 64, 9)]
)
def test_moments_and_the_best_cap(epsilon: float, size: int, dimension: int, buckets: int) -> None:
    book, ratio = Codebook(size, dimension), math.exp(epsilon)

    def moments(s: int) -> tuple[float, float, float]:
        one, two = cap_sums(dimension, size // 2, s)
        total = s * ratio + (buckets * size - s)
        # All codewords of a bucket together have mean 0 and mean square 1 along every axis.
        across = (s * dimension - two) / (dimension - 1)
        return (
            (one * ratio - one) / total,
            (two * ratio + size - two) / total,
            (across * ratio + size - across) / total,
        )

    gains = {s: moments(s)[0] for s in range(1, size // 2 + 1)}
    best = max(gains, key=gains.__getitem__)
    assert book.best_cap(epsilon, buckets=buckets) == best
    for s in {1, best, size // 2}:
        found = book.moments(epsilon, cap=s, buckets=buckets)
        assert tuple(found) == pytest.approx(moments(s), rel=1e-12)
    if buckets == 1:
        assert found.along + (dimension - 1) * found.across == pytest.approx(dimension, rel=1e-12)


def test_the_gain_is_that_of_the_sphere_report() -> None:
    """Limits for B → ∞ in 1, 2 and 8 dimensions (docs/methods/codeword-reports.md)."""
    for dimension, gain in (1, 0.214), (2, 0.190), (8, 0.166):
        book = Codebook(4096, dimension)
        found = book.moments(1.0, cap=book.best_cap(1.0)).gain ** 2
        assert found == pytest.approx(gain, abs=6e-4)


@pytest.mark.parametrize("dimension", [1, 2, 3, 16, 700])
@pytest.mark.parametrize(("epsilon", "buckets"), [(0.5, 1), (5.0, 1), (5.0, 7), (20.0, 1)])
def test_infinitely_many_codewords(dimension: int, epsilon: float, buckets: int) -> None:
    """The best cap of docs/methods/codeword-reports.md, by a fine search over 1600 angles."""
    ratio, gains = math.exp(epsilon), [0.0]
    for share in [0.5] if dimension == 1 else np.exp(np.linspace(math.log(0.5), -30, 4000)):
        other = (dimension - 1) / 2
        part = 0.5
        if dimension > 1:
            sine = math.sqrt(special.betaincinv(other, 0.5, 2 * share))
            part = sine ** (dimension - 1) / (2 * other * special.beta(0.5, other))
        total = share * ratio + (buckets - share)
        gains.append(math.sqrt(dimension) * part * (ratio - 1) / total)
    found = limit_gain(dimension, epsilon, buckets=buckets)
    assert found == pytest.approx(max(gains), rel=2e-3)
    many = Codebook(1 << 14, dimension)
    cap = many.best_cap(epsilon, buckets=buckets)
    assert many.moments(epsilon, cap=cap, buckets=buckets).gain <= found * (1 + 2e-3)


@pytest.mark.parametrize(
    ("dimension", "epsilon", "buckets"),
    [(2, 1.0, 1), (8, 1.0, 1), (8, 5.0, 1), (8, 5.0, 4), (16, 0.1, 1), (2, 20.0, 1)],
)
def test_as_few_codewords_as_will_do(dimension: int, epsilon: float, buckets: int) -> None:
    enough = 0.98 * limit_gain(dimension, epsilon, buckets=buckets) ** 2

    def worth(size: int) -> float:
        book = Codebook(size, dimension)
        cap = book.best_cap(epsilon, buckets=buckets)
        return book.moments(epsilon, cap=cap, buckets=buckets).gain ** 2

    size = codebook_size(dimension, epsilon, buckets=buckets)
    assert size in [1 << k for k in range(4, 13)]
    assert worth(size) >= enough
    assert size == 16 or worth(size // 2) < enough


def test_wide_codebooks_are_short() -> None:
    sizes = [codebook_size(dimension, 8.0) for dimension in (512, 513, 1024, 1025, 1 << 16)]
    assert sizes == [256, 128, 128, 64, 16]
    assert codebook_size(16, 20.0) == 4096


@pytest.mark.parametrize(("size", "cap"), [(8, 3), (32, 1), (64, 32)])
def test_every_rank_is_another_codeword_and_the_first_ones_are_the_cap(size: int, cap: int) -> None:
    book, number = Codebook(size, 3), 12345
    rank = np.arange(size)
    direction = np.tile([[0.6, 0.0, -0.8]], (size, 1))
    books = np.full(size, number, dtype=np.uint64)
    words = book.word_at(rank, cap, direction, books)
    assert sorted(words.tolist()) == list(range(size))
    scores = on_sphere(number, size, 3) @ direction[0]
    inside = set(np.argsort(-scores)[:cap].tolist())
    assert set(words[:cap].tolist()) == inside
    half = size // 2
    assert (words[cap : 2 * cap] % half).tolist() == (words[:cap] % half).tolist()
    near, others = words[:cap] % half, words[2 * cap :] % half
    assert near.tolist() == sorted(near)
    assert others.tolist() == sorted(others)
    assert {(a + half) % size for a in words[:cap]} == set(words[cap : 2 * cap].tolist())
    ahead, behind = book.in_cap(rank, cap, direction, books)
    assert set(np.flatnonzero(ahead).tolist()) == inside
    assert set(np.flatnonzero(behind).tolist()) == set(np.argsort(scores)[:cap].tolist())


def test_of_equally_near_codewords_the_first_are_taken() -> None:
    book, cap = Codebook(16, 1), 3
    books = np.arange(16).astype(np.uint64)
    words = book.word_at(np.arange(16), cap, np.ones((16, 1)), books)
    assert (words % 8).tolist() == [0, 1, 2, 0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]
    # Two of four are tied for the last place of three.
    scores = np.array([[1.0, -3.0, 2.0, -1.0, 0.5], [5.0, 4.0, 3.0, 2.0, 1.0]])
    assert Codebook._nearest(3, scores).tolist() == [
        [True, True, True, False, False],
        [True, True, True, False, False],
    ]


def test_people_are_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    book, generator = Codebook(16, 3), np.random.default_rng(0)
    books = generator.integers(0, CODEBOOKS, 25).astype(np.uint64)
    rank, numbers = generator.integers(0, 16, (2, 25))
    directions, _ = polar(generator.normal(size=(25, 3)))
    words = book.word_at(rank, 5, directions, books)
    inside = book.in_cap(numbers, 5, directions, books)
    monkeypatch.setattr(codebook, "_ASKED", 10)
    assert np.array_equal(book.word_at(rank, 5, directions, books), words)
    assert np.array_equal(book.in_cap(numbers, 5, directions, books), inside)


def test_directions_and_lengths() -> None:
    tiny = 5e-324
    rows = np.array([[0.3, -0.4], [0.0, 0.0], [tiny, 0.0], [0.0, -1.0 - 1e-10]])
    directions, lengths = polar(rows)
    np.testing.assert_allclose(directions[[0, 1, 3]], [[0.6, -0.8], [1.0, 0.0], [0.0, -1.0]])
    assert np.isfinite(directions).all()
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    assert lengths.tolist() == [HALF_WIDTH // 2, 0, 0, HALF_WIDTH]


def test_long_vectors_are_refused_or_shortened() -> None:
    with pytest.raises(InvalidData, match="length at most 1"):
        in_ball([[0.6, 0.8 + 1e-6]], 2, clip=False)
    for given, used in ([3.0, 4.0], [0.6, 0.8]), ([0.3, 0.4], [0.3, 0.4]):
        np.testing.assert_allclose(in_ball([given], 2, clip=True), [used], rtol=1e-15)
    # A length that is 1 but for rounding is 1.
    assert in_ball([[1.0 + 8e-10, 0.0]], 2, clip=False).shape == (1, 2)


@pytest.mark.parametrize(
    ("name", "size", "dimension"),
    [
        ("dimension", 2, 0), ("dimension", 2, (1 << 16) + 1), ("codewords", 0, 1),
        ("codewords", 3, 1), ("codewords", 1, 1), ("codewords", (1 << 16) + 2, 1),
    ],
)  # fmt: skip
def test_other_shapes_are_refused(name: str, size: int, dimension: int) -> None:
    with pytest.raises(InvalidParameter, match=name):
        Codebook(size, dimension)
    assert Codebook(1 << 16, 1 << 16).size == 1 << 16
