"""A database behind an SQLAlchemy engine: transactions, and what is forgotten in it."""

from __future__ import annotations

import secrets
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from dpfda.collector.storage import counters, forgetting
from dpfda.collector.storage.base import Storage
from dpfda.collector.storage.migration import migrate
from dpfda.collector.storage.trouble import told

PATIENCE = 10.0  # seconds to wait for whoever has locked something
SMALL = 16 << 20  # bytes of tables that are written anew in a moment
_HURRY = 1.0  # the same where somebody asks whether all is well
_PULSE = sa.text(
    "INSERT INTO pulse (id, at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = excluded.at"
)


class Database(Storage):
    """Connects, migrates, and forgets in steps."""

    _step: int | None = None  # rows that a step of forgetting removes, whatever it is asked for

    def __init__(self, engine: Engine, hurried: Engine) -> None:
        self._engine = engine
        self._hurried = hurried
        if engine.url.database not in (None, "", ":memory:"):
            self.url = engine.url.render_as_string(hide_password=False)
        self._dirty = True  # a process that was killed may have left something in the files
        self._forgotten = 0  # steps
        self._slot = secrets.randbelow(counters.SLOTS)
        with self._write() as connection:
            self._lock_schema(connection)
            migrate(connection)

    @classmethod
    def open(cls, url: str) -> Self:
        """Connect and migrate."""
        return cls(cls._connect(url, patience=PATIENCE), cls._connect(url, patience=_HURRY))

    @classmethod
    @abstractmethod
    def _connect(cls, url: str, *, patience: float) -> Engine:
        """The engine of a URL, which waits so many seconds for locks."""

    def _lock_schema(self, connection: Connection) -> None:
        """Let one process migrate at a time."""

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()
        self._hurried.dispose()

    def probe(self) -> None:
        """As every writer does, but in a hurry."""
        with told(), self._hurried.begin() as connection:
            self._require_room(connection)
            connection.execute(_PULSE, {"now": time.time()})

    @abstractmethod
    def _require_room(self, connection: Connection) -> None:
        """Refuse where writers would soon wait, or fail."""

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
        """Of one reply."""
        with self._read() as connection:
            return forgetting.digest(connection, study, phase, number)

    def purge(self, study: str) -> bool:
        """Every phase that is concluded."""
        with self._write() as connection:
            return forgetting.begin_purge(connection, study)

    def delete(self, study: str) -> bool:
        """Nobody finds it from now on."""
        with self._write() as connection:
            return forgetting.begin_delete(connection, study, slot=self._slot)

    def forget(self, *, most: int = 200) -> bool:
        """One step; after the last one the files are scrubbed, as soon as nobody reads them."""
        with self._read() as connection:
            due = forgetting.is_due(connection)
        if due:
            self._dirty = True
            self._forgotten += 1
            with self._write() as connection:
                return forgetting.step(connection, self._step or most)
        if self._dirty:
            self._dirty = not self._scrub()
        return False

    @abstractmethod
    def _scrub(self) -> bool:
        """Overwrite what was deleted; False if it must be tried again later."""
