"""Budgets that are spent before a value leaves, and never twice.

`Ledger` keeps its entries in memory; `FileLedger` and `SQLiteLedger` keep them on disk, survive
kill -9 and serve several processes at once. All three behave alike. A ledger belongs to one
protected unit (a person, a data set); it stores what was released, never what it was about.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dpfda import _validate
from dpfda._registry import Registered
from dpfda.errors import AlreadySpent, BudgetExceeded, InvalidParameter
from dpfda.privacy.accountant import best_known, fits
from dpfda.privacy.events import ApproximateEvent, Event, PureEvent
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.price import Price, compose, exact, rounded_down, rounded_up


@dataclass(frozen=True, kw_only=True)
class Budget:
    """An amount of privacy.

    Example:
        >>> print(Budget(epsilon=1.0, delta=1e-6))
        ε = 1, δ = 1e-06
    """

    epsilon: float
    delta: float = 0.0

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One acknowledged spend.

    Attributes:
        sequence: position in the ledger, from 1.
        label: what the release was, in words.
        event: the release, as an accountant sees it.
        time: when, in seconds since 1970 (UTC).
        key: the question it answered, if it may be answered once only.
        assumptions: what the price rests on, in words.
    """

    sequence: int
    label: str
    event: Event
    time: float
    key: str | None = None
    assumptions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "sequence": self.sequence,
            "label": self.label,
            "event": self.event.to_dict(),
            "time": self.time,
            "key": self.key,
            "assumptions": list(self.assumptions),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `to_dict`."""
        event, assumptions = Event.from_dict(data["event"]), tuple(data["assumptions"])
        return cls(**data | {"event": event, "assumptions": assumptions})


class BaseLedger(Registered, family="ledger"):
    """What all ledgers share; a storage form says how to lock, read and append.

    Attributes:
        limit: what may be spent in all. With a δ above 0, entries are composed by
            `accountant.best_known`; with δ = 0 their ε add up exactly.
    """

    limit: Budget

    def spend(
        self,
        release: Event | Guarantee,
        *,
        label: str,
        key: str | None = None,
        assumptions: Iterable[str] = (),
    ) -> Entry:
        """Check and spend in one step. Call it before the value leaves; send only if it returns.

        Args:
            release: what is about to be released, or what that promises.
            label: public words for the record.
            key: name of the question. The same key is never spent twice. It is stored: do not put
                anything private into it.
            assumptions: what the price rests on; those of a guarantee are kept by themselves.

        Raises:
            AlreadySpent: the key was spent before.
            BudgetExceeded: the limit does not allow it.
            UnknownEvent: no accountant can price the release.
        """
        event = _as_event(release)
        price = compose([event])
        _check_text("label", label)
        if key is not None:
            _check_text("key", key)
        with self._exclusive():
            if key in self._keys:
                raise AlreadySpent(f"the key {key!r} was spent before; resend the stored answer")
            if not self._allows(price):
                raise BudgetExceeded(self._refusal(price))
            entry = Entry(
                sequence=len(self._entries) + 1,
                label=label,
                event=event,
                time=time.time(),
                key=key,
                assumptions=(*getattr(release, "assumptions", ()), *assumptions),
            )
            self._append(entry)
            self._note(entry)
        return entry

    def would_exceed(self, release: Event | Guarantee | Price, *, key: str | None = None) -> bool:
        """Whether `spend` would be refused now. Others may be faster: only `spend` binds."""
        price = release if isinstance(release, Price) else compose([_as_event(release)])
        with self._exclusive():
            return key in self._keys or not self._allows(price)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything spent so far, in order."""
        with self._exclusive():
            return tuple(self._entries)

    @property
    def spent(self) -> Budget:
        """The (ε, δ) of all entries together, rounded up."""
        with self._exclusive():
            return self._spent()

    @property
    def remaining(self) -> Budget:
        """What is left, rounded down: a pure release of this ε will be accepted."""
        spent = self.spent
        return Budget(
            epsilon=_difference(self.limit.epsilon, spent.epsilon),
            delta=_difference(self.limit.delta, spent.delta),
        )

    def _allows(self, price: Price) -> bool:
        return fits(self._price + price, epsilon=self.limit.epsilon, delta=self.limit.delta)

    def _spent(self) -> Budget:
        price = self._price
        plain = Budget(epsilon=rounded_up(price.epsilon), delta=rounded_up(price.delta))
        within = plain.epsilon <= self.limit.epsilon and plain.delta <= self.limit.delta
        if within and not price.precision:
            return plain
        epsilon, delta = best_known(price, delta=self.limit.delta)
        return Budget(epsilon=epsilon, delta=delta)

    def _refusal(self, price: Price) -> str:
        cost = f"ε = {float(price.epsilon):g}" if price.epsilon else "the release"
        return f"{cost} does not fit into {self.limit}, of which {self._spent()} is spent"

    def _forget(self) -> None:
        """Start from an empty picture; stored forms then read everything again."""
        self._entries: list[Entry] = []
        self._keys: set[str | None] = set()
        self._price = Price()

    def _note(self, entry: Entry) -> None:
        self._price = self._price + compose([entry.event])
        if entry.key is not None:
            self._keys.add(entry.key)
        self._entries.append(entry)

    @abstractmethod
    def _exclusive(self) -> AbstractContextManager[None]:
        """Nobody else, thread or process, spends inside, and the picture is up to date."""

    @abstractmethod
    def _append(self, entry: Entry) -> None:
        """Store one entry."""

    @classmethod
    @abstractmethod
    def example(cls, directory: Path, *, limit_epsilon: float, limit_delta: float = 0.0) -> Self:
        """A ledger for tests, kept in `directory` if it is kept at all."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(limit {self.limit})"


class Ledger(BaseLedger, name="memory"):
    """A budget kept in memory: for one process, forgotten when it ends.

    Args:
        limit_epsilon: ε that may be spent in all.
        limit_delta: δ that may be spent in all.

    Example:
        >>> ledger = Ledger(1.0)
        >>> ledger.spend(PureEvent(epsilon=0.4), label="mean curve").sequence
        1
        >>> ledger.remaining
        Budget(epsilon=0.6, delta=0.0)
        >>> ledger.would_exceed(PureEvent(epsilon=0.7))
        True
    """

    def __init__(self, limit_epsilon: float, *, limit_delta: float = 0.0) -> None:
        self.limit = checked_limit(limit_epsilon, limit_delta)
        self._lock = threading.Lock()
        self._forget()

    def _exclusive(self) -> AbstractContextManager[Any]:
        return self._lock

    def _append(self, entry: Entry) -> None:
        """Nothing to do: `_note` is the storage."""

    @classmethod
    def example(cls, directory: Path, *, limit_epsilon: float, limit_delta: float = 0.0) -> Self:
        """A new ledger; `directory` stays untouched."""
        return cls(limit_epsilon, limit_delta=limit_delta)


def checked_limit(limit_epsilon: Any, limit_delta: Any) -> Budget:
    """A limit that can be kept: ε above 0, δ either 0 or strictly between 0 and 1."""
    epsilon = _validate.positive("limit_epsilon", limit_epsilon)
    if limit_delta == 0:
        return Budget(epsilon=epsilon)
    return Budget(epsilon=epsilon, delta=_validate.fraction("limit_delta", limit_delta))


def _as_event(release: Event | Guarantee) -> Event:
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


def _difference(limit: float, spent: float) -> float:
    return rounded_down(exact(limit) - exact(spent)) if spent < limit else 0.0
