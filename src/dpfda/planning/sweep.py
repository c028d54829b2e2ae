"""Grids of simulations on all cores, whose finished cells are stored in a file.

A cell is a function and its arguments (methods, ε, data sets, numbers of replications), which are
the name of the cell. The result of a cell depends on its name only, and not on the order, the
number of processes or the machine.

The file is only appended to and has one line of JSON for each finished cell. Its first line states
the hash of the code. If a process is killed while it writes a line, the incomplete line is removed
when the file is opened again, so that a sweep can continue.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from io import FileIO
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import scipy

from dpfda._version import __version__
from dpfda.errors import DpfdaError, InvalidParameter, MissingExtra
from dpfda.privacy.durable import locked

_SYNC = 1.0  # smallest number of seconds between two syncs to disk
_CODE = {".py", ".toml", ".csv", ".json"}  # files that results may depend on


class Cells:
    """The finished cells of a sweep and their file; see `opened`."""

    def __init__(self, file: FileIO, path: Path, code: str) -> None:
        self._file, self._path, self._synced = file, path, time.monotonic()
        self._known: dict[str, Any] = {}
        header, *lines = list(_whole_lines(file)) or [None]
        if header != {"code": code}:
            lines = []
            file.seek(0)
            file.truncate()
            self._append({"code": code})
        self._known = {line["cell"]: line["found"] for line in lines}

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __getitem__(self, key: str) -> Any:
        return from_plain(self._known[key])

    def add(self, key: str, name: object, found: object) -> None:
        """Store the result of a cell; it is not lost if the process is killed later."""
        self._known[key] = to_plain(found)
        self._append({"cell": key, "name": to_plain(name), "found": self._known[key]})

    def sync(self) -> None:
        """Wait until all results are on the disk, so that they survive a power failure."""
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def _append(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        try:
            if self._file.write(text) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if time.monotonic() - self._synced > _SYNC:
                self.sync()
        except OSError as error:
            raise DpfdaError(f"cells cannot be kept in {self._path}: {error.strerror}") from None


@contextmanager
def opened(path: Path, *, code: str) -> Iterator[Cells]:
    """Open the cells in a file, with a lock; other processes wait.

    Args:
        path: the file; its folder is created.
        code: hash of the code, see `code_hash`; cells of other code are deleted.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    # Unbuffered, so that written lines are not lost if this process ends.
    with FileIO(descriptor, "r+b") as file, locked(descriptor):
        cells = Cells(file, path, code)
        try:
            yield cells
        finally:
            cells.sync()


def _whole_lines(file: FileIO) -> Iterator[Any]:
    """Read all lines up to the first incomplete one, and truncate the file there."""
    end = 0
    *lines, _ = file.read().split(b"\n")  # the last part has no line end
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            break
        end += len(line) + 1
        yield entry
    file.seek(end)
    file.truncate()


def code_hash(work: Callable[..., Any]) -> str:
    """A hash of all code that the results of a function may depend on: dpfda and its own package.

    Examples:
        >>> code_hash(code_hash) == code_hash(to_plain)
        True
    """
    parts = work.__module__.split(".")
    above = [".".join(parts[: size + 1]) for size in range(len(parts))]
    # The outermost package that has a file; namespace packages have no code.
    own = next((name for name in above if getattr(sys.modules[name], "__file__", None)), None)
    if own is None:
        raise InvalidParameter("work", "defined in a file, where cells are kept", work.__module__)
    return _hashed("dpfda", own)


@lru_cache
def _hashed(*modules: str) -> str:
    digest = hashlib.sha256(f"{__version__} {np.__version__} {scipy.__version__}".encode())
    for name in sorted(set(modules)):
        path = Path(str(sys.modules[name].__file__))
        below = path.parent.rglob("*") if hasattr(sys.modules[name], "__path__") else [path]
        for file in sorted(entry for entry in below if entry.suffix in _CODE):
            digest.update(f"\0{file.relative_to(path.parent)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def to_plain(value: object) -> object:
    """A result as JSON values; `from_plain` restores it exactly.

    Examples:
        >>> from_plain(to_plain({("a", 1): np.array([0.1, 0.2])}))
        {('a', 1): array([0.1, 0.2])}
    """
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        data = b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": data, "dtype": value.dtype.str, "shape": value.shape}
    if isinstance(value, list):
        return [to_plain(entry) for entry in value]
    if isinstance(value, tuple):
        return {"tuple": [to_plain(entry) for entry in value]}
    if isinstance(value, dict):
        return {"items": [[to_plain(key), to_plain(entry)] for key, entry in value.items()]}
    rule = "made of numbers, text, arrays of numbers, lists, tuples and dictionaries"
    raise InvalidParameter("a cell", rule, type(value).__name__)


def from_plain(value: object) -> Any:
    """The original value of an output of `to_plain`."""
    if isinstance(value, list):
        return [from_plain(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(from_plain(entry) for entry in value["tuple"])
    if "items" in value:
        return {from_plain(key): from_plain(entry) for key, entry in value["items"]}
    flat = np.frombuffer(b64decode(value["array"]), dtype=value["dtype"])
    return flat.reshape(value["shape"]).copy()


Found = TypeVar("Found")
Name = tuple[Any, ...]
Backend = Literal["loky", "dask", "threading"]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Settings for the computation of grids.

    Attributes:
        jobs: number of processes; with 1, only this process is used.
        backend: ``loky`` for processes of this machine, ``dask`` for those of a cluster, or
            ``threading`` for threads of this process, which suits short work with large data.
        store: the file that stores the results of cells; None to store nothing.
        tell: called with the finished share of the cells.

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
        """The results of `work(*name)` for every name, in order.

        Args:
            work: a function at module level. Arguments bound by `functools.partial` are part of the
                names of its cells.
            names: the arguments of each cell, as plain values.
            bound: an identifier of the bound arguments; by default a hash of them.
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

    def of(self, *settings: object) -> Sweep:
        """A sweep with a separate store for these settings (arrays, tables and plain values)."""
        if self.store is None:
            return self
        name = f"{self.store.stem}@{_content_hash(settings)}{self.store.suffix}"
        return replace(self, store=self.store.with_name(name))

    def forget(self) -> None:
        """Delete the store, and the stores of all settings."""
        if self.store is not None:
            pattern = f"{self.store.stem}@*{self.store.suffix}"
            for path in (self.store, *self.store.parent.glob(pattern)):
                path.unlink(missing_ok=True)

    def _computed(
        self, work: Callable[..., Found], names: Sequence[Name], places: Sequence[int], known: int
    ) -> Iterator[tuple[int, Found]]:
        """Compute cells, and yield their places and results as they finish, in any order."""
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
"""A sweep in this process that stores nothing."""


def _cell(work: Callable[..., Found], place: int, name: Name) -> tuple[int, Found]:
    return place, work(*name)


def _function(work: Callable[..., Any]) -> Callable[..., Any]:
    return _function(work.func) if isinstance(work, partial) else work


def _content_hash(values: object) -> str:
    try:
        from joblib import hash as hashed
    except ImportError:
        raise MissingExtra("joblib", "learn") from None
    return str(hashed(values))


def _keys(work: Callable[..., Any], names: Sequence[Name], bound: str | None) -> list[str]:
    """The keys of cells, unique for the same code."""
    if bound is None and isinstance(work, partial):
        bound = _content_hash((work.args, work.keywords))
    inner = _function(work)
    return [_digest((inner.__module__, inner.__qualname__, bound, *name)) for name in names]


def _digest(name: Name) -> str:
    return hashlib.sha256(json.dumps(to_plain(name)).encode()).hexdigest()
