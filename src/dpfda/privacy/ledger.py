"""Budgets that are spent before a value leaves, and never twice.

`Ledger` keeps its entries in memory; `FileLedger` keeps them on disk, survives kill -9 and serves
several processes at once. Both behave alike. A ledger belongs to one protected unit (a person, a
data set); it stores what was released, never what it was about. It adds up by a privacy filter
(`filter`), so that the limit holds although later releases may depend on earlier answers.
"""

from __future__ import annotations

import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Self

from dpfda import _validate
from dpfda._registry import Portable, revive
from dpfda.errors import AlreadySpent, BudgetExceeded, InvalidParameter
from dpfda.privacy.composition import Budget
from dpfda.privacy.cost import limit
from dpfda.privacy.events import ApproximateEvent, Event, PureEvent
from dpfda.privacy.filter import WAYS, Filter, Sums, chosen
from dpfda.privacy.guarantee import Guarantee, as_table
from dpfda.privacy.price import Price, compose

_NEARLY_SPENT = 0.8  # of ε: from here on it is said
_ONE_PROCESS = "a Ledger is known to one process only: share a FileLedger with others"


@dataclass(frozen=True, kw_only=True)
class Entry(Portable):
    """One acknowledged spend.

    Attributes:
        sequence: position in the ledger, from 1.
        label: what the release was, in words.
        event: the release.
        time: when, in seconds since 1970 (UTC).
        key: the question it answered, if it may be answered once only.
        assumptions: what the price rests on, in words.
        unit: whose data it was about, where the ledger keeps to one unit.
        way: on the first entry, what the ledger uses its δ for from then on (`filter`).
    """

    sequence: int
    label: str
    event: Event
    time: float
    key: str | None
    assumptions: tuple[str, ...]
    unit: str | None
    way: str | None = None

    def __post_init__(self) -> None:
        _validate.whole("sequence", self.sequence)
        _validate.finite("time", self.time)
        _check_text("label", self.label)
        for name in ("key", "unit"):
            if getattr(self, name) is not None:
                _check_text(name, getattr(self, name))
        if (self.way is None) == (self.sequence == 1):
            raise InvalidParameter("way", "given on the first entry, and only there", self.way)
        if self.way is not None:
            _validate.one_of("way", self.way, WAYS)
        revive(self, "event", Event.from_dict)
        if not isinstance(self.event, Event):
            raise InvalidParameter("event", "an Event", type(self.event).__name__)
        object.__setattr__(self, "assumptions", _texts("assumptions", self.assumptions))

    @property
    def when(self) -> str:
        """Its time, for people."""
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.time))

    @property
    def assuming(self) -> str:
        """The assumptions of its price, in words."""
        return "".join(f", assuming {text}" for text in self.assumptions)

    @property
    def part_of(self) -> tuple[str, int]:
        """Which conversation it is a part of, and its place there: of what `part_label` wrote."""
        found = _PART.fullmatch(self.label)
        return (found[1], int(found[2] or 1)) if found else (self.label, 1)

    def __str__(self) -> str:
        return f"{self.when}  {self.label}: {self.event}{self.assuming}"


_PART = re.compile(r"([^:]*?)(?:, ([1-9][0-9]{0,8}))?: .*", re.DOTALL)


def part_label(whole: str, number: int, name: str) -> str:
    """The label of a conversation's question: `number` counts from 1."""
    return f"{whole}, {number}: {name}" if number > 1 else f"{whole}: {name}"


_TURNS = threading.Lock()


@contextmanager
def _both(inner: AbstractContextManager[Any], outer: AbstractContextManager[Any]) -> Iterator[None]:
    with inner, outer:
        yield


class BaseLedger(ABC):
    """Base of all ledgers; subclasses define how to lock, read and append.

    Attributes:
        rule: how entries add up, and against which limit; fixed when the ledger is created.
        outer: a ledger that pays for everything spent here as well, if any.
        analysis: public name of what releases are made for from now on, such as a paper's.
    """

    rule: Filter
    outer: BaseLedger | None = None
    analysis: str | None = None
    _turn: tuple[int, threading.RLock] | None = None  # with the process it belongs to

    @property
    def turn(self) -> AbstractContextManager[Any]:
        """A lock that is held from the check of a whole conversation to its last question.

        Without it another thread could spend the budget halfway, and the part already paid would be
        lost.
        """
        with _TURNS:
            if self._turn is None or self._turn[0] != os.getpid():  # a fork's copy may be held
                self._turn = os.getpid(), threading.RLock()
            own = self._turn[1]
        return own if self.outer is None else _both(own, self.outer.turn)

    @property
    def limit(self) -> Budget:
        """The limit on the total cost."""
        return self.rule.limit

    def spend(
        self,
        release: Event | Guarantee,
        *,
        label: str,
        key: str | None = None,
        assumptions: Iterable[str] = (),
        unit: str | None = None,
        whole: Price | None = None,
    ) -> Entry:
        """Check and spend in one step. Call it before the value leaves; send only if it returns.

        Args:
            release: what is about to be released, or what that promises.
            label: public words for the record; `analysis` stands in front of it.
            key: name of the question. The same key is never spent twice. It is stored: do not put
                anything private into it.
            assumptions: what the price rests on; those of a guarantee are kept by themselves.
            unit: whose data it is about, as a guarantee says by itself. One row of a household
                costs the household more: releases about different units are not added up.
            whole: what the conversation announced that this release is a part of; the first one in
                a ledger decides what δ is used for (`filter`).

        Raises:
            AlreadySpent: the key was spent before.
            BudgetExceeded: the limit does not allow it.
            InvalidParameter: the ledger holds releases about another unit.
            UnknownEvent: nothing is known of what the release costs.
        """
        event = as_event(release)
        if key is not None:
            _check_text("key", key)
        if self.analysis is not None:
            _check_text("analysis", self.analysis)
            label = f"{self.analysis.replace(':', ' ')} / {label}"
        unit = getattr(release, "unit", unit)
        assumptions = (*getattr(release, "assumptions", ()), *_texts("assumptions", assumptions))
        price = compose([event])
        with self._exclusive():
            if key in self._keys:
                raise AlreadySpent(f"the key {key!r} was spent before; resend the stored answer")
            if unit is not None and self._unit not in (None, unit):
                raise InvalidParameter(
                    "unit", f"{self._unit!r}, as in the rest of the ledger", unit
                )
            if reason := self._refusal(price):
                raise BudgetExceeded(reason)
            entry = Entry(
                sequence=len(self._entries) + 1,
                label=label,
                event=event,
                time=time.time(),
                key=key,
                assumptions=tuple(dict.fromkeys(assumptions)),
                unit=unit,
                way=None if self._entries else self._way_for(price, whole),
            )
            if self.outer is not None:  # first: what it pays for and is not released is too much
                self.outer.spend(
                    event, label=label, key=key, assumptions=assumptions, unit=unit, whole=whole
                )
            self._append(entry)
            self._note(entry)
        return entry

    def refusal(self, release: Event | Guarantee | Price, *, key: str | None = None) -> str:
        """Why `spend` would be refused now, or nothing. Others may be faster: only it binds."""
        price = release if isinstance(release, Price) else compose([as_event(release)])
        with self._exclusive():
            reason = "the key was spent before" if key in self._keys else self._refusal(price)
        if reason or self.outer is None:
            return reason
        return self.outer.refusal(price, key=key)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries so far, in order."""
        with self._exclusive():
            return tuple(self._entries)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of all entries."""
        return tuple(dict.fromkeys(text for entry in self.entries for text in entry.assumptions))

    @property
    def spent(self) -> Budget:
        """The part of the limit that is used, as (ε, δ), rounded up.

        This is what entries cost together if their sizes were fixed in advance. Where sizes
        depended on answers, `limit` is what holds.
        """
        with self._exclusive():
            return self.rule.spent(self._price)

    @property
    def remaining(self) -> Budget:
        """The remaining budget, rounded down: a conversation with this (ε, δ) is accepted.

        Where δ > 0 that is one with Gaussian noise; `remaining_pure` is for others.
        """
        with self._exclusive():
            return self.rule.remaining(self._way, self._charged)

    @property
    def remaining_pure(self) -> float:
        """The largest ε of one further release without δ, rounded down."""
        with self._exclusive():
            return self.rule.remaining_pure(self._way, self._charged)

    def after(
        self, *, epsilon: float, delta: float = 0.0, times: int = 1
    ) -> tuple[float, Budget] | None:
        """The budget left after planned releases, or None if they do not fit; nothing is spent.

        Args:
            epsilon: ε of each.
            delta: δ of each; above 0 it has Gaussian noise.
            times: how many.

        Returns:
            As `remaining_pure` and `remaining`.

        Examples:
            >>> Ledger(1.0).after(epsilon=0.25, times=3)
            (0.25, Budget(epsilon=0.25, delta=0.0))
        """
        _validate.whole("times", times)
        planned = self.rule.charge(limit(epsilon=epsilon, delta=delta)) * times
        with self._exclusive():
            way, sums = self._way or self.rule.way(planned), self._charged + planned
            if way is None or not self.rule.allows(way, sums):
                return None
            return self.rule.remaining_pure(way, sums), self.rule.remaining(way, sums)

    def left(self, pure: float | None = None, other: Budget | None = None) -> str:
        """The budget left for one further release, in words.

        Args:
            pure: of `after`; by default what is left now.
            other: likewise.

        Examples:
            >>> Ledger(1.0).left()
            'ε = 1'
        """
        pure = self.remaining_pure if pure is None else pure
        other = self.remaining if other is None else other
        if not self.limit.delta:
            return f"ε = {pure:g}"
        gaussian = f", or {other} with Gaussian noise" if other.delta else ""
        return f"ε = {pure:g} without δ{gaussian}"

    @property
    def warning(self) -> str:
        """A sentence once 80 % of ε is spent."""
        share = self.spent.epsilon / self.limit.epsilon
        if share < _NEARLY_SPENT:
            return ""
        return f"{min(share, 1):.0%} of the budget {self.limit} is spent; left: {self.left()}"

    @property
    def releases(self) -> list[tuple[Entry, ...]]:
        """Entries that stand one after the other and belong to one conversation, together."""
        found: list[tuple[Entry, ...]] = []
        for entry in self.entries:
            whole, number = entry.part_of
            if found and found[-1][-1].part_of == (whole, number - 1):
                found[-1] += (entry,)
            else:
                found.append((entry,))
        return found

    def table(self, *, parts: bool = False) -> str:
        """All entries as text: a line for each release, or for each `part`."""
        lines = [f"{self.spent} of {self.limit} spent"]
        for first, *more in self.releases:
            said = self._together([first, *more]) if more and not parts else str(first)
            lines.append(f"{first.sequence:>4}  {said}")
            lines += [f"{entry.sequence:>4}  {entry}" for entry in more if parts]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """HTML for notebooks: a line for each release, what is spent, and what is left."""
        rows = []
        for entries in self.releases:
            first, (whole, _) = entries[0], entries[0].part_of
            rows.append((first.sequence, first.when, whole, self._cost(entries)))
        note = f"{self.spent} of {self.limit} spent; left: {self.left()}"
        return as_table(rows, headings=("", "when (UTC)", "release", "cost"), note=note)

    def _cost(self, entries: Sequence[Entry]) -> Budget:
        return self.rule.spent(compose([entry.event for entry in entries]))

    def _together(self, entries: list[Entry]) -> str:
        first, (whole, _) = entries[0], entries[0].part_of
        cost = self._cost(entries)
        return f"{first.when}  {whole}: {cost}, {len(entries)} questions{first.assuming}"

    def _refusal(self, price: Price) -> str:
        return self.rule.refusal(self._way, self._charged, price)

    def _fits(self) -> bool:
        """Whether all entries together keep to the limit, as a stored form should."""
        return self.rule.allows(self._way, self._charged)

    def _way_for(self, price: Price, whole: Price | None) -> str | None:
        """The accounting rule of an empty ledger, as the announcement requires."""
        announced = None if whole is None else self.rule.way(self.rule.charge(whole))
        one = self.rule.charge(price)
        if announced is not None and self.rule.allows(announced, one):
            return announced
        return self.rule.way(one)

    def _forget(self) -> None:
        """Start from an empty picture; stored forms then read everything again."""
        self._entries: list[Entry] = []
        self._keys: set[str | None] = set()
        self._price, self._charged = Price(), Sums()
        self._way: str | None = None
        self._unit: str | None = None

    def _note(self, entry: Entry) -> None:
        price = compose([entry.event])
        self._price, self._charged = self._price + price, self._charged + self.rule.charge(price)
        self._way = self._way or entry.way
        if entry.key is not None:
            self._keys.add(entry.key)
        self._unit = self._unit or entry.unit
        self._entries.append(entry)

    @abstractmethod
    def _exclusive(self) -> AbstractContextManager[None]:
        """Exclude other threads and processes, and bring the entries up to date."""

    @abstractmethod
    def _append(self, entry: Entry) -> None:
        """Store one entry."""

    def __copy__(self) -> Self:
        """Itself: a copy, as scikit-learn's `clone` makes one, would spend the budget twice."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        # As of the last operation: a repr neither waits for a lock nor reads a file.
        known = dict.fromkeys(text for entry in self._entries for text in entry.assumptions)
        assuming = "".join(f", assuming {text}" for text in known)
        name, number = type(self).__name__, len(self._entries)
        return f"{name}(limit {self.limit}, entries: {number}{assuming})"


class Ledger(BaseLedger):
    """A budget kept in memory: for one process, forgotten when it ends.

    Args:
        limit_epsilon: ε that may be spent in all.
        limit_delta: δ that may be spent in all. Without it ε adds up; with it releases of all
            kinds compose (`dpfda.privacy.filter`).

    Examples:
        >>> ledger = Ledger(1.0)
        >>> ledger.spend(PureEvent(epsilon=0.4), label="mean curve").sequence
        1
        >>> ledger.remaining
        Budget(epsilon=0.6, delta=0.0)
        >>> ledger.refusal(PureEvent(epsilon=0.7))
        'ε = 0.7 does not fit into ε = 1: ε = 0.6 is left'
    """

    def __init__(self, limit_epsilon: float, *, limit_delta: float = 0.0) -> None:
        self.rule = chosen(limit_epsilon, limit_delta)
        self._process, self._lock = os.getpid(), threading.Lock()
        self._forget()

    def _exclusive(self) -> AbstractContextManager[Any]:
        if self._process != os.getpid():  # a fork's copy: both would spend all of it
            raise BudgetExceeded(_ONE_PROCESS)
        return self._lock

    def __reduce__(self) -> str:
        raise TypeError(_ONE_PROCESS)

    def _append(self, entry: Entry) -> None:
        """Do nothing: `_note` is the storage."""


def as_event(release: Event | Guarantee) -> Event:
    """The event that a ledger stores for a release."""
    if isinstance(release, Event):
        return release
    if not isinstance(release, Guarantee):
        raise InvalidParameter("release", "an Event or a Guarantee", type(release).__name__)
    if release.delta:
        return ApproximateEvent(epsilon=release.epsilon, delta=release.delta)
    return PureEvent(epsilon=release.epsilon)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidParameter(name, "a string that is not empty", value)


def _texts(name: str, values: object) -> tuple[str, ...]:
    """Public words, one or several."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidParameter(name, "a sequence of strings", values)
    texts = tuple(values)
    for text in texts:
        _check_text(name, text)
    return texts
