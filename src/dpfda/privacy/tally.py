"""The releases of this process with real noise, with or without a ledger.

Each fit states its own ε, so five fits about the same people cost five times as much. `curate`,
`simulate` and `convene` register each release here: `payer` selects the ledger to charge, `note`
records the release. The second release without a ledger warns, once per process.

Seeded simulations are not counted, neither here nor by an enclosing `budget`: seeded noise protects
nobody, so no ε would be valid. A ledger that is passed explicitly (``ledger=``) is charged for them
too, so that a budget can be rehearsed.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import PathLike
from typing import Any
from weakref import WeakSet

from dpfda.errors import BudgetExceeded, InvalidParameter, PrivacyWarning, warn
from dpfda.noise import Source
from dpfda.privacy.composition import Budget, total
from dpfda.privacy.cost import DELTA
from dpfda.privacy.events import Event
from dpfda.privacy.guarantee import Guarantee, as_table
from dpfda.privacy.ledger import BaseLedger, Ledger, as_event
from dpfda.privacy.ledger_file import FileLedger
from dpfda.privacy.price import Price, compose

_REMEDY = (
    "pass ledger=, or fit inside `with dpfda.budget(epsilon=...):`; dpfda.spent() lists what was"
    " released"
)


@dataclass(frozen=True, kw_only=True)
class Tallied:
    """One release of this process.

    Attributes:
        label: description of the release.
        promise: its guarantee, with its unit and its assumptions.
        event: its event; by default one for which only ε and δ are known.
        time: time of the release, in seconds since 1970 (UTC).
        paid: whether a ledger was charged.
    """

    label: str
    promise: Guarantee
    time: float
    paid: bool
    event: Event | None = None

    def __post_init__(self) -> None:
        if self.event is None:
            object.__setattr__(self, "event", as_event(self.promise))

    @property
    def when(self) -> str:
        """The time in readable form."""
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.time))

    @property
    def cost(self) -> str:
        """The announced cost, with its unit."""
        cost = Budget(epsilon=self.promise.epsilon, delta=self.promise.delta)
        return f"{cost} a {self.promise.unit}"

    def __str__(self) -> str:
        paid = "" if self.paid else ", without a ledger"
        return f"{self.when}  {self.label} ({self.promise.model}): {self.cost}{paid}"


@dataclass(frozen=True)
class Spent:
    """The releases of a process with real noise, in order; printed as a table with totals.

    Examples:
        >>> print(Spent(()))
        nothing was released with real noise
        >>> twice = (Tallied(label="mean", promise=Guarantee(epsilon=1), time=0, paid=False),) * 2
        >>> print(Spent(twice))
           1  1970-01-01 00:00  mean (central): ε = 1 a person, without a ledger
           2  1970-01-01 00:00  mean (central): ε = 1 a person, without a ledger
        together, for a person who is in all of them: ε = 2
    """

    releases: tuple[Tallied, ...]

    @property
    def totals(self) -> dict[str, Budget]:
        """The total cost for each kind of unit, as if all releases were about the same units.

        Costs for different kinds of units are not added.
        """
        units = dict.fromkeys(release.promise.unit for release in self.releases)
        return {
            unit: together([one for one in self.releases if one.promise.unit == unit])
            for unit in units
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "releases": [
                vars(release) | {name: getattr(release, name).to_dict() for name in _NESTED}
                for release in self.releases
            ],
            "totals": {unit: vars(budget) for unit, budget in self.totals.items()},
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def _repr_html_(self) -> str:
        """HTML for notebooks: a line for each release, and the totals."""
        rows = [
            (number, one.when, one.label, one.promise.model, one.cost, "yes" if one.paid else "no")
            for number, one in enumerate(self.releases, 1)
        ]
        headings = ("", "when (UTC)", "release", "model", "cost", "ledger")
        whole = [
            f"for a {unit} who is in all of them: {cost}" for unit, cost in self.totals.items()
        ]
        note = "; ".join(whole) or str(self)
        return as_table(rows, headings=headings, note=note)

    def __str__(self) -> str:
        if not self.releases:
            return "nothing was released with real noise"
        lines = [f"{number:>4}  {one}" for number, one in enumerate(self.releases, 1)]
        lines += [
            f"together, for a {unit} who is in all of them: {total}"
            for unit, total in self.totals.items()
        ]
        assumed = dict.fromkeys(text for one in self.releases for text in one.promise.assumptions)
        return "\n".join([*lines, *(f"assuming {text}" for text in assumed)])


_NESTED = ("promise", "event")  # fields that are objects


def together(releases: Sequence[Tallied]) -> Budget:
    """The cost of releases about the same unit, with sizes fixed in advance (`total`).

    Gaussian noise is counted at the largest δ that one of them announced. Releases for which only
    (ε, δ) is known add their δ to it.

    Examples:
        >>> from dpfda.privacy.cost import Cost
        >>> pure, both = Guarantee(epsilon=1.0), Guarantee(epsilon=1.0, delta=1e-5)
        >>> at = {"label": "mean", "time": 0, "paid": False}
        >>> print(together([Tallied(promise=pure, **at)] * 2))
        ε = 2
        >>> print(together([Tallied(promise=both, **at)] * 2))  # only (ε, δ) is known
        ε = 2, δ = 2e-05
        >>> noise = Cost(epsilon=1.0, delta=1e-5).event
        >>> print(together([Tallied(promise=both, event=noise, **at)] * 2))  # not 2: μ² adds up
        ε = 1.46517, δ = 1e-05
    """
    prices = [compose([one.event]) for one in releases if one.event is not None]
    noisy = [
        one.promise.delta for one, price in zip(releases, prices, strict=True) if price.precision
    ]
    return total(sum(prices, Price()), delta=max(noisy, default=0.0))


class _Process:
    """The state of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.releases: list[Tallied] = []
        self.warned = False
        self.open: list[WeakSet[threading.Thread]] = []
        """For each open `budget`: the threads that are older, hence outside it."""


_process = _Process()
_enclosing: ContextVar[BaseLedger | None] = ContextVar("budget", default=None)


def spent() -> Spent:
    """All releases of this process with real noise, and their total cost.

    Other processes, such as those that joblib starts, have separate tallies. Use a `FileLedger` to
    count across processes.
    """
    with _process.lock:
        return Spent(tuple(_process.releases))


@contextmanager
def budget(
    epsilon: float,
    delta: float = DELTA,
    *,
    path: str | PathLike[str] | None = None,
) -> Iterator[BaseLedger]:
    """Keep all fits inside within one budget: ``with dpfda.budget(epsilon=2) as ledger:``.

    The effect is that of passing ``ledger=`` to every release with real noise inside. Joblib then
    works in threads, because other processes could not see the budget. Two threads may have
    separate budgets. A thread that is started manually while a budget is open must state whether it
    is inside, by ``contextvars.copy_context().run`` or ``ledger=``; otherwise its releases are
    refused. Older threads are outside. If budgets are nested, both are charged.

    Args:
        epsilon: total ε of all releases inside.
        delta: their total δ; 0 for pure ε, which excludes Gaussian noise.
        path: file of the ledger (`FileLedger`), for further runs and other processes.

    Raises:
        BudgetExceeded: a fit would exceed the budget; it releases nothing.

    Examples:
        >>> with budget(epsilon=2.0) as ledger:
        ...     print(ledger)
        Ledger(limit ε = 2, δ = 1e-06, entries: 0)
    """
    ledger: BaseLedger = (
        Ledger(epsilon, limit_delta=delta)
        if path is None
        else FileLedger(path, limit_epsilon=epsilon, limit_delta=delta)
    )
    ledger.outer = _around()
    token = _enclosing.set(ledger)
    older = WeakSet(threading.enumerate())
    with _process.lock:
        _process.open.append(older)
    try:
        with _threads():
            yield ledger
    finally:
        with _process.lock:
            _process.open.remove(older)
        _enclosing.reset(token)


def payer(ledger: BaseLedger | None, source: Source) -> BaseLedger | None:
    """The ledger to charge: the given one or, for real noise, that of an enclosing `budget`."""
    if ledger is not None and not isinstance(ledger, BaseLedger):
        raise InvalidParameter("ledger", "None or a ledger", ledger)
    return _around() if ledger is None and source.sampler == "exact" else ledger


def note(
    promise: Guarantee,
    *,
    label: str,
    source: Source,
    ledger: BaseLedger | None,
    event: Event | None = None,
) -> None:
    """Record an accepted release before its noise is drawn.

    Args:
        promise: its guarantee.
        label: public description.
        source: the source of its noise.
        ledger: the ledger to charge, from `payer`.
        event: its event, if more than ε and δ is known.
    """
    if source.sampler != "exact":
        return
    promise, paid = promise.drawn_from(source), ledger is not None
    one = Tallied(label=label, promise=promise, time=time.time(), paid=paid, event=event)
    with _process.lock:
        _process.releases.append(one)
        text = "" if _process.warned else _warning(_process.releases)
        _process.warned = _process.warned or bool(text)
    if text:
        warn(text, PrivacyWarning)


def pay(
    promise: Guarantee,
    *,
    label: str,
    source: Source,
    ledger: BaseLedger | None = None,
    event: Event | None = None,
) -> None:
    """Charge the whole guarantee at once and record the release; arguments as in `note`."""
    paying = payer(ledger, source)
    if paying is not None:
        assumptions, unit = promise.assumptions, promise.unit
        release = as_event(promise) if event is None else event
        paying.spend(release, label=label, assumptions=assumptions, unit=unit)
    note(promise, label=label, source=source, ledger=paying, event=event)


def _around() -> BaseLedger | None:
    """The innermost enclosing `budget`; None in a thread that is certainly outside."""
    here = _enclosing.get()
    if here is not None:
        return here
    # Threads do not inherit contexts, so a new one may be inside a budget that it does not see.
    with _process.lock:
        lost = any(threading.current_thread() not in older for older in _process.open)
    if lost:
        raise BudgetExceeded(
            "a budget was open when this thread began, and nothing says whether it is inside: start"
            " it by contextvars.copy_context().run, or pass ledger="
        )
    return None


def _warning(releases: Sequence[Tallied]) -> str:
    """The warning about the last release; empty before the second one without a ledger."""
    free = [release for release in releases if not release.paid]
    if releases[-1].paid:
        return ""
    if multiprocessing.parent_process() is not None:
        return (
            "a worker process releases with real noise and without a ledger: neither dpfda.spent()"
            " nor a budget of the process that started it counts this; pass ledger=FileLedger(...)"
        )
    if len(free) < 2:
        return ""
    totals = [f"{total} for a {unit}" for unit, total in Spent(tuple(free)).totals.items()]
    return (
        f"{len(free)} releases without a ledger cost {' and '.join(totals)} together, if they are"
        f" about the same data, and nothing limits the next ones: {_REMEDY}"
    )


def _threads() -> AbstractContextManager[Any]:
    """Let joblib, if installed, work in threads that inherit the enclosing budget."""
    try:
        joblib = import_module("joblib.parallel")
    except ImportError:
        return nullcontext()

    class InContext(joblib.BACKENDS["threading"]):  # type: ignore[misc,name-defined]
        def submit(
            self, func: Callable[[], object], callback: Callable[[object], None] | None = None
        ) -> object:
            return super().submit(partial(copy_context().run, func), callback)

        def apply_async(
            self, func: Callable[[], object], callback: Callable[[object], None] | None = None
        ) -> object:  # in joblib before 1.5
            return super().apply_async(partial(copy_context().run, func), callback)

    return joblib.parallel_config(backend=InContext())  # type: ignore[no-any-return]
