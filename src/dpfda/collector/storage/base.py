"""The records that a collector stores, and the interface of every backend.

Methods block; the service calls them from a thread. Those that take a list are group commits: all
entries in one transaction, durable when the method returns, one verdict for each. An entry that
cannot be stored spoils none of the others.
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
    """The storage cannot be used now: the disk is full, somebody has locked it, ..."""


Status = Literal["open", "closing", "finished", "deleted"]

ADMINISTRATOR = "administrator"
"""The first organizer, whose key ``dpfda serve`` makes or is given; it is in no table."""
Role = Literal["owner", "viewer", "removed"]


class Organizer(msgspec.Struct, frozen=True, kw_only=True):
    """An organizer besides the administrator.

    Attributes:
        name: never given to anybody else, also after the organizer was removed.
        role: an ``owner`` creates studies and changes their own; a ``viewer`` reads all of them.
        key: SHA-256 of the key, which is drawn at random and not stored.
        created: seconds since 1970.
        rotated: when the key was drawn.
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
    """What an organizer did.

    Attributes:
        number: its place in the order of all of them, from 1 on; the storage gives it.
        at: seconds since 1970.
        who: name of the organizer.
        what: what they did.
        study: which study it was about, if any.
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
        phase: number of the present phase.
        kind: what the phase asks.
        quota: how many people it wants.
        status: ``closing`` while conclusions are drawn; of a ``deleted`` study only its id is kept.
        state: what was learnt before this phase, as JSON: with the plan, enough to go on.
        issued: tickets handed out in this phase.
        began: when the first ticket of the phase was handed out.
        deadline: seconds from then until the phase ends without the missing; None waits for all.
        due: when that is, once it is known.
        enrolled: people with a token.
        seal: secret key of its receipts.
        successor: the study that goes on after this one, if it is a stream.
        open: anybody may take part, and the study is listed for everybody.
        owner: name of the organizer to whom the study belongs.
        purged: its replies were purged, or are about to be, after it was finished.
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
    """A study in a list of many, newest first, with the numbers of those who have answered.

    `answered` is their number in the present phase, `concluded` in all phases that are over. Its
    owner is named to organizers only.
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
        """How many have answered in all phases, as on the page of the study."""
        return self.concluded + (0 if self.status == "finished" else self.answered)

    @property
    def place(self) -> tuple[float, str]:
        """The position in the order of all studies; later ones are older."""
        return self.created, self.id


class ClockMark(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a process's clock; the last one of each boot of a machine is stored.

    Attributes:
        boot: id of the start of the machine.
        at: the time that deadlines went by, in seconds since 1970.
        elapsed: seconds since the machine was started.
        jump: seconds by which the system's clock was ahead, if nobody had confirmed that it is
            right; 0 otherwise.
    """

    boot: str
    at: float
    elapsed: float = 0.0
    jump: float = 0.0


class Invitations(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the tokens of a study: numbers only, in all of its phases together.

    Attributes:
        made: how many there are.
        opened: how many were shown a task.
        used: how many have a reply, also if it was withdrawn.
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

    Whoever asks for a task within `seconds` of the first time gets the same one. Somebody else gets
    the ticket only after a quarter of that more, so that there is time to answer whenever a task
    was shown; until somebody does, a late reply is taken.

    Attributes:
        seconds: None waits for ever.
        final: with its time a token is over; otherwise its owner may go on, or get another ticket.
    """

    seconds: float | None = None
    final: bool = False

    @property
    def grace(self) -> float:
        """Seconds between the end of a ticket's time and the next person who may get it."""
        return 0.0 if self.seconds is None else self.seconds / 4

    @property
    def longest(self) -> float:
        """Seconds from a token that may lapse to the end of what it keeps from others.

        It asks at the end of its own time, lets the ticket's pass, and then the grace.
        """
        return 0.0 if self.seconds is None else 2 * self.seconds + self.grace

    def until(self, now: float) -> float | None:
        """The end of the time of what is handed out now."""
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
    """When a study last had no ticket for somebody who asked.

    While somebody waits, expired tickets are given to the next person. Without this, a participant
    who asked again in time could keep a ticket for ever.

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
"""The end of the time of somebody whose ticket went to somebody else."""


class NewReply(msgspec.Struct, frozen=True, gc=False):
    """A reply on its way into the storage; `token` is the hash of the person's token.

    When it came is nobody's business and not kept.
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
            traces in the files of replies that were ``withdrawn``.
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
    """The end of a phase, and what begins with it.

    Attributes:
        following: number, kind, quota, status and state of the next phase.
        model: what was learnt.
        successor: the study that goes on after this one, if it is a stream, and its first model.
    """

    following: dict[str, Any]
    model: ModelRecord
    successor: tuple[StudyRecord, ModelRecord] | None = None


def timed(
    began: float | None, due: float | None, deadline: float | None, now: float
) -> dict[str, float | None]:
    """When a phase began and is due, if a ticket of it is handed out now."""
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
"""The reply is not there, and never will be; the other words are those of `Stored`."""


def mark_of(digest: bytes) -> bytes:
    """What is kept in place of the digest of a withdrawn reply, to recognize its bytes."""
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
        url: where another process finds the same studies; None if no other can.
    """

    url: str | None = None

    @classmethod
    @abstractmethod
    def open(cls, url: str) -> Self:
        """Connect, and create or migrate the tables."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

    @abstractmethod
    def probe(self, mark: ClockMark) -> None:
        """Store what is known of the clock; say within a second what is wrong (`Unavailable`)."""

    @abstractmethod
    def clock(self) -> tuple[list[ClockMark], float | None]:
        """The last mark of `probe` for each start of a machine, and the last confirmed time."""

    @abstractmethod
    def confirm_clock(self, *, now: float, note: Activity | None = None) -> None:
        """Store what the system's clock shows while an operator says that it is right."""

    # -- studies -------------------------------------------------------------------------------

    @abstractmethod
    def create(
        self, study: StudyRecord, first: ModelRecord, *, note: Activity | None = None
    ) -> bool:
        """Store a new study and its model before anybody answered; False if it is, or was, here.

        A deleted study does not come back: devices that answered it would not answer again. A note
        of who did it is stored in the same transaction, here and elsewhere.
        """

    @abstractmethod
    def replace(
        self, study: str, record: StudyRecord, first: ModelRecord, *, note: Activity
    ) -> Replaced:
        """Put another study in the place of one of which nobody has seen a question.

        The same plan keeps its tokens and gets other settings. With another plan the old study and
        its tokens are gone as if it had never been; the notes about it are about the new one.
        """

    @abstractmethod
    def page(
        self, *, most: int, after: tuple[float, str] | None = None, only_open: bool = False
    ) -> list[StudyLine]:
        """At most so many studies, newest first: the newest, or those after a `place`."""

    @abstractmethod
    def totals(self) -> Totals:
        """How many studies and people there are; as fast with many as with few."""

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
        """Store token hashes of new people, and until when some of them must ask for a task."""

    @abstractmethod
    def issue(
        self,
        people: Sequence[tuple[str, bytes]],
        *,
        now: float,
        lapse: Mapping[str, Lapse] = MappingProxyType({}),
    ) -> list[Issued]:
        """The ticket of each person (study, token hash), by the rules of their studies.

        It is the one they have, the next, or one that somebody else has let lapse.
        """

    @abstractmethod
    def add_replies(self, replies: Sequence[NewReply]) -> list[Stored]:
        """Store replies of open phases, each ticket's once."""

    @abstractmethod
    def withdraw(self, reply: NewReply) -> Removed:
        """Remove a reply of an open phase, and keep it out if it has not come yet.

        Its ticket counts as answered, and goes to nobody else.
        """

    @abstractmethod
    def knows(self, study: str, token: bytes) -> bool:
        """Whether this is the token of somebody who takes, or took, part in the study."""

    @abstractmethod
    def settled(self, study: str, tokens: Sequence[bytes]) -> set[bytes]:
        """Those of these people who keep no ticket from others, now and ever.

        They have answered, somebody else has their ticket, or its phase is concluded.
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
        """Take no more replies of this phase. True if it is closing now, whoever began it."""

    @abstractmethod
    def replies(self, study: str, phase: int) -> list[tuple[int, bytes]]:
        """Ticket numbers and bodies of a phase, in the order of tickets, unless purged."""

    @abstractmethod
    def advance(self, study: str, phase: int, ended: Ended) -> bool:
        """Store what a closing phase taught, in one transaction; False if somebody else did.

        From then on the links between its people and replies are due to be forgotten.
        """

    @abstractmethod
    def models(self, study: str) -> list[ModelRecord]:
        """The history of a study's model, oldest first."""

    # -- organizers and their sessions ---------------------------------------------------------

    @abstractmethod
    def organizers(self) -> list[Organizer]:
        """All organizers that were ever added, by name."""

    @abstractmethod
    def add_organizer(self, organizer: Organizer, *, note: Activity) -> bool:
        """Store a new organizer; False if somebody has, or had, this name."""

    @abstractmethod
    def change_organizer(
        self, name: str, *, note: Activity, key: bytes, role: Role | None = None
    ) -> bool:
        """Replace the key, and the role if it is given; False if there is no such organizer."""

    @abstractmethod
    def give(self, study: str, owner: str, *, note: Activity) -> bool:
        """Let a study belong to somebody else; False if there is no such study."""

    @abstractmethod
    def note(self, activity: Activity) -> None:
        """Add to the log of activities."""

    @abstractmethod
    def activities(
        self, *, most: int, before: int | None = None, study: str | None = None
    ) -> list[Activity]:
        """The latest activities first: of a study or of all, of numbers below `before`."""

    @abstractmethod
    def end_session(self, session: bytes, *, until: float, now: float) -> None:
        """Remember until it ends by itself that a session was ended."""

    @abstractmethod
    def session_ended(self, session: bytes) -> bool:
        """Whether a session was ended."""

    # -- forgetting ------------------------------------------------------------------------------

    @abstractmethod
    def digest(self, study: str, phase: int, number: int) -> bytes | None:
        """The digest of the reply to a ticket, purged or not."""

    @abstractmethod
    def purge(self, study: str, *, note: Activity | None = None) -> bool:
        """Let the replies of concluded phases be forgotten; False if there is no such study."""

    @abstractmethod
    def purgeable(self, *, before: float) -> list[str]:
        """Studies that were finished before this time and still have their replies."""

    @abstractmethod
    def delete(self, study: str, *, note: Activity | None = None) -> bool:
        """End a study now, and let all of it be forgotten; False if there is none."""

    @abstractmethod
    def forget(self, *, most: int = 200) -> bool:
        """Remove about `most` rows that are due; return whether more are due now.

        After the last step the database's files hold nothing of it any more.
        """
