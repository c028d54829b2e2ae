"""One public question to a holder of records, and the computation of its answer.

A query is frozen and defines what is computed, by which mechanism, and at what price. The price is
the event of the mechanism, so the charge always matches the noise. There are three kinds:

* a *task* asks one person (or owner) once: `protocol.task`;
* an *additive query* asks a data set for integer sums over records, which can be merged in any
  order; noise is added once, at the end;
* a *whole query* needs all records at once.

Each class registers itself. The shipped checks find it, search for violations of its sensitivity,
attack its answers and fuzz its fields.

A holder returns only noisy numbers, and public facts about their noise.
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
        values: the noisy numbers: a vector or, for a task, one row per person.
        n: the public number of records.
        law: the law of the added noise; None if the mechanism adds none (a choice, a response).
    """

    values: FloatArray
    n: int
    law: NoiseLaw | None = None

    @property
    def noise(self) -> NoiseLaw:
        """The law of the added noise; an answer without additive noise is refused."""
        if self.law is None:
            raise ProtocolError(
                "this answer has no additive noise: it is a choice or a randomized response"
            )
        return self.law

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise, if it is the same for all numbers."""
        return math.sqrt(float(self.noise.variance[0]))


LARGEST_SUM = (1 << 63) - 1
"""Largest absolute value of a sum over records, so that no 64-bit sum overflows."""
Records = tuple[Any, ...]
"""Columns of equal length, such as rows (n, d) and targets (n,). Entry i of all is one record."""


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
    """A question that a holder answers once, with noise.

    Attributes:
        unit: the unit of protection: what one record belongs to, such as a person.
    """

    attained: ClassVar[float | None] = 0.99
    """Fraction of the sensitivity that a search must attain; None if the guarantee needs none."""

    inside: ClassVar[bool] = False
    """Whether the query draws before its mechanism; only `log_likelihood` then states the loss."""

    sizes: ClassVar[Mapping[str, int]]
    """Lengths of its arrays, by name."""

    unit: str = choice(default="person")

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", check_fields(self))

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The mechanism that randomizes the exact answer; the query guarantees its sensitivity."""

    @property
    def event(self) -> Event:
        """The price, which is always the event of the mechanism."""
        return self.mechanism.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Conditions of the price; a holder accepts them or refuses the query."""
        return ()

    @abstractmethod
    def fitting(self, records: Records) -> Records:
        """Check the shapes of records, which are public, and replace unusable numbers.

        The values of a record affect only its own contribution to the answer.
        """

    @abstractmethod
    def exact(self, records: Records, source: Source) -> FloatArray:
        """The input of the mechanism; called by holders and checks only."""

    @abstractmethod
    def answer(self, records: Records, source: Source) -> Answer:
        """Check the records, compute the exact answer and randomize it; called by holders only."""

    @abstractmethod
    def log_likelihood(self, answer: Answer, records: Records, source: Source) -> float:
        """Log-likelihood of an answer given these records, for audits."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """Instances that cover the parameter range, for checks and audits."""

    @abstractmethod
    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """Artificial records of the required shapes with numbers of about `size`, for checks."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; a query without a valid price is refused."""
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
        """SHA-256 of the query's canonical JSON, which is the same in every language."""
        return hashlib.sha256(msgspec.json.encode(self.to_dict(), order="sorted")).hexdigest()


class Sums(NamedTuple):
    """Integer sums over records, and the vector that is computed from them.

    Sums of chunks, blocks and sites can be merged in any order. Noise is added once, at the end.

    Attributes:
        columns: least width of each column of records; 0 for single numbers.
        size: the number of sums.
        largest: largest absolute contribution of one record to a sum.
        block: computes exact integer sums over some records.
        statistic: computes the vector that noise is added to from the sums over all records.
        most_rows: the most rows of a table, if they are limited.
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
        cost: the share of the budget that the query may spend.
        n: the number of records, if the noise depends on it.
    """

    block_rows: ClassVar[int] = 1 << 16
    linear: ClassVar[bool] = True
    """Whether the statistic is a weighted sum, so that sites can add up their own statistics."""

    @property
    @abstractmethod
    def summed(self) -> Sums:
        """The sums, and the statistic that is computed from them."""

    @property
    def columns(self) -> tuple[int, ...]:
        """Least width of each column of records; 0 for single numbers."""
        return self.summed.columns

    @property
    def size(self) -> int:
        """The number of sums."""
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
        """Refuse a number of records that differs from the announced one.

        Also refuse more records than 64-bit sums or the lattice of the noise can represent. Holders
        call this before they spend.

        Args:
            n: the public number of records of a holder.
            part: whether other holders have further records, so that n may be smaller.
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
        """Check that columns have equal length and sufficient width, and make numbers finite.

        NaN becomes 0, and large numbers are cut so that squares do not overflow. A refusal, or a
        meaningless answer, would itself reveal something.
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
        """Exact integer sums over at most `block_rows` records."""
        return self.summed.block(records)

    def sums(self, records: Records) -> IntArray:
        """Exact sums over records, as 64-bit integers; sums of parts add up to the sums of all."""
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
        """Compute the sums and release them."""
        totals = self.sums(self.fitting(records))
        return self.release(totals, n=len(records[0]), source=source)

    def release(self, totals: IntArray, *, n: int, source: Source) -> Answer:
        """The noisy answer for all records in these totals."""
        self.count(n)
        return randomized(self, self.statistic(totals), n, source)

    def log_likelihood(self, answer: Answer, records: Records, source: Source) -> float:
        """The mechanism's log-likelihood of an answer given these records."""
        return _log_likelihood(self, answer, self.exact(self.fitting(records), source))

    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """Normal columns with as many records as the query announces, or four."""
        n = 4 if self.announced is None else self.announced
        return _normal_columns(self.columns, n, generator, size)


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeQuery(Query):
    """A question to a data set that is not a sum; the holder needs all records at once.

    Attributes:
        cost: what it may spend.
    """

    announced: ClassVar[None] = None
    """The noise does not depend on the number of records."""

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
        """Compute the exact vector and randomize it."""
        return randomized(self, self.exact(self.fitting(records), source), len(records[0]), source)

    def log_likelihood(self, answer: Answer, records: Records, source: Source) -> float:
        """The mechanism's log-likelihood of an answer given these records."""
        return _log_likelihood(self, answer, self.exact(self.fitting(records), source))

    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """Four records with normal entries."""
        return _normal_columns(self.columns, 4, generator, size)


DatasetQuery = AdditiveQuery | WholeQuery
"""A question to a data set, answered with one vector."""


def randomized(query: DatasetQuery, exact: FloatArray, n: int, source: Source) -> Answer:
    """Randomize the exact vector by the mechanism; only this function draws noise for data sets."""
    mechanism = query.mechanism
    values = np.atleast_1d(mechanism.randomize(exact[None, :], source, clip=True)[0])
    law = mechanism.law if isinstance(mechanism, Additive) else None
    return Answer(values=values, law=law, n=n)


def _refuse_too_fine(query: DatasetQuery, n: int) -> None:
    """Refuse so many records that the answer could exceed the lattice of its noise.

    Replacing n records, one by one, changes the answer by at most n sensitivities.
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
    """Some records, with contiguous rows, so that sums over a row are always rounded alike."""
    return tuple(np.ascontiguousarray(column[block]) for column in records)


def finite(column: AnyArray) -> AnyArray:
    """A column in double precision, without NaN and without numbers whose square overflows.

    In single precision, the rounding of a record would depend on whether another record is NaN.
    """
    if column.dtype.kind == "f":
        column = column.astype(np.float64, copy=False)
    flat = np.ravel(column)
    if float(np.vdot(flat, flat)) <= LARGEST**2:  # one pass; the comparison fails if there is a NaN
        return column
    return np.asarray(np.nan_to_num(np.clip(column, -LARGEST, LARGEST)))
