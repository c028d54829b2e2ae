"""A ledger in an SQLite database, which may hold other tables as well."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from dpfda.errors import LedgerDamaged
from dpfda.privacy.ledger import Budget, Entry
from dpfda.privacy.ledger_stored import StoredLedger, canonical_json

_PATIENCE = 60.0  # seconds to wait for other processes

_SCHEMA = """
CREATE TABLE dpfda_ledger_limit (
    one INTEGER PRIMARY KEY CHECK (one = 1), epsilon REAL NOT NULL, delta REAL NOT NULL
) STRICT;
CREATE TABLE dpfda_ledger_entry (
    sequence INTEGER PRIMARY KEY, label TEXT NOT NULL, event TEXT NOT NULL, time REAL NOT NULL,
    key TEXT UNIQUE, assumptions TEXT NOT NULL
) STRICT;
CREATE TRIGGER dpfda_ledger_keeps_entries BEFORE UPDATE ON dpfda_ledger_entry
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER dpfda_ledger_loses_no_entry BEFORE DELETE ON dpfda_ledger_entry
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER dpfda_ledger_keeps_limit BEFORE UPDATE ON dpfda_ledger_limit
BEGIN SELECT RAISE(ABORT, 'a ledger keeps its limit'); END;
"""

_EXISTS = "SELECT 1 FROM sqlite_master WHERE name = 'dpfda_ledger_limit'"
_NEWER = """
SELECT sequence, label, event, time, key, assumptions FROM dpfda_ledger_entry
WHERE sequence > ? ORDER BY sequence
"""


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
    def _locked(self, *, create: bool = False) -> Iterator[None]:
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

    def _store_limit(self, limit: Budget) -> None:
        # Not `executescript`, which would commit the transaction first.
        for statement in _SCHEMA.split(";\n"):
            if statement:
                self._connection.execute(statement)
        self._connection.execute(
            "INSERT INTO dpfda_ledger_limit VALUES (1, ?, ?)", (limit.epsilon, limit.delta)
        )

    def _read(self) -> None:
        if self._stored_limit is None:
            if self._connection.execute(_EXISTS).fetchone() is None:
                return
            limit = self._connection.execute("SELECT epsilon, delta FROM dpfda_ledger_limit")
            epsilon, delta = limit.fetchone()
            self._stored_limit = Budget(epsilon=epsilon, delta=delta)
        for row in self._connection.execute(_NEWER, (len(self._entries),)):
            sequence, label, event, when, key, assumptions = row
            if sequence != len(self._entries) + 1:
                raise LedgerDamaged(f"{self.path} has lost entries")
            data = {"sequence": sequence, "label": label, "time": when, "key": key}
            parsed = {"event": json.loads(event), "assumptions": json.loads(assumptions)}
            self._note(Entry.from_dict(data | parsed))

    def _append(self, entry: Entry) -> None:
        event = canonical_json(entry.event.to_dict())
        self._connection.execute(
            "INSERT INTO dpfda_ledger_entry VALUES (?, ?, ?, ?, ?, ?)",
            (
                entry.sequence,
                entry.label,
                event,
                entry.time,
                entry.key,
                json.dumps(entry.assumptions),
            ),
        )


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
