"""Ledgers of privacy budgets: each cost is recorded once, before the value is released.

`Ledger` keeps its entries in memory. `FileLedger` keeps them on disk, survives kill -9 and serves
several processes at once. Otherwise both behave alike. A ledger belongs to one protected unit (a
person, a data set). It stores descriptions of releases, never data. It uses a privacy filter
(`filter`), so the limit holds even if later releases depend on earlier answers.
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

_NEARLY_SPENT = 0.8  # share of ε from which a ledger warns
_ONE_PROCESS = "a Ledger is known to one process only: share a FileLedger with others"


@dataclass(frozen=True, kw_only=True)
class Entry(Portable):
    """One recorded release.

    Attributes:
        sequence: position in the ledger, from 1.
        label: description of the release.
        event: the release.
        time: time of the entry, in seconds since 1970 (UTC).
        key: name of the answered question, if it may be answered only once.
        assumptions: assumptions of the price, in words.
        unit: the protected unit, if stated.
        way: on the first entry, how the ledger uses its δ (`filter.WAYS`).
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
        """The time in readable form."""
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.time))

    @property
    def assuming(self) -> str:
        """The assumptions of its price, in words."""
        return "".join(f", assuming {text}" for text in self.assumptions)

    @property
    def part_of(self) -> tuple[str, int]:
        """Name of the conversation and position in it, parsed from a label of `part_label`."""
        found = _PART.fullmatch(self.label)
        return (found[1], int(found[2] or 1)) if found else (self.label, 1)

    def __str__(self) -> str:
        return f"{self.when}  {self.label}: {self.event}{self.assuming}"


_PART = re.compile(r"([^:]*?)(?:, ([1-9][0-9]{0,8}))?: .*", re.DOTALL)


def part_label(whole: str, number: int, name: str) -> str:
    """The label of a question of a conversation; `number` counts from 1."""
    return f"{whole}, {number}: {name}" if number > 1 else f"{whole}: {name}"


_TURNS = threading.Lock()


@contextmanager
def _both(inner: AbstractContextManager[Any], outer: AbstractContextManager[Any]) -> Iterator[None]:
    with inner, outer:
        yield


class BaseLedger(ABC):
    """Base of all ledgers; subclasses define how to lock, read and append.

    Attributes:
        rule: the privacy filter with its limit; fixed when the ledger is created.
        outer: a ledger that is also charged for everything spent here, if any.
        analysis: public name of the analysis that further releases belong to, such as a paper.
    """

    rule: Filter
    outer: BaseLedger | None = None
    analysis: str | None = None
    _turn: tuple[int, threading.RLock] | None = None  # process id and its lock

    @property
    def turn(self) -> AbstractContextManager[Any]:
        """A lock that is held from the check of a whole conversation to its last question.

        Without it, another thread could spend the rest of the budget before the conversation ends,
        and the part already paid would be wasted.
        """
        with _TURNS:
            # a copy in a forked process may be locked
            if self._turn is None or self._turn[0] != os.getpid():
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
        """Check and spend in one step; release the value only after this returns.

        Args:
            release: the event of the release, or its guarantee.
            label: public description of the release; `analysis` is put in front of it.
            key: name of the question. The same key is never spent twice. It is stored: do not put
                anything private into it.
            assumptions: assumptions of the price; those of a guarantee are added automatically.
            unit: the protected unit; a guarantee states it itself. Costs for different units cannot
                be added up: a release that protects single rows costs a household with several rows
                more.
            whole: the announced price of the conversation that this release belongs to. The first
                announcement in a ledger decides how δ is used (`filter`).

        Raises:
            AlreadySpent: the ledger has an entry under this key.
            BudgetExceeded: the release would exceed the limit.
            InvalidParameter: the ledger holds releases about another unit.
            UnknownEvent: the cost of the release is unknown.
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
            # first: after a crash in between, the cost is overstated, never understated
            if self.outer is not None:
                self.outer.spend(
                    event, label=label, key=key, assumptions=assumptions, unit=unit, whole=whole
                )
            self._append(entry)
            self._note(entry)
        return entry

    def refusal(self, release: Event | Guarantee | Price, *, key: str | None = None) -> str:
        """Why `spend` would refuse the release now; empty if it fits. This reserves nothing."""
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

        This is the total cost of the entries if their sizes were fixed in advance. If sizes
        depended on earlier answers, only `limit` is guaranteed.
        """
        with self._exclusive():
            return self.rule.spent(self._price)

    @property
    def remaining(self) -> Budget:
        """The remaining budget, rounded down: a conversation with this (ε, δ) is accepted.

        If δ > 0, this is a conversation with Gaussian noise; `remaining_pure` is for others.
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
            `remaining_pure` and `remaining` after these releases.

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
        """A sentence if at least 80 % of ε is spent, otherwise empty."""
        share = self.spent.epsilon / self.limit.epsilon
        if share < _NEARLY_SPENT:
            return ""
        return f"{min(share, 1):.0%} of the budget {self.limit} is spent; left: {self.left()}"

    @property
    def releases(self) -> list[tuple[Entry, ...]]:
        """The entries, with consecutive entries of one conversation grouped."""
        found: list[tuple[Entry, ...]] = []
        for entry in self.entries:
            whole, number = entry.part_of
            if found and found[-1][-1].part_of == (whole, number - 1):
                found[-1] += (entry,)
            else:
                found.append((entry,))
        return found

    def table(self, *, parts: bool = False) -> str:
        """All entries as text: one line for each conversation; with `parts`, for each question."""
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
        """Whether all entries together are within the limit; checked after reading a file."""
        return self.rule.allows(self._way, self._charged)

    def _way_for(self, price: Price, whole: Price | None) -> str | None:
        """How an empty ledger uses its δ, given the first announcement."""
        announced = None if whole is None else self.rule.way(self.rule.charge(whole))
        one = self.rule.charge(price)
        if announced is not None and self.rule.allows(announced, one):
            return announced
        return self.rule.way(one)

    def _forget(self) -> None:
        """Reset the state in memory; a ledger on disk is then read again."""
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
        """Exclude other threads and processes, and read new entries."""

    @abstractmethod
    def _append(self, entry: Entry) -> None:
        """Store one entry."""

    def __copy__(self) -> Self:
        """Return the ledger itself: a copy, as by `clone`, could spend the budget twice."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        # The state of the last operation: a repr must not wait for a lock or read a file.
        known = dict.fromkeys(text for entry in self._entries for text in entry.assumptions)
        assuming = "".join(f", assuming {text}" for text in known)
        name, number = type(self).__name__, len(self._entries)
        return f"{name}(limit {self.limit}, entries: {number}{assuming})"


class Ledger(BaseLedger):
    """A budget kept in memory: for one process, lost when it ends.

    Args:
        limit_epsilon: total ε that may be spent.
        limit_delta: total δ that may be spent. With 0, the ε of releases are added; otherwise
            tighter composition applies (`dpfda.privacy.filter`).

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
        # a copy in a forked process: both could spend the whole budget
        if self._process != os.getpid():
            raise BudgetExceeded(_ONE_PROCESS)
        return self._lock

    def __reduce__(self) -> str:
        raise TypeError(_ONE_PROCESS)

    def _append(self, entry: Entry) -> None:
        """Do nothing: `_note` stores the entry in memory."""


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
    """Check a sequence of public texts."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidParameter(name, "a sequence of strings", values)
    texts = tuple(values)
    for text in texts:
        _check_text(name, text)
    return texts
