"""Grids of simulations: every cell once, on all cores, kept where a killed process finds it again.

A cell is a function and its arguments, which are its name: methods, ε, data sets, numbers of
replications. What it finds depends on its name alone, so that neither the order, nor the number of
processes, nor where they run changes a result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from dpfda.errors import MissingExtra
from dpfda.planning.cells import code_hash, opened, to_plain

Found = TypeVar("Found")
Name = tuple[Any, ...]
Backend = Literal["loky", "dask", "threading"]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """How grids are computed.

    Attributes:
        jobs: processes that work on cells; 1 is this one alone.
        backend: ``loky``, processes of this machine, ``dask``, those of a cluster, or
            ``threading``, threads of this process: for what is soon done and large.
        store: the file that keeps what cells have found; None keeps nothing.
        tell: called with the share that is done.

    Examples:
        >>> Sweep().run(pow, [(2, 3), (2, 4)])
        [8, 16]
    """

    jobs: int = 1
    backend: Backend = "loky"
    store: Path | None = None
    tell: Callable[[float], None] | None = None

    def run(
        self, work: Callable[..., Found], names: Iterable[Name], *, bound: str | None = None
    ) -> list[Found]:
        """What `work(*name)` finds, for every name, in their order.

        Args:
            work: a function of a module. What it is bound to (`functools.partial`) is part of the
                name of its cells.
            names: arguments of plain values, of one cell each.
            bound: what tells the things that it is bound to from others, where that is known better
                than by looking at them.
        """
        wanted = list(names)
        if self.store is None:
            found = dict(self._computed(work, wanted, range(len(wanted)), known=0))
            return [found[place] for place in range(len(wanted))]
        keys = _keys(work, wanted, bound)
        with opened(self.store, code=code_hash(_function(work))) as cells:
            first = {key: place for place, key in reversed(list(enumerate(keys)))}
            missing = sorted(place for key, place in first.items() if key not in cells)
            known = len(first) - len(missing)
            for place, value in self._computed(work, wanted, missing, known=known):
                cells.add(keys[place], wanted[place], value)
            return [cells[key] for key in keys]

    def of(self, *settings: Any) -> Sweep:
        """The same with a store of its own for these settings: arrays, tables and plain values."""
        if self.store is None:
            return self
        name = f"{self.store.stem}@{_content_hash(settings)}{self.store.suffix}"
        return replace(self, store=self.store.with_name(name))

    def forget(self) -> None:
        """Delete the store, and those of all settings."""
        if self.store is not None:
            pattern = f"{self.store.stem}@*{self.store.suffix}"
            for path in (self.store, *self.store.parent.glob(pattern)):
                path.unlink(missing_ok=True)

    def _computed(
        self, work: Callable[..., Found], names: Sequence[Name], places: Sequence[int], known: int
    ) -> Iterator[tuple[int, Found]]:
        """Cells as they are finished, in any order."""
        for done, cell in enumerate(self._worked(work, names, places), start=1):
            yield cell
            if self.tell is not None:
                self.tell((known + done) / (known + len(places)))

    def _worked(
        self, work: Callable[..., Found], names: Sequence[Name], places: Sequence[int]
    ) -> Iterable[tuple[int, Found]]:
        if self.jobs == 1 or len(places) < 2:
            return (_cell(work, place, names[place]) for place in places)
        try:
            from joblib import Parallel, delayed, parallel_config
        except ImportError:
            raise MissingExtra("joblib", "learn") from None
        with parallel_config(self.backend, n_jobs=self.jobs):  # `Parallel` does not know dask
            workers = Parallel(return_as="generator_unordered")
        found: Iterable[tuple[int, Found]] = workers(
            delayed(_cell)(work, place, names[place]) for place in places
        )
        return found


ALONE = Sweep()
"""In this process, keeping nothing."""


def _cell(work: Callable[..., Found], place: int, name: Name) -> tuple[int, Found]:
    return place, work(*name)


def _function(work: Callable[..., Any]) -> Callable[..., Any]:
    return _function(work.func) if isinstance(work, partial) else work


def _content_hash(values: Any) -> str:
    try:
        from joblib import hash as hashed
    except ImportError:
        raise MissingExtra("joblib", "learn") from None
    return str(hashed(values))


def _keys(work: Callable[..., Any], names: Sequence[Name], bound: str | None) -> list[str]:
    """What tells a cell from all others of the same code."""
    if bound is None and isinstance(work, partial):
        bound = _content_hash((work.args, work.keywords))
    inner = _function(work)
    return [_digest((inner.__module__, inner.__qualname__, bound, *name)) for name in names]


def _digest(name: Name) -> str:
    return hashlib.sha256(json.dumps(to_plain(name)).encode()).hexdigest()
