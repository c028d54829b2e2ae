"""A storage in memory, for tests and for measuring the cost of other storages."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, cast

import msgspec

from dpfda.collector.storage.base import (
    LOST,
    Activity,
    ClockMark,
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
    Storage,
    Stored,
    StudyLine,
    StudyRecord,
    Ticket,
    Totals,
    Waiting,
    compared,
    mark_of,
    timed,
)

_SHORT = [name for name in StudyLine.__struct_fields__ if name not in ("answered", "concluded")]
_NEVER: Mapping[Any, Any] = MappingProxyType({})


class MemoryStorage(Storage, name="memory"):
    """Dictionaries behind one lock.

    Examples:
        >>> MemoryStorage.open("memory:").study("none") is None
        True
    """

    def __init__(self) -> None:
        self._confirmed: float | None = None
        self._lock = threading.RLock()
        self._studies: dict[str, StudyRecord] = {}
        self._people: dict[bytes, Ticket] = {}
        self._until: dict[bytes, float | None] = {}
        self._past: set[tuple[str, bytes]] = set()
        self._deleted: set[str] = set()
        self._replies: dict[tuple[str, int], dict[int, NewReply]] = {}
        self._models: dict[str, list[ModelRecord]] = {}
        self._ended: dict[bytes, float] = {}
        self._organizers: dict[str, Organizer] = {}
        self._activities: list[Activity] = []
        self._waiting = Waiting()

    @classmethod
    def open(cls, url: str) -> Self:
        """A new, empty storage."""
        return cls()

    def close(self) -> None:
        """Do nothing."""

    def probe(self, mark: ClockMark) -> None:
        """Do nothing; memory is always available."""

    def clock(self) -> tuple[list[ClockMark], float | None]:
        """The confirmed time; no marks outlive the process."""
        return [], self._confirmed

    def confirm_clock(self, *, now: float, note: Activity | None = None) -> None:
        """Store the confirmed time."""
        self._confirmed = now
        self._note(note)

    def create(
        self, study: StudyRecord, first: ModelRecord, *, note: Activity | None = None
    ) -> bool:
        """Store a new study."""
        with self._lock:
            if study.id in self._studies or study.id in self._deleted:
                return False
            self._studies[study.id] = study
            self._models[study.id] = [first]
            self._note(note)
            return True

    def replace(
        self, study: str, record: StudyRecord, first: ModelRecord, *, note: Activity
    ) -> Replaced:
        """Change settings, or take the old study's place."""
        with self._lock:
            old = self._studies.get(study)
            if old is None:
                return "unknown"
            if old.status != "open" or old.issued or len(self._models[study]) > 1:
                return "begun"
            if record.id == study:
                how = {name: getattr(record, name) for name in ("settings", "open", "deadline")}
                self._change(study, **how)
            elif not self.create(record, first):
                return "exists"
            else:
                self.delete(study)
                self._deleted.discard(study)
                self._activities = [
                    msgspec.structs.replace(one, study=record.id) if one.study == study else one
                    for one in self._activities
                ]
                for name, one in self._studies.items():
                    if one.successor == study:
                        self._change(name, successor=record.id)
            self._note(note)
            return "replaced"

    def page(
        self, *, most: int, after: tuple[float, str] | None = None, only_open: bool = False
    ) -> list[StudyLine]:
        """A page of studies, newest first."""
        lines = [
            StudyLine(
                **{name: getattr(one, name) for name in _SHORT},
                answered=self.answered(one.id, one.phase),
                concluded=sum(entry.people for entry in self.models(one.id)),
            )
            for one in list(self._studies.values())
            if one.open or not only_open
        ]
        older = [line for line in lines if after is None or line.place < after]
        return sorted(older, key=lambda line: line.place, reverse=True)[:most]

    def totals(self) -> Totals:
        """Totals, counted from the dictionaries."""
        studies = list(self._studies.values())
        return Totals(
            studies=len(studies),
            finished=sum(one.status == "finished" for one in studies),
            enrolled=sum(one.enrolled for one in studies),
        )

    def due(self, *, now: float) -> list[StudyRecord]:
        """Studies whose replies are due to be purged, found by a search of all studies."""
        return [one for one in list(self._studies.values()) if self._is_due(one, now)]

    def _is_due(self, one: StudyRecord, now: float) -> bool:
        if one.status != "open":
            return one.status == "closing"
        late = one.due is not None and one.due <= now
        return late or one.issued >= one.quota <= self.answered(one.id, one.phase)

    def study(self, study: str) -> StudyRecord | None:
        """One study."""
        return self._studies.get(study)

    def enrol(
        self, people: Sequence[tuple[str, bytes]], *, until: Mapping[bytes, float] = _NEVER
    ) -> list[Enrolled]:
        """Remember token hashes."""
        with self._lock:
            return [self._enrol_one(study, token, until.get(token)) for study, token in people]

    def _enrol_one(self, study: str, token: bytes, until: float | None) -> Enrolled:
        record = self._studies.get(study)
        if record is None:
            return "unknown"
        if record.status == "finished":
            return "finished"
        self._people[token] = Ticket(study, None, None)
        self._until[token] = until
        self._change(study, enrolled=record.enrolled + 1)
        return "enrolled"

    def issue(
        self,
        people: Sequence[tuple[str, bytes]],
        *,
        now: float,
        lapse: Mapping[str, Lapse] = _NEVER,
    ) -> list[Issued]:
        """Issue tickets in turn, then expired ones again."""
        with self._lock:
            return [
                self._issue_one(study, token, now, lapse.get(study, Lapse()))
                for study, token in people
            ]

    def _issue_one(self, study: str, token: bytes, now: float, lapse: Lapse) -> Issued:
        held = self._people.get(token)
        if study in self._deleted:
            return "gone"
        if held is None:
            return "late" if (study, token) in self._past else "unknown"
        if held.study != study:
            return "foreign"
        record, until = self._studies[study], self._until[token]
        if held.number is not None:
            if self._is_done(token):
                return "answered"
            present = (held.phase, "open") == (record.phase, record.status)
            if present and lapse.has_ended(until, now):
                if lapse.final:
                    return "lapsed"
                if self._waiting.is_somebody(study, now, lapse):
                    return "wait"
                self._until[token] = lapse.until(now)
            return held
        if lapse.is_over(until, now):
            return "lapsed"
        if record.status == "finished":
            return "finished"
        if record.status == "closing":
            return "wait"
        number: int | None = record.issued
        if record.issued < record.quota:
            times = timed(record.began, record.due, record.deadline, now)
            self._change(study, issued=record.issued + 1, **times)
        else:
            number = self._take_lapsed(record, now, lapse)
        if number is None:
            self._waiting.sent_away(study, now)
            return "wait"
        ticket = self._people[token] = Ticket(study, record.phase, number)
        self._until[token] = lapse.until(now)
        return ticket

    def _take_lapsed(self, record: StudyRecord, now: float, lapse: Lapse) -> int | None:
        """Reassign the ticket that expired longest ago."""
        answered = self._replies.get((record.id, record.phase), {})
        free = [
            (until, held.number, token)
            for token, held in self._people.items()
            if (held.study, held.phase) == (record.id, record.phase)
            and (until := self._until[token]) is not None
            and held.number not in answered
            and lapse.is_free(until, now)
        ]
        if not free:
            return None
        _, number, token = min(free)
        self._people[token] = Ticket(record.id, None, None)
        self._until[token] = LOST
        return number

    def knows(self, study: str, token: bytes) -> bool:
        """Search present and past people."""
        with self._lock:
            held = self._people.get(token)
            return (study, token) in self._past or (held is not None and held.study == study)

    def add_replies(self, replies: Sequence[NewReply]) -> list[Stored]:
        """Store replies."""
        with self._lock:
            return [self._add_one(reply) for reply in replies]

    def _add_one(self, reply: NewReply) -> Stored:
        if reply.study not in self._studies:
            return "gone"
        held = self._people.get(reply.token)
        phase = self._replies.setdefault((reply.study, reply.phase), {})
        before = phase.get(reply.number)
        if (reply.study, reply.token) in self._past:
            known = None if before is None else compared(before.digest, reply.digest)
            return known if known in ("same", "withdrawn") else "late"
        if held is None:
            return "unknown"
        if held != Ticket(reply.study, reply.phase, reply.number):
            lost = held.study == reply.study and self._until[reply.token] == LOST
            return "lapsed" if lost else "foreign"
        if before is not None:
            return compared(before.digest, reply.digest)
        record = self._studies[reply.study]
        if record.phase != reply.phase or record.status != "open":
            return "late"
        phase[reply.number] = reply
        return "stored"

    def withdraw(self, reply: NewReply) -> Removed:
        """Replace the reply by an empty one."""
        with self._lock:
            known = self._add_one(reply)
            if known not in ("stored", "same"):
                return cast(Removed, known)
            record = self._studies[reply.study]
            if (record.phase, record.status) != (reply.phase, "open"):
                return "late"
            empty = msgspec.structs.replace(reply, digest=mark_of(reply.digest), body=b"")
            self._replies[reply.study, reply.phase][reply.number] = empty
            return "withdrawn"

    def settled(self, study: str, tokens: Sequence[bytes]) -> set[bytes]:
        """Search all people."""
        with self._lock:
            return {one for one in tokens if (study, one) in self._past or self._is_done(one)}

    def _is_done(self, token: bytes) -> bool:
        held = self._people.get(token)
        if held is None or held.phase is None:
            return held is not None and self._until[token] == LOST
        return held.number in self._replies.get((held.study, held.phase), {})

    def invitations(self, study: str) -> Invitations:
        """Counted among all people."""
        with self._lock:
            record = self._studies.get(study)
            held = [
                token
                for token, ticket in self._people.items()
                if ticket.study == study and (ticket.number is not None or self._is_done(token))
            ]
            replies = (len(rows) for (name, _), rows in self._replies.items() if name == study)
            return Invitations(
                made=0 if record is None else record.enrolled,
                opened=len(held) + sum(name == study for name, _ in self._past),
                used=sum(replies),
            )

    def answered(self, study: str, phase: int) -> int:
        """How many replies there are."""
        return len(self._replies.get((study, phase), {}))

    def begin_closing(self, study: str, phase: int, *, note: Activity | None = None) -> bool:
        """Refuse further replies."""
        with self._lock:
            record = self._studies.get(study)
            if record is None or record.phase != phase or record.status == "finished":
                return False
            self._change(study, status="closing")
            self._note(note)
            return True

    def replies(self, study: str, phase: int) -> list[tuple[int, bytes]]:
        """Bodies in the order of tickets."""
        found = self._replies.get((study, phase), {})
        return [(number, found[number].body) for number in sorted(found) if found[number].body]

    def advance(self, study: str, phase: int, ended: Ended) -> bool:
        """Open the next phase, or the next study."""
        with self._lock:
            record = self._studies.get(study)
            if record is None or record.phase != phase or record.status != "closing":
                return False
            self._forget_people(study, phase)
            self._change(study, issued=0, began=None, due=None, **ended.following)
            self._models[study].append(ended.model)
            if ended.successor is not None:
                self.create(*ended.successor)
                self._change(study, successor=ended.successor[0].id)
            return True

    def models(self, study: str) -> list[ModelRecord]:
        """The models of a study."""
        return list(self._models.get(study, []))

    def organizers(self) -> list[Organizer]:
        """All organizers, sorted by name."""
        with self._lock:
            return [self._organizers[name] for name in sorted(self._organizers)]

    def add_organizer(self, organizer: Organizer, *, note: Activity) -> bool:
        """Store an organizer if the name was never used."""
        with self._lock:
            if organizer.name in self._organizers:
                return False
            self._organizers[organizer.name] = organizer
            self._note(note)
            return True

    def change_organizer(
        self, name: str, *, note: Activity, key: bytes, role: Role | None = None
    ) -> bool:
        """Replace the key, and maybe the role."""
        with self._lock:
            found = self._organizers.get(name)
            if found is None or found.role == "removed":
                return False
            self._organizers[name] = msgspec.structs.replace(
                found, key=key, role=role or found.role, rotated=note.at
            )
            self._note(note)
            return True

    def give(self, study: str, owner: str, *, note: Activity) -> bool:
        """Change the owner."""
        with self._lock:
            if study not in self._studies:
                return False
            self._change(study, owner=owner)
            self._note(note)
            return True

    def note(self, activity: Activity) -> None:
        """Store an activity."""
        self._note(activity)

    def _note(self, activity: Activity | None) -> None:
        if activity is not None:
            with self._lock:
                number = len(self._activities) + 1
                self._activities.append(msgspec.structs.replace(activity, number=number))

    def activities(
        self, *, most: int, before: int | None = None, study: str | None = None
    ) -> list[Activity]:
        """Activities, newest first."""
        found = [
            one
            for one in reversed(self._activities)
            if (before is None or one.number < before) and study in (None, one.study)
        ]
        return found[:most]

    def end_session(self, session: bytes, *, until: float, now: float) -> None:
        """Store the session, and delete expired ones."""
        with self._lock:
            self._ended = {name: end for name, end in self._ended.items() if end >= now}
            self._ended[session] = until

    def session_ended(self, session: bytes) -> bool:
        """Whether it is remembered."""
        return session in self._ended

    def digest(self, study: str, phase: int, number: int) -> bytes | None:
        """The digest of one reply."""
        found = self._replies.get((study, phase), {}).get(number)
        return None if found is None else found.digest

    def purgeable(self, *, before: float) -> list[str]:
        """Studies whose replies are due to be purged, found by a search of all studies."""
        return [
            name
            for name, one in self._studies.items()
            if one.status == "finished" and not one.purged
            if self._models[name][-1].created < before
        ]

    def purge(self, study: str, *, note: Activity | None = None) -> bool:
        """Delete the bodies of replies."""
        with self._lock:
            record = self._studies.get(study)
            if record is None:
                return False
            self._note(note)
            self._change(study, purged=record.status == "finished")
            for (name, phase), replies in self._replies.items():
                if name == study and phase in {model.phase for model in self._models[study]}:
                    for number, reply in replies.items():
                        replies[number] = msgspec.structs.replace(reply, body=b"")
            return True

    def delete(self, study: str, *, note: Activity | None = None) -> bool:
        """Delete all data except the id."""
        with self._lock:
            if self._studies.pop(study, None) is None:
                return False
            self._deleted.add(study)
            self._note(note)
            del self._models[study]
            self._people = {k: held for k, held in self._people.items() if held.study != study}
            self._past = {person for person in self._past if person[0] != study}
            self._replies = {k: rows for k, rows in self._replies.items() if k[0] != study}
            return True

    def forget(self, *, most: int = 200) -> bool:
        """Nothing is ever due."""
        return False

    def _forget_people(self, study: str, phase: int) -> None:
        served = [
            k for k, held in self._people.items() if (held.study, held.phase) == (study, phase)
        ]
        for token in served:
            del self._people[token]
        self._past.update((study, token) for token in served)

    def _change(self, study: str, **parts: object) -> None:
        self._studies[study] = msgspec.structs.replace(self._studies[study], **parts)
