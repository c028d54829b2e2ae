"""A database behind an SQLAlchemy engine: migrations, transactions, and deletion in steps.

Changes of the tables are in ``migrations/versions``. A failure of the database becomes
`Unavailable`, with a reason in words that an operator can act on.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

from dpfda.collector.storage import forgetting, tables
from dpfda.collector.storage.base import Activity, ClockMark, Storage, Unavailable


def migrate(connection: Connection) -> None:
    """Apply every migration that the database has not seen, inside the caller's transaction."""
    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    configuration.set_main_option("path_separator", "os")
    configuration.attributes["connection"] = connection
    found = MigrationContext.configure(connection).get_current_revision()
    known = {one.revision for one in ScriptDirectory.from_config(configuration).walk_revisions()}
    if found is not None and found not in known:
        raise Unavailable(
            f"a newer release of dpfda wrote this database (revision {found}; this release knows "
            f"{max(known)}): install that release, or restore a copy made before the update"
        )
    command.upgrade(configuration, "head")


LITTLE = 1 << 20  # bytes; a disk with less free space counts as full
FULL, LOCKED = "the disk is full", "another process has locked the database"
_REASONS = {
    "SQLITE_FULL": FULL,
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_READONLY": "the database cannot be written to",
    "SQLITE_CANTOPEN": "the database cannot be opened",
    "SQLITE_IOERR": "the disk cannot be read or written",
    "53100": FULL,
    "55P03": LOCKED,
    "57014": "the database took too long",
    "25P03": "this process took too long inside a transaction",
    "25006": "the database cannot be written to",
}
"""Reasons by the name of SQLite's error, or by PostgreSQL's state."""


def reason(error: DBAPIError) -> str:
    """The reason in words, without the error's own message, which may quote values."""
    cause = error.orig
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
    for known, words in _REASONS.items():
        if code.startswith(known):  # SQLite has more specific names, such as SQLITE_IOERR_WRITE
            return words
    return "the database does not answer"


@contextmanager
def told() -> Iterator[None]:
    """Convert errors of the database to `Unavailable`."""
    try:
        yield
    except (OperationalError, InterfaceError, InternalError) as error:  # psycopg uses all three
        raise Unavailable(reason(error)) from error
    except NoConnection as error:
        raise Unavailable("every connection to the database is in use") from error


PATIENCE = 10.0  # seconds to wait for locks
SMALL = 16 << 20  # bytes of tables that can be rewritten quickly
_HURRY = 1.0  # seconds to wait for locks in a health check
_MARK = sa.text(
    "INSERT INTO clock (boot, at, elapsed, jump) VALUES (:boot, :at, :elapsed, :jump) "
    "ON CONFLICT (boot) DO UPDATE "
    "SET at = excluded.at, elapsed = excluded.elapsed, jump = excluded.jump"
)
_CONFIRM = sa.text(
    "INSERT INTO confirmed_clock (id, at) VALUES (1, :now) "
    "ON CONFLICT (id) DO UPDATE SET at = excluded.at"
)


class Database(Storage):
    """Base of SQL backends: connections, migrations, and deletion in steps."""

    _step: int | None = None  # rows per step of deletion, which overrides `most` of `forget`

    def __init__(self, engine: Engine, hurried: Engine) -> None:
        self._engine = engine
        self._hurried = hurried
        if engine.url.database not in (None, "", ":memory:"):
            self.url = engine.url.render_as_string(hide_password=False)
        self._dirty = True  # a killed process may have left deleted data in the files
        self._forgotten = 0  # number of steps
        self._slot = secrets.randbelow(tables.SLOTS)
        try:
            with self._write() as connection:
                self._lock_schema(connection)
                migrate(connection)
        except Exception:
            self.close()
            raise

    @classmethod
    def open(cls, url: str) -> Self:
        """Connect and migrate."""
        return cls(cls._connect(url, patience=PATIENCE), cls._connect(url, patience=_HURRY))

    @classmethod
    @abstractmethod
    def _connect(cls, url: str, *, patience: float) -> Engine:
        """The engine of a URL, which waits `patience` seconds for locks."""

    def _lock_schema(self, connection: Connection) -> None:
        """Let one process migrate at a time."""

    def _allow_long(self, connection: Connection) -> None:
        """Set no limit on the time of this transaction's statements."""

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()
        self._hurried.dispose()

    def probe(self, mark: ClockMark) -> None:
        """Write a mark with a short timeout."""
        with told(), self._hurried.begin() as connection:
            self._require_room(connection)
            connection.execute(_MARK, msgspec.structs.asdict(mark))

    def clock(self) -> tuple[list[ClockMark], float | None]:
        """Read two small tables."""
        with self._read() as connection:
            rows = connection.execute(sa.select(tables.clock))
            marks = [ClockMark(**row._mapping) for row in rows]
            confirmed = connection.execute(sa.select(tables.confirmed_clock.c.at))
            return marks, confirmed.scalar_one_or_none()

    def confirm_clock(self, *, now: float, note: Activity | None = None) -> None:
        """Store one row."""
        with self._write() as connection:
            connection.execute(_CONFIRM, {"now": now})
            tables.note(connection, note)

    @abstractmethod
    def _require_room(self, connection: Connection) -> None:
        """Raise an error if writes would soon wait or fail."""

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        """One transaction that changes something; durable when it ends."""
        with told(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        """One transaction that changes nothing."""
        with told(), self._engine.connect().execution_options(reading=True) as connection:
            yield connection

    # -- forgetting ----------------------------------------------------------------------------

    def digest(self, study: str, phase: int, number: int) -> bytes | None:
        """The digest of one reply."""
        with self._read() as connection:
            return forgetting.digest(connection, study, phase, number)

    def purge(self, study: str, *, note: Activity | None = None) -> bool:
        """Mark every concluded phase."""
        with self._write() as connection:
            found = forgetting.begin_purge(connection, study)
            tables.note(connection, note if found else None)
            return found

    def purgeable(self, *, before: float) -> list[str]:
        """Studies that can be purged, found by an index."""
        with self._read() as connection:
            return forgetting.purgeable(connection, before=before)

    def delete(self, study: str, *, note: Activity | None = None) -> bool:
        """Mark a study as deleted, so that it is no longer found."""
        with self._write() as connection:
            found = forgetting.begin_delete(connection, study, slot=self._slot)
            tables.note(connection, note if found else None)
            return found

    def forget(self, *, most: int = 200) -> bool:
        """Do one step; after the last one, scrub the files as soon as nobody reads them."""
        with self._read() as connection:
            due = forgetting.is_due(connection)
        if due:
            self._dirty = True
            self._forgotten += 1
            with self._write() as connection:
                self._allow_long(connection)
                return forgetting.step(connection, self._step or most)
        if self._dirty:
            self._dirty = not self._scrub()
        return False

    @abstractmethod
    def _scrub(self) -> bool:
        """Overwrite deleted data in the files; False if it must be tried again later."""
