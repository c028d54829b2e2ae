"""One public question to a holder of records, and all that happens to the records.

A query is frozen and says everything: what is computed, through which mechanism, at what price. The
price is the mechanism's own event, so what is charged cannot differ from what is drawn. Kinds:

* a *task* asks one person (or owner) once: `protocol.task`;
* an *additive query* asks a data set: integer sums over records that merge in any order, and noise
  once, at the end;
* a *whole query* needs all records at once.

Each class registers, and the shipped checks search its sensitivity, attack its answers and fuzz its
fields without a list being edited.

What leaves a holder: noisy numbers, and everything public about their noise.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import msgspec
import numpy as np

from dpfda._registry import Registered
from dpfda._validate import AnyArray, FloatArray, IntArray
from dpfda.errors import DpfdaError, InvalidData, ProtocolError
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import Additive
from dpfda.noise import Source
from dpfda.noise.discrete import LARGEST_STEPS
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.events import Event
from dpfda.protocol.fields import LARGEST, check_fields, choice


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """A public reply to a query.

    Attributes:
        values: with noise: a vector, or one row a person where a task asks many.
        n: how many records were asked (public).
        law: of the noise that was added; None where nothing was added (a choice, a response).
    """

    values: FloatArray
    n: int
    law: NoiseLaw | None = None

    @property
    def noise(self) -> NoiseLaw:
        """The law, where noise was added."""
        if self.law is None:
            raise ProtocolError(
                "this answer has no additive noise: it is a choice or a randomized response"
            )
        return self.law

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise, where it is the same on every number."""
        return math.sqrt(float(self.noise.variance[0]))


LARGEST_SUM = (1 << 63) - 1
"""No sum over records is larger, whatever they hold: none wraps around."""
Records = tuple[Any, ...]
"""Columns of equal length: rows (n, d), or rows and targets (n,), ... Entry i is one record."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Query(
    Registered,
    family="query",
    homes=(
        "dpfda.protocol.tasks",
        "dpfda.central",
        "dpfda.central.regression",
        "dpfda.central.moments",
        "dpfda.local.mrma",
        "dpfda.local.boosting",
    ),
):
    """A question that a holder answers with noise, once.

    Attributes:
        unit: whose data one record is.
    """

    attained: ClassVar[float | None] = 0.99
    """What part of the sensitivity a search must reach; None where the proof needs no bound."""

    inside: ClassVar[bool] = False
    """Whether it draws before its mechanism: `log_likelihood` alone says what it gives away."""

    sizes: ClassVar[Mapping[str, int]]
    """Lengths of its arrays, by name."""

    unit: str = choice(default="person")

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", check_fields(self))

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The mechanism of the exact answer; the query guarantees its sensitivity."""

    @property
    def event(self) -> Event:
        """The price: that of the mechanism, always."""
        return self.mechanism.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Conditions of the price; a holder accepts them or refuses the query."""
        return ()

    @abstractmethod
    def fitting(self, records: Records) -> Records:
        """Records as this query takes them: of its shapes or refused, of usable numbers or made so.

        Shapes are public; what a record holds decides nothing but its own place in the answer.
        """

    @abstractmethod
    def exact(self, records: Records, source: Source) -> FloatArray:
        """The input of the mechanism; called by holders and checks only."""

    @abstractmethod
    def answer(self, records: Records, source: Source) -> Answer:
        """Make records fit, compute, randomize; called by holders only."""

    @abstractmethod
    def log_likelihood(self, answer: Answer, records: Records, source: Source) -> float:
        """Log-likelihood of an answer given these records, for audits."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """Instances that cover the parameter range, for checks and audits."""

    @abstractmethod
    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """Made-up records of the shapes it asks for, their numbers about `size`, for checks."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; what cannot be priced is refused here, before anybody agrees."""
        try:
            query = super().from_dict(data)
            _ = query.event
        except DpfdaError:
            raise
        except (ArithmeticError, MemoryError, RecursionError, TypeError, ValueError):
            raise ProtocolError(f"the fields make no valid query {data.get('name')!r}") from None
        return query

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the query's canonical JSON: the same question has the same digest anywhere."""
        return hashlib.sha256(msgspec.json.encode(self.to_dict(), order="sorted")).hexdigest()


class Sums(NamedTuple):
    """Integer sums over records, and the vector that is computed from them.

    Sums merge in any order, chunks, blocks and sites alike; noise is added once, at the end.

    Attributes:
        columns: least width of each column of records; 0 for single numbers.
        size: how many sums.
        largest: largest absolute contribution of one record to a sum.
        block: exact sums over some records: whole numbers.
        statistic: the vector that noise is added to, of the sums over all records.
        most_rows: of a table, where it may have no more.
    """

    columns: tuple[int, ...]
    size: int
    largest: int
    block: Callable[[Records], FloatArray | IntArray]
    statistic: Callable[[IntArray], FloatArray]
    most_rows: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditiveQuery(Query):
    """A question to a data set whose exact answer is a function of integer sums over records.

    Attributes:
        cost: what it may spend.
        n: how many records are asked, where its noise depends on that.
    """

    block_rows: ClassVar[int] = 1 << 16
    linear: ClassVar[bool] = True
    """Whether sites may add up their own statistics: no more than a weighted sum."""

    @property
    @abstractmethod
    def summed(self) -> Sums:
        """What is computed."""

    @property
    def columns(self) -> tuple[int, ...]:
        """Least width of each column of records it asks for; 0 for single numbers."""
        return self.summed.columns

    @property
    def size(self) -> int:
        """Number of sums."""
        return self.summed.size

    @property
    def largest(self) -> int:
        """Largest absolute contribution of one record to a sum."""
        return self.summed.largest

    @property
    def announced(self) -> int | None:
        """Number of records for which the noise was computed; None if it does not matter."""
        return self.sizes.get("n")

    def count(self, n: int, *, part: bool = False) -> None:
        """Refuse another number of records than announced; holders ask before they spend.

        Also refuse more than 64-bit sums, or the lattice of the noise, have room for.

        Args:
            n: how many a holder has: public.
            part: whether others have more, so that fewer than announced are right.
        """
        known, most = self.announced, self.summed.most_rows
        if most is not None and n > most:
            raise InvalidData("X", f"a table of at most {most} rows")
        if known is not None and (n > known or (n < known and not part)):
            raise ProtocolError(f"{self.name} announces {known} records, got {n}")
        _refuse_too_fine(self, n)
        if n * self.largest > LARGEST_SUM:
            raise ProtocolError(
                f"{self.name} takes at most {LARGEST_SUM // self.largest} records, so that sums "
                "fit 64 bits"
            )

    def fitting(self, records: Records) -> Records:
        """Columns of one length and wide enough, of finite numbers.

        A number that is none becomes 0 and large ones are cut where squares could overflow:
        refusing to answer, or answering nonsense, would itself reveal something.
        """
        widths = tuple(column.shape[1] if column.ndim == 2 else 0 for column in records)
        if len({len(column) for column in records}) != 1:
            raise InvalidData("records", "columns of one length")
        if len(widths) != len(self.columns) or any(
            have < want for have, want in zip(widths, self.columns, strict=True)
        ):
            raise ProtocolError(f"{self.name} asks for columns of widths {self.columns}")
        return tuple(map(finite, records))

    def block(self, records: Records) -> FloatArray | IntArray:
        """Exact sums over at most `block_rows` records: whole numbers."""
        return self.summed.block(records)

    def sums(self, records: Records) -> IntArray:
        """Exact sums over records, as 64-bit integers; those of parts add up to those of all."""
        total = np.zeros(self.size, dtype=np.int64)
        for start in range(0, len(records[0]), self.block_rows):
            block = slice(start, start + self.block_rows)
            total += self.block(in_rows(records, block)).astype(np.int64)
        return total

    def statistic(self, totals: IntArray) -> FloatArray:
        """The vector that noise is added to."""
        return self.summed.statistic(totals)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The statistic of all records."""
        return self.statistic(self.sums(records))

    def answer(self, records: Records, source: Source) -> Answer:
        """Sum, then release."""
        totals = self.sums(self.fitting(records))
        return self.release(totals, n=len(records[0]), source=source)

    def release(self, totals: IntArray, *, n: int, source: Source) -> Answer:
        """The answer of all whose sums were added."""
        self.count(n)
        return randomized(self, self.statistic(totals), n, source)

    def log_likelihood(self, answer: Answer, records: Records, source: Source) -> float:
        """Log-likelihood by the mechanism."""
        return _log_likelihood(self, answer, self.exact(self.fitting(records), source))

    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """Normal columns with as many records as the query announces, or four."""
        n = 4 if self.announced is None else self.announced
        return _normal_columns(self.columns, n, generator, size)


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeQuery(Query):
    """A question to a data set that is no sum: the holder needs all records, and may draw inside.

    Attributes:
        cost: what it may spend.
    """

    announced: ClassVar[None] = None
    """It is asked of any number of records."""

    @property
    @abstractmethod
    def columns(self) -> tuple[int, ...]:
        """Width of each column of records; 0 for single numbers."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of the answer."""

    def count(self, n: int, *, part: bool = False) -> None:
        """Refuse more records than the lattice of the noise has room for."""
        _refuse_too_fine(self, n)

    def answer(self, records: Records, source: Source) -> Answer:
        """Compute, then randomize."""
        return randomized(self, self.exact(self.fitting(records), source), len(records[0]), source)

    def log_likelihood(self, answer: Answer, records: Records, source: Source) -> float:
        """Log-likelihood by the mechanism."""
        return _log_likelihood(self, answer, self.exact(self.fitting(records), source))

    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """Four normal records."""
        return _normal_columns(self.columns, 4, generator, size)


DatasetQuery = AdditiveQuery | WholeQuery
"""A question to a data set, answered with one vector."""


def randomized(query: DatasetQuery, exact: FloatArray, n: int, source: Source) -> Answer:
    """The exact vector through the mechanism: the only place where noise on it is drawn."""
    mechanism = query.mechanism
    values = np.atleast_1d(mechanism.randomize(exact[None, :], source, clip=True)[0])
    law = mechanism.law if isinstance(mechanism, Additive) else None
    return Answer(values=values, law=law, n=n)


def _refuse_too_fine(query: DatasetQuery, n: int) -> None:
    """Refuse so many records that the answer is cut off at the end of the lattice of its noise.

    Replacing n records, one by one, moves it by n sensitivities at most.
    """
    mechanism = query.mechanism
    if isinstance(mechanism, Additive):
        farthest = n * mechanism.sensitivity * np.asarray(mechanism.axes) / 2
        if np.any(farthest > LARGEST_STEPS * mechanism.lattice_step):
            raise ProtocolError(
                f"the noise of {query.name} is too fine for 64-bit sums over {n} "
                "records: choose a smaller epsilon"
            )


def _log_likelihood(query: DatasetQuery, answer: Answer, exact: FloatArray) -> float:
    return float(query.mechanism.log_likelihood(answer.values[None, :], exact[None, :])[0])


def _normal_columns(
    widths: tuple[int, ...], n: int, generator: np.random.Generator, size: float
) -> Records:
    return tuple(size * generator.normal(size=(n, width) if width else n) for width in widths)


def in_rows(records: Records, block: slice) -> Records:
    """Some records, each in one piece: a norm added up in another order rounds otherwise."""
    return tuple(np.ascontiguousarray(column[block]) for column in records)


def finite(column: AnyArray) -> AnyArray:
    """A column in double precision, without NaN and without any whose square overflows.

    In single precision a record would be rounded otherwise where another one in the column is NaN.
    """
    if column.dtype.kind == "f":
        column = column.astype(np.float64, copy=False)
    flat = np.ravel(column)
    if float(np.vdot(flat, flat)) <= LARGEST**2:  # one pass, and NaN is not below anything
        return column
    return np.asarray(np.nan_to_num(np.clip(column, -LARGEST, LARGEST)))
