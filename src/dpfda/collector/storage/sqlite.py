"""One file, no configuration: SQLite with a write-ahead log."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event, make_url

from dpfda.collector.storage.base import Unavailable
from dpfda.collector.storage.database import FULL, LITTLE, PATIENCE, SMALL
from dpfda.collector.storage.sql import SqlStorage


class SqliteStorage(SqlStorage, name="sqlite"):
    """Studies in one SQLite file.

    Every commit is synced to the disk (``synchronous=FULL``): what was acknowledged survives a
    power cut, not only a crash of the process. Its files are their owner's only, and what is
    deleted is overwritten.
    """

    @classmethod
    def _connect(cls, url: str, *, patience: float) -> Engine:
        _make_private(make_url(url).database)
        engine = sa.create_engine(url, connect_args={"timeout": patience}, pool_size=4)
        event.listen(engine, "connect", _configure)
        event.listen(engine, "begin", _begin)
        return engine

    def __init__(self, engine: Engine, hurried: Engine) -> None:
        super().__init__(engine, hurried)
        self._file = _identity(engine.url.database)
        self._written_anew = -1  # after how many steps of forgetting

    def _require_room(self, connection: Connection) -> None:
        path = self._engine.url.database
        if _identity(path) != self._file:  # what is written goes where nobody will look for it
            raise Unavailable("the database's file was moved or deleted")
        # A small write may still find room in the log when no large one does.
        if self._file is not None:
            disk = os.statvfs(Path(str(path)).parent)
            if disk.f_bavail * disk.f_frsize < LITTLE:
                raise Unavailable(FULL)

    def _scrub(self) -> bool:
        """Write the file anew, as far as that is quick, and empty the write-ahead log.

        Deleted rows are overwritten, but where others stay SQLite moves rows about between pages
        and leaves copies; and the log holds pages as they were.
        """
        connection = self._engine.raw_connection()
        try:
            # Whoever reads just now, such as a backup, may not hold up those who write.
            connection.cursor().execute("PRAGMA busy_timeout=50")
            if self._written_anew != self._forgotten and self._is_small():
                connection.cursor().execute("VACUUM")
                self._written_anew = self._forgotten  # once, however long a reader delays the rest
            busy = connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError:  # somebody writes: the next time
            return False
        finally:
            connection.cursor().execute(f"PRAGMA busy_timeout={PATIENCE * 1000:.0f}")
            connection.close()
        return not busy

    def _is_small(self) -> bool:
        path = self._engine.url.database
        return self._file is not None and Path(str(path)).stat().st_size <= SMALL


def _identity(path: str | None) -> tuple[int, int] | None:
    """The identity of the file of a database; None if it is missing or in memory."""
    if not path or path == ":memory:":
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _make_private(path: str | None) -> None:
    """Create the file, or take it from others; SQLite gives its companions the same rights.

    A file that exists is not opened here: closing it would drop every lock that this process
    holds on it (https://sqlite.org/howtocorrupt.html, 2.2), and the next process that closes the
    database would delete the write-ahead log which this one still writes to.
    """
    if not path or path == ":memory:":
        return
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for name in (path, f"{path}-wal", f"{path}-shm"):
        with suppress(FileNotFoundError, PermissionError):  # of another owner: theirs to decide
            Path(name).chmod(0o600)


def _configure(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # `_begin` says when a transaction starts, and which kind
    for pragma in (
        *("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"),
        *("secure_delete=ON", "temp_store=MEMORY"),  # nothing stays in free pages or other files
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # A writer locks at once: a reader that turns writer could be refused half-way.
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
