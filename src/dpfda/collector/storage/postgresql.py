"""Several collector processes on one PostgreSQL database, through psycopg 3."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, make_url

from dpfda.collector.storage.sql import SqlStorage

_MIGRATION_LOCK = 0x64706664  # any number, the same in every process


class PostgresqlStorage(SqlStorage, name="postgresql"):
    """Studies in a PostgreSQL database: ``postgresql://user@host/name``."""

    @classmethod
    def _connect(cls, url: str) -> Engine:
        return sa.create_engine(
            make_url(url).set(drivername="postgresql+psycopg"), pool_size=4, pool_pre_ping=True
        )

    def _lock_schema(self, connection: Connection) -> None:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
