"""What a group commit does to many rows at once: find tickets, hand them out, store replies.

SQLite works in this process, and Python's threads take turns around each of its rows: what one
statement does to all of them, it does while other requests are read and answered. PostgreSQL works
elsewhere, and its driver sends many rows in one go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from dpfda.collector.storage import tables
from dpfda.collector.storage.base import LOST, NewReply, Ticket

_person, _reply = tables.person, tables.reply

_BY_TOKEN = sa.select(
    *(_person.c.token, _person.c.study, _person.c.phase, _person.c.number, _person.c.until)
).where(_person.c.token.in_(sa.bindparam("tokens", expanding=True)))
_ASSIGN = (
    sa.update(_person)
    .where(_person.c.token == sa.bindparam("whose"))
    .values(
        phase=sa.bindparam("new_phase"),
        number=sa.bindparam("new_number"),
        until=sa.bindparam("new_until"),
    )
)
_STORED = [name for name in NewReply.__struct_fields__ if name != "token"]
_astuple = msgspec.structs.astuple


class Held(NamedTuple):
    """A person's ticket, if they have one, and the end of its time."""

    study: str
    phase: int | None
    number: int | None
    until: float | None


_FOUND = msgspec.json.Decoder(list[tuple[str, Held]]).decode


def tickets(connection: Connection, tokens: Sequence[bytes]) -> dict[bytes, Held]:
    """Of those people who are enrolled; nobody changes theirs while their study is locked."""
    if not _is_sqlite(connection):
        found = connection.execute(_BY_TOKEN, {"tokens": tokens})
        return {bytes(token): Held(*place) for token, *place in found}
    columns = "hex(token), json_array(study, phase, number, until)"
    in_one = f"SELECT json_group_array(json_array({columns})) FROM person"
    marks = ",".join("?" * len(tokens))
    told = connection.exec_driver_sql(f"{in_one} WHERE token IN ({marks})", tuple(tokens))
    return {bytes.fromhex(token): held for token, held in _FOUND(told.scalar_one())}


def all_hold(connection: Connection, replies: Sequence[NewReply]) -> bool:
    """Whether each of these replies, all of one phase, is to the ticket that its person holds.

    Where it is so, one number comes back and not a row a person. False says nothing.
    """
    if not _is_sqlite(connection):
        return False
    given = ",".join(["(?,?)"] * len(replies))
    matching = (
        f"WITH given(whose, wanted) AS (VALUES {given}) SELECT count(*) FROM given "
        "JOIN person ON token = whose WHERE study = ? AND phase = ? AND number = wanted"
    )
    rows = chain.from_iterable((reply.token, reply.number) for reply in replies)
    told = connection.exec_driver_sql(matching, (*rows, replies[0].study, replies[0].phase))
    return bool(told.scalar_one() == len(replies))


def assign(connection: Connection, served: Mapping[bytes, Ticket], *, until: float | None) -> None:
    """Give people their tickets."""
    if _is_sqlite(connection):
        given = ",".join(["(?,?,?)"] * len(served))
        change = (
            f"WITH given(whose, phase, number) AS (VALUES {given}) UPDATE person "
            "SET phase = given.phase, number = given.number, until = ? "
            "FROM given WHERE token = whose"
        )
        rows = ((token, ticket.phase, ticket.number) for token, ticket in served.items())
        connection.exec_driver_sql(change, (*chain.from_iterable(rows), until))
        return
    connection.execute(
        _ASSIGN,
        [
            {
                "whose": token,
                "new_phase": ticket.phase,
                "new_number": ticket.number,
                "new_until": until,
            }
            for token, ticket in served.items()
        ],
    )


def take_away(connection: Connection, tokens: Sequence[bytes]) -> None:
    """Take people's tickets, which somebody else gets."""
    lost = {"phase": None, "number": None, "until": LOST}
    connection.execute(sa.update(_person).where(_person.c.token.in_(tokens)).values(lost))


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
