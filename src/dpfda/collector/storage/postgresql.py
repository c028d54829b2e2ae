"""Several collector processes on one PostgreSQL database, through psycopg 3."""

from __future__ import annotations

import math

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, make_url

from dpfda.collector.storage.database import SMALL
from dpfda.collector.storage.sql import SqlStorage
from dpfda.collector.storage.tables import metadata

_PERSONAL = ("person", "reply")
_SIZE = sa.text("SELECT " + " + ".join(f"pg_total_relation_size('{table}')" for table in _PERSONAL))
_MIGRATION_LOCK = 0x64706664  # any number, the same in every process


class PostgresqlStorage(SqlStorage, name="postgresql"):
    """Studies in a PostgreSQL database: ``postgresql://user@host/name``."""

    # A phase at once: rows lie in the order they were written, and steps would show through.
    _step = 10**9

    @classmethod
    def _connect(cls, url: str, *, patience: float) -> Engine:
        limit = f"-c lock_timeout={round(1000 * patience)}"
        return sa.create_engine(
            make_url(url).set(drivername="postgresql+psycopg"),
            connect_args={"connect_timeout": math.ceil(patience), "options": limit},
            pool_size=4,
            pool_pre_ping=True,
        )

    def _require_room(self, connection: Connection) -> None:
        names = ", ".join(table.name for table in metadata.sorted_tables)
        connection.execute(sa.text(f"LOCK TABLE {names} IN ROW EXCLUSIVE MODE"))  # as writers do

    def _lock_schema(self, connection: Connection) -> None:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))

    def _scrub(self) -> bool:
        """Write the tables anew, as far as that is quick: a copy of their files holds old rows.

        A plain ``VACUUM`` frees the room of old rows and leaves their bytes there. To write a table
        anew is to shut it for a moment.
        """
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("VACUUM (SKIP_LOCKED) person, reply, model, study"))
            if connection.execute(_SIZE).scalar_one() > SMALL:
                return True
            connection.execute(sa.text("SET lock_timeout = '50ms'"))
            try:
                for table in _PERSONAL:
                    connection.execute(sa.text(f"VACUUM FULL {table}"))
            except sa.exc.OperationalError:  # somebody writes: the next time
                return False
            finally:
                connection.execute(sa.text("RESET lock_timeout"))
        return True
