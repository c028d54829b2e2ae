"""A ledger in one append-only text file.

Each line is ``{"checksum": ..., "record": {...}}``. After a crash the last line may be incomplete.
A record is acknowledged only after it, and its line end, reached the disk; so a last line that the
mark does not count was never acknowledged. If it is complete but for its end it is counted (to be
on the safe side); otherwise it is cut off before the next line is written. Any other line that does
not check is damage, and a damaged ledger refuses everything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpfda.errors import LedgerDamaged
from dpfda.privacy._file_lock import sync_directory
from dpfda.privacy.ledger_stored import StoredLedger, canonical_json

_START = b'{"checksum":"'  # of every line


class FileLedger(StoredLedger, name="file"):
    """A ledger in a text file that people can read.

    Example:
        >>> import tempfile
        >>> from dpfda.privacy.events import PureEvent
        >>> directory = tempfile.TemporaryDirectory()
        >>> path = f"{directory.name}/budget.jsonl"
        >>> _ = FileLedger(path, limit_epsilon=1.0).spend(PureEvent(epsilon=0.3), label="mean")
        >>> FileLedger(path).remaining
        Budget(epsilon=0.7, delta=0.0)
        >>> directory.cleanup()
    """

    def _forget(self) -> None:
        super()._forget()
        self._offset = 0  # bytes read so far

    @contextmanager
    def _opened(self, *, create: bool) -> Iterator[None]:
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
        # Without `create` a ledger that vanished is an error, not a new budget.
        self._file = os.open(self.path, flags | (os.O_CREAT if create else 0), 0o600)
        try:
            yield
        finally:
            os.close(self._file)

    def _records(self) -> Iterator[tuple[Any, str]]:
        if os.fstat(self._file).st_size < self._offset:
            raise LedgerDamaged(f"{self.path} is shorter than it was")
        with open(self._file, "rb", closefd=False) as stream:
            stream.seek(self._offset)
            *lines, rest = stream.read().split(b"\n")
        for line in lines:
            if (parsed := _parsed(line)) is None:
                raise LedgerDamaged(f"{self.path} has a line that is not a ledger's")
            yield parsed
            self._offset += len(line) + 1
        if not _START.startswith(rest[: len(_START)]):
            raise LedgerDamaged(f"{self.path} ends in something that is not a ledger's")
        if (parsed := _parsed(rest)) is not None:
            yield parsed
            os.write(self._file, b"\n")
            os.fsync(self._file)
            self._offset += len(rest) + 1

    def _add(self, record: dict[str, Any], checksum: str) -> None:
        line = canonical_json({"checksum": checksum, "record": record}).encode() + b"\n"
        os.ftruncate(self._file, self._offset)  # half a line that was never acknowledged
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError:
            os.ftruncate(self._file, self._offset)  # disk full: leave no half line
            raise
        os.fsync(self._file)
        if not self._offset:
            sync_directory(self.path.parent)
        self._offset += len(line)


def _parsed(line: bytes) -> tuple[Any, str] | None:
    try:
        data = json.loads(line)
        return data["record"], data["checksum"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
