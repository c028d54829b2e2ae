"""A ledger in one append-only text file.

Each line is ``{"checksum": ..., "record": {...}}``. The first record holds the limit, the others
one entry each. A checksum covers its record and the checksum before it, so a changed, missing or
reordered line is noticed.

After a crash the last line may be incomplete. A record is acknowledged only after it, and its line
end, reached the disk; so a last line without its end was never acknowledged. If it is complete but
for that end it is counted (to be on the safe side); otherwise it is cut off. Any other line that
does not check is damage, and a damaged ledger refuses everything.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpfda.errors import LedgerDamaged
from dpfda.privacy._file_lock import locked, sync_directory
from dpfda.privacy.ledger import Budget, Entry
from dpfda.privacy.ledger_stored import StoredLedger, canonical_json

_FORMAT = "dpfda-ledger-1"
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
        self._checksum = ""  # of the last line read

    @contextmanager
    def _locked(self, *, create: bool = False) -> Iterator[None]:
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
        # Without `create` a ledger that vanished is an error, not a new budget.
        self._file = os.open(self.path, flags | (os.O_CREAT if create else 0), 0o600)
        try:
            with locked(self._file):
                yield
        finally:
            os.close(self._file)

    def _store_limit(self, limit: Budget) -> None:
        header = {"format": _FORMAT, "limit_epsilon": limit.epsilon, "limit_delta": limit.delta}
        self._write(header)
        sync_directory(self.path.parent)

    def _append(self, entry: Entry) -> None:
        self._write(entry.to_dict())

    def _read(self) -> None:
        if os.fstat(self._file).st_size < self._offset:
            raise LedgerDamaged(f"{self.path} is shorter than it was")
        with open(self._file, "rb", closefd=False) as stream:
            stream.seek(self._offset)
            *lines, rest = stream.read().split(b"\n")
        for line in lines:
            self._take(line)
        if rest:
            self._mend(rest)

    def _take(self, line: bytes) -> None:
        """Note one complete line."""
        parsed = _parsed(line, self._checksum)
        if parsed is None:
            raise LedgerDamaged(f"{self.path} has a line that does not match its checksum")
        record, checksum = parsed
        if self._stored_limit is not None:
            self._note(Entry.from_dict(record))
        elif record.get("format") == _FORMAT:
            self._stored_limit = Budget(
                epsilon=record["limit_epsilon"], delta=record["limit_delta"]
            )
        else:
            raise LedgerDamaged(f"{self.path} is not a ledger of this version")
        self._offset += len(line) + 1
        self._checksum = checksum

    def _mend(self, rest: bytes) -> None:
        """Deal with a last line that has no end."""
        if not _START.startswith(rest[: len(_START)]):
            raise LedgerDamaged(f"{self.path} ends in something that is not a ledger's")
        if _parsed(rest, self._checksum) is None:
            os.ftruncate(self._file, self._offset)
        else:
            os.write(self._file, b"\n")
            self._take(rest)
        os.fsync(self._file)

    def _write(self, record: dict[str, Any]) -> None:
        checksum = _checksum(record, self._checksum)
        line = canonical_json({"checksum": checksum, "record": record}).encode() + b"\n"
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError:
            os.ftruncate(self._file, self._offset)  # disk full: leave no half line
            raise
        os.fsync(self._file)
        self._offset += len(line)
        self._checksum = checksum


def _parsed(line: bytes, previous: str) -> tuple[dict[str, Any], str] | None:
    try:
        data = json.loads(line)
        record, checksum = data["record"], data["checksum"]
    except (ValueError, KeyError, TypeError):
        return None
    return (record, checksum) if checksum == _checksum(record, previous) else None


def _checksum(record: dict[str, Any], previous: str) -> str:
    text = previous + canonical_json(record)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
