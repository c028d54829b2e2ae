"""The tables of a collector: one column for each field of the records that are stored."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args

import msgspec
import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, MetaData, Table

from dpfda.collector.storage.base import Forgetting, ModelRecord, NewReply, StudyRecord, Ticket

_TYPES: dict[Any, Any] = {int: sa.Integer, float: sa.Float, bytes: sa.LargeBinary}

metadata = MetaData()


def _table(
    name: str,
    record: type[msgspec.Struct],
    *more: Any,
    keys: set[str],
    without: str = "",
    first: tuple[Column[Any], ...] = (),
    **options: Any,
) -> Table:
    columns: list[Column[Any]] = [*first]
    for field in msgspec.structs.fields(record):
        kinds = get_args(field.type) or (field.type,)
        kind = next((_TYPES[kind] for kind in kinds if kind in _TYPES), sa.Text)
        refers = [ForeignKey("study.id")] if field.name == "study" else []
        how: dict[str, Any] = {"primary_key": field.name in keys, "nullable": NoneType in kinds}
        if field.name != without:
            columns.append(Column(field.name, kind, *refers, **how))
    return Table(name, metadata, *columns, *more, **options)


def _partly(name: str, column: str, where: str) -> Index:
    """An index of the few rows that somebody looks for again and again."""
    return Index(name, column, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


# SQLite's own numbers of rows would tell the order of arrival.
_UNORDERED: dict[str, Any] = {"sqlite_with_rowid": False}

study = _table(
    "study",
    StudyRecord,
    Index("studies_by_age", "created", "id"),
    _partly("studies_closing", "id", "status = 'closing'"),
    _partly("studies_with_deadline", "due", "status = 'open' AND due IS NOT NULL"),
    _partly("studies_with_all_tickets_out", "id", "status = 'open' AND issued >= quota"),
    keys={"id"},
)
person = _table(
    "person",
    Ticket,
    Column("until", sa.Float),  # see `base.Lapse`
    Index("one_person_a_ticket", "study", "phase", "number", unique=True),
    keys=set(),
    # SHA-256; the token itself is not kept. First: else SQLite 3.40 takes the table for damaged.
    first=(Column("token", sa.LargeBinary, primary_key=True),),
    **_UNORDERED,
)
# People whose phase is concluded: that they had a ticket, not which.
past = Table(
    "past",
    metadata,
    Column("study", sa.Text, ForeignKey("study.id"), primary_key=True),
    Column("token", sa.LargeBinary, primary_key=True),
    **_UNORDERED,
)
# Who replied is not kept beside the reply.
reply = _table("reply", NewReply, keys={"study", "phase", "number"}, without="token", **_UNORDERED)
ended_session = Table(
    "ended_session",
    metadata,
    Column("session", sa.LargeBinary, primary_key=True),  # SHA-256
    Column("until", sa.Float, nullable=False),
)
model = _table("model", ModelRecord, keys={"study", "phase"})
# See `counters`.
tally = Table(
    "tally",
    metadata,
    Column("study", sa.Text, ForeignKey("study.id"), primary_key=True),
    Column("phase", sa.Integer, primary_key=True, autoincrement=False),
    Column("slot", sa.Integer, primary_key=True, autoincrement=False),
    Column("answered", sa.Integer, nullable=False),
)
total = Table(
    "total",
    metadata,
    Column("name", sa.Text, primary_key=True),
    Column("slot", sa.Integer, primary_key=True, autoincrement=False),
    Column("number", sa.BigInteger, nullable=False),
)
pulse = Table(
    "pulse",
    metadata,
    Column("id", sa.Integer, primary_key=True, autoincrement=False),
    Column("at", sa.Float, nullable=False),
)
forgetting = _table("forgetting", Forgetting, keys={"study", "phase", "what"})
