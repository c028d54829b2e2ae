"""Several collector processes on one PostgreSQL database, through psycopg 3.

A process that freezes inside a transaction (a paused virtual machine, a lost network) keeps its row
locks, and every other process waits for them. So the server ends a transaction in which nothing
happens for `_IDLE` seconds. Keepalive packets find silent connections whose other end is gone, and
a limit on the time until sent data are acknowledged finds busy ones.
"""

from __future__ import annotations

import math

import psycopg
import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event, make_url

from dpfda.collector.storage.base import Unavailable
from dpfda.collector.storage.database import SMALL
from dpfda.collector.storage.sql import SqlStorage
from dpfda.collector.storage.tables import metadata

_PERSONAL = ("person", "reply")
_SIZE = sa.text("SELECT " + " + ".join(f"pg_total_relation_size('{table}')" for table in _PERSONAL))
_MIGRATION_LOCK = 0x64706664  # any number, the same in every process
_IDLE = 5.0  # seconds between two statements of a transaction; a working process needs milliseconds
_STATEMENT = 60.0  # seconds of one statement; reading a million replies takes a tenth of it
_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}  # seconds
_UNACKNOWLEDGED = 10_000  # milliseconds after which a connection with unacknowledged data is closed
_UNLIMITED = sa.text("SET LOCAL statement_timeout = 0")
NOT_DURABLE = (
    "synchronous_commit is off: the database would acknowledge replies that are not on its disk; "
    "set it to on for this role or database"
)


class PostgresqlStorage(SqlStorage, name="postgresql"):
    """Studies in a PostgreSQL database: ``postgresql://user@host/name``."""

    # A whole phase in one step: the physical order of rows would reveal the steps.
    _step = 10**9

    @classmethod
    def _connect(cls, url: str, *, patience: float) -> Engine:
        limits = {
            "lock_timeout": f"{patience:g}s",
            "statement_timeout": f"{_STATEMENT:g}s",
            "idle_in_transaction_session_timeout": f"{_IDLE:g}s",
            **{f"tcp_{name}": number for name, number in _KEEPALIVES.items()},  # of the server
            "tcp_user_timeout": _UNACKNOWLEDGED,
        }
        engine = sa.create_engine(
            make_url(url).set(drivername="postgresql+psycopg"),
            connect_args={
                "connect_timeout": math.ceil(patience),
                "options": " ".join(f"-c {name}={value}" for name, value in limits.items()),
                **_KEEPALIVES,  # of this process
                "tcp_user_timeout": _UNACKNOWLEDGED,
            },
            pool_size=4,
            pool_pre_ping=True,
        )
        event.listen(engine, "connect", _require_durable)
        return engine

    def _require_room(self, connection: Connection) -> None:
        names = ", ".join(table.name for table in metadata.sorted_tables)
        # the lock that writers need
        connection.execute(sa.text(f"LOCK TABLE {names} IN ROW EXCLUSIVE MODE"))

    def _lock_schema(self, connection: Connection) -> None:
        connection.execute(_UNLIMITED)
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))

    def _allow_long(self, connection: Connection) -> None:
        connection.execute(_UNLIMITED)

    def _scrub(self) -> bool:
        """Rewrite the tables if they are small, because their files still contain deleted rows.

        A plain ``VACUUM`` frees the space of deleted rows but leaves their bytes. Rewriting a table
        locks it for a moment.
        """
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("SET statement_timeout = 0"))
            connection.execute(sa.text("VACUUM (SKIP_LOCKED) person, reply, model, study"))
            try:
                if connection.execute(_SIZE).scalar_one() > SMALL:
                    return True
                connection.execute(sa.text("SET lock_timeout = '50ms'"))
                for table in _PERSONAL:
                    connection.execute(sa.text(f"VACUUM FULL {table}"))
            except sa.exc.OperationalError:  # a writer holds a lock: try again later
                return False
            finally:
                connection.execute(sa.text("RESET lock_timeout"))
                connection.execute(sa.text("RESET statement_timeout"))
        return True


def _require_durable(connection: psycopg.Connection, _: object) -> None:
    """Refuse a server that acknowledges commits before they are on its disk.

    The current value is set for the session, so that a later change of the server's configuration
    does not affect this connection.
    """
    (found,) = connection.execute("SHOW synchronous_commit").fetchall()[0]
    if found == "off":
        connection.close()
        raise Unavailable(NOT_DURABLE)
    connection.execute("SELECT set_config('synchronous_commit', %s, false)", (found,))
    connection.commit()
