"""A ledger in an SQLite database, which may hold other tables as well.

Records are JSON: ``SELECT record ->> 'label', record ->> 'time' FROM dpfda_ledger`` reads them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from dpfda.errors import LedgerDamaged
from dpfda.privacy.ledger_stored import StoredLedger, canonical_json

_PATIENCE = 60.0  # seconds to wait for other processes

_SCHEMA = (
    """CREATE TABLE dpfda_ledger (
        sequence INTEGER PRIMARY KEY, record TEXT NOT NULL, checksum TEXT NOT NULL) STRICT""",
    """CREATE TRIGGER dpfda_ledger_keeps_records BEFORE UPDATE ON dpfda_ledger
        BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    """CREATE TRIGGER dpfda_ledger_loses_no_record BEFORE DELETE ON dpfda_ledger
        BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
)
_EXISTS = "SELECT 1 FROM sqlite_master WHERE name = 'dpfda_ledger'"
_SINCE = "SELECT sequence, record, checksum FROM dpfda_ledger WHERE sequence >= ? ORDER BY sequence"


class SQLiteLedger(StoredLedger, name="sqlite"):
    """A ledger in an SQLite database (write-ahead log, synchronous=FULL).

    Example:
        >>> import tempfile
        >>> from dpfda.privacy.events import PureEvent
        >>> directory = tempfile.TemporaryDirectory()
        >>> path = f"{directory.name}/budget.sqlite"
        >>> _ = SQLiteLedger(path, limit_epsilon=1.0).spend(PureEvent(epsilon=0.3), label="mean")
        >>> SQLiteLedger(path).remaining
        Budget(epsilon=0.7, delta=0.0)
        >>> directory.cleanup()
    """

    @contextmanager
    def _opened(self, *, create: bool) -> Iterator[None]:
        # Without O_CREAT a ledger that vanished is an error, not a new budget.
        os.close(os.open(self.path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
        try:
            with closing(_begun(self.path)) as self._connection:
                yield  # an exception in here closes without COMMIT, which rolls back
                self._connection.execute("COMMIT")  # durable when this returns
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise LedgerDamaged(f"{self.path} is not a sound SQLite database") from error
            raise

    def _records(self) -> Iterator[tuple[Any, str]]:
        rows, known = [], max(len(self._checksums) - 1, 0)
        if self._connection.execute(_EXISTS).fetchone() is not None:
            # Beginning with the last one known, to see that it is still there.
            rows = self._connection.execute(_SINCE, (known,)).fetchall()
        if self._checksums:
            last = rows.pop(0)[::2] if rows else None
            if last != (known, self._checksums[-1]):
                raise LedgerDamaged(f"{self.path} lost records")
        for sequence, record, checksum in rows:
            if sequence != len(self._checksums):
                raise LedgerDamaged(f"{self.path} lost records")
            yield _parsed(record), checksum

    def _add(self, record: dict[str, Any], checksum: str) -> None:
        if not self._checksums:
            for statement in _SCHEMA:  # not `executescript`, which would commit first
                self._connection.execute(statement)
        self._connection.execute(
            "INSERT INTO dpfda_ledger VALUES (?, ?, ?)",
            (len(self._checksums), canonical_json(record), checksum),
        )


def _parsed(record: str) -> Any:
    try:
        return json.loads(record)
    except (ValueError, RecursionError):
        return None  # which has another checksum


def _begun(path: os.PathLike[str]) -> sqlite3.Connection:
    """A connection that holds the write lock."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            connection.close()
            # Switching to the write-ahead log does not wait for others: try again.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        except BaseException:
            connection.close()
            raise
        else:
            return connection
