"""The tables of a collector, and queries that are as fast in a large database as in a small one.

A table has one column for each field of the record that it stores. Numbers of replies and studies
are stored and not counted. Such a number is the sum of a few rows, one per *slot*. Processes that
write at the same time use different slots and do not wait for each other. The number changes in the
same transaction as the counted rows. Pages of studies, and studies whose phase must be concluded,
are found by indexes that contain only these rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args

import msgspec
import sqlalchemy as sa
from sqlalchemy import Column, Connection, ForeignKey, Index, MetaData, Table
from sqlalchemy.schema import SchemaItem

from dpfda.collector.storage.base import (
    LOST,
    Activity,
    ClockMark,
    Forgetting,
    Invitations,
    ModelRecord,
    NewReply,
    Organizer,
    StudyLine,
    StudyRecord,
    Ticket,
)

_TYPES: dict[Any, Any] = {bool: sa.Boolean, int: sa.Integer, float: sa.Float, bytes: sa.LargeBinary}

metadata = MetaData()


def _table(
    name: str,
    record: type[msgspec.Struct],
    *more: SchemaItem,
    keys: set[str],
    without: str = "",
    first: tuple[Column[Any], ...] = (),
    with_rowid: bool = True,  # row numbers of SQLite would reveal the order of arrival
) -> Table:
    columns: list[Column[Any]] = [*first]
    for field in msgspec.structs.fields(record):
        kinds = get_args(field.type) or (field.type,)
        kind = next((_TYPES[kind] for kind in kinds if kind in _TYPES), sa.Text)
        refers = [ForeignKey("study.id")] if field.name == "study" else []
        how: dict[str, Any] = {"primary_key": field.name in keys, "nullable": NoneType in kinds}
        if field.name != without:
            columns.append(Column(field.name, kind, *refers, **how))
    return Table(name, metadata, *columns, *more, sqlite_with_rowid=with_rowid)


def _partly(name: str, column: str, where: str) -> Index:
    """A partial index of the few rows that are searched frequently."""
    return Index(name, column, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


study = _table(
    "study",
    StudyRecord,
    Index("studies_by_age", "created", "id"),
    Index(
        *("open_studies_by_age", "created", "id"),
        sqlite_where=sa.text("open"),
        postgresql_where=sa.text("open"),
    ),
    _partly("studies_closing", "id", "status = 'closing'"),
    _partly("studies_with_deadline", "due", "status = 'open' AND due IS NOT NULL"),
    _partly("studies_with_replies", "id", "status = 'finished' AND NOT purged"),
    _partly("studies_with_all_tickets_out", "id", "status = 'open' AND issued >= quota"),
    keys={"id"},
)
person = _table(
    "person",
    Ticket,
    Column("until", sa.Float),  # see `base.Lapse`
    Index("one_person_a_ticket", "study", "phase", "number", unique=True),
    keys=set(),
    # SHA-256; the token itself is not stored. First, as SQLite 3.40 otherwise reports damage.
    first=(Column("token", sa.LargeBinary, primary_key=True),),
    with_rowid=False,
)
# People whose phase is concluded, without their ticket numbers.
past = Table(
    "past",
    metadata,
    Column("study", sa.Text, ForeignKey("study.id"), primary_key=True),
    Column("token", sa.LargeBinary, primary_key=True),
    sqlite_with_rowid=False,
)
# Replies are stored without the people who sent them.
reply = _table(
    "reply", NewReply, keys={"study", "phase", "number"}, without="token", with_rowid=False
)
ended_session = Table(
    "ended_session",
    metadata,
    Column("session", sa.LargeBinary, primary_key=True),  # SHA-256
    Column("until", sa.Float, nullable=False),
)
organizer = _table("organizer", Organizer, keys={"name"})
activity = _table(
    "activity", Activity, Index("activities_of_study", "study", "number"), keys={"number"}
)
model = _table("model", ModelRecord, keys={"study", "phase"})
# Counts that are stored instead of recomputed: `add_answers`, `add_totals`.
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
clock = _table("clock", ClockMark, keys={"boot"})
# One row: what the system's clock showed when an operator confirmed it.
confirmed_clock = Table(
    "confirmed_clock",
    metadata,
    Column("id", sa.Integer, primary_key=True, autoincrement=False),
    Column("at", sa.Float, nullable=False),
)
forgetting = _table("forgetting", Forgetting, keys={"study", "phase", "what"})


SLOTS = 16

_ADD_ANSWERS = sa.text(
    "INSERT INTO tally (study, phase, slot, answered) VALUES (:study, :phase, :slot, :answered) "
    "ON CONFLICT (study, phase, slot) DO UPDATE SET answered = tally.answered + excluded.answered"
)
_ADD_TOTAL = sa.text(
    "INSERT INTO total (name, slot, number) VALUES (:name, :slot, :number) "
    "ON CONFLICT (name, slot) DO UPDATE SET number = total.number + excluded.number"
)


def add_answers(connection: Connection, slot: int, phases: Mapping[tuple[str, int], int]) -> None:
    """Increase the counts of replies of phases (study, number)."""
    # the same order everywhere, to avoid deadlocks
    for (study, phase), answered in sorted(phases.items()):
        row = {"study": study, "phase": phase, "slot": slot, "answered": answered}
        connection.execute(_ADD_ANSWERS, row)


def answered(connection: Connection, study: str, phase: int) -> int:
    """How many replies a phase has."""
    query = sa.select(sa.func.coalesce(sa.func.sum(tally.c.answered), 0))
    query = query.where(tally.c.study == study, tally.c.phase == phase)
    return int(connection.execute(query).scalar_one())


def invitations(connection: Connection, about: str) -> Invitations:
    """How many tokens of a study were made, opened and used."""

    def number(*where: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
        found = sa.select(sa.func.count()).where(*where)
        return found.scalar_subquery()

    mine = person.c.study == about
    opened = (
        number(mine, person.c.phase.is_not(None))
        # their ticket was reassigned
        + number(mine, person.c.phase.is_(None), person.c.until == LOST)
        + number(past.c.study == about)
    )
    used = sa.select(sa.func.coalesce(sa.func.sum(tally.c.answered), 0))
    row = connection.execute(
        sa.select(
            sa.select(study.c.enrolled).where(study.c.id == about).scalar_subquery(),
            opened,
            used.where(tally.c.study == about).scalar_subquery(),
        )
    ).one()
    made, seen, replied = (int(one or 0) for one in row)
    return Invitations(made=made, opened=seen, used=replied)


def answered_now() -> sa.ScalarSelect[int]:
    """Number of replies in a study's current phase, as a column of a query for studies."""
    number = sa.select(sa.func.coalesce(sa.func.sum(tally.c.answered), 0))
    here = tally.c.study == study.c.id, tally.c.phase == study.c.phase
    return number.where(*here).correlate(study).scalar_subquery()


def add_totals(connection: Connection, slot: int, **numbers: int) -> None:
    """Change totals of the whole database."""
    for name, number in sorted(numbers.items()):
        connection.execute(_ADD_TOTAL, {"name": name, "slot": slot, "number": number})


def totals(connection: Connection) -> dict[str, int]:
    """Totals of the whole database, by name."""
    query = sa.select(total.c.name, sa.func.sum(total.c.number)).group_by(total.c.name)
    return {name: int(number) for name, number in connection.execute(query)}


def note(connection: Connection, one: Activity | None) -> None:
    """Add an activity to the log, in the transaction of the change."""
    if one is not None:
        row = msgspec.structs.asdict(one)
        del row["number"]
        connection.execute(activity.insert(), row)


def activities(
    connection: Connection, *, most: int, before: int | None, about: str | None
) -> list[Activity]:
    """Activities, newest first."""
    query = sa.select(activity).order_by(activity.c.number.desc()).limit(most)
    if before is not None:
        query = query.where(activity.c.number < before)
    if about is not None:
        query = query.where(activity.c.study == about)
    return [Activity(**row._mapping) for row in connection.execute(query)]


_ANSWERED = answered_now()
_SHORT = [study.c[name] for name in StudyLine.__struct_fields__ if name in study.c]
_CONCLUDED = (
    sa.select(sa.func.coalesce(sa.func.sum(model.c.people), 0))
    .where(model.c.study == study.c.id)
    .correlate(study)
    .scalar_subquery()
)
_LINES = sa.select(*_SHORT, _ANSWERED.label("answered"), _CONCLUDED.label("concluded")).order_by(
    study.c.created.desc(), study.c.id.desc()
)
_HERE = study.c.status != "deleted"  # deleted studies have time 0, so they come last
# the exact text of the condition in the index, so that it is used
_OPEN = sa.text("status = 'open'")
_ALL_OUT = sa.text("issued >= quota")
_DUE = sa.select(study).where(
    study.c.id.in_(
        sa.union_all(
            sa.select(study.c.id).where(sa.text("status = 'closing'")),
            sa.select(study.c.id).where(_OPEN, study.c.due <= sa.bindparam("now")),
            sa.select(study.c.id).where(_OPEN, _ALL_OUT, study.c.quota <= _ANSWERED),
        )
    )
)


def page(
    connection: Connection, *, most: int, after: tuple[float, str] | None, only_open: bool
) -> list[StudyLine]:
    """A page of studies, newest first."""
    query = _LINES.where(_HERE).limit(most)
    if only_open:
        query = query.where(sa.text("open"))  # the exact text of the condition in the index
    if after is not None:
        query = query.where(sa.tuple_(study.c.created, study.c.id) < after)
    return [StudyLine(**row._mapping) for row in connection.execute(query)]


def due(connection: Connection, *, now: float) -> list[StudyRecord]:
    """Studies that are closing, past their deadline, or complete, each found by a partial index."""
    return [StudyRecord(**row._mapping) for row in connection.execute(_DUE, {"now": now})]
