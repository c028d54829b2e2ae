"""Report one codeword of a public codebook that encodes a class and a vector together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.cap_index import CodewordReport
from dpfda.mechanisms.codebook import PEOPLE, codebook_size, in_ball, limit_gain, mixed, polar
from dpfda.noise import Source
from dpfda.noise.source import Words
from dpfda.noise.uniform import capped

_CLASSES = np.uint64(0xD1B54A32D192ED03)  # separates words of classes from words of codewords


@dataclass(frozen=True, kw_only=True)
class ClassIndex(CodewordReport, name="class_index"):
    """Send a bucket and a codeword; those near the vector in the class's bucket are likely.

    There are L buckets, each with the B codewords of one codebook. The codebook also assigns the K
    classes to buckets, as evenly as possible, and gives each class a sign if it shares its bucket
    (L < K). The s codewords nearest to ±v in the bucket of the person's class have weight e^ε, the
    other LB - s have weight 1. v is first reversed with probability (1 - |v|)/2, as in `CapIndex`,
    to which this reduces for one class.

    Privacy:
        ε-LDP for class and vector together. For all inputs exactly s of the LB words have weight
        e^ε, so each has probability in [1, e^ε]/(s e^ε + LB - s); buckets and signs depend only on
        the public number of the codebook. Floating-point arithmetic decides only *which* s
        codewords these are. The draw is an exact integer draw with odds rounded down
        (docs/methods/codeword-reports.md).

    Attributes:
        dimension: D.
        classes: K. A row is a class number 0 ... K-1 and the D numbers of v.
        buckets: L, at most K.
        codewords: B, an even number.

    Examples:
        >>> from dpfda.noise import SimulationSource
        >>> mechanism = ClassIndex.best(epsilon=5.0, dimension=2, classes=3)
        >>> mechanism.buckets, mechanism.codewords, mechanism.cap
        (3, 64, 11)
        >>> rows = np.tile([[2.0, 0.6, 0.0]], (20_000, 1))
        >>> sums = mechanism.totals(mechanism.randomize(rows, SimulationSource(0)))
        >>> (sums / 20_000).round(1) + 0.0
        array([[0. , 0. ],
               [0. , 0. ],
               [0.6, 0. ]])
    """

    classes: int = 2
    buckets: int = 1

    def __post_init__(self) -> None:
        _validate.whole("classes", self.classes, most=1 << 12)
        _validate.whole("buckets", self.buckets, most=1 << 12)
        if self.buckets > self.classes:
            raise InvalidParameter("buckets", f"at most {self.classes}", self.buckets)
        super().__post_init__()

    @classmethod
    def best(cls, *, epsilon: float, dimension: int, classes: int) -> Self:
        """The number of buckets with the least noise on class means, and enough codewords."""
        buckets = best_buckets(dimension, capped(epsilon), classes=classes)
        size = codebook_size(dimension, capped(epsilon), buckets=buckets)
        return cls(
            epsilon=epsilon, dimension=dimension, classes=classes, buckets=buckets, codewords=size
        )

    def randomize(self, values: ArrayLike, source: Source, *, clip: bool = False) -> FloatArray:
        """Numbers of codebooks and words, shape (n, 2); word = bucket times B + codeword."""
        labels, rows = self._split(values, clip=clip)
        directions, lengths = polar(rows)
        turned, books, rank = self._drawn(lengths, source)
        buckets, signs = self._own_place(labels, books)
        signs = np.where(turned, -signs, signs)
        # Codewords are ranked also for reports from another bucket, which do not need the rank.
        # Otherwise the computing time would reveal the bucket.
        size = self.codewords
        words = self.codebook.word_at(rank % size, self.cap, directions * signs[:, None], books)
        words += (buckets + rank // size) % self.buckets * size
        return np.column_stack([books.astype(np.float64), words.astype(np.float64)])

    def target(self, values: ArrayLike) -> FloatArray:
        """v in the row of the person's class, 0 in the others; shape (n, K, D)."""
        labels, rows = self._split(values, clip=False)
        return np.asarray(self._own_class(labels)[:, :, None] * rows[:, None, :])

    def debias(self, reports: FloatArray) -> FloatArray:
        """Unbiased estimates of the target, shape (n, K, D)."""
        signs, sent = self._read(reports)
        return np.asarray(signs[:, :, None] * sent[:, None, :])

    def totals(self, reports: FloatArray) -> FloatArray:
        """The sum of `debias` over people, shape (K, D), in little memory."""
        found = np.zeros((self.classes, self.dimension))
        for start in range(0, len(reports), PEOPLE):
            signs, sent = self._read(reports[start : start + PEOPLE])
            found += signs.T @ sent
        return found

    def variance(self, values: ArrayLike) -> FloatArray:
        """Variance of each entry of `debias`.

        The entries of the person's class have the variance of `CapIndex`. Another class shares the
        bucket with probability ρ and then has the same mean square. Otherwise it has the mean
        square of a word with weight 1.
        """
        labels, rows = self._split(values, clip=False)
        directions, _ = polar(rows)
        gain, along, across = self.moments
        here = across + (along - across) * directions**2
        more = math.expm1(capped(self.epsilon))
        elsewhere = self.codewords / (self.cap * more + self.buckets * self.codewords)
        other = self._shared * here + (1 - self._shared) * elsewhere
        mine = self._own_class(labels)[:, :, None]
        squares = np.where(mine, here[:, None, :], other[:, None, :])
        return np.asarray(squares / gain**2 - mine * rows[:, None, :] ** 2)

    def log_likelihood(self, reports: FloatArray, values: ArrayLike) -> FloatArray:
        """Log-probability of each report, from its bucket and the caps of u and -u."""
        labels, rows = self._split(values, clip=False)
        people = len(reports)
        directions, lengths = polar(np.broadcast_to(rows, (people, self.dimension)))
        books, words = reports[:, 0].astype(np.uint64), reports[:, 1].astype(np.int64)
        buckets, signs = self._own_place(np.broadcast_to(labels, people), books)
        numbers = words % self.codewords
        ahead, behind = self.codebook.in_cap(numbers, self.cap, directions * signs[:, None], books)
        here = words // self.codewords == buckets
        return self._log_chance(lengths, ahead & here, behind & here)

    def worst_cases(self) -> list[tuple[FloatArray, FloatArray]]:
        """Pairs with another class, another direction, both, and a pair with the zero vector."""
        here = np.zeros((1, self.dimension + 1))
        here[0, 1] = 1.0
        far, back, none = here.copy(), here.copy(), np.zeros_like(here)
        far[0, 0] = self.classes - 1
        back[0, 1] = -1.0
        both = far.copy()
        both[0, 1] = -1.0
        return [(here, far), (here, back), (here, both), (here, none)]

    @classmethod
    def examples(cls) -> list[Self]:
        """A bucket for each class, shared buckets, and one bucket for all."""
        return [
            cls(epsilon=1.0, dimension=2, classes=3, buckets=1, codewords=8),
            cls(epsilon=2.0, dimension=3, classes=5, buckets=2, codewords=8),
            cls(epsilon=4.0, dimension=1, classes=4, buckets=4, codewords=4),
        ]

    def _split(self, values: ArrayLike, *, clip: bool) -> tuple[IntArray, FloatArray]:
        """The classes and the vectors of private rows."""
        table = _validate.batch("values", values, columns=self.dimension + 1)
        labels = table[:, 0]
        if clip:
            labels = np.clip(np.rint(labels), 0, self.classes - 1)
        if not np.all((labels == np.rint(labels)) & (labels >= 0) & (labels < self.classes)):
            raise InvalidData("values", f"with a class from 0 to {self.classes - 1} in front")
        return labels.astype(np.int64), in_ball(table[:, 1:], self.dimension, clip=clip)

    def _own_class(self, labels: IntArray) -> npt.NDArray[np.bool_]:
        return np.asarray(labels[:, None] == np.arange(self.classes))

    def _places(self, books: Words) -> tuple[IntArray, FloatArray]:
        """Bucket and sign of every class in each codebook, shape (n, K)."""
        return places(books, classes=self.classes, buckets=self.buckets)

    def _own_place(self, labels: IntArray, books: Words) -> tuple[IntArray, FloatArray]:
        """Bucket and sign of each person's class."""
        if self.buckets == self.classes:
            return labels, np.ones(len(labels))
        buckets, signs = np.empty(len(labels), dtype=np.int64), np.empty(len(labels))
        for start in range(0, len(labels), PEOPLE):
            part = slice(start, start + PEOPLE)
            everywhere, every = self._places(books[part])
            index = labels[part][:, None]
            buckets[part] = np.take_along_axis(everywhere, index, axis=1)[:, 0]
            signs[part] = np.take_along_axis(every, index, axis=1)[:, 0]
        return buckets, signs

    def _read(self, reports: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Signs of the classes in the sent bucket (0 for others), and codewords divided by m."""
        books, words = reports[:, 0].astype(np.uint64), reports[:, 1].astype(np.int64)
        buckets, signs = self._places(books)
        class_signs = np.where(buckets == (words // self.codewords)[:, None], signs, 0.0)
        return class_signs, self.codebook.words(books, words % self.codewords) / self.gain

    @property
    def _shared(self) -> float:
        """ρ, the probability that two given classes share a bucket."""
        if self.classes == 1:
            return 0.0
        sizes = np.bincount(np.arange(self.classes) % self.buckets)
        return float((sizes * (sizes - 1)).sum()) / (self.classes * (self.classes - 1))


def places(books: Words, *, classes: int, buckets: int) -> tuple[IntArray, FloatArray]:
    """The public bucket and sign of every class in each codebook, shape (n, K).

    Examples:
        >>> books = np.arange(2).astype(np.uint64)
        >>> places(books, classes=4, buckets=2)[0].sum(axis=1)  # two in bucket 0, two in bucket 1
        array([2, 2])
    """
    shape = (len(books), classes)
    if buckets == classes:
        return np.broadcast_to(np.arange(classes), shape), np.ones(shape)
    steps: Words = np.arange(1, classes + 1).astype(np.uint64)
    bits = mixed(mixed(books ^ _CLASSES)[:, None] + steps * _CLASSES)
    signs = np.where(bits >> np.uint64(63), 1.0, -1.0)
    if buckets == 1:
        return np.zeros(shape, dtype=np.int64), signs
    # The rank of a class among random keys, which are independent of its sign.
    order = np.argsort(bits << np.uint64(1), axis=1)
    ranks = np.empty(shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(classes), shape), axis=1)
    return ranks % buckets, signs


@lru_cache(maxsize=1024)
def best_buckets(dimension: int, epsilon: float, *, classes: int) -> int:
    """The number of buckets L with the least noise variance 1/(L m²) of a class mean.

    Examples:
        >>> [best_buckets(16, epsilon, classes=26) for epsilon in (1.0, 2.0, 5.0)]
        [1, 2, 26]
    """

    def worth(buckets: int) -> float:
        return buckets * limit_gain(dimension, epsilon, buckets=buckets) ** 2

    powers = [1 << power for power in range(classes.bit_length())]
    tried = {b for p in powers for b in (p, p + p // 2) if b <= classes} | {classes}
    return max(tried, key=worth)
