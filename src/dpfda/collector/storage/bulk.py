"""What a group commit does to many rows at once: find tickets, hand them out, store replies.

SQLite works in this process, and Python's threads take turns around each of its rows: what one
statement does to all of them, it does while other requests are read and answered. PostgreSQL works
elsewhere, and its driver sends many rows in one go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from dpfda.collector.storage import tables
from dpfda.collector.storage.base import NewReply, Ticket

_person, _reply = tables.person, tables.reply

_BY_TOKEN = sa.select(_person.c.token, _person.c.study, _person.c.phase, _person.c.number).where(
    _person.c.token.in_(sa.bindparam("tokens", expanding=True))
)
_BY_TOKEN_LOCKED = _BY_TOKEN.order_by(_person.c.token).with_for_update()
_ASSIGN = (
    sa.update(_person)
    .where(_person.c.token == sa.bindparam("whose"))
    .values(phase=sa.bindparam("new_phase"), number=sa.bindparam("new_number"))
)
_FOUND = msgspec.json.Decoder(list[tuple[str, str, int | None, int | None]]).decode
_STORED = [name for name in NewReply.__struct_fields__ if name != "token"]
_astuple = msgspec.structs.astuple


def tickets(
    connection: Connection, tokens: Sequence[bytes], *, lock: bool = False
) -> dict[bytes, Ticket]:
    """Of those people who are enrolled; nobody else changes theirs meanwhile if they are locked."""
    if not _is_sqlite(connection):
        query = _BY_TOKEN_LOCKED if lock else _BY_TOKEN
        found = connection.execute(query, {"tokens": tokens})
        return {bytes(token): Ticket(*place) for token, *place in found}
    # A writer of SQLite is alone: all is locked.
    in_one = "SELECT json_group_array(json_array(hex(token), study, phase, number)) FROM person"
    marks = ",".join("?" * len(tokens))
    told = connection.exec_driver_sql(f"{in_one} WHERE token IN ({marks})", tuple(tokens))
    rows = _FOUND(told.scalar_one())
    return {bytes.fromhex(token): Ticket(study, *place) for token, study, *place in rows}


def assign(connection: Connection, served: Mapping[bytes, Ticket]) -> None:
    """Give people their tickets."""
    if _is_sqlite(connection):
        given = ",".join(["(?,?,?)"] * len(served))
        change = (
            f"WITH given(whose, phase, number) AS (VALUES {given}) UPDATE person "
            "SET phase = given.phase, number = given.number FROM given WHERE token = whose"
        )
        rows = ((token, ticket.phase, ticket.number) for token, ticket in served.items())
        connection.exec_driver_sql(change, tuple(chain.from_iterable(rows)))
        return
    connection.execute(
        _ASSIGN,
        [
            {"whose": token, "new_phase": ticket.phase, "new_number": ticket.number}
            for token, ticket in served.items()
        ],
    )


def insert(connection: Connection, replies: Sequence[NewReply]) -> None:
    """Store replies; who replied is not kept beside the reply."""
    if not replies:
        return
    if _is_sqlite(connection):
        rows = ",".join([f"({','.join('?' * len(_STORED))})"] * len(replies))
        connection.exec_driver_sql(
            f"INSERT INTO reply ({','.join(_STORED)}) VALUES {rows}",
            tuple(chain.from_iterable(_astuple(reply)[1:] for reply in replies)),
        )
        return
    connection.execute(
        _reply.insert(), [{name: getattr(reply, name) for name in _STORED} for reply in replies]
    )


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
