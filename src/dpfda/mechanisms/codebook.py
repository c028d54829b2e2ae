"""Public random codebooks, and the codewords nearest to a private direction.

Each person's codebook is one of a few public matrices of normal numbers (`CodebookPool`), changed
by public signs and permutations, so that it does not have to be generated for each person.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaln

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise.source import Words

_KEPT = 1 << 23  # 16-bit numbers stored per pool (16 MiB); a length needs the space of two
_FEW, _SPREAD = 64, 1 << 22  # a pool has max(64, 2^22/D³) matrices: small D has few shifts
_STEPS = 1 << 12  # normal numbers are multiples of 2^-12: the largest, 6.8, fits into 16 bits
_FINE = 1 << 20  # directions are multiples of 2^-20
_TOGETHER = 1 << 12  # size of a matrix up to which products of several people are batched
_AT_ONCE = 1 << 15  # numbers processed at once, so that they fit into the cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_ROOT, _LOG_2, _TURN = math.sqrt(0.5), math.log(2), 2 * math.pi
_SIGNS = np.uint64(0xA24BAED4963EE407)  # separates words of signs from words of matrices

Matrices = npt.NDArray[np.int16]


class CodebookPool:
    """Public normal matrices with B/2 rows and D columns; each codebook is a transformed one.

    Codebook number b has the rows of matrix b mod M, with columns rotated by (b // M) mod D places
    and each multiplied by a random sign. Both leave the normal law unchanged, so the rows of each
    codebook are independent and uniform in direction. The errors shared by people with the same
    matrix average out over shifts and signs, up to 10^-3 of the gain.

    All numbers are integers (multiples of 2^-12, of 2^-20 in directions) and every sum of products
    is below 2^53. Products are therefore exact in any order, and one person computes the same
    codewords as a batch of people, on every machine.

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
        """Inner products of each direction with the unit rows of its codebook, shape (n, B/2)."""
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
        shifts, signs = self._shifts_and_signs(books)
        entries = _rolled(self._matrices[numbers, rows].astype(np.float64), shifts)
        return np.asarray(entries * signs / self._lengths[numbers, rows][:, None])

    def _placed(self, directions: FloatArray, books: Words) -> FloatArray:
        """Integer directions, transformed inversely; this is quicker than transforming matrices."""
        shifts, signs = self._shifts_and_signs(books)
        return _rolled(np.rint(directions * _FINE) * signs, -shifts % self.columns)

    def _numbers(self, books: Words) -> IntArray:
        """The number of each codebook's matrix; matrices are computed at first use."""
        numbers = (books % np.uint64(self.count)).astype(np.int64)
        missing = np.unique(numbers[~self._made[numbers]])
        step = max(1, _AT_ONCE // (self.rows * self.columns))
        for part in (missing[at : at + step] for at in range(0, len(missing), step)):
            every: Words = np.arange(self.rows).astype(np.uint64)[None, :]
            entries = np.rint(_STEPS * normals(part.astype(np.uint64), every, columns=self.columns))
            squares = np.square(entries, dtype=np.float64).sum(axis=2)
            entries[squares == 0, 0] = 1.0  # a row of zeros: once in 10^8 for D = 2
            self._matrices[part] = entries
            self._lengths[part] = np.sqrt(np.maximum(squares, 1.0))
            self._made[part] = True
        return numbers

    def _shifts_and_signs(self, books: Words) -> tuple[IntArray, npt.NDArray[np.int8]]:
        """Shift of the columns, and their signs (n, D)."""
        shifts = books // np.uint64(self.count) % np.uint64(self.columns)
        steps: Words = np.arange(1, -(-self.columns // 64) + 1).astype(np.uint64)
        bits = mixed(mixed(books ^ _SIGNS)[:, None] + steps * _SIGNS).astype("<u8")
        coins = np.unpackbits(bits.view(np.uint8), axis=1, count=self.columns, bitorder="little")
        return shifts.astype(np.int64), 1 - 2 * coins.view(np.int8)


@lru_cache(maxsize=8)
def codebook_pool(rows: int, columns: int) -> CodebookPool:
    """The pool of this size, cached in the process."""
    return CodebookPool(rows, columns)


def normals(books: Words, words: Words, *, columns: int) -> FloatArray:
    """Rows `words` (n or 1, b) of the matrices `books` (n,): normal numbers of shape (n, b, d).

    Counter-based (SplitMix64 and Box-Muller), so each number can be computed on its own. Logarithm,
    sine and cosine are polynomials in double precision with IEEE 754 rounding, so all processors
    and libraries give the same numbers (correct to 10^-8, which exceeds the precision of the
    matrices).

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
    """log(x/2^32) for numbers x below 2^32, by the series of artanh."""
    part, power = np.frexp(numbers)
    small = part < _ROOT
    part = np.where(small, 2 * part, part)
    ratio = (part - 1) / (part + 1)
    # log x = 2 (r + r³/3 + r⁵/5 + ...) for r = (x - 1)/(x + 1)
    series = _horner(ratio * ratio, [1 / k for k in range(1, 14, 2)])
    return np.asarray(2 * ratio * series + (power - small - 32) * _LOG_2)


def _turned(turns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cosine and sine of angles in [0, 1) turns, by their series from the nearest quarter."""
    quarter = np.floor(4 * turns + 0.5)
    angle = (turns - quarter / 4) * _TURN
    square = angle * angle
    cosine = _horner(square, [(-1) ** k / math.factorial(2 * k) for k in range(6)])
    sine = angle * _horner(square, [(-1) ** k / math.factorial(2 * k + 1) for k in range(6)])
    odd, half = quarter % 2 == 1, np.where((quarter + 1) % 4 < 2, 1.0, -1.0)
    other = np.where(quarter % 4 < 2, 1.0, -1.0)
    return half * np.where(odd, sine, cosine), other * np.where(odd, cosine, sine)


def _horner(x: FloatArray, coefficients: list[float]) -> FloatArray:
    """Σ c_k x^k by Horner's rule."""
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
    """Each row rotated by its shift: entry [i, j] is from column (j + shift) mod D."""
    people, columns = rows.shape
    twice = np.concatenate([rows, rows], axis=1).ravel()
    windows = np.lib.stride_tricks.sliding_window_view(twice, columns)
    return np.asarray(windows[np.arange(people) * 2 * columns + shifts])


_NODES = 200


def limit_gain(dimension: int, epsilon: float, *, buckets: int = 1) -> float:
    """Gain with infinitely many codewords and the best cap (docs/methods/codeword-reports.md).

    Examples:
        >>> [round(limit_gain(8, epsilon) ** 2, 2) for epsilon in (1.0, 5.0)]
        [0.17, 2.91]
    """
    return limit_cap(dimension, epsilon, buckets=buckets)[1]


@lru_cache(maxsize=1024)
def limit_cap(dimension: int, epsilon: float, *, buckets: int = 1) -> tuple[float, float]:
    """The share of infinitely many codewords in the best cap, and its gain."""
    more = math.expm1(epsilon)
    share, first = _caps(dimension)
    gains = first * more / (share * more + buckets)
    best = int(gains.argmax())
    return float(share[best]), float(gains[best])


@lru_cache(maxsize=1 << 14)
def cap_sums(dimension: int, half: int, cap: int) -> tuple[float, float]:
    """Expectations of Σ t and Σ t² over the s largest of B/2 absolute projections t.

    A projection is among the s largest if at most s - 1 of the B/2 - 1 others exceed it.
    """
    if dimension == 1:  # all have size 1
        return float(cap), float(cap)
    # With many codewords the scale of interest is 1/√B.
    t, above, mass = _projections(dimension, _NODES + 16 * math.isqrt(half))
    # Probability that a codeword is in the cap, which may contain all codewords.
    among = 1 - betainc(cap, half - cap, above) if cap < half else np.ones(len(t))
    return float(among @ (t * mass)) * half, float(among @ (t * t * mass)) * half


@lru_cache(maxsize=64)
def _caps(dimension: int) -> tuple[FloatArray, FloatArray]:
    """Shares of codewords in caps of many sizes, and the expected projection over each cap."""
    if dimension == 1:
        return np.array([0.5]), np.array([0.5])
    sines, _, _ = _angles(8 * _NODES)
    other = (dimension - 1) / 2
    share = betainc(other, 0.5, sines**2) / 2
    # ∫ √D cos θ over the density of θ, in closed form.
    logs = 2 * other * np.log(sines) - betaln(0.5, other)
    return share, np.exp(logs) * (math.sqrt(dimension) / (2 * other))


@lru_cache(maxsize=64)
def _projections(dimension: int, nodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Absolute projections of a codeword, their survival function, and their weights.

    They are √D cos θ with density sin^(D-2) θ, θ in [0, π/2], D > 1.
    """
    sines, cosines, steps = _angles(nodes)
    other = (dimension - 1) / 2
    logs = (dimension - 2) * np.log(sines) - betaln(0.5, other)
    above = betainc(other, 0.5, sines**2)
    return math.sqrt(dimension) * cosines, above, 2 * np.exp(logs) * steps


@lru_cache(maxsize=64)
def _angles(nodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """sin θ, cos θ and the weights of a rule of integration over θ in [0, π/2].

    The mass lies near θ = 0 for small caps and near π/2 for large D, and the nodes of the double
    exponential rule (Takahasi & Mori 1974) are dense at both ends. The relative error of sums over
    caps is below 1e-8.
    """
    x = np.linspace(-3.0, 3.0, nodes)
    y = math.pi / 2 * np.sinh(x)
    steps = (x[1] - x[0]) * (math.pi / 2) ** 2 * np.cosh(x) / (2 * np.cosh(y) ** 2)
    sines, cosines = (np.sin(math.pi / 2 / (1 + np.exp(2 * sign * y))) for sign in (-1, 1))
    return sines, cosines, steps


CODEBOOKS = 1 << 48
"""Number of public codebooks; each number is exact in a float."""
HALF_WIDTH = 1 << 20
"""Lengths of vectors are rounded to multiples of 2^-20."""
PEOPLE = 1 << 10
"""Number of people whose codewords are summed at once."""

_ASKED = 1 << 12  # people whose codewords are ranked at once

_SIZES = [1 << power for power in range(4, 13)]  # a larger codebook adds no information
_ENTRIES = 1 << 16  # size of the half codebook that a device computes: 0.25 ms
_ENOUGH = 0.98  # share of the largest possible squared gain


class WordMoments(NamedTuple):
    """Moments of a sent codeword, which counts as 0 outside the person's bucket."""

    gain: float
    """Mean along the private direction."""
    along: float
    """Mean square along it."""
    across: float
    """Mean square along any direction at a right angle to it."""


@dataclass(frozen=True)
class Codebook:
    """B codewords in R^D: B/2 independent points of the sphere of radius √D and their opposites.

    A cap holds the s codewords with the largest inner products with a direction.

    Attributes:
        size: B, an even number; codeword b + B/2 is the opposite of codeword b.
        dimension: D.

    Examples:
        >>> book = Codebook(256, 8)
        >>> cap = book.best_cap(1.0)
        >>> cap, round(book.moments(1.0, cap=cap).gain ** 2, 3)
        (91, 0.166)
    """

    size: int
    dimension: int

    def __post_init__(self) -> None:
        _validate.whole("dimension", self.dimension, most=1 << 16)
        _validate.whole("codewords", self.size, least=2, most=1 << 16)
        if self.size % 2:
            raise InvalidParameter("codewords", "even", self.size)

    def moments(self, epsilon: float, *, cap: int, buckets: int = 1) -> WordMoments:
        """Moments if the cap has weight e^ε, and all other codewords of L buckets weight 1."""
        first, square = cap_sums(self.dimension, self.size // 2, cap)
        more = math.expm1(epsilon)
        total = cap * more + buckets * self.size
        # The sums over all B codewords are 0, B and B; the cap has e^ε - 1 additional weight.
        across = (cap * self.dimension - square) / max(self.dimension - 1, 1)
        return WordMoments(
            first * more / total,
            (square * more + self.size) / total,
            (across * more + self.size) / total,
        )

    def best_cap(self, epsilon: float, *, buckets: int = 1) -> int:
        """The s with the largest gain.

        A sum of order statistics is concave in s. Divided by a linear function of s it is unimodal,
        and the search begins at the maximum for infinitely many codewords.
        """

        def gain(cap: int) -> float:
            return self.moments(epsilon, cap=cap, buckets=buckets).gain

        half = self.size // 2
        share, _ = limit_cap(self.dimension, epsilon, buckets=buckets)
        cap = min(max(round(share * self.size), 1), half)
        while cap < half and gain(cap + 1) > gain(cap):
            cap += 1
        while cap > 1 and gain(cap - 1) >= gain(cap):
            cap -= 1
        return cap

    @cached_property
    def codebook_pool(self) -> CodebookPool:
        """The pool of public matrices."""
        return codebook_pool(self.size // 2, self.dimension)

    def words(self, books: Words, numbers: IntArray) -> FloatArray:
        """One codeword of each codebook, shape (n, D)."""
        half = self.size // 2
        scale = np.where(numbers < half, 1.0, -1.0) * math.sqrt(self.dimension)
        return np.asarray(self.codebook_pool.points(books, numbers % half) * scale[:, None])

    def word_at(self, rank: IntArray, cap: int, directions: FloatArray, books: Words) -> IntArray:
        """Codewords by rank: 0 ... s-1 are the cap, s ... 2s-1 their opposites, then the others.

        Within the cap, and outside, ranks follow the numbers of the codewords.
        """
        half = self.size // 2
        found = np.empty(len(rank), dtype=np.int64)
        for part in self._parts(len(rank)):
            scores = self.codebook_pool.projections(directions[part], books[part])
            beyond = rank[part] - 2 * cap
            near = beyond < 0
            place = np.where(near, rank[part] % cap, beyond // 2)
            flipped = np.where(near, rank[part] // cap, beyond % 2)
            among = self._nearest(cap, scores) == near[:, None]
            base = (np.cumsum(among, axis=1, dtype=np.int32) > place[:, None]).argmax(axis=1)
            behind = scores[np.arange(len(base)), base] < 0
            found[part] = base + half * (behind ^ flipped)
        return found

    def in_cap(
        self, numbers: IntArray, cap: int, directions: FloatArray, books: Words
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Whether each codeword is in the cap of a direction, and in the cap of its opposite."""
        half = self.size // 2
        ahead = np.empty(len(numbers), dtype=bool)
        behind = np.empty(len(numbers), dtype=bool)
        for part in self._parts(len(numbers)):
            scores = self.codebook_pool.projections(directions[part], books[part])
            person, base = np.arange(len(scores)), numbers[part] % half
            near = self._nearest(cap, scores)[person, base]
            turned = (scores[person, base] < 0) != (numbers[part] >= half)
            ahead[part], behind[part] = near & ~turned, near & turned
        return ahead, behind

    @staticmethod
    def _nearest(cap: int, scores: FloatArray) -> npt.NDArray[np.bool_]:
        """The s nearest of the B/2 axes; ties go to the lowest number.

        The result does not depend on the sorting algorithm of a library.
        """
        sizes = np.abs(scores)
        last = np.partition(sizes, -cap, axis=1)[:, -cap, None]
        near = sizes >= last
        rows = np.flatnonzero(np.count_nonzero(near, axis=1) > cap)
        if rows.size:  # for D = 1, for example, all are equally near
            nearer, tied = sizes[rows] > last[rows], sizes[rows] == last[rows]
            left = cap - np.count_nonzero(nearer, axis=1)[:, None]
            near[rows] = nearer | (tied & (np.cumsum(tied, axis=1) <= left))
        return near

    @staticmethod
    def _parts(people: int) -> Iterator[slice]:
        return (slice(start, start + _ASKED) for start in range(0, people, _ASKED))


@lru_cache(maxsize=1024)
def codebook_size(dimension: int, epsilon: float, *, buckets: int = 1) -> int:
    """The smallest sufficient number of codewords.

    The smallest power of two with 98 % of the information of infinitely many codewords, up to the
    number that a device computes in a fraction of a second.

    Examples:
        >>> codebook_size(8, 1.0), codebook_size(8, 5.0), codebook_size(666, 5.0)
        (64, 256, 128)
    """
    enough = math.sqrt(_ENOUGH) * limit_gain(dimension, epsilon, buckets=buckets)

    def suffices(size: int) -> bool:
        book = Codebook(size, dimension)
        cap = book.best_cap(epsilon, buckets=buckets)
        return book.moments(epsilon, cap=cap, buckets=buckets).gain >= enough

    powers = [size for size in _SIZES if size == _SIZES[0] or size * dimension <= 2 * _ENTRIES]
    return powers[min(bisect_left(powers, True, key=suffices), len(powers) - 1)]


def in_ball(values: ArrayLike, dimension: int, *, clip: bool) -> FloatArray:
    """Check that private rows lie in the unit ball, or clip them to it."""
    rows = _validate.batch("values", values, columns=dimension)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if clip:
        return np.asarray(rows / np.maximum(norms, 1.0))
    if np.any(norms > 1 + 1e-9):
        raise InvalidData("values", "of length at most 1 (or pass clip=True)")
    return rows


def polar(rows: FloatArray) -> tuple[FloatArray, Words]:
    """Unit directions (the first axis for 0) and lengths in multiples of 2^-20."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    first = np.eye(1, rows.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        directions = np.where(norms > 0, rows / norms, first)
    # A subnormal length loses digits in the division; any unit vector is valid then.
    directions = np.where(np.isfinite(directions).all(axis=1, keepdims=True), directions, first)
    lengths = np.rint(np.minimum(norms[:, 0], 1.0) * HALF_WIDTH)
    return directions, lengths.astype(np.uint64)
