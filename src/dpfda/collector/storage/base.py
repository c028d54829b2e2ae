"""The records that a collector stores, and the interface of every backend.

Methods block; the service calls them from a thread. Methods that take a list are group commits: all
entries are stored in one transaction, which is durable when the method returns. They return one
result per entry. An entry that cannot be stored does not affect the others.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Self

import msgspec

from dpfda._registry import Registered
from dpfda.errors import DpfdaError


class Unavailable(DpfdaError):
    """The storage cannot be used now: for example, the disk is full, or it is locked."""


Status = Literal["open", "closing", "finished", "deleted"]

ADMINISTRATOR = "administrator"
"""Name of the first organizer, whose key ``dpfda serve`` generates or is given; not stored."""
Role = Literal["owner", "viewer", "removed"]


class Organizer(msgspec.Struct, frozen=True, kw_only=True):
    """An organizer besides the administrator.

    Attributes:
        name: unique name; never reused, even after the organizer was removed.
        role: an ``owner`` creates studies and changes their own; a ``viewer`` reads all of them.
        key: SHA-256 of the key, which is drawn at random and not stored.
        created: seconds since 1970.
        rotated: when the key was created.
    """

    name: str
    role: Role
    key: bytes
    created: float
    rotated: float


Act = Literal[
    "created", "edited", "invited", "ended", "purged", "deleted", "gave", "read", "added",
    "rotated", "removed", "confirmed",
]  # fmt: skip


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """An action of an organizer.

    Attributes:
        number: position in the log, from 1 on; assigned by the storage.
        at: seconds since 1970.
        who: name of the organizer.
        what: what they did.
        study: id of the study, if any.
        detail: how many people were invited, which phase was ended, whose key was made, ...
    """

    number: int = 0
    at: float
    who: str
    what: Act
    study: str | None = None
    detail: str = ""


class StudyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A study and the phase it is in.

    Attributes:
        id: short name, the first digits of the hash.
        hash: the plan's hash.
        title: the plan's title.
        epsilon: the plan's ε.
        plan: the plan as JSON.
        settings: how this collector runs it, as JSON.
        created: seconds since 1970.
        phase: number of the current phase.
        kind: kind of the phase.
        quota: number of people in the phase.
        status: ``closing`` during the conclusion of a phase; of a ``deleted`` study only the id is
            stored.
        state: state of the server at the beginning of this phase, as JSON.
        issued: tickets handed out in this phase.
        began: when the first ticket of the phase was handed out.
        deadline: seconds from then until the phase ends without the missing replies; None waits for
            all.
        due: time of the deadline, once it is known.
        enrolled: people with a token.
        seal: secret key of its receipts.
        successor: the study of the next round, if it is a stream.
        open: whether anybody may take part, and the study is listed publicly.
        owner: name of the organizer who owns the study.
        purged: whether its replies were purged, or soon will be, after it was finished.
    """

    id: str
    hash: str
    plan: str
    settings: str
    created: float
    phase: int
    kind: str
    quota: int
    status: Status
    state: str
    title: str = ""
    epsilon: float = 0.0
    seal: str
    issued: int = 0
    began: float | None = None
    deadline: float | None = None
    due: float | None = None
    enrolled: int = 0
    successor: str | None = None
    open: bool = False
    purged: bool = False
    owner: str = ADMINISTRATOR


class StudyLine(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"quota": "wanted"}
):
    """A study in the list of studies, with the numbers of replies.

    `answered` counts replies in the current phase, `concluded` in all finished phases. Only
    organizers see the owner.
    """

    id: str
    hash: str
    title: str
    epsilon: float
    created: float
    status: Status
    phase: int
    kind: str
    quota: int
    issued: int
    enrolled: int
    successor: str | None
    owner: str = ""
    answered: int
    concluded: int = 0

    @property
    def people(self) -> int:
        """The number of replies in all phases, as on the page of the study."""
        return self.concluded + (0 if self.status == "finished" else self.answered)

    @property
    def place(self) -> tuple[float, str]:
        """The position in the order of all studies; later ones are older."""
        return self.created, self.id


class ClockMark(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a process's clock; the last one of each boot of a machine is stored.

    Attributes:
        boot: id of the start of the machine.
        at: the collector's time, in seconds since 1970.
        elapsed: seconds since the machine was started.
        jump: seconds by which the system clock was ahead without a confirmation; otherwise 0.
    """

    boot: str
    at: float
    elapsed: float = 0.0
    jump: float = 0.0


class Invitations(msgspec.Struct, frozen=True, kw_only=True):
    """How the tokens of a study were used, in total over all phases.

    Attributes:
        made: number of tokens.
        opened: number of tokens that got a task.
        used: number of tokens with a reply, including withdrawn ones.
    """

    made: int
    opened: int
    used: int


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the whole storage."""

    studies: int = 0
    finished: int = 0
    enrolled: int = 0


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """A person's place: which study, and which ticket of which phase (None before the first)."""

    study: str
    phase: int | None
    number: int | None


class Lapse(msgspec.Struct, frozen=True):
    """The time that a ticket waits for its reply.

    A person who requests the task again within `seconds` gets the same one. Another person can get
    the ticket only after `seconds` and a quarter more, so that there is time to answer after the
    last request. Until another person has the ticket, a late reply is accepted.

    Attributes:
        seconds: lifetime of a ticket; None for no limit.
        final: whether a token expires with its ticket; otherwise its owner may continue or get
            another ticket.
    """

    seconds: float | None = None
    final: bool = False

    @property
    def grace(self) -> float:
        """Seconds between the end of a ticket's lifetime and its reassignment."""
        return 0.0 if self.seconds is None else self.seconds / 4

    @property
    def longest(self) -> float:
        """The longest time in seconds for which a token can hold a ticket.

        In the worst case it is first used at the end of its lifetime, and its ticket then lasts for
        another lifetime and the grace period.
        """
        return 0.0 if self.seconds is None else 2 * self.seconds + self.grace

    def until(self, now: float) -> float | None:
        """The end of the lifetime of a ticket that is issued now."""
        return None if self.seconds is None else now + self.seconds

    def has_ended(self, until: float | None, now: float) -> bool:
        """Whether the time of a ticket is over."""
        return self.seconds is not None and until is not None and now > until

    def is_over(self, until: float | None, now: float) -> bool:
        """Whether a token without a ticket can no longer be used."""
        return self.final and self.has_ended(until, now)

    def is_free(self, until: float, now: float) -> bool:
        """Whether a ticket without a reply goes to somebody else."""
        return self.has_ended(until + self.grace, now)


class Waiting:
    """The last time at which a study had no ticket for a person who requested one.

    While somebody waits, expired tickets are given to the next person. Otherwise a participant
    could keep a ticket forever by requesting it again.

    Examples:
        >>> waiting = Waiting()
        >>> waiting.sent_away("study", now=5.0)
        >>> [waiting.is_somebody("study", now, Lapse(seconds=60.0)) for now in (65.0, 65.1)]
        [True, False]
    """

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def sent_away(self, study: str, now: float) -> None:
        """Note that a person asked and there was no ticket."""
        self._last[study] = now

    def is_somebody(self, study: str, now: float, lapse: Lapse) -> bool:
        """Whether a person without a ticket asked for one within the lifetime of a ticket."""
        last = self._last.get(study)
        return last is not None and lapse.seconds is not None and now - last <= lapse.seconds


LOST = 0.0
"""Marks a person whose ticket was given to another person."""


class NewReply(msgspec.Struct, frozen=True, gc=False):
    """A reply to store; `token` is the hash of the person's token.

    The time of arrival is not stored.
    """

    token: bytes
    study: str
    phase: int
    number: int
    digest: bytes
    body: bytes


class Forgetting(msgspec.Struct, frozen=True):
    """Data to delete permanently, in steps that a crash may interrupt.

    Attributes:
        study: the study.
        phase: the phase; -1 for all of them.
        what: ``links`` between people and replies, the ``replies`` themselves, the ``study``, or
            remains of ``withdrawn`` replies in the database files.
        reached: tickets below this number are done.
    """

    study: str
    phase: int
    what: Literal["links", "replies", "study", "withdrawn"]
    reached: int = 0


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The model that was published at the end of a phase."""

    study: str
    phase: int
    kind: str
    people: int
    created: float
    document: str
    summary: str


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a phase, and the next phase or study.

    Attributes:
        following: number, kind, quota, status and state of the next phase.
        model: the model at the end of the phase.
        successor: the study of the next round, if it is a stream, and its first model.
    """

    following: dict[str, Any]
    model: ModelRecord
    successor: tuple[StudyRecord, ModelRecord] | None = None


def timed(
    began: float | None, due: float | None, deadline: float | None, now: float
) -> dict[str, float | None]:
    """Beginning and deadline of a phase, if a ticket of it is issued now."""
    if began is not None:
        return {"began": began, "due": due}
    return {"began": now, "due": None if deadline is None else now + deadline}


Stored = Literal[
    "stored",
    "same",
    "different",
    "withdrawn",
    "late",
    "lapsed",
    "unknown",
    "foreign",
    "gone",
    "failed",
]
"""A new reply; the same bytes as before; other bytes than before; bytes that were withdrawn; its
phase is over; the ticket went to somebody else; no such token; a ticket that is not this token's;
the study was deleted; the storage refused it."""

Removed = Literal["withdrawn", "different", "late", "lapsed", "unknown", "foreign", "gone"]
"""``withdrawn``: the reply is not stored and never will be. The others are as in `Stored`."""


def mark_of(digest: bytes) -> bytes:
    """The value stored instead of the digest of a withdrawn reply, to recognize its bytes."""
    return hashlib.sha256(b"withdrawn" + digest).digest()


def compared(stored: bytes, digest: bytes) -> Literal["withdrawn", "same", "different"]:
    """Compare a reply with the one that was stored for its ticket, by their digests."""
    if stored == mark_of(digest):
        return "withdrawn"
    return "same" if stored == digest else "different"


Issued = (
    Ticket | Literal["unknown", "foreign", "answered", "late", "lapsed", "gone", "wait", "finished"]
)
"""A ticket; no such token; a token of another study; the person has answered; the phase of their
ticket is over; the token's time is over; the study was deleted; nobody is wanted now; or ever."""

Enrolled = Literal["enrolled", "finished", "unknown"]

Replaced = Literal["replaced", "begun", "exists", "unknown"]
"""The study is another one now; somebody has joined it; there is, or was, one like that; no such
study."""


class Storage(Registered, family="storage"):
    """The interface of every backend. A new backend is one file with a subclass.

    Attributes:
        url: URL of the same storage for other processes; None if they cannot access it.
    """

    url: str | None = None

    @classmethod
    @abstractmethod
    def open(cls, url: str) -> Self:
        """Connect, and create or migrate the tables."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""

    @abstractmethod
    def probe(self, mark: ClockMark) -> None:
        """Store the state of the clock; raise `Unavailable` within a second if that fails."""

    @abstractmethod
    def clock(self) -> tuple[list[ClockMark], float | None]:
        """The last mark of `probe` for each start of a machine, and the last confirmed time."""

    @abstractmethod
    def confirm_clock(self, *, now: float, note: Activity | None = None) -> None:
        """Store the system time that an operator confirms."""

    # -- studies -------------------------------------------------------------------------------

    @abstractmethod
    def create(
        self, study: StudyRecord, first: ModelRecord, *, note: Activity | None = None
    ) -> bool:
        """Store a new study and its initial model; False if the study exists or was deleted.

        A deleted study cannot be created again, because devices that answered it would not answer
        again. The `note` is logged in the same transaction, here and in other methods.
        """

    @abstractmethod
    def replace(
        self, study: str, record: StudyRecord, first: ModelRecord, *, note: Activity
    ) -> Replaced:
        """Replace a study before its first ticket.

        With the same plan, only the settings change and tokens are kept. With another plan, the old
        study and its tokens are deleted without a trace, and its log entries refer to the new
        study.
        """

    @abstractmethod
    def page(
        self, *, most: int, after: tuple[float, str] | None = None, only_open: bool = False
    ) -> list[StudyLine]:
        """At most `most` studies, newest first: the newest ones, or those after a `place`."""

    @abstractmethod
    def totals(self) -> Totals:
        """The numbers of studies and people, in a time that does not depend on these numbers."""

    @abstractmethod
    def due(self, *, now: float) -> list[StudyRecord]:
        """Studies whose phase must be concluded: closing, complete, or past their deadline."""

    @abstractmethod
    def study(self, study: str) -> StudyRecord | None:
        """One study, unless it was deleted."""

    # -- people: group commits ---------------------------------------------------------------------

    @abstractmethod
    def enrol(
        self,
        people: Sequence[tuple[str, bytes]],
        *,
        until: Mapping[bytes, float] = MappingProxyType({}),
    ) -> list[Enrolled]:
        """Store token hashes of new people, with the deadlines of some for requesting a task."""

    @abstractmethod
    def issue(
        self,
        people: Sequence[tuple[str, bytes]],
        *,
        now: float,
        lapse: Mapping[str, Lapse] = MappingProxyType({}),
    ) -> list[Issued]:
        """The ticket of each person (study, token hash), by the rules of their studies.

        It is their present ticket, the next free one, or an expired one of another person.
        """

    @abstractmethod
    def add_replies(self, replies: Sequence[NewReply]) -> list[Stored]:
        """Store replies of open phases, one per ticket."""

    @abstractmethod
    def withdraw(self, reply: NewReply) -> Removed:
        """Remove a reply of an open phase; if it has not arrived yet, refuse it later.

        Its ticket counts as answered and is not issued again.
        """

    @abstractmethod
    def knows(self, study: str, token: bytes) -> bool:
        """Whether this is the token of a present or former participant of the study."""

    @abstractmethod
    def settled(self, study: str, tokens: Sequence[bytes]) -> set[bytes]:
        """The tokens that do not hold a ticket any more.

        These people have answered, lost their ticket, or the phase of the ticket is concluded.
        """

    @abstractmethod
    def invitations(self, study: str) -> Invitations:
        """How many tokens of a study were made, opened and used."""

    # -- the end of a phase --------------------------------------------------------------------

    @abstractmethod
    def answered(self, study: str, phase: int) -> int:
        """How many replies a phase has."""

    @abstractmethod
    def begin_closing(self, study: str, phase: int, *, note: Activity | None = None) -> bool:
        """Stop accepting replies of this phase; True if it is closing now."""

    @abstractmethod
    def replies(self, study: str, phase: int) -> list[tuple[int, bytes]]:
        """Ticket numbers and bodies of a phase, in the order of tickets, unless purged."""

    @abstractmethod
    def advance(self, study: str, phase: int, ended: Ended) -> bool:
        """Store the result of a closing phase in one transaction; False if it was stored before.

        After this, the links between people and replies of the phase are due for deletion.
        """

    @abstractmethod
    def models(self, study: str) -> list[ModelRecord]:
        """The history of a study's model, oldest first."""

    # -- organizers and their sessions ---------------------------------------------------------

    @abstractmethod
    def organizers(self) -> list[Organizer]:
        """All organizers, including removed ones, by name."""

    @abstractmethod
    def add_organizer(self, organizer: Organizer, *, note: Activity) -> bool:
        """Store a new organizer; False if the name is, or was, in use."""

    @abstractmethod
    def change_organizer(
        self, name: str, *, note: Activity, key: bytes, role: Role | None = None
    ) -> bool:
        """Replace the key, and the role if it is given; False if there is no such organizer."""

    @abstractmethod
    def give(self, study: str, owner: str, *, note: Activity) -> bool:
        """Change the owner of a study; False if there is no such study."""

    @abstractmethod
    def note(self, activity: Activity) -> None:
        """Add to the log of activities."""

    @abstractmethod
    def activities(
        self, *, most: int, before: int | None = None, study: str | None = None
    ) -> list[Activity]:
        """Activities, newest first: of one study or of all, with numbers below `before`."""

    @abstractmethod
    def end_session(self, session: bytes, *, until: float, now: float) -> None:
        """Store that a session was ended, until it would expire anyway."""

    @abstractmethod
    def session_ended(self, session: bytes) -> bool:
        """Whether a session was ended."""

    # -- forgetting ------------------------------------------------------------------------------

    @abstractmethod
    def digest(self, study: str, phase: int, number: int) -> bytes | None:
        """The digest of the reply to a ticket, purged or not."""

    @abstractmethod
    def purge(self, study: str, *, note: Activity | None = None) -> bool:
        """Mark the replies of concluded phases for deletion; False if there is no such study."""

    @abstractmethod
    def purgeable(self, *, before: float) -> list[str]:
        """Studies that were finished before this time and still have their replies."""

    @abstractmethod
    def delete(self, study: str, *, note: Activity | None = None) -> bool:
        """End a study and mark all its data for deletion; False if there is no such study."""

    @abstractmethod
    def forget(self, *, most: int = 200) -> bool:
        """Delete about `most` rows that are due; return whether more are due.

        After the last step the database files contain no remains of the deleted data.
        """
