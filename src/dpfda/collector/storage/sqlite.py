"""One file, no configuration: SQLite with a write-ahead log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event

from dpfda.collector.storage.base import Unavailable
from dpfda.collector.storage.sql import SqlStorage
from dpfda.collector.storage.trouble import FULL, LITTLE


class SqliteStorage(SqlStorage, name="sqlite"):
    """Studies in one SQLite file.

    Every commit is synced to the disk (``synchronous=FULL``): what was acknowledged survives a
    power cut, not only a crash of the process.
    """

    @classmethod
    def _connect(cls, url: str, *, patience: float) -> Engine:
        engine = sa.create_engine(url, connect_args={"timeout": patience}, pool_size=4)
        event.listen(engine, "connect", _configure)
        event.listen(engine, "begin", _begin)
        return engine

    def _require_room(self, connection: Connection) -> None:
        # A small write may still find room in the log when no large one does.
        path = self._engine.url.database
        if path and path != ":memory:":
            disk = os.statvfs(Path(path).parent)
            if disk.f_bavail * disk.f_frsize < LITTLE:
                raise Unavailable(FULL)


def _configure(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # `_begin` says when a transaction starts, and which kind
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # A writer locks at once: a reader that turns writer could be refused half-way.
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
