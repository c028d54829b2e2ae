"""One public question to a holder of records, and all that happens to the records.

A query is frozen and says everything: what is computed, through which mechanism, at what price. The
price is the mechanism's own event, so what is charged cannot differ from what is drawn. Kinds:

* a *task* asks one person (or owner) once: `protocol.task`;
* an *additive look* asks a data set: integer sums over records that merge in any order, and noise
  once, at the end;
* a *whole look* needs all records at once.

Each class registers, and the shipped checks search its sensitivity, attack its answers and fuzz its
fields without a list being edited.

What leaves a holder: noisy numbers, and everything public about their noise.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

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
        except (ArithmeticError, MemoryError, TypeError, ValueError):
            raise ProtocolError(f"the fields make no valid query {data.get('name')!r}") from None
        return query

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the query's canonical JSON: the same question has the same digest anywhere."""
        return hashlib.sha256(msgspec.json.encode(self.to_dict(), order="sorted")).hexdigest()


@dataclass(frozen=True, kw_only=True, eq=False)
class DatasetQuery(Query):
    """A question to a data set, answered with one vector."""

    @property
    @abstractmethod
    def columns(self) -> tuple[int, ...]:
        """Least width of each column of records it asks for; 0 for single numbers."""

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

    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """Normal columns with as many records as the query announces, or four."""
        n = 4 if self.announced is None else self.announced
        return tuple(
            size * generator.normal(size=(n, width) if width else n) for width in self.columns
        )

    @property
    def announced(self) -> int | None:
        """Number of records for which the noise was computed; None if it does not matter."""
        return None

    def count(self, n: int, *, part: bool = False) -> None:
        """Refuse another number of records than announced; holders ask before they spend.

        Also refuse so many that the answer would be cut off at the end of the lattice of its noise:
        replacing n records, one by one, moves it by n sensitivities at most.

        Args:
            n: how many a holder has: public.
            part: whether others have more, so that fewer than announced are right.
        """
        known = self.announced
        if known is not None and (n > known or (n < known and not part)):
            raise ProtocolError(f"{self.name} announces {known} records, got {n}")
        mechanism = self.mechanism
        if isinstance(mechanism, Additive):
            farthest = n * mechanism.sensitivity * np.asarray(mechanism.axes) / 2
            if np.any(farthest > LARGEST_STEPS * mechanism.lattice_step):
                raise ProtocolError(
                    f"the noise of {self.name} is too fine for 64-bit sums over {n} "
                    "records: choose a smaller epsilon"
                )

    def answer(self, records: Records, source: Source) -> Answer:
        """Compute, then randomize."""
        exact = self.exact(self.fitting(records), source)
        return self.randomize(exact, len(records[0]), source)

    def randomize(self, exact: FloatArray, n: int, source: Source) -> Answer:
        """The exact vector through the mechanism: the only place where noise is drawn."""
        mechanism = self.mechanism
        values = np.atleast_1d(mechanism.randomize(exact[None, :], source, clip=True)[0])
        law = mechanism.law if isinstance(mechanism, Additive) else None
        return Answer(values=values, law=law, n=n)

    def log_likelihood(self, answer: Answer, records: Records, source: Source) -> float:
        """Log-likelihood by the mechanism."""
        exact = self.exact(self.fitting(records), source)
        return float(self.mechanism.log_likelihood(answer.values[None, :], exact[None, :])[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditiveQuery(DatasetQuery):
    """A look whose exact answer is a function of integer sums over records.

    Sums merge in any order, chunks, blocks and sites alike; noise is added once, at the end.
    """

    block_rows: ClassVar[int] = 1 << 16
    linear: ClassVar[bool] = True
    """Whether sites may add up their own statistics: no more than a weighted sum."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of sums."""

    @property
    @abstractmethod
    def largest(self) -> int:
        """Largest absolute contribution of one record to a sum."""

    def count(self, n: int, *, part: bool = False) -> None:
        """Refuse more records, too, than 64-bit sums have room for."""
        super().count(n, part=part)
        if n * self.largest > LARGEST_SUM:
            raise ProtocolError(
                f"{self.name} takes at most {LARGEST_SUM // self.largest} records, so that sums "
                "fit 64 bits"
            )

    @abstractmethod
    def block(self, records: Records) -> FloatArray | IntArray:
        """Exact sums over at most `block_rows` records: whole numbers."""

    @abstractmethod
    def statistic(self, totals: IntArray) -> FloatArray:
        """The vector that noise is added to."""

    def sums(self, records: Records) -> IntArray:
        """Exact sums over records, as 64-bit integers; those of parts add up to those of all."""
        total = np.zeros(self.size, dtype=np.int64)
        for start in range(0, len(records[0]), self.block_rows):
            block = slice(start, start + self.block_rows)
            total += self.block(in_rows(records, block)).astype(np.int64)
        return total

    def release(self, totals: IntArray, *, n: int, source: Source) -> Answer:
        """The answer of all whose sums were added."""
        self.count(n)
        return self.randomize(self.statistic(totals), n, source)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The statistic of all records."""
        return self.statistic(self.sums(records))

    def answer(self, records: Records, source: Source) -> Answer:
        """Sum, then release."""
        totals = self.sums(self.fitting(records))
        return self.release(totals, n=len(records[0]), source=source)


class WholeQuery(DatasetQuery):
    """A look that is no sum: the holder needs all records at once, and may draw inside."""


def in_rows(records: Records, block: slice) -> Records:
    """Some records, each in one piece: a norm added up in another order rounds otherwise."""
    return tuple(np.ascontiguousarray(column[block]) for column in records)


def finite(column: AnyArray) -> AnyArray:
    """A column of numbers without NaN and without any whose square overflows."""
    flat = np.ravel(column)
    if float(np.vdot(flat, flat)) <= LARGEST**2:  # one pass, and NaN is not below anything
        return column
    # In double precision: in single, a bound of 1e100 is infinity.
    return np.nan_to_num(np.clip(column.astype(np.float64), -LARGEST, LARGEST))
