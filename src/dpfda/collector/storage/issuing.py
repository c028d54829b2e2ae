"""Tickets in SQL backends: issued in turn, and issued again after a timeout.

Every change of a person's ticket locks the study first, and storing a reply locks it against such
changes. So two people never hold the same ticket, for any number of processes. A group commit finds
tickets, issues them and stores replies for many rows at once. SQLite runs in this process. One
statement for many rows lets other threads read and answer requests meanwhile; a statement for each
row would switch threads at every row. PostgreSQL runs elsewhere, and this process may be frozen
before it has sent the last of many rows. The server would then wait for the rest and hold all
locks. So each statement is sent with all of its rows in one message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection, Row

from dpfda.collector.storage import forgetting, tables
from dpfda.collector.storage.base import LOST, Issued, Lapse, NewReply, Ticket, Waiting, timed

_study, _person, _reply = tables.study, tables.person, tables.reply

_BY_TOKEN = sa.select(
    *(_person.c.token, _person.c.study, _person.c.phase, _person.c.number, _person.c.until)
).where(_person.c.token.in_(sa.bindparam("tokens", expanding=True)))
_ASSIGN = (
    "UPDATE person SET phase = given.phase, number = given.number, until = %s "
    "FROM unnest(%s::bytea[], %s::int[], %s::int[]) AS given (whose, phase, number) "
    "WHERE token = given.whose"
)
_ENROL = (
    "INSERT INTO person (study, token, until) "
    "SELECT %s, * FROM unnest(%s::bytea[], %s::double precision[])"
)
_INSERT = (
    "INSERT INTO reply (study, phase, number, digest, body) "
    "SELECT * FROM unnest(%s::text[], %s::int[], %s::int[], %s::bytea[], %s::bytea[])"
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
    """Tickets of the enrolled people; they do not change while the study is locked."""
    if not _is_sqlite(connection):
        found = connection.execute(_BY_TOKEN, {"tokens": tokens})
        return {bytes(token): Held(*place) for token, *place in found}
    columns = "hex(token), json_array(study, phase, number, until)"
    in_one = f"SELECT json_group_array(json_array({columns})) FROM person"
    marks = ",".join("?" * len(tokens))
    told = connection.exec_driver_sql(f"{in_one} WHERE token IN ({marks})", tuple(tokens))
    return {bytes.fromhex(token): held for token, held in _FOUND(told.scalar_one())}


def all_hold(connection: Connection, replies: Sequence[NewReply]) -> bool:
    """Whether each of these replies of one phase belongs to the ticket of its person.

    This is a quick check with one number as result; False means that it is not known.
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
    """Store the tickets of people."""
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
    phases, numbers = ([getattr(t, name) for t in served.values()] for name in ("phase", "number"))
    connection.exec_driver_sql(_ASSIGN, (until, list(served), phases, numbers))


def enrol(
    connection: Connection, study: str, tokens: Sequence[bytes], until: Mapping[bytes, float]
) -> None:
    """Store people without a ticket, with the deadlines for requesting one."""
    ends = [until.get(token) for token in tokens]
    if _is_sqlite(connection):
        rows = zip(tokens, ends, strict=True)
        people = [{"study": study, "token": token, "until": end} for token, end in rows]
        connection.execute(_person.insert(), people)
        return
    connection.exec_driver_sql(_ENROL, (study, list(tokens), ends))


def take_away(connection: Connection, tokens: Sequence[bytes]) -> None:
    """Remove the tickets of people, for reassignment."""
    lost = {"phase": None, "number": None, "until": LOST}
    connection.execute(sa.update(_person).where(_person.c.token.in_(tokens)).values(lost))


def insert(connection: Connection, replies: Sequence[NewReply]) -> None:
    """Store replies without the people who sent them."""
    if not replies:
        return
    if _is_sqlite(connection):
        rows = ",".join([f"({','.join('?' * len(_STORED))})"] * len(replies))
        connection.exec_driver_sql(
            f"INSERT INTO reply ({','.join(_STORED)}) VALUES {rows}",
            tuple(chain.from_iterable(_astuple(reply)[1:] for reply in replies)),
        )
        return
    columns = tuple([getattr(reply, name) for reply in replies] for name in _STORED)
    connection.exec_driver_sql(_INSERT, columns)


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


LOCKED = (
    sa.select(
        *(_study.c.id, _study.c.phase, _study.c.quota, _study.c.issued, _study.c.status),
        *(_study.c.began, _study.c.deadline, _study.c.due),
    )
    .where(_study.c.id.in_(sa.bindparam("studies", expanding=True)))
    .order_by(_study.c.id)  # the same order everywhere, to avoid deadlocks
    .with_for_update()
)
_UNANSWERED = (
    sa.select(_person.c.token, _person.c.number, _person.c.until)
    .where(
        _person.c.study == sa.bindparam("of"),
        _person.c.phase == sa.bindparam("at"),
        _person.c.until.is_not(None),
        ~sa.exists().where(
            _reply.c.study == _person.c.study,
            _reply.c.phase == _person.c.phase,
            _reply.c.number == _person.c.number,
        ),
    )
    .order_by(_person.c.until, _person.c.number)
)
_NOBODY: dict[str, Issued] = {"finished": "finished", "deleted": "gone"}


class Issuing:
    """Issues tickets, and stores when a search for expired ones is worthwhile."""

    def __init__(self) -> None:
        # by study: the phase, and when its next ticket may expire
        self._idle: dict[str, tuple[int, float]] = {}
        self._waiting = Waiting()

    def issue(
        self,
        connection: Connection,
        people: Sequence[tuple[str, bytes]],
        *,
        now: float,
        lapse: Mapping[str, Lapse],
    ) -> list[Issued]:
        """The ticket of each person."""
        asked = list({study for study, _ in people})
        rows = {row.id: row for row in connection.execute(LOCKED, {"studies": asked})}
        held = tickets(connection, [token for _, token in people])
        past = forgetting.served(connection, [one for one in people if one[1] not in held])
        verdicts: list[Issued] = []
        waiting: dict[str, list[int]] = defaultdict(list)
        for i, (study, token) in enumerate(people):
            row, mine, rule = rows.get(study), held.get(token), lapse.get(study, Lapse())
            if row is not None and row.status == "deleted":
                verdicts.append("gone")
            elif mine is None:
                verdicts.append("late" if (study, token) in past else "unknown")
            elif mine.study != study:
                verdicts.append("foreign")
            elif _is_answered(connection, mine):
                verdicts.append("answered")
            elif mine.number is not None:
                wanted = self._waiting.is_somebody(study, now, rule)
                kept = _kept(connection, token, mine, row, now=now, lapse=rule, wanted=wanted)
                verdicts.append(kept)
            elif rule.is_over(mine.until, now):
                verdicts.append("lapsed")
            else:
                verdicts.append("wait")
                waiting[study].append(i)
        for study, places in waiting.items():
            asking = [people[i][1] for i in places]
            new = self._new(connection, rows[study], asking, now, lapse.get(study, Lapse()))
            for i in places:
                verdicts[i] = new[people[i][1]]
        return verdicts

    def _new(
        self,
        connection: Connection,
        row: Row[*tuple[Any, ...]],
        asking: list[bytes],
        now: float,
        lapse: Lapse,
    ) -> dict[bytes, Issued]:
        """Tickets of one study for people without one."""
        tokens = list(dict.fromkeys(asking))  # one person may send two requests at once
        fresh = row.quota - row.issued if row.status == "open" else 0
        numbers = list(range(row.issued, row.issued + min(fresh, len(tokens))))
        if numbers:
            changed = {"issued": row.issued + len(numbers)} | timed(
                row.began, row.due, row.deadline, now
            )
            connection.execute(sa.update(_study).where(_study.c.id == row.id).values(**changed))
        if row.status == "open" and len(numbers) < len(tokens):
            numbers += self._lapsed(connection, row, now, lapse, len(tokens) - len(numbers))
        served = {
            token: Ticket(row.id, row.phase, number)
            for token, number in zip(tokens, numbers, strict=False)
        }
        if served:
            assign(connection, served, until=lapse.until(now))
        nobody = _NOBODY.get(row.status, "wait")
        if row.status == "open" and len(served) < len(tokens):
            self._waiting.sent_away(row.id, now)
        return {token: served.get(token, nobody) for token in tokens}

    def _lapsed(
        self,
        connection: Connection,
        row: Row[*tuple[Any, ...]],
        now: float,
        lapse: Lapse,
        most: int,
    ) -> list[int]:
        """Reassign tickets of people who did not answer in time, longest ago first."""
        phase, idle = self._idle.get(row.id, (row.phase, 0.0))
        if lapse.seconds is None or (phase == row.phase and now <= idle):
            return []
        asked = {"of": row.id, "at": row.phase}
        found = connection.execute(_UNANSWERED.limit(most + 1), asked).all()
        free = [one for one in found[:most] if lapse.is_free(one.until, now)]
        # no ticket expires before this; later ones expire after those issued now
        if len(free) < most:
            rest = found[len(free) :]
            ends = min([one.until for one in rest[:1]] + [now + lapse.seconds])
            self._idle[row.id] = (row.phase, ends + lapse.grace)
        if free:
            lost = [bytes(one.token) for one in free]
            take_away(connection, lost)
        return [int(one.number) for one in free]


def _is_answered(connection: Connection, mine: Held) -> bool:
    """Whether a ticket has a reply; if so, it is not issued again."""
    if mine.phase is None or mine.number is None:
        return False
    return forgetting.digest(connection, mine.study, mine.phase, mine.number) is not None


def _kept(
    connection: Connection,
    token: bytes,
    mine: Held,
    row: Row[*tuple[Any, ...]] | None,
    *,
    now: float,
    lapse: Lapse,
    wanted: bool,
) -> Issued:
    """The result for a person who has not answered: the same ticket, unless it has expired.

    An expired ticket is renewed if nobody else waits for it.
    """
    ticket = Ticket(mine.study, mine.phase, mine.number)
    present = row is not None and (mine.phase, "open") == (row.phase, row.status)
    if not present or not lapse.has_ended(mine.until, now):
        return ticket
    if lapse.final:
        return "lapsed"
    if wanted:
        return "wait"
    assign(connection, {token: ticket}, until=lapse.until(now))
    return ticket
