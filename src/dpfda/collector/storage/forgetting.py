"""Deletion in SQL backends: due deletions are noted in a table and done in steps.

A note is written in the transaction that makes a deletion due, and removed with the last row. If a
collector stops in between, the next one continues.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection, Row

from dpfda.collector.storage import tables
from dpfda.collector.storage.base import NewReply, StudyRecord

_study, _person, _past = tables.study, tables.person, tables.past
_reply, _model, _tally, _due = tables.reply, tables.model, tables.tally, tables.forgetting

_BLANK = StudyRecord(
    id="", hash="", plan="", settings="", created=0.0, phase=0, kind="", quota=0,
    status="deleted", state="", seal="", owner="",
)  # fmt: skip
_NOTHING = {name: value for name, value in msgspec.structs.asdict(_BLANK).items() if name != "id"}


def note(connection: Connection, study: str, phase: int, what: str) -> None:
    """Note a deletion that is due from the end of this transaction on."""
    row = {"study": study, "phase": phase, "what": what, "reached": 0}
    connection.execute(_due.insert(), row)


def served(connection: Connection, people: Sequence[tuple[str, bytes]]) -> set[tuple[str, bytes]]:
    """The people whose ticket was in a concluded phase."""
    if not people:
        return set()
    found = connection.execute(
        sa.select(_past.c.study, _past.c.token).where(
            _past.c.study.in_({study for study, _ in people}),
            _past.c.token.in_([token for _, token in people]),
        )
    )
    return {(study, bytes(token)) for study, token in found}


def deleted(connection: Connection, studies: set[str]) -> set[str]:
    """The studies among them that existed and were deleted."""
    if not studies:
        return set()
    query = sa.select(_study.c.id).where(_study.c.id.in_(studies), _study.c.status == "deleted")
    return set(connection.execute(query).scalars())


def is_due(connection: Connection) -> bool:
    """Whether there is anything to do."""
    return connection.execute(sa.select(_due.c.study).limit(1)).first() is not None


def digest(connection: Connection, study: str, phase: int, number: int) -> bytes | None:
    """The digest of one reply, purged or not."""
    one = (_reply.c.study == study, _reply.c.phase == phase, _reply.c.number == number)
    found = connection.execute(sa.select(_reply.c.digest).where(*one)).scalar_one_or_none()
    return None if found is None else bytes(found)


def empty(connection: Connection, reply: NewReply) -> None:
    """Replace a stored reply by an empty one; its remains in the files are due for deletion."""
    one = (
        _reply.c.study == reply.study,
        _reply.c.phase == reply.phase,
        _reply.c.number == reply.number,
    )
    connection.execute(sa.update(_reply).where(*one).values(digest=reply.digest, body=reply.body))
    noted = sa.select(_due.c.what).where(
        _due.c.study == reply.study, _due.c.phase == reply.phase, _due.c.what == "withdrawn"
    )
    if connection.execute(noted).first() is None:
        note(connection, reply.study, reply.phase, "withdrawn")


def begin_purge(connection: Connection, study: str) -> bool:
    """Mark the replies of concluded phases for deletion."""
    found = connection.execute(
        sa.select(_study.c.phase, _study.c.status)
        .where(_study.c.id == study, _study.c.status != "deleted")
        .with_for_update()
    ).first()
    if found is None:
        return False
    concluded = sa.select(_model.c.phase).where(_model.c.study == study, _model.c.phase >= 0)
    noted = sa.select(_due.c.phase).where(_due.c.study == study, _due.c.what == "replies")
    phases = connection.execute(concluded.where(_model.c.phase.not_in(noted))).scalars().all()
    for phase in phases:
        note(connection, study, phase, "replies")
    if found.status == "finished":
        connection.execute(sa.update(_study).where(_study.c.id == study).values(purged=True))
    return True


def purgeable(connection: Connection, *, before: float) -> list[str]:
    """Finished studies with replies; there is an index of these few."""
    last = sa.select(sa.func.max(_model.c.created)).where(_model.c.study == _study.c.id)
    late = last.scalar_subquery() < before
    # the exact text of the condition in the index
    unpurged = sa.text("status = 'finished' AND NOT purged")
    return list(connection.execute(sa.select(_study.c.id).where(unpurged, late)).scalars())


def begin_delete(connection: Connection, study: str, *, slot: int) -> bool:
    """Clear the study's row except for the id, and mark the other rows for deletion."""
    one = (_study.c.id == study, _study.c.status != "deleted")
    found = connection.execute(
        sa.select(_study.c.status, _study.c.enrolled).where(*one).with_for_update()
    ).first()
    if found is None:
        return False
    connection.execute(sa.update(_study).where(*one).values(**_NOTHING))
    for table in (_model, _tally, _due):
        connection.execute(sa.delete(table).where(table.c.study == study))
    finished = -1 if found.status == "finished" else 0
    tables.add_totals(connection, slot, studies=-1, finished=finished, enrolled=-found.enrolled)
    note(connection, study, -1, "study")
    return True


def leave_no_trace(connection: Connection, study: str, *, successor: str) -> None:
    """Remove a study without tickets; references to it are changed to its successor."""
    for table, column in ((tables.activity, "study"), (_study, "successor")):
        mine = table.c[column] == study
        connection.execute(sa.update(table).where(mine).values({column: successor}))
    for table in (_person, _model, _tally, _due):
        connection.execute(sa.delete(table).where(table.c.study == study))
    connection.execute(sa.delete(_study).where(_study.c.id == study))


def step(connection: Connection, most: int) -> bool:
    """Remove some rows that are due; False if another process is removing all of them."""
    due = connection.execute(sa.select(_due).limit(1).with_for_update(skip_locked=True)).first()
    if due is None:
        return False
    if not _STEPS[due.what](connection, due, most):
        connection.execute(
            sa.delete(_due).where(
                _due.c.study == due.study, _due.c.phase == due.phase, _due.c.what == due.what
            )
        )
    return True


def _forget_links(connection: Connection, due: Row[tuple[object, ...]], most: int) -> bool:
    """Delete ticket numbers of people in the phase, but not their tokens; True if any remained."""
    phase = (_person.c.study == due.study, _person.c.phase == due.phase)
    first = connection.execute(sa.select(sa.func.min(_person.c.number)).where(*phase)).scalar_one()
    if first is None:
        return False
    some = (*phase, _person.c.number < first + most)
    tokens = sa.select(_person.c.study, _person.c.token).where(*some).order_by(_person.c.token)
    connection.execute(_past.insert().from_select(["study", "token"], tokens))
    connection.execute(sa.delete(_person).where(*some))
    return True


def _forget_replies(connection: Connection, due: Row[tuple[object, ...]], most: int) -> bool:
    """Delete the bodies of replies; digests are kept, so that receipts can be checked."""
    phase = (_reply.c.study == due.study, _reply.c.phase == due.phase)
    last = connection.execute(sa.select(sa.func.max(_reply.c.number)).where(*phase)).scalar_one()
    if last is None or due.reached > last:
        return False
    upto = due.reached + most
    some = (*phase, _reply.c.number >= due.reached, _reply.c.number < upto)
    connection.execute(sa.update(_reply).where(*some).values(body=b""))
    connection.execute(
        sa.update(_due)
        .where(_due.c.study == due.study, _due.c.phase == due.phase, _due.c.what == "replies")
        .values(reached=upto)
    )
    return True


def _forget_study(connection: Connection, due: Row[tuple[object, ...]], most: int) -> bool:
    """Delete replies first, then people."""
    for table, keys in (
        (_reply, (_reply.c.phase, _reply.c.number)),
        (_person, (_person.c.token,)),
        (_past, (_past.c.token,)),
    ):
        own = table.c.study == due.study
        some = sa.select(*keys).where(own).limit(most)
        gone = sa.delete(table).where(own, sa.tuple_(*keys).in_(some))
        if connection.execute(gone).rowcount:
            return True
    return False


def _forget_traces(_: Connection, __: Row[tuple[object, ...]], ___: int) -> bool:
    """No row is left to remove: the files are scrubbed when nothing else is due."""
    return False


_STEPS = {
    "links": _forget_links,
    "replies": _forget_replies,
    "study": _forget_study,
    "withdrawn": _forget_traces,
}
