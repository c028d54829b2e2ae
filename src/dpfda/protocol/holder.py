"""Data holders: only here are private records read and passed to a mechanism.

A holder handles each query in this order: check that it is allowed, spend its event, compute and
randomize, store the answer. Private values never decide whether an answer is given.

| holder | its records | its queries |
|---|---|---|
| `Person` (`protocol.person`) | one curve and label, or an owner's few rows | one task of a study |
| `Crowd` (`protocol.person`) | many simulated people | tasks, each person once |
| `Scattered` (`protocol.person`) | none: people in several places, which answer | tasks |
| `Curator` | everybody's rows | the queries of a conversation |
| `Stream` | none: sums of rows that arrive in chunks | additive queries |
| `Gatherer` | none: sums of rows that other processes read | additive queries |
| `Site` (`protocol.site`) | one hospital's rows | additive queries, answered with masks |
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Required, TypedDict, Unpack

import numpy as np

from dpfda._validate import IntArray
from dpfda.errors import BudgetExceeded, InvalidData, ProtocolError
from dpfda.noise import SecureSource, Source
from dpfda.privacy.cost import SPEND_LESS, within
from dpfda.privacy.events import Event
from dpfda.privacy.ledger import BaseLedger, part_label
from dpfda.privacy.price import Price, compose
from dpfda.protocol.query import AdditiveQuery, Answer, DatasetQuery, Query, Records


@dataclass(frozen=True, eq=False)
class Exchange:
    """One public question and its public answer."""

    query: Query
    answer: Answer


class Agreed(TypedDict, total=False):
    """The terms that a holder agreed to; see `Holder`."""

    most: Required[Price]
    source: Source | None
    unit: str
    accepts: Iterable[str]
    ledger: BaseLedger | None
    label: str


class Holder(ABC):
    """Holds private records, the costs so far of one conversation, and its answers.

    Args:
        most: the announced limit of the conversation; a query that exceeds it is refused.
        source: the source of noise; the operating system by default.
        unit: the unit of protection, such as a person; queries with another unit are refused.
        accepts: assumptions that the holder agreed to; a query that needs another is refused.
        ledger: the durable budget of the unit over all conversations, spent before noise is drawn.
        label: public text for the entry in the ledger.
    """

    def __init__(
        self,
        *,
        most: Price,
        source: Source | None = None,
        unit: str = "person",
        accepts: Iterable[str] = (),
        ledger: BaseLedger | None = None,
        label: str = "look",
    ) -> None:
        self.source: Source = SecureSource() if source is None else source
        self.transcript: list[Exchange] = []
        self._most, self._spent = most, Price()
        self._unit, self._accepts = unit, frozenset(accepts)
        self._ledger, self._label = ledger, label
        self._lock = threading.Lock()  # one question at a time, from any thread

    def answer(self, query: Query, *, number: int) -> Answer:
        """The answer to question `number`; a repeated question gets the same answer."""
        with self._lock:
            stored = self._stored(query, number)
            if stored is not None:
                return stored
            self._agree(query)
            self._spend(query)
            answer = self._respond(query, number)
            self.transcript.append(Exchange(query, answer))
            return answer

    @property
    def events(self) -> list[Event]:
        """The events spent so far, in order."""
        return [exchange.query.event for exchange in self.transcript]

    def _stored(self, query: Query, number: int) -> Answer | None:
        """The stored answer to this number; a different question or a gap is refused."""
        asked = self._asked()
        if not 0 <= number <= asked:
            raise ProtocolError(f"question {number} is out of order: question {asked} is next")
        if number == asked:
            return None
        if self._question(number) != query.digest:
            raise ProtocolError(f"question {number} differs from the one that was answered")
        return self._again(query, number)

    def _asked(self) -> int:
        """Number of questions answered."""
        return len(self.transcript)

    def _question(self, number: int) -> str:
        """The digest of an answered question."""
        return self.transcript[number].query.digest

    def _again(self, query: Query, number: int) -> Answer:
        return self.transcript[number].answer

    def _agree(self, query: Query) -> None:
        """Refuse queries that this holder did not agree to, before anything is spent."""
        if query.unit != self._unit:
            raise ProtocolError(f"the query is about a {query.unit}, not about a {self._unit}")
        for assumption in query.assumptions:
            if assumption not in self._accepts:
                raise ProtocolError(f"the query assumes that {assumption}: this was not agreed to")
        self._check(query)

    def _spend(self, query: Query) -> None:
        spent = self._afford(query)
        if self._ledger is not None:
            self._pay(query)
        self._spent = spent

    def _require_all(self) -> None:
        """Refuse a conversation that the ledger cannot fully pay for, before anything is spent."""
        if self._ledger is not None and (reason := self._ledger.refusal(self._most - self._spent)):
            raise BudgetExceeded(f"nothing was spent: {reason}. {SPEND_LESS}")

    def _afford(self, query: Query) -> Price:
        """The total cost including this query; a cost above the announced limit is refused."""
        spent = self._spent + compose([self._event(query)])
        if not within(spent, self._most):
            raise BudgetExceeded("the conversation spends more than it announced")
        return spent

    def _event(self, query: Query) -> Event:
        """The event that is charged for the next query."""
        return query.event

    def _pay(self, query: Query) -> None:
        assert self._ledger is not None
        self._ledger.spend(
            self._event(query),
            label=part_label(self._label, len(self.transcript) + 1, query.name),
            assumptions=sorted(self._accepts),
            unit=self._unit,
            whole=self._most,
        )

    @abstractmethod
    def _check(self, query: Query) -> None:
        """Refuse a query that does not fit the shapes of the records."""

    @abstractmethod
    def _respond(self, query: Query, number: int) -> Answer:
        """Compute and randomize."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.transcript)} answers)"

    def __reduce__(self) -> str:
        raise TypeError("a holder keeps private records and cannot be pickled")


class Curator(Holder):
    """Holds the records of all people in memory.

    A ledger that cannot pay for the whole conversation refuses it before the first question.

    Examples:
        >>> from dpfda.noise import SimulationSource
        >>> Curator((np.zeros((5, 2)),), most=Price(), source=SimulationSource(0))
        Curator(0 answers)
    """

    def __init__(self, records: Records, **agreed: Unpack[Agreed]) -> None:
        super().__init__(**agreed)
        self._require_all()
        self.__records = records

    def _check(self, query: Query) -> None:
        query.fitting(self.__records)
        if isinstance(query, DatasetQuery):
            query.count(len(self.__records[0]))

    def _respond(self, query: Query, number: int) -> Answer:
        return query.answer(self.__records, self.source)


class Stream(Holder):
    """Holds sums of records that arrive in chunks, in one pass for every question."""

    def __init__(self, **agreed: Unpack[Agreed]) -> None:
        super().__init__(**agreed)
        self._require_all()

    def open(self, query: Query) -> None:
        """Begin a pass over the records for a query."""
        if not isinstance(query, AdditiveQuery):
            raise InvalidData(
                "X", f"given as a whole: {query.name} cannot be computed from sums over chunks"
            )
        self._query, self._n = query, 0
        self._totals: IntArray = np.zeros(query.size, dtype=np.int64)

    def add(self, records: Records) -> None:
        """Add one chunk of records to the sums."""
        self._totals += self._query.sums(self._query.fitting(records))
        self._n += len(records[0])

    def _check(self, query: Query) -> None:
        if query is not self._query or not self._n:
            raise ProtocolError("no record was added for this question")
        self._query.count(self._n)

    def _respond(self, query: Query, number: int) -> Answer:
        return self._query.release(self._totals, n=self._n, source=self.source)


Gather = Callable[[AdditiveQuery], tuple[int, IntArray]]
"""Returns the number of records and their sums, for records that other processes read."""


class Gatherer(Holder):
    """Holds no records. After it has spent, it requests sums from other processes and adds noise.

    Args:
        gather: computes the sums.
        n: the number of records, counted before anything is spent; a later change is refused.
        first: reads and counts the records if no process has read them yet. Invalid records are
            thus refused before anything is spent.
        agreed: as in `Holder`.
    """

    def __init__(
        self,
        gather: Gather,
        *,
        n: int,
        first: Callable[[], int] | None = None,
        **agreed: Unpack[Agreed],
    ) -> None:
        super().__init__(**agreed)
        self._require_all()
        self.n, self._gather = n, gather
        if first is not None:
            self._same(first())

    def _check(self, query: Query) -> None:
        if not isinstance(query, AdditiveQuery):
            raise InvalidData(
                "X", f"given as a whole: {query.name} cannot be computed from sums over chunks"
            )
        query.count(self.n)

    def _respond(self, query: Query, number: int) -> Answer:
        assert isinstance(query, AdditiveQuery)
        n, totals = self._gather(query)
        self._same(n)
        return query.release(totals, n=n, source=self.source)

    def _same(self, n: int) -> None:
        if n != self.n:
            raise ProtocolError(f"{self.n} records were counted, and {n} were read")
