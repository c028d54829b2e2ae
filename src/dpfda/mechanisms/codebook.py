"""Public random codebooks, and the codewords of one that lie nearest to a private direction."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaln

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.codebook_pool import CodebookPool, shelf
from dpfda.noise.source import Words

_NODES = 200


def limit_gain(dimension: int, epsilon: float, *, buckets: int = 1) -> float:
    """Gain of infinitely many codewords, best cap (docs/methods/codeword-reports.md).

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
    """E of Σ t and Σ t² over the s largest of B/2 sizes t of projections on a line.

    One of them is among the s largest if at most s - 1 of the B/2 - 1 others exceed it.
    """
    if dimension == 1:  # all have size 1
        return float(cap), float(cap)
    # Where many are compared, they are told apart within steps of 1/√B.
    t, above, mass = _projections(dimension, _NODES + 16 * math.isqrt(half))
    # A cap that holds everything has no others below it.
    among = 1 - betainc(cap, half - cap, above) if cap < half else np.ones(len(t))
    return float(among @ (t * mass)) * half, float(among @ (t * t * mass)) * half


@lru_cache(maxsize=64)
def _caps(dimension: int) -> tuple[FloatArray, FloatArray]:
    """Shares of all codewords in caps of many sizes, and E of the projection t over each cap."""
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
    """Sizes of projections of a codeword, how likely larger ones are, and each one's mass.

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

    What counts lies at θ = 0 for small caps and at π/2 for large D: the nodes of the double
    exponential rule (Takahasi & Mori 1974) are dense at both ends. The error of sums over caps is
    below 1e-8 of them.
    """
    x = np.linspace(-3.0, 3.0, nodes)
    y = math.pi / 2 * np.sinh(x)
    steps = (x[1] - x[0]) * (math.pi / 2) ** 2 * np.cosh(x) / (2 * np.cosh(y) ** 2)
    sines, cosines = (np.sin(math.pi / 2 / (1 + np.exp(2 * sign * y))) for sign in (-1, 1))
    return sines, cosines, steps


CODEBOOKS = 1 << 48
"""How many public codebooks there are; their numbers are exact in a float."""
HALF_WIDTH = 1 << 20
"""Lengths of vectors are rounded to multiples of 2^-20."""
PEOPLE = 1 << 10
"""Whose codewords are added up at once."""

_ASKED = 1 << 12  # people whose codewords are ranked at once

_SIZES = [1 << power for power in range(4, 13)]  # of codebooks; beyond, a report gains nothing
_ENTRIES = 1 << 16  # of the half of a codebook that a person makes: a quarter of a millisecond
_ENOUGH = 0.98  # of the largest possible gain, squared


class WordMoments(NamedTuple):
    """Of a sent codeword, counted as 0 where it is not in the person's own bucket."""

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
        """Where the cap weighs e^ε, and all other codewords of this and L - 1 more buckets 1."""
        first, square = cap_sums(self.dimension, self.size // 2, cap)
        more = math.expm1(epsilon)
        total = cap * more + buckets * self.size
        # The sums over all B codewords are 0, B and B; those over the cap weigh e^ε - 1 more.
        across = (cap * self.dimension - square) / max(self.dimension - 1, 1)
        return WordMoments(
            first * more / total,
            (square * more + self.size) / total,
            (across * more + self.size) / total,
        )

    def best_cap(self, epsilon: float, *, buckets: int = 1) -> int:
        """The s with the largest gain.

        A sum of order statistics is concave in s, and divided by a linear function of s it first
        rises and then falls: its top is sought where that of infinitely many codewords is.
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
    def shelf(self) -> CodebookPool:
        """Where the codewords are looked up."""
        return shelf(self.size // 2, self.dimension)

    def words(self, books: Words, numbers: IntArray) -> FloatArray:
        """One codeword of each codebook, shape (n, D)."""
        half = self.size // 2
        scale = np.where(numbers < half, 1.0, -1.0) * math.sqrt(self.dimension)
        return np.asarray(self.shelf.points(books, numbers % half) * scale[:, None])

    def word_at(self, rank: IntArray, cap: int, directions: FloatArray, books: Words) -> IntArray:
        """Rank 0 ... s-1: the cap; s ... 2s-1: their opposites; then all other pairs.

        Those of the cap, and the others, in the order of their numbers.
        """
        half = self.size // 2
        found = np.empty(len(rank), dtype=np.int64)
        for part in self._parts(len(rank)):
            scores = self.shelf.projections(directions[part], books[part])
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
        """Whether each codeword is in the cap of a direction, and in that of its opposite."""
        half = self.size // 2
        ahead = np.empty(len(numbers), dtype=bool)
        behind = np.empty(len(numbers), dtype=bool)
        for part in self._parts(len(numbers)):
            scores = self.shelf.projections(directions[part], books[part])
            person, base = np.arange(len(scores)), numbers[part] % half
            near = self._nearest(cap, scores)[person, base]
            turned = (scores[person, base] < 0) != (numbers[part] >= half)
            ahead[part], behind[part] = near & ~turned, near & turned
        return ahead, behind

    @staticmethod
    def _nearest(cap: int, scores: FloatArray) -> npt.NDArray[np.bool_]:
        """Which s of the B/2 axes are nearest; of equally near ones those with the lowest numbers.

        No library's way of sorting decides: a device finds what a simulation finds, on any machine.
        """
        sizes = np.abs(scores)
        last = np.partition(sizes, -cap, axis=1)[:, -cap, None]
        near = sizes >= last
        rows = np.flatnonzero(np.count_nonzero(near, axis=1) > cap)
        if rows.size:  # of one entry, all are equally near
            nearer, tied = sizes[rows] > last[rows], sizes[rows] == last[rows]
            left = cap - np.count_nonzero(nearer, axis=1)[:, None]
            near[rows] = nearer | (tied & (np.cumsum(tied, axis=1) <= left))
        return near

    @staticmethod
    def _parts(people: int) -> Iterator[slice]:
        return (slice(start, start + _ASKED) for start in range(0, people, _ASKED))


@lru_cache(maxsize=1024)
def codebook_size(dimension: int, epsilon: float, *, buckets: int = 1) -> int:
    """As few codewords as will do.

    The smallest power of two with 98 % of the information of infinitely many, as far as a person
    makes them in a moment.

    Examples:
        >>> codebook_size(8, 1.0), codebook_size(8, 5.0), codebook_size(666, 5.0)
        (64, 256, 128)
    """
    enough = math.sqrt(_ENOUGH) * limit_gain(dimension, epsilon, buckets=buckets)

    def will_do(size: int) -> bool:
        book = Codebook(size, dimension)
        cap = book.best_cap(epsilon, buckets=buckets)
        return book.moments(epsilon, cap=cap, buckets=buckets).gain >= enough

    powers = [size for size in _SIZES if size == _SIZES[0] or size * dimension <= 2 * _ENTRIES]
    return powers[min(bisect_left(powers, True, key=will_do), len(powers) - 1)]


def in_ball(values: Any, dimension: int, *, clip: bool) -> FloatArray:
    """Private rows of the unit ball, or moved into it."""
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
    # A subnormal length loses digits in the division; any unit vector will do then.
    directions = np.where(np.isfinite(directions).all(axis=1, keepdims=True), directions, first)
    lengths = np.rint(np.minimum(norms[:, 0], 1.0) * HALF_WIDTH)
    return directions, lengths.astype(np.uint64)
