"""Finished cells of a sweep in one file that is only appended to: a line of JSON a cell.

The first line says of which code the cells are. A line is whole or it is not there: what a killed
process left half written is cut off when the file is opened again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from dpfda._version import __version__
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.privacy._file_lock import locked

_SYNC = 1.0  # seconds between two calls that wait for the disk
_CODE = {".py", ".toml", ".csv", ".json"}  # what results depend on


class Cells:
    """What is known of a sweep, and where more of it goes; see `opened`."""

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

    def add(self, key: str, name: Any, found: Any) -> None:
        """Keep what a cell has found. A killed process has lost nothing that was added."""
        self._known[key] = to_plain(found)
        self._append({"cell": key, "name": to_plain(name), "found": self._known[key]})

    def sync(self) -> None:
        """Wait until the disk has it, in case the machine loses its power."""
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
    """The cells in a file, for this process alone: another one that wants them waits.

    Args:
        path: the file; its folder is made.
        code: what the cells were found by, see `code_hash`; cells of other code are thrown away.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    # Not buffered: what was written is the system's, whatever becomes of this process.
    with FileIO(descriptor, "r+b") as file, locked(descriptor):
        cells = Cells(file, path, code)
        try:
            yield cells
        finally:
            cells.sync()


def _whole_lines(file: FileIO) -> Iterator[Any]:
    """What every line says, up to the first that is torn; the file ends there from now on."""
    end = 0
    *lines, _ = file.read().split(b"\n")  # what is last was not ended
    for line in lines:
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            break
        end += len(line) + 1
        yield said
    file.seek(end)
    file.truncate()


def code_hash(work: Callable[..., Any]) -> str:
    """A hash of all code that a function's results may depend on: this package's and its own.

    Examples:
        >>> code_hash(code_hash) == code_hash(to_plain)
        True
    """
    parts = work.__module__.split(".")
    above = [".".join(parts[: size + 1]) for size in range(len(parts))]
    # The outermost package; what only names a folder has no file, and no code of its own.
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


def to_plain(value: Any) -> Any:
    """What JSON can hold of a result; `from_plain` gives it back, to the last bit.

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


def from_plain(value: Any) -> Any:
    """The value that `to_plain` was given."""
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
