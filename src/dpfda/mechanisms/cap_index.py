"""One codeword of a public codebook, chosen near a private direction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, ndtr

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import Source
from dpfda.noise.source import Words
from dpfda.noise.uniform import below, capped, weights

CODEBOOKS = 1 << 48
"""How many public codebooks there are; their numbers are exact in a float."""

_HALF_WIDTH = 1 << 20  # lengths are rounded to multiples of 2^-20
_CHUNK = 1 << 16  # codeword entries made at once: they stay in the processor's cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True, kw_only=True)
class CapIndex(Mechanism, name="cap_index"):
    """Send the number of a random codeword; those that point the same way are e^ε times as likely.

    A public codebook has B/2 Gaussian codewords and their opposites. The s of all these with the
    largest inner product with the private direction, its cap, have weight e^ε each, the others 1. A
    vector v shorter than 1 is turned round with probability (1 - |v|)/2 first, which makes the mean
    proportional to v. The report is (number of the codebook, number of the codeword); everybody
    uses another codebook, drawn independently of the data, so errors of one codebook average out.

    Privacy:
        ε-LDP for one vector in the unit ball. Whatever the vector and the codebook, exactly s
        codewords have weight e^ε, so each has probability in [1, e^ε]/(s e^ε + B - s); turning
        round mixes two such distributions. Floating point decides only *which* s codewords are in
        the cap, and no choice of them changes the bound. The draw is an exact integer draw, odds
        rounded down (methods 8.8; the finite form of the PrivUnit mechanism).

    Attributes:
        dimension: d.
        codewords: B, an even number; codeword b + B/2 is the opposite of codeword b.

    Example:
        >>> from dpfda.noise import SimulationSource
        >>> mechanism = CapIndex(epsilon=3.0, dimension=2)
        >>> mechanism.cap, round(mechanism.gain**2, 2)
        (32, 1.34)
        >>> reports = mechanism.randomize(np.tile([[0.6, 0.0]], (20_000, 1)), SimulationSource(0))
        >>> mechanism.debias(reports).mean(axis=0).round(1) + 0.0
        array([0.6, 0. ])
    """

    dimension: int = 1
    codewords: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("dimension", self.dimension, most=1 << 16)
        _validate.whole("codewords", self.codewords, least=2, most=1 << 16)
        if self.codewords % 2:
            raise InvalidParameter("codewords", "even", self.codewords)

    @property
    def cap(self) -> int:
        """s, the size of the cap that makes reports most informative."""
        return _best_cap(capped(self.epsilon), self.codewords)

    @property
    def gain(self) -> float:
        """m, the mean of a sent codeword along the private direction."""
        return _moments(capped(self.epsilon), self.codewords, self.cap)[0]

    @cached_property
    def _weights(self) -> tuple[int, int]:
        return weights(self.epsilon, likely=self.cap, others=self.codewords)

    @cached_property
    def _total(self) -> int:
        high, low = self._weights
        return self.cap * high + (self.codewords - self.cap) * low

    def randomize(self, values: Any, source: Source, *, clip: bool = False) -> FloatArray:
        """Numbers of codebooks and codewords, shape (n, 2)."""
        rows = self._rows(values, clip=clip)
        directions, lengths = _polar(rows)
        turned = below(2 * _HALF_WIDTH, len(rows), source) >= np.uint64(_HALF_WIDTH) + lengths
        directions = np.where(turned[:, None], -directions, directions)
        books = below(CODEBOOKS, len(rows), source)
        coins = below(self._total, len(rows), source)
        high, low = self._weights
        likely = np.uint64(self.cap * high)
        outside = np.uint64(self.cap) + (coins - likely) // np.uint64(low)
        rank = np.where(coins < likely, coins // np.uint64(high), outside).astype(np.int64)
        words = np.empty(len(rows), dtype=np.int64)
        for part in self._parts(len(rows)):
            words[part] = self._word_at(rank[part], directions[part], books[part])
        return np.column_stack([books.astype(np.float64), words.astype(np.float64)])

    def debias(self, reports: FloatArray) -> FloatArray:
        """The sent codewords divided by the gain, shape (n, d)."""
        books, words = reports[:, 0].astype(np.uint64), reports[:, 1].astype(np.int64)
        half = self.codewords // 2
        sent = codewords(books, (words % half).astype(np.uint64)[:, None], dimension=self.dimension)
        signs = np.where(words < half, 1.0, -1.0)
        return np.asarray(sent[:, 0, :] * (signs / self.gain)[:, None])

    def variance(self, values: Any) -> FloatArray:
        """(1 + (τ - 1) u²)/m² - v²; τ is the mean square of a codeword along u, 1 across it."""
        rows = self._rows(values, clip=False)
        directions, _ = _polar(rows)
        gain, square = _moments(capped(self.epsilon), self.codewords, self.cap)
        return np.asarray((1 + (square - 1) * directions**2) / gain**2 - rows**2)

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Mixes over turning round: is the codeword in the cap of u, is it in that of -u?"""
        rows = np.broadcast_to(self._rows(values, clip=False), (len(reports), self.dimension))
        directions, lengths = _polar(rows)
        books, words = reports[:, 0].astype(np.uint64), reports[:, 1].astype(np.int64)
        kept = (_HALF_WIDTH + lengths.astype(np.float64)) / (2 * _HALF_WIDTH)
        inside = np.empty(len(reports))
        for part in self._parts(len(reports)):
            # A codeword is in the cap of -u if its opposite is in the cap of u.
            ahead, behind = self._in_cap(words[part], directions[part], books[part])
            inside[part] = kept[part] * ahead + (1 - kept[part]) * behind
        high, low = self._weights
        return np.asarray(np.log((low + inside * (high - low)) / self._total) - math.log(CODEBOOKS))

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Opposite directions, a direction and no direction, orthogonal directions."""
        first = np.zeros((1, self.dimension))
        first[0, 0] = 1.0
        last = np.zeros((1, self.dimension))
        last[0, -1] = -1.0
        return [(first, -first), (first, np.zeros_like(first)), (first, last)]

    @classmethod
    def examples(cls) -> list[Self]:
        """Few and many codewords, small and large ε."""
        return [
            cls(epsilon=1.0, dimension=2, codewords=8),
            cls(epsilon=3.0, dimension=4, codewords=16),
            cls(epsilon=5.0, dimension=1, codewords=32),
        ]

    def _rows(self, values: Any, *, clip: bool) -> FloatArray:
        rows = _validate.batch("values", values, columns=self.dimension)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if clip:
            return np.asarray(rows / np.maximum(norms, 1.0))
        if np.any(norms > 1 + 1e-9):
            raise InvalidData("values", "of length at most 1 (or pass clip=True)")
        return rows

    def _parts(self, people: int) -> list[slice]:
        size = max(1, _CHUNK // (self.codewords // 2 * self.dimension))
        return [slice(start, start + size) for start in range(0, people, size)]

    def _nearest(self, directions: FloatArray, books: Words) -> tuple[IntArray, IntArray]:
        """The B/2 codewords, nearest axes first in s places, and 1 where the opposite is nearer."""
        half = self.codewords // 2
        every: Words = np.arange(half).astype(np.uint64)[None, :]
        book = codewords(books, every, dimension=self.dimension)
        scores = np.matmul(book, directions.astype(np.float32)[:, :, None])[:, :, 0]
        order = np.argpartition(-np.abs(scores), self.cap - 1, axis=1)
        return order, (np.take_along_axis(scores, order, axis=1) < 0).astype(np.int64)

    def _word_at(self, rank: IntArray, directions: FloatArray, books: Words) -> IntArray:
        """Rank 0 ... s-1: the cap; s ... 2s-1: their opposites; then all other pairs."""
        order, opposite = self._nearest(directions, books)
        cap, half = self.cap, self.codewords // 2
        beyond = rank - 2 * cap
        place = np.where(beyond < 0, rank % cap, cap + beyond // 2)[:, None]
        flipped = np.where(beyond < 0, rank // cap, beyond % 2)
        base = np.take_along_axis(order, place, axis=1)[:, 0]
        side = np.take_along_axis(opposite, place, axis=1)[:, 0]
        return np.asarray(base + half * (side ^ flipped))

    def _in_cap(
        self, words: IntArray, directions: FloatArray, books: Words
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Whether each word is in the cap, and whether its opposite is."""
        order, opposite = self._nearest(directions, books)
        half = self.codewords // 2
        cap = order[:, : self.cap] + half * opposite[:, : self.cap]
        far = (words + half) % self.codewords
        return (cap == words[:, None]).any(axis=1), (cap == far[:, None]).any(axis=1)


def codewords(books: Words, words: Words, *, dimension: int) -> npt.NDArray[np.float32]:
    """Codewords `words` (n or 1, b) of the codebooks `books` (n,): Gaussians of shape (n, b, d).

    Counter-based (SplitMix64 and Box-Muller), so that anybody can look up any codeword.

    Example:
        >>> books = np.array([7, 8], dtype=np.uint64)
        >>> codewords(books, np.array([[3]], dtype=np.uint64), dimension=4).shape
        (2, 1, 4)
    """
    pairs = -(-dimension // 2)
    start: Words = _mix(books * _GOLDEN + np.uint64(1))
    steps: Words = np.arange(1, pairs + 1).astype(np.uint64)
    place = words[:, :, None] * np.uint64(pairs) + steps
    bits = _mix(place * _GOLDEN + start[:, None, None])
    halves = bits.view(np.uint32).reshape(*bits.shape, 2)
    unit = np.float32(2.0**-32)
    uniform = (halves[..., 0].astype(np.float32) + np.float32(0.5)) * unit
    radius = np.sqrt(np.float32(-2) * np.log(uniform))
    angle = halves[..., 1].astype(np.float32) * (np.float32(2 * math.pi) * unit)
    normal = np.empty((*bits.shape[:2], 2 * pairs), dtype=np.float32)
    np.multiply(radius, np.cos(angle), out=normal[..., :pairs])
    np.multiply(radius, np.sin(angle), out=normal[..., pairs:])
    return normal[..., :dimension]


def _mix(state: Words) -> Words:
    """The output function of SplitMix64 (Steele, Lea & Flood 2014), in place where possible."""
    z = state
    for shift, factor in zip((30, 27), _MIXERS, strict=True):
        z = z ^ (z >> np.uint64(shift))
        z *= factor
    z ^= z >> np.uint64(31)
    return z


def _polar(rows: FloatArray) -> tuple[FloatArray, Words]:
    """Unit directions (the first axis for 0) and lengths in multiples of 2^-20."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    first = np.eye(1, rows.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        directions = np.where(norms > 0, rows / norms, first)
    # A subnormal length loses digits in the division; any unit vector will do then.
    directions = np.where(np.isfinite(directions).all(axis=1, keepdims=True), directions, first)
    lengths = np.rint(np.minimum(norms[:, 0], 1.0) * _HALF_WIDTH)
    return directions, lengths.astype(np.uint64)


@lru_cache(maxsize=256)
def _moments(epsilon: float, size: int, cap: int) -> tuple[float, float]:
    """Mean and mean square of the sent codeword along the private direction."""
    # Sums over the cap; all B codewords together have mean 0 and mean square 1.
    inside, square = _cap_moments(size, np.array([cap]))[:, 0].tolist()
    ratio = math.exp(epsilon)
    total = cap * ratio + size - cap
    return inside * (ratio - 1) / total, (square * (ratio - 1) + size) / total


@lru_cache(maxsize=256)
def _best_cap(epsilon: float, size: int) -> int:
    """The s with the largest gain."""
    caps = np.arange(1, size // 2 + 1)
    inside = _cap_moments(size, caps)[0]
    ratio = math.exp(epsilon)
    return int(caps[np.argmax(inside * (ratio - 1) / (caps * ratio + size - caps))])


def _cap_moments(size: int, caps: npt.NDArray[np.int64]) -> FloatArray:
    """E of Σ t and Σ t² over the s largest of B/2 sizes of normal numbers, for each s; (2, S).

    One of them is among the s largest if at most s - 1 of the B/2 - 1 others exceed it.
    """
    half = size // 2
    # Midpoints of [0, 9]; beyond lies 1e-18. The error of the rule is below 1e-6 of the sums.
    t = (np.arange(3000) + 0.5) * 0.003
    density = np.exp(-t * t / 2) * math.sqrt(2 / math.pi) * 0.003 * half
    first, second = np.empty(len(caps)), np.empty(len(caps))
    for start in range(0, len(caps), 256):
        s = caps[start : start + 256, None]
        # A cap that holds everything has no others below it.
        among = np.where(s < half, betainc(np.maximum(half - s, 1), s, 2 * ndtr(t) - 1), 1.0)
        first[start : start + 256] = among @ (t * density)
        second[start : start + 256] = among @ (t * t * density)
    return np.stack([first, second])
