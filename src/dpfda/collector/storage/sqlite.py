"""Storage in one SQLite file with a write-ahead log."""

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

    Every commit is synced to the disk (``synchronous=FULL``), so acknowledged data survive a power
    failure, not only a crash of the process. Only the owner can read the files, and deleted data
    are overwritten.
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
        self._written_anew = -1  # the number of deletion steps at the last rewrite

    def _require_room(self, connection: Connection) -> None:
        path = self._engine.url.database
        # writes would go to a file that is not at this path any more
        if _identity(path) != self._file:
            raise Unavailable("the database's file was moved or deleted")
        # A small write can succeed on a disk that is too full for a large one.
        if self._file is not None:
            disk = os.statvfs(Path(str(path)).parent)
            if disk.f_bavail * disk.f_frsize < LITTLE:
                raise Unavailable(FULL)

    def _scrub(self) -> bool:
        """Rewrite the file if it is small, and empty the write-ahead log.

        Deleted rows are overwritten. But SQLite moves rows between pages and leaves copies, and the
        log contains old pages.
        """
        connection = self._engine.raw_connection()
        try:
            # A reader, such as a backup, must not delay writers.
            connection.cursor().execute("PRAGMA busy_timeout=50")
            if self._written_anew != self._forgotten and self._is_small():
                connection.cursor().execute("VACUUM")
                self._written_anew = self._forgotten  # only once, even if a reader delays the rest
            busy = connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError:  # another writer is active: try again later
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
    """Create the file, or remove access for others; SQLite gives its other files the same mode.

    A file that exists is not opened here: closing it would drop every lock that this process
    holds on it (https://sqlite.org/howtocorrupt.html, 2.2), and the next process that closes the
    database would delete the write-ahead log which this one still writes to.
    """
    if not path or path == ":memory:":
        return
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for name in (path, f"{path}-wal", f"{path}-shm"):
        # a file of another owner is left unchanged
        with suppress(FileNotFoundError, PermissionError):
            Path(name).chmod(0o600)


def _configure(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # `_begin` starts transactions explicitly
    for pragma in (
        *("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"),
        *("secure_delete=ON", "temp_store=MEMORY"),  # nothing stays in free pages or other files
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # A writer locks at once: upgrading a read transaction could fail later.
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
