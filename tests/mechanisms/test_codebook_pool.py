"""Public matrices, their disguises, and products that are exact in any order."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from codewords import CODEBOOKS, GOLDEN, WORD, by_hand, matrices, mixed, on_sphere

from dpfda.mechanisms import codebook
from dpfda.mechanisms.codebook import Codebook, CodebookPool, cap_sums, codebook_pool, normals


@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_anybody_can_look_up_any_normal_number(dimension: int) -> None:
    books, words = [0, 7, CODEBOOKS - 1], [0, 1, 5, 1000]
    found = normals(
        np.array(books, dtype=np.uint64),
        np.array([words], dtype=np.uint64),
        columns=dimension,
    )
    expected = [[by_hand(book, word, dimension) for word in words] for book in books]
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_normal_numbers_are_the_same_on_every_machine() -> None:
    books, words = np.arange(5).astype(np.uint64), np.arange(40).astype(np.uint64)[None]
    found = normals(books, words, columns=7)
    assert hashlib.sha256(found.astype("<f8").tobytes()).hexdigest() == (
        "0d1bc3388f648c59443ab46d18c2e1c7c5ba0c9c35152cc118aab75d66e40750"
    )


def unmixed(z: int) -> int:
    """The state whose output is z."""
    for shift, factor in (31, None), (27, 0x94D049BB133111EB), (30, 0xBF58476D1CE4E5B9):
        if factor is not None:
            z = (z * pow(factor, -1, 1 << 64)) & WORD
        z ^= (z >> shift) ^ (z >> 2 * shift)
    return z


def word_of(bits: int) -> int:
    """The number of the row of matrix 0, with one column, that is made of these bits."""
    assert mixed(unmixed(bits)) == bits
    return ((unmixed(bits) - mixed(1)) * pow(GOLDEN, -1, 1 << 64) - 1) & WORD


def test_no_number_is_infinite() -> None:
    """The word whose uniform number is 0: half a step is added before its logarithm is taken."""
    books, word = np.zeros(1, np.uint64), word_of(5 << 32)  # the lower half is 0
    found = normals(books, np.array([[word]], dtype=np.uint64), columns=1)
    assert found[0, 0, 0] == pytest.approx(math.sqrt(2 * 33 * math.log(2)), rel=1e-5)
    # And the one whose uniform number is nearest to 1, so that its length is all but 0.
    nothing = np.array([[word_of(5 << 32 | 0xFFFFFFFF)]], dtype=np.uint64)
    found = normals(books, nothing, columns=1)
    assert found[0, 0, 0] == pytest.approx(2.0**-16, rel=1e-6)
    # The largest number there is fits into a matrix.
    assert 4096 * math.sqrt(2 * 33 * math.log(2)) < 1 << 15


def test_a_row_that_points_nowhere_points_along_the_first_axis(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codebook, "normals", lambda *_, **__: np.zeros((1, 3, 2), dtype=np.float32))
    found = CodebookPool(3, 2).points(np.zeros(1, dtype=np.uint64), np.array([1]))
    assert np.abs(found).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("rows", "columns", "count"),
    [(32, 8, 8192), (64, 17, 512), (256, 36, 64), (64, 666, 64), (2048, 666, 4), (32, 2, 65536),
     (1, 1, 1 << 21), (8, 1 << 16, 8)],
)  # fmt: skip
def test_how_many_matrices_there_are(rows: int, columns: int, count: int) -> None:
    assert CodebookPool(rows, columns).count == count == matrices(2 * rows, columns)


@pytest.mark.parametrize(("size", "dimension"), [(16, 1), (16, 5), (6, 70), (128, 70)])
def test_anybody_can_look_up_any_codeword(size: int, dimension: int) -> None:
    count = matrices(size, dimension)
    books = [0, 3, 3 + 2 * count, 3 + (dimension - 1) * count, CODEBOOKS - 1]
    for book in books:
        numbers = np.full(size // 2, book, dtype=np.uint64)
        found = codebook_pool(size // 2, dimension).points(numbers, np.arange(size // 2))
        expected = on_sphere(book, size, dimension)[: size // 2]
        # A number of the other arithmetic may be rounded to the next step.
        np.testing.assert_allclose(found * math.sqrt(dimension), expected, atol=6e-4)


@pytest.mark.parametrize(("rows", "columns"), [(8, 3), (64, 17), (64, 64), (65, 64), (40, 666)])
def test_products_are_exact_alone_and_together(rows: int, columns: int) -> None:
    """Side by side up to 2^12 numbers of a matrix, matrix by matrix beyond."""
    here, generator = CodebookPool(rows, columns), np.random.default_rng(3)
    books = generator.integers(0, CODEBOOKS, 90).astype(np.uint64)
    books[50:] = books[:40] + np.uint64(here.count * 5)  # the same matrices, in other disguises
    directions = generator.normal(size=(90, columns))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    found = here.projections(directions, books)
    assert found.shape == (90, rows)
    for person in 0, 49, 50, 89:
        only = slice(person, person + 1)
        assert np.array_equal(here.projections(directions[only], books[only])[0], found[person])
        every = np.repeat(books[only], rows)
        points = here.points(every, np.arange(rows))
        steps = np.rint(directions[person] * 2**20)
        np.testing.assert_allclose(found[person], points @ steps, rtol=1e-9, atol=1e-6)
        lengths = here._lengths[int(books[person]) % here.count]
        whole = found[person] * lengths
        np.testing.assert_allclose(whole, np.rint(whole), atol=1e-2)  # of some 10^9


def test_what_people_with_one_matrix_share_averages_out() -> None:
    """The mean over the cap is the direction, but for 1.3 % of noise and 2 % of the matrix.

    Undisguised it would be off by half, with signs or shifts alone by a tenth.
    """
    book, cap, n = Codebook(128, 12), 8, 20_000
    direction = np.array([3.0, -1.0, 0.5, 0.0, 2.0, 0.1, -0.4, 1.0, -2.0, 0.0, 0.3, 1.5])
    direction /= np.linalg.norm(direction)
    generator = np.random.default_rng(1)
    for number in 0, 5:
        disguises = generator.integers(0, 1 << 30, n) * book.codebook_pool.count + number
        words = book.word_at(
            generator.integers(0, cap, n), cap, np.tile(direction, (n, 1)),
            disguises.astype(np.uint64),
        )  # fmt: skip
        mean = book.words(disguises.astype(np.uint64), words).mean(axis=0)
        gain = cap_sums(12, 64, cap)[0] / cap
        assert np.linalg.norm(mean / gain - direction) < 0.05
