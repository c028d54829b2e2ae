"""The tables of a collector: one column for each field of the records that are stored."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args

import msgspec
import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, MetaData, Table

from dpfda.collector.storage.base import ModelRecord, NewReply, StudyRecord, Ticket

_TYPES: dict[Any, Any] = {int: sa.Integer, float: sa.Float, bytes: sa.LargeBinary}

metadata = MetaData()


def _table(
    name: str, record: type[msgspec.Struct], *more: Any, keys: set[str], without: str = ""
) -> Table:
    columns = []
    for field in msgspec.structs.fields(record):
        kinds = get_args(field.type) or (field.type,)
        kind = next((_TYPES[kind] for kind in kinds if kind in _TYPES), sa.Text)
        refers = [ForeignKey("study.id")] if field.name == "study" else []
        how: dict[str, Any] = {"primary_key": field.name in keys, "nullable": NoneType in kinds}
        if field.name != without:
            columns.append(Column(field.name, kind, *refers, **how))
    return Table(name, metadata, *columns, *more)


study = _table("study", StudyRecord, keys={"id"})
person = _table(
    "person",
    Ticket,
    Column("token", sa.LargeBinary, primary_key=True),  # SHA-256; the token itself is not kept
    Index("one_person_a_ticket", "study", "phase", "number", unique=True),
    keys=set(),
)
# Who replied is not kept beside the reply.
reply = _table("reply", NewReply, keys={"study", "phase", "number"}, without="token")
model = _table("model", ModelRecord, keys={"study", "phase"})
