"""The common part of SQL backends: SQLAlchemy Core statements, one transaction for each group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, IntegrityError

from dpfda.collector.storage import forgetting, issuing, tables
from dpfda.collector.storage.base import (
    LOST,
    Activity,
    Ended,
    Enrolled,
    Invitations,
    Issued,
    Lapse,
    ModelRecord,
    NewReply,
    Organizer,
    Removed,
    Replaced,
    Role,
    Stored,
    StudyLine,
    StudyRecord,
    Totals,
    compared,
    mark_of,
)
from dpfda.collector.storage.database import Database
from dpfda.collector.storage.issuing import Issuing

_study, _person, _reply, _model = tables.study, tables.person, tables.reply, tables.model
_ended, _organizer = tables.ended_session, tables.organizer
_here = _study.c.status != "deleted"
_NEVER: Mapping[Any, Any] = MappingProxyType({})
_PRESENT = (
    sa.select(_study.c.id, _study.c.phase, _study.c.status)
    .where(_study.c.id.in_(sa.bindparam("studies", expanding=True)))
    .order_by(_study.c.id)
    .with_for_update(read=True)
)
_DONE = sa.select(_person.c.token).where(
    _person.c.token.in_(sa.bindparam("tokens", expanding=True)),
    (_person.c.until == LOST)
    | sa.exists().where(
        _reply.c.study == _person.c.study,
        _reply.c.phase == _person.c.phase,
        _reply.c.number == _person.c.number,
    ),
)


class SqlStorage(Database):
    """The SQL of every backend; subclasses add connection, locking and scrubbing."""

    def __init__(self, *engines: Engine) -> None:
        super().__init__(*engines)
        self._issuing = Issuing()

    # -- studies -------------------------------------------------------------------------------

    def create(
        self, study: StudyRecord, first: ModelRecord, *, note: Activity | None = None
    ) -> bool:
        """Store a new study."""
        try:
            with self._write() as connection:
                self._begin(connection, study, first)
                tables.note(connection, note)
        except IntegrityError:
            return False
        return True

    def _begin(self, connection: Connection, study: StudyRecord, first: ModelRecord) -> None:
        connection.execute(_study.insert(), msgspec.structs.asdict(study))
        connection.execute(_model.insert(), msgspec.structs.asdict(first))
        tables.add_totals(connection, self._slot, studies=1)

    def replace(
        self, study: str, record: StudyRecord, first: ModelRecord, *, note: Activity
    ) -> Replaced:
        """Change the settings or replace the study, with a lock against issuing tickets."""
        try:
            with self._write() as connection:
                found = self._replace(connection, study, record, first)
                tables.note(connection, note if found == "replaced" else None)
                return found
        except IntegrityError:
            return "exists"

    def _replace(
        self, connection: Connection, study: str, record: StudyRecord, first: ModelRecord
    ) -> Replaced:
        one = (_study.c.id == study, _here)
        columns = (_study.c.status, _study.c.issued, _study.c.enrolled)
        old = connection.execute(sa.select(*columns).where(*one).with_for_update()).first()
        if old is None:
            return "unknown"
        concluded = sa.select(_model.c.phase).where(_model.c.study == study, _model.c.phase >= 0)
        if old.status != "open" or old.issued or connection.execute(concluded).first() is not None:
            return "begun"
        if record.id == study:
            how = {name: getattr(record, name) for name in ("settings", "open", "deadline")}
            _change(connection, study, **how)
            return "replaced"
        self._begin(connection, record, first)
        forgetting.leave_no_trace(connection, study, successor=record.id)
        tables.add_totals(connection, self._slot, studies=-1, enrolled=-old.enrolled)
        return "replaced"

    def page(
        self, *, most: int, after: tuple[float, str] | None = None, only_open: bool = False
    ) -> list[StudyLine]:
        """A page of studies, newest first."""
        with self._read() as connection:
            return tables.page(connection, most=most, after=after, only_open=only_open)

    def totals(self) -> Totals:
        """Read the stored totals."""
        with self._read() as connection:
            return Totals(**tables.totals(connection))

    def due(self, *, now: float) -> list[StudyRecord]:
        """Studies that need the watcher."""
        with self._read() as connection:
            return tables.due(connection, now=now)

    def study(self, study: str) -> StudyRecord | None:
        """One study."""
        with self._read() as connection:
            row = connection.execute(sa.select(_study).where(_study.c.id == study, _here)).first()
            return None if row is None else StudyRecord(**row._mapping)

    # -- people --------------------------------------------------------------------------------

    def enrol(
        self, people: Sequence[tuple[str, bytes]], *, until: Mapping[bytes, float] = _NEVER
    ) -> list[Enrolled]:
        """Store token hashes."""
        verdicts: list[Enrolled] = ["unknown"] * len(people)
        with self._write() as connection:
            for study, places in _grouped(study for study, _ in people):
                row = connection.execute(
                    sa.select(_study.c.enrolled, _study.c.status)
                    .where(_study.c.id == study, _here)
                    .with_for_update()
                ).first()
                if row is None:
                    continue
                for i in places:
                    verdicts[i] = "finished" if row.status == "finished" else "enrolled"
                if row.status == "finished":
                    continue
                tokens = [people[i][1] for i in places]
                issuing.enrol(connection, study, tokens, until)
                _change(connection, study, enrolled=row.enrolled + len(tokens))
                tables.add_totals(connection, self._slot, enrolled=len(tokens))
        return verdicts

    def issue(
        self,
        people: Sequence[tuple[str, bytes]],
        *,
        now: float,
        lapse: Mapping[str, Lapse] = _NEVER,
    ) -> list[Issued]:
        """Issue tickets in turn, then expired ones again."""
        with self._write() as connection:
            return self._issuing.issue(connection, people, now=now, lapse=lapse)

    def add_replies(self, replies: Sequence[NewReply]) -> list[Stored]:
        """Store all replies in one statement; after an error, row by row in the same commit."""
        with self._write() as connection:
            verdicts, good = self._sort(connection, replies)
            try:
                with connection.begin_nested():
                    issuing.insert(connection, [replies[i] for i in good])
                for i in good:
                    verdicts[i] = "stored"
            except (IntegrityError, DataError):
                for i in good:
                    verdicts[i] = _add_one(connection, replies[i])
            new = Counter(
                (reply.study, reply.phase)
                for reply, verdict in zip(replies, verdicts, strict=True)
                if verdict == "stored"
            )
            tables.add_answers(connection, self._slot, new)
        return verdicts

    def withdraw(self, reply: NewReply) -> Removed:
        """Replace the reply by an empty one, and mark its remains in the files for deletion."""
        with self._write() as connection:
            # Lock as for issuing a ticket: no reply is stored and no phase ends meanwhile.
            row = connection.execute(issuing.LOCKED, {"studies": [reply.study]}).first()
            if row is None or row.status == "deleted":
                return "gone"
            held = issuing.tickets(connection, [reply.token]).get(reply.token)
            known = _earlier(connection, reply)
            if held is None:
                past = forgetting.served(connection, [(reply.study, reply.token)])
                if past and known == "withdrawn":
                    return known
                return "late" if past else "unknown"
            if held[:3] != (reply.study, reply.phase, reply.number):
                return "lapsed" if (held.study, held.until) == (reply.study, LOST) else "foreign"
            if known in ("withdrawn", "different"):
                return known
            if (row.phase, row.status) != (reply.phase, "open"):
                return "late"
            empty = msgspec.structs.replace(reply, digest=mark_of(reply.digest), body=b"")
            if known is None:
                issuing.insert(connection, [empty])
                tables.add_answers(connection, self._slot, {(reply.study, reply.phase): 1})
            else:
                forgetting.empty(connection, empty)
            return "withdrawn"

    def knows(self, study: str, token: bytes) -> bool:
        """Search present and past people."""
        with self._read() as connection:
            person = issuing.tickets(connection, [token]).get(token)
            if person is not None:
                return person.study == study
            return bool(forgetting.served(connection, [(study, token)]))

    def settled(self, study: str, tokens: Sequence[bytes]) -> set[bytes]:
        """People of past phases, and people who have answered or lost their ticket."""
        with self._read() as connection:
            past = forgetting.served(connection, [(study, token) for token in tokens])
            done = connection.execute(_DONE, {"tokens": list(tokens)}).scalars()
            return {token for _, token in past} | set(map(bytes, done))

    def invitations(self, study: str) -> Invitations:
        """Count by indexes."""
        with self._read() as connection:
            return tables.invitations(connection, study)

    def _sort(
        self, connection: Connection, replies: Sequence[NewReply]
    ) -> tuple[list[Stored], list[int]]:
        """Separate invalid replies; lock the phases of the valid ones, so that they stay open."""
        verdicts: list[Stored] = ["unknown"] * len(replies)
        # First, so that no ticket is reassigned between its check and its reply.
        present = {
            row.id: (row.phase, row.status)
            for row in connection.execute(
                _PRESENT, {"studies": list({reply.study for reply in replies})}
            )
        }
        phases = {(reply.study, reply.phase) for reply in replies}
        taken = all(present.get(name) == (at, "open") for name, at in phases)
        if taken and len(phases) == 1 and issuing.all_hold(connection, replies):
            return verdicts, list(range(len(replies)))
        held = issuing.tickets(connection, [reply.token for reply in replies])
        missing = [(reply.study, reply.token) for reply in replies if reply.token not in held]
        past = forgetting.served(connection, missing)
        good = []
        for i, reply in enumerate(replies):
            ticket = held.get(reply.token)
            if present.get(reply.study, (0, "deleted"))[1] == "deleted":
                verdicts[i] = "gone"
            elif (reply.study, reply.token) in past:  # their ticket numbers were deleted
                known = _earlier(connection, reply)
                verdicts[i] = known if known in ("same", "withdrawn") else "late"
            elif ticket is None:
                continue
            elif ticket[:3] != (reply.study, reply.phase, reply.number):
                lost = ticket.study == reply.study and ticket.until == LOST
                verdicts[i] = "lapsed" if lost else "foreign"
            elif present.get(reply.study) == (reply.phase, "open"):
                good.append(i)
            else:
                verdicts[i] = _earlier(connection, reply) or "late"
        return verdicts, good

    # -- the end of a phase --------------------------------------------------------------------

    def answered(self, study: str, phase: int) -> int:
        """How many replies there are."""
        with self._read() as connection:
            return tables.answered(connection, study, phase)

    def begin_closing(self, study: str, phase: int, *, note: Activity | None = None) -> bool:
        """Refuse further replies."""
        change = (
            sa.update(_study)
            .where(
                _study.c.id == study,
                _study.c.phase == phase,
                _study.c.status.in_(("open", "closing")),
            )
            .values(status="closing")
        )
        with self._write() as connection:
            if connection.execute(change).rowcount != 1:
                return False
            tables.note(connection, note)
            return True

    def replies(self, study: str, phase: int) -> list[tuple[int, bytes]]:
        """Bodies in the order of tickets."""
        query = (
            sa.select(_reply.c.number, _reply.c.body)
            .where(_reply.c.study == study, _reply.c.phase == phase, _reply.c.body != b"")
            .order_by(_reply.c.number)
        )
        with self._read() as connection:
            return [(row.number, bytes(row.body)) for row in connection.execute(query)]

    def advance(self, study: str, phase: int, ended: Ended) -> bool:
        """Open the next phase, or the next study."""
        change = (
            sa.update(_study)
            .where(_study.c.id == study, _study.c.phase == phase, _study.c.status == "closing")
            .values(issued=0, began=None, due=None, **ended.following)
        )
        with self._write() as connection:
            if connection.execute(change).rowcount != 1:
                return False
            connection.execute(_model.insert(), msgspec.structs.asdict(ended.model))
            if ended.following["status"] == "finished":
                tables.add_totals(connection, self._slot, finished=1)
            forgetting.note(connection, study, phase, "links")
            if ended.successor is not None:
                name = ended.successor[0].id
                same = sa.select(_study.c.id).where(_study.c.id == name)
                if connection.execute(same).first() is None:  # unless it was created manually
                    self._begin(connection, *ended.successor)
                _change(connection, study, successor=name)
            return True

    def models(self, study: str) -> list[ModelRecord]:
        """The models of a study."""
        query = sa.select(_model).where(_model.c.study == study).order_by(_model.c.phase)
        with self._read() as connection:
            return [ModelRecord(**row._mapping) for row in connection.execute(query)]

    # -- organizers and their sessions ---------------------------------------------------------

    def organizers(self) -> list[Organizer]:
        """All organizers, sorted by name."""
        with self._read() as connection:
            rows = connection.execute(sa.select(_organizer).order_by(_organizer.c.name))
            found = [Organizer(**row._mapping) for row in rows]
            return [msgspec.structs.replace(one, key=bytes(one.key)) for one in found]

    def add_organizer(self, organizer: Organizer, *, note: Activity) -> bool:
        """Store an organizer if the name was never used."""
        try:
            with self._write() as connection:
                connection.execute(_organizer.insert(), msgspec.structs.asdict(organizer))
                tables.note(connection, note)
        except IntegrityError:
            return False
        return True

    def change_organizer(
        self, name: str, *, note: Activity, key: bytes, role: Role | None = None
    ) -> bool:
        """Replace the key, and maybe the role."""
        values: dict[str, object] = {"key": key, "rotated": note.at}
        values |= {} if role is None else {"role": role}
        one = (_organizer.c.name == name, _organizer.c.role != "removed")
        with self._write() as connection:
            if connection.execute(sa.update(_organizer).where(*one).values(**values)).rowcount != 1:
                return False
            tables.note(connection, note)
            return True

    def give(self, study: str, owner: str, *, note: Activity) -> bool:
        """Change the owner."""
        change = sa.update(_study).where(_study.c.id == study, _here).values(owner=owner)
        with self._write() as connection:
            if connection.execute(change).rowcount != 1:
                return False
            tables.note(connection, note)
            return True

    def note(self, activity: Activity) -> None:
        """Store one row."""
        with self._write() as connection:
            tables.note(connection, activity)

    def activities(
        self, *, most: int, before: int | None = None, study: str | None = None
    ) -> list[Activity]:
        """Activities, newest first."""
        with self._read() as connection:
            return tables.activities(connection, most=most, before=before, about=study)

    def end_session(self, session: bytes, *, until: float, now: float) -> None:
        """Store the session, and delete expired ones."""
        with self._write() as connection:
            over = (_ended.c.until < now) | (_ended.c.session == session)
            connection.execute(_ended.delete().where(over))
            connection.execute(_ended.insert(), {"session": session, "until": until})

    def session_ended(self, session: bytes) -> bool:
        """Whether it is remembered."""
        query = sa.select(_ended.c.until).where(_ended.c.session == session)
        with self._read() as connection:
            return connection.execute(query).first() is not None


def _change(connection: Connection, study: str, **values: object) -> None:
    connection.execute(sa.update(_study).where(_study.c.id == study).values(**values))


def _grouped(names: Iterator[str]) -> list[tuple[str, list[int]]]:
    """The positions of each name, with names in sorted order."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        places[name].append(place)
    return sorted(places.items())


def _add_one(connection: Connection, reply: NewReply) -> Stored:
    try:
        with connection.begin_nested():
            issuing.insert(connection, [reply])
    except (IntegrityError, DataError):
        return _earlier(connection, reply) or "failed"
    return "stored"


def _earlier(connection: Connection, reply: NewReply) -> Stored | None:
    """Compare a reply with the one that was stored for its ticket, if there is one."""
    digest = forgetting.digest(connection, reply.study, reply.phase, reply.number)
    return None if digest is None else compared(digest, reply.digest)
