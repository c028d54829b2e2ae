"""Public matrices of normal numbers, and how each person's codebook is made from one of them."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.noise.source import Words

_KEPT = 1 << 23  # 16-bit numbers of one shelf at most: 16 MiB; a length takes two
_FEW, _SPREAD = 64, 1 << 22  # matrices where a book can be shifted far; 2^22/D³ where it cannot
_STEPS = 1 << 12  # normal numbers are multiples of 2^-12: the largest, 6.8, fits into 16 bits
_FINE = 1 << 20  # directions are multiples of 2^-20
_TOGETHER = 1 << 12  # numbers of a matrix up to which people's are multiplied side by side
_AT_ONCE = 1 << 15  # numbers worked on at once: they stay in the processor's cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_ROOT, _LOG_2, _TURN = math.sqrt(0.5), math.log(2), 2 * math.pi
_SIGNS = np.uint64(0xA24BAED4963EE407)  # keeps the words of signs off those of matrices

Matrices = npt.NDArray[np.int16]


class CodebookPool:
    """Normal matrices with B/2 rows and D columns; a codebook is one of them in disguise.

    Codebook number b has the rows of matrix b mod M, its columns moved round by (b // M) mod D
    places and each multiplied by a sign of its own. Normal numbers keep their law under both, so
    the rows of each codebook are independent and point anywhere. What people with the same matrix
    share averages out over shifts and signs, all but a part of 10^-3 of the gain.

    All numbers are whole (multiples of 2^-12, of 2^-20 in directions) and every sum of products is
    below 2^53: products are exact in any order, so that one person alone finds the codewords which
    a thousand find together, on any machine.

    Args:
        rows: B/2.
        columns: D.

    Examples:
        >>> pool = CodebookPool(rows=32, columns=8)
        >>> books = np.array([7, 1 << 40], dtype=np.uint64)
        >>> pool.count, pool.points(books, np.array([3, 3])).shape
        (8192, (2, 8))
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        wanted = min(max(_FEW, _SPREAD // columns**3), max(1, _KEPT // (rows * (columns + 2))))
        self.count = 1 << (wanted.bit_length() - 1)
        self._made = np.zeros(self.count, dtype=bool)
        self._matrices: Matrices = np.empty((self.count, rows, columns), dtype=np.int16)
        self._lengths = np.empty((self.count, rows), dtype=np.float32)

    def projections(self, directions: FloatArray, books: Words) -> FloatArray:
        """Of every row of each person's codebook, on a multiple of their direction: (n, B/2)."""
        found = np.empty((len(books), self.rows))
        numbers = self._numbers(books)
        size = self.rows * self.columns
        if size <= _TOGETHER:
            step, placed = _AT_ONCE // size, self._placed(directions, books)[:, :, None]
            for part in (slice(at, at + step) for at in range(0, len(books), step)):
                matrices = self._matrices[numbers[part]].astype(np.float64)
                found[part] = np.matmul(matrices, placed[part])[:, :, 0]
        else:
            order = np.argsort(numbers, kind="stable")
            for who in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
                matrix = self._matrices[numbers[who[:1]]][0].astype(np.float64)
                found[who] = self._placed(directions[who], books[who]) @ matrix.T
        found /= self._lengths[numbers]
        return found

    def points(self, books: Words, rows: IntArray) -> FloatArray:
        """One row of each codebook, on the unit sphere; shape (n, D)."""
        numbers = self._numbers(books)
        shifts, signs = self._disguise(books)
        entries = _rolled(self._matrices[numbers, rows].astype(np.float64), shifts)
        return np.asarray(entries * signs / self._lengths[numbers, rows][:, None])

    def _placed(self, directions: FloatArray, books: Words) -> FloatArray:
        """Whole multiples of directions, disguised as the matrices would have to be."""
        shifts, signs = self._disguise(books)
        return _rolled(np.rint(directions * _FINE) * signs, -shifts % self.columns)

    def _numbers(self, books: Words) -> IntArray:
        """Of the books' matrices, which are made now if nobody needed them before."""
        numbers = (books % np.uint64(self.count)).astype(np.int64)
        missing = np.unique(numbers[~self._made[numbers]])
        step = max(1, _AT_ONCE // (self.rows * self.columns))
        for part in (missing[at : at + step] for at in range(0, len(missing), step)):
            every: Words = np.arange(self.rows).astype(np.uint64)[None, :]
            entries = np.rint(_STEPS * normals(part.astype(np.uint64), every, columns=self.columns))
            squares = np.square(entries, dtype=np.float64).sum(axis=2)
            entries[squares == 0, 0] = 1.0  # a row that points nowhere: once in 10^8 for D = 2
            self._matrices[part] = entries
            self._lengths[part] = np.sqrt(np.maximum(squares, 1.0))
            self._made[part] = True
        return numbers

    def _disguise(self, books: Words) -> tuple[IntArray, npt.NDArray[np.int8]]:
        """By how many places the columns are moved, and their signs (n, D)."""
        shifts = books // np.uint64(self.count) % np.uint64(self.columns)
        steps: Words = np.arange(1, -(-self.columns // 64) + 1).astype(np.uint64)
        bits = mixed(mixed(books ^ _SIGNS)[:, None] + steps * _SIGNS).astype("<u8")
        coins = np.unpackbits(bits.view(np.uint8), axis=1, count=self.columns, bitorder="little")
        return shifts.astype(np.int64), 1 - 2 * coins.view(np.int8)


@lru_cache(maxsize=8)
def shelf(rows: int, columns: int) -> CodebookPool:
    """The one that everybody in this process looks things up on."""
    return CodebookPool(rows, columns)


def normals(books: Words, words: Words, *, columns: int) -> FloatArray:
    """Rows `words` (n or 1, b) of the matrices `books` (n,): normal numbers of shape (n, b, d).

    Counter-based (SplitMix64 and Box-Muller), so that anybody can look up any of them. Logarithm,
    sine and cosine are polynomials in doubles, each step rounded as IEEE 754 says: no processor and
    no library finds other numbers (right to 10^-8, which is more than matrices keep).

    Examples:
        >>> books = np.array([7, 8], dtype=np.uint64)
        >>> normals(books, np.array([[3]], dtype=np.uint64), columns=4).shape
        (2, 1, 4)
    """
    pairs = -(-columns // 2)
    start: Words = mixed(books * _GOLDEN + np.uint64(1))
    steps: Words = np.arange(1, pairs + 1).astype(np.uint64)
    place = words[:, :, None] * np.uint64(pairs) + steps
    bits = mixed(place * _GOLDEN + start[:, None, None])
    halves = bits.view(np.uint32).reshape(*bits.shape, 2).astype(np.float64)
    radius = np.sqrt(-2 * _logarithm(halves[..., 0] + 0.5))
    cosine, sine = _turned(halves[..., 1] * 2.0**-32)
    return np.concatenate([radius * cosine, radius * sine], axis=-1)[..., :columns]


def _logarithm(numbers: FloatArray) -> FloatArray:
    """Of numbers below 2^32, in units of 2^32: by artanh, which converges fast near 1."""
    part, power = np.frexp(numbers)
    small = part < _ROOT
    part = np.where(small, 2 * part, part)
    ratio = (part - 1) / (part + 1)
    # log x = 2 (r + r³/3 + r⁵/5 + ...) for r = (x - 1)/(x + 1)
    series = _horner(ratio * ratio, [1 / k for k in range(1, 14, 2)])
    return np.asarray(2 * ratio * series + (power - small - 32) * _LOG_2)


def _turned(turns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cosine and sine of angles in [0, 1) turns: from the nearest quarter on, by their series."""
    quarter = np.floor(4 * turns + 0.5)
    angle = (turns - quarter / 4) * _TURN
    square = angle * angle
    cosine = _horner(square, [(-1) ** k / math.factorial(2 * k) for k in range(6)])
    sine = angle * _horner(square, [(-1) ** k / math.factorial(2 * k + 1) for k in range(6)])
    odd, half = quarter % 2 == 1, np.where((quarter + 1) % 4 < 2, 1.0, -1.0)
    other = np.where(quarter % 4 < 2, 1.0, -1.0)
    return half * np.where(odd, sine, cosine), other * np.where(odd, cosine, sine)


def _horner(x: FloatArray, coefficients: list[float]) -> FloatArray:
    """Σ c_k x^k, from the last to the first."""
    found = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        found *= x
        found += coefficient
    return found


def mixed(state: Words) -> Words:
    """The output function of SplitMix64 (Steele, Lea & Flood 2014), in place where possible."""
    z = state
    for shift, factor in zip((30, 27), _MIXERS, strict=True):
        z = z ^ (z >> np.uint64(shift))
        z *= factor
    z ^= z >> np.uint64(31)
    return z


def _rolled(rows: FloatArray, shifts: IntArray) -> FloatArray:
    """Each row from its own place on, and then from its beginning: [i, j] is (j + shift) mod D."""
    people, columns = rows.shape
    twice = np.concatenate([rows, rows], axis=1).ravel()
    windows = np.lib.stride_tricks.sliding_window_view(twice, columns)
    return np.asarray(windows[np.arange(people) * 2 * columns + shifts])
