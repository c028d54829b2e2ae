"""Numbers that are kept instead of counted, so that a large database answers as a small one.

A number is the sum of a few rows, one a *slot*: processes that write at the same time take other
slots and do not wait for each other. It changes in the transaction that changes what is counted.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy import Connection

from dpfda.collector.storage import tables

SLOTS = 16

_tally, _total = tables.tally, tables.total

_ADD_ANSWERS = sa.text(
    "INSERT INTO tally (study, phase, slot, answered) VALUES (:study, :phase, :slot, :answered) "
    "ON CONFLICT (study, phase, slot) DO UPDATE SET answered = tally.answered + excluded.answered"
)
_ADD_TOTAL = sa.text(
    "INSERT INTO total (name, slot, number) VALUES (:name, :slot, :number) "
    "ON CONFLICT (name, slot) DO UPDATE SET number = total.number + excluded.number"
)


def add_answers(connection: Connection, slot: int, phases: Mapping[tuple[str, int], int]) -> None:
    """Count replies of phases (study, number)."""
    for (study, phase), answered in sorted(phases.items()):  # in one order everywhere: no deadlock
        row = {"study": study, "phase": phase, "slot": slot, "answered": answered}
        connection.execute(_ADD_ANSWERS, row)


def answered(connection: Connection, study: str, phase: int) -> int:
    """How many replies a phase has."""
    query = sa.select(sa.func.coalesce(sa.func.sum(_tally.c.answered), 0))
    query = query.where(_tally.c.study == study, _tally.c.phase == phase)
    return int(connection.execute(query).scalar_one())


def answered_now() -> sa.ScalarSelect[int]:
    """How many replies a study's present phase has, as a column of a query for studies."""
    number = sa.select(sa.func.coalesce(sa.func.sum(_tally.c.answered), 0))
    here = _tally.c.study == tables.study.c.id, _tally.c.phase == tables.study.c.phase
    return number.where(*here).correlate(tables.study).scalar_subquery()


def add_totals(connection: Connection, slot: int, **numbers: int) -> None:
    """Change totals of the whole database."""
    for name, number in sorted(numbers.items()):
        connection.execute(_ADD_TOTAL, {"name": name, "slot": slot, "number": number})


def totals(connection: Connection) -> dict[str, int]:
    """Totals of the whole database, by name."""
    query = sa.select(_total.c.name, sa.func.sum(_total.c.number)).group_by(_total.c.name)
    return {name: int(number) for name, number in connection.execute(query)}
