"""Public random codebooks, and the codewords of one that lie nearest to a private direction."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaln

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise.source import Words

CODEBOOKS = 1 << 48
"""How many public codebooks there are; their numbers are exact in a float."""
HALF_WIDTH = 1 << 20
"""Lengths of vectors are rounded to multiples of 2^-20."""
PEOPLE = 1 << 12
"""Whose codewords are added up at once."""

_CHUNK = 1 << 16  # codeword entries made at once: they stay in the processor's cache
_SIZES = [1 << power for power in range(4, 13)]  # of codebooks; beyond, a report gains nothing
_ENTRIES = 1 << 16  # of the half of a codebook that a person makes: a quarter of a millisecond
_ENOUGH = 0.98  # of the largest possible gain, squared
_NODES = 200
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Moments(NamedTuple):
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

    Example:
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

    def moments(self, epsilon: float, *, cap: int, buckets: int = 1) -> Moments:
        """Where the cap weighs e^ε, and all other codewords of this and L - 1 more buckets 1."""
        first, square = _cap_sums(self.dimension, self.size // 2, cap)
        more = math.expm1(epsilon)
        total = cap * more + buckets * self.size
        # The sums over all B codewords are 0, B and B; those over the cap weigh e^ε - 1 more.
        across = (cap * self.dimension - square) / max(self.dimension - 1, 1)
        return Moments(
            first * more / total,
            (square * more + self.size) / total,
            (across * more + self.size) / total,
        )

    def best_cap(self, epsilon: float, *, buckets: int = 1) -> int:
        """The s with the largest gain.

        A sum of order statistics is concave in s, and divided by a linear function of s it first
        rises and then falls: bisection finds its top.
        """
        least, most = 1, self.size // 2
        while least < most:
            middle = (least + most) // 2
            here, further = (
                self.moments(epsilon, cap=cap, buckets=buckets).gain for cap in (middle, middle + 1)
            )
            least, most = (middle + 1, most) if further > here else (least, middle)
        return least

    def words(self, books: Words, numbers: IntArray) -> FloatArray:
        """One codeword of each codebook, shape (n, D)."""
        half = self.size // 2
        every: Words = (numbers % half).astype(np.uint64)[:, None]
        sent = normals(books, every, dimension=self.dimension)
        scale = np.where(numbers < half, 1.0, -1.0) * math.sqrt(self.dimension)
        return np.asarray(sent[:, 0, :] * (scale / _lengths(sent)[:, 0])[:, None])

    def word_at(self, rank: IntArray, cap: int, directions: FloatArray, books: Words) -> IntArray:
        """Rank 0 ... s-1: the cap; s ... 2s-1: their opposites; then all other pairs."""
        half = self.size // 2
        found = np.empty(len(rank), dtype=np.int64)
        for part in self._parts(len(rank)):
            order, opposite = self._nearest(cap, directions[part], books[part])
            beyond = rank[part] - 2 * cap
            place = np.where(beyond < 0, rank[part] % cap, cap + beyond // 2)[:, None]
            flipped = np.where(beyond < 0, rank[part] // cap, beyond % 2)
            base = np.take_along_axis(order, place, axis=1)[:, 0]
            side = np.take_along_axis(opposite, place, axis=1)[:, 0]
            found[part] = base + half * (side ^ flipped)
        return found

    def in_cap(
        self, numbers: IntArray, cap: int, directions: FloatArray, books: Words
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Whether each codeword is in the cap of a direction, and in that of its opposite."""
        half = self.size // 2
        ahead = np.empty(len(numbers), dtype=bool)
        behind = np.empty(len(numbers), dtype=bool)
        for part in self._parts(len(numbers)):
            order, opposite = self._nearest(cap, directions[part], books[part])
            inside = order[:, :cap] + half * opposite[:, :cap]
            far = (numbers[part] + half) % self.size
            ahead[part] = (inside == numbers[part][:, None]).any(axis=1)
            # A codeword is in the cap of -u if its opposite is in the cap of u.
            behind[part] = (inside == far[:, None]).any(axis=1)
        return ahead, behind

    def _nearest(self, cap: int, directions: FloatArray, books: Words) -> tuple[IntArray, IntArray]:
        """The B/2 codewords, nearest axes first in s places, and 1 where the opposite is nearer."""
        every: Words = np.arange(self.size // 2).astype(np.uint64)[None, :]
        book = normals(books, every, dimension=self.dimension)
        scores = np.matmul(book, directions.astype(np.float32)[:, :, None])[:, :, 0] / _lengths(
            book
        )
        order = np.argpartition(-np.abs(scores), cap - 1, axis=1)
        return order, (np.take_along_axis(scores, order, axis=1) < 0).astype(np.int64)

    def _parts(self, people: int) -> Iterator[slice]:
        size = max(1, _CHUNK // (self.size // 2 * self.dimension))
        return (slice(start, start + size) for start in range(0, people, size))


@lru_cache(maxsize=1024)
def codebook_size(dimension: int, epsilon: float, *, buckets: int = 1) -> int:
    """As few codewords as will do.

    The smallest power of two with 98 % of the information of infinitely many, as far as a person
    makes them in a moment.

    Example:
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


def limit_gain(dimension: int, epsilon: float, *, buckets: int = 1) -> float:
    """The gain of infinitely many codewords, with the best cap (methods 10.1).

    Example:
        >>> [round(limit_gain(8, epsilon) ** 2, 2) for epsilon in (1.0, 5.0)]
        [0.17, 2.91]
    """
    more = math.expm1(epsilon)
    share, first = _caps(dimension)
    return float((first * more / (share * more + buckets)).max())


def normals(books: Words, words: Words, *, dimension: int) -> npt.NDArray[np.float32]:
    """Codewords `words` (n or 1, b) of the codebooks `books` (n,): Gaussians of shape (n, b, d).

    Counter-based (SplitMix64 and Box-Muller), so that anybody can look up any codeword.

    Example:
        >>> books = np.array([7, 8], dtype=np.uint64)
        >>> normals(books, np.array([[3]], dtype=np.uint64), dimension=4).shape
        (2, 1, 4)
    """
    pairs = -(-dimension // 2)
    start: Words = mixed(books * _GOLDEN + np.uint64(1))
    steps: Words = np.arange(1, pairs + 1).astype(np.uint64)
    place = words[:, :, None] * np.uint64(pairs) + steps
    bits = mixed(place * _GOLDEN + start[:, None, None])
    halves = bits.view(np.uint32).reshape(*bits.shape, 2)
    unit = np.float32(2.0**-32)
    uniform = (halves[..., 0].astype(np.float32) + np.float32(0.5)) * unit
    radius = np.sqrt(np.float32(-2) * np.log(uniform))
    angle = halves[..., 1].astype(np.float32) * (np.float32(2 * math.pi) * unit)
    normal = np.empty((*bits.shape[:2], 2 * pairs), dtype=np.float32)
    np.multiply(radius, np.cos(angle), out=normal[..., :pairs])
    np.multiply(radius, np.sin(angle), out=normal[..., pairs:])
    return normal[..., :dimension]


def _lengths(words: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Of vectors (n, b, d). One in 2^25 of two numbers or fewer is 0 in single precision."""
    squares = np.einsum("nbd,nbd->nb", words, words)
    return np.asarray(np.sqrt(np.maximum(squares, np.float32(1e-30))))


def mixed(state: Words) -> Words:
    """The output function of SplitMix64 (Steele, Lea & Flood 2014), in place where possible."""
    z = state
    for shift, factor in zip((30, 27), _MIXERS, strict=True):
        z = z ^ (z >> np.uint64(shift))
        z *= factor
    z ^= z >> np.uint64(31)
    return z


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


@lru_cache(maxsize=1 << 14)
def _cap_sums(dimension: int, half: int, cap: int) -> tuple[float, float]:
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
