"""The service of a collector without HTTP: studies, tokens, tasks, replies, phases.

Memory holds only caches, so several processes may serve the same database, and a killed process
loses nothing. An answer is sent only after the data that it acknowledges are durable.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec

from dpfda.collector.clock import Clock
from dpfda.collector.conclude import (
    PLAN_SECONDS,
    Conclusion,
    Worker,
    begin_study,
    conclude,
    conclude_stored,
)
from dpfda.collector.limits import Places
from dpfda.collector.metrics import Metrics
from dpfda.collector.organizers import FIRST, Account, account_named, check_name, key_hash, new_key
from dpfda.collector.phases import OpenPhase, Phases, opened
from dpfda.collector.refusal import (
    Refused,
    begun,
    no_organizer,
    no_place,
    no_study,
    no_ticket,
    not_removed,
    not_stored,
)
from dpfda.collector.replies import GroupCommit, PendingWrites, Sent, Threads, store
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import (
    ADMINISTRATOR,
    Act,
    Activity,
    Ended,
    Enrolled,
    Invitations,
    Issued,
    Lapse,
    ModelRecord,
    Organizer,
    Storage,
    StudyLine,
    StudyRecord,
    Ticket,
    Totals,
    Unavailable,
)
from dpfda.collector.tracing import tracing
from dpfda.collector.watcher import Forgetter, Pulse, Repeated, Watcher
from dpfda.protocol.wire import Counted, Receipt, receipt_of, ticket_of, token_hash

R = TypeVar("R")
S = TypeVar("S")

_LARGEST = 2**31 - 1  # largest integer of every database
_AT_ONCE = 1000  # invitations that are stored at once
_DAY = 86400.0
_LOOK_FOR_OLD = 60.0  # seconds between searches for studies whose replies must be purged
_MARKED_EVERY = 10.0  # seconds between stored states of the clock, without health checks

log = logging.getLogger("dpfda.collector")


class Collector:
    """Every study of one database.

    Args:
        storage: storage of the studies.
        group: largest group commit.
        places: how many people of one address may take part in an open study at once.
        metrics: counters for Prometheus.
        purge_after: days after its end after which the replies of a study are purged; None for
            never.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        group: int = 256,
        places: Places | None = None,
        metrics: Metrics | None = None,
        purge_after: float | None = None,
    ) -> None:
        self.storage = storage
        self.metrics = metrics or Metrics()
        self._places = places or Places(most=0)
        self.pending = PendingWrites()
        self._db = Threads(self.pending)
        self._worker = Worker()
        # the organizer waits for the result
        self._planner = Worker(limit=PLAN_SECONDS, modest=False)
        self.phases = Phases(self._opened)
        self.watcher = Watcher(self._due, self._conclude)
        self.clock = Clock()
        self.pulse = Pulse(lambda: storage.probe(self.clock.mark()))
        self._purge_after = purge_after
        self._looked_for_old = -_LOOK_FOR_OLD
        self._marked = -_MARKED_EVERY  # monotonic time of the last stored clock state
        self._forgetter = Forgetter(self._forget)

        def commits(write: Callable[[Sequence[S]], list[R]], kind: str) -> GroupCommit[S, R]:
            noted = partial(self.metrics.committed, kind)
            return GroupCommit(
                write, self._db.writer, most=group, pending=self.pending, noted=noted
            )

        self.enrolments = commits(self._enrol, "enrolments")
        self.tickets = commits(self._issue, "tickets")
        self.replies = commits(partial(store, storage), "replies")
        self._ticker = Repeated(self._tick, "what is due each second failed")

    async def start(self) -> None:
        """Start the background work, which continues what a crash interrupted."""
        marks, confirmed = await self._db.read(self.storage.clock)
        self.clock.begin_after(marks, confirmed=confirmed)
        self.watcher.start()
        self._forgetter.start()
        self._ticker.start()

    async def stop(self) -> None:
        """Stop the background work and release all resources."""
        for repeated in (self._ticker, self.watcher, self._forgetter):
            await repeated.stop()
        self._worker.close()
        self._planner.close()
        self._db.shutdown()
        self.pulse.stop()
        self.storage.close()

    # -- studies -------------------------------------------------------------------------------

    async def create(
        self, sent: dict[str, Any], settings: StudySettings, *, by: str = ADMINISTRATOR
    ) -> StudyRecord:
        """Create a study; a plan can be used only once, because its hash identifies the study."""
        record, first = await self._begin(sent, settings, owner=by)
        note = self._note(by, "created", record.id)
        if not await self._db.write(self.storage.create, record, first, note=note):
            why = "a study with this plan exists, or was deleted; change its seed or title"
            raise Refused(409, "exists", why)
        log.info("study created", extra={"fields": {"study": record.id}})
        return record

    async def edit(
        self, study: str, sent: dict[str, Any], settings: StudySettings, *, by: str = ADMINISTRATOR
    ) -> StudyRecord:
        """Change a study before its first ticket; another plan means another id."""
        owner = (await self.study(study)).owner
        record, first = await self._begin(sent, settings, owner=owner)
        note = self._note(by, "edited", record.id)
        outcome = await self._db.write(self.storage.replace, study, record, first, note=note)
        if outcome == "unknown":
            raise no_study()
        if outcome == "begun":
            raise begun()
        if outcome == "exists":
            why = "a study like this one exists, or was deleted; change its seed or title"
            raise Refused(409, "exists", why)
        self.phases.forget(study)
        return record

    async def _begin(
        self, sent: dict[str, Any], settings: StudySettings, *, owner: str
    ) -> tuple[StudyRecord, ModelRecord]:
        """The records of a new study and of its initial model, not stored yet."""
        record, first = await begin_study(self._planner, sent, settings, now=self.clock.now)
        return msgspec.structs.replace(record, owner=owner), first

    def _note(self, who: str, what: Act, study: str | None = None, detail: str = "") -> Activity:
        """A record of an organizer's action at this time."""
        return Activity(at=self.clock.now(), who=who, what=what, study=study, detail=detail)

    async def page(
        self, *, most: int, after: tuple[float, str] | None = None, only_open: bool = False
    ) -> list[StudyLine]:
        """A page of the studies, newest first."""
        return await self._db.read(self.storage.page, most=most, after=after, only_open=only_open)

    async def totals(self) -> Totals:
        """The numbers of studies and people."""
        return await self._db.read(self.storage.totals)

    async def study(self, study: str) -> StudyRecord:
        """The current record of a study."""
        record = await self._db.read(self.storage.study, study)
        if record is None:
            raise no_study()
        return record

    async def answered(self, record: StudyRecord) -> int:
        """The number of replies in the current phase."""
        return await self._db.read(self.storage.answered, record.id, record.phase)

    async def invitations(self, record: StudyRecord) -> Invitations | None:
        """How many links of a study were used; None if anybody may take part."""
        if record.open:
            return None
        return await self._db.read(self.storage.invitations, record.id)

    async def models(self, study: str) -> list[ModelRecord]:
        """The history of a study's model."""
        history = await self._db.read(self.storage.models, study)
        if not history:
            raise no_study()
        return history

    async def all_replies(
        self, study: str, phase: int, *, by: str = ADMINISTRATOR
    ) -> list[tuple[int, bytes]]:
        """The randomized replies of a phase; the access is logged."""
        await self.study(study)
        await self._db.write(self.storage.note, self._note(by, "read", study, f"phase {phase}"))
        return await self._db.in_reader(self.storage.replies, study, phase)

    async def end_session(self, session: bytes, *, until: float) -> None:
        """End an organizer's session, in every process."""
        await self._db.write(self.storage.end_session, session, until=until, now=self.clock.now())

    async def session_ended(self, session: bytes) -> bool:
        """Whether the organizer has signed out."""
        return await self._db.read(self.storage.session_ended, session)

    async def purge(self, study: str, *, by: str = ADMINISTRATOR) -> bool:
        """Delete the replies of finished phases; True if the deletion is complete."""
        note = self._note(by, "purged", study)
        if not await self._db.write(self.storage.purge, study, note=note):
            raise no_study()
        return await self._forgetter.finish()

    async def delete(self, study: str, *, by: str = ADMINISTRATOR) -> bool:
        """Delete a study in any state; True if the deletion is complete."""
        note = self._note(by, "deleted", study)
        if not await self._db.write(self.storage.delete, study, note=note):
            raise no_study()
        self.phases.forget(study)
        log.info("study deleted", extra={"fields": {"study": study}})
        return await self._forgetter.finish()

    # -- organizers ----------------------------------------------------------------------------

    async def organizers(self) -> list[Organizer]:
        """All organizers besides the administrator, also those who were removed."""
        return await self._db.read(self.storage.organizers)

    async def account(self, name: str) -> Account | None:
        """The organizer of this name, unless they were removed."""
        return account_named(name, await self.organizers())

    async def add_organizer(
        self, name: str, role: Literal["owner", "viewer"], *, by: str = ADMINISTRATOR
    ) -> str:
        """Add an organizer; return the key, which is not stored."""
        check_name(name)
        key, now = new_key(), self.clock.now()
        made = Organizer(name=name, role=role, key=key_hash(key), created=now, rotated=now)
        note = self._note(by, "added", detail=f"{name}, {role}")
        if not await self._db.write(self.storage.add_organizer, made, note=note):
            told = f"{name} is, or was, the name of an organizer here: take another name"
            raise Refused(409, "exists", told)
        return key

    async def rotate_key(self, name: str, *, by: str = ADMINISTRATOR) -> str:
        """Replace the key of an organizer; the old key and all sessions end."""
        key = new_key()
        note = self._note(by, "rotated", detail=name)
        change = self.storage.change_organizer
        if not await self._db.write(change, name, note=note, key=key_hash(key)):
            raise no_organizer()
        return key

    async def remove_organizer(self, name: str, *, by: str = ADMINISTRATOR) -> None:
        """Remove an organizer with key and sessions; the studies continue."""
        note = self._note(by, "removed", detail=name)
        change = partial(self.storage.change_organizer, key=key_hash(new_key()), role="removed")
        if not await self._db.write(change, name, note=note):
            raise no_organizer()

    async def give(self, study: str, owner: str, *, by: str = ADMINISTRATOR) -> None:
        """Transfer a study to another organizer, who can change it from now on."""
        account = FIRST if owner == ADMINISTRATOR else await self.account(owner)
        if account is None or not account.may_create:
            told = "a study belongs to an owner or the administrator, and nobody else"
            raise Refused(422, "no_owner", told)
        note = self._note(by, "gave", study, owner)
        if not await self._db.write(self.storage.give, study, owner, note=note):
            raise no_study()

    async def activities(
        self, *, most: int, before: int | None = None, study: str | None = None
    ) -> list[Activity]:
        """The log of organizers' actions, newest first."""
        return await self._db.read(self.storage.activities, most=most, before=before, study=study)

    # -- people --------------------------------------------------------------------------------

    async def invite(self, study: str, people: int, *, by: str = ADMINISTRATOR) -> list[str]:
        """Create tokens for invited people; only hashes are stored."""
        if (await self.study(study)).status == "finished":
            raise no_ticket("finished")
        words = f"{people} {'people' if people != 1 else 'person'}"
        await self._db.write(self.storage.note, self._note(by, "invited", study, words))
        made: list[str] = []
        while len(made) < people:
            some = range(min(_AT_ONCE, people - len(made)))
            tokens = [_new_token() for _ in some]
            await asyncio.gather(*(self._add(study, token_hash(one), None) for one in tokens))
            made += tokens
        return made

    async def enrol(self, study: str, host: str = "") -> str:
        """A token for a new participant, if the study is open to anybody.

        Args:
            study: the study.
            host: the address of the client, which is not stored.
        """
        phase = await self.phases.get(study)
        if not phase.settings.open:
            told = "this study needs an invitation, which its organizer hands out"
            raise Refused(403, "invited_only", told)
        until = (
            self.clock.now() + phase.settings.lapse
        )  # computed first, so that the place lasts longer
        token = _new_token()
        hashed = token_hash(token)
        await self._take_place(phase, host, hashed)
        try:
            await self._add(study, hashed, until)
        except Exception:
            self._places.leave(study, host, [hashed], counted=False)
            raise
        return token

    async def _take_place(self, phase: OpenPhase, host: str, token: bytes) -> None:
        """Reserve a place for a new token, or refuse."""
        study = phase.record.id
        take = partial(
            self._places.take, study, host, token,
            people=phase.smallest, seconds=phase.lapse.longest,
            limit=phase.settings.address_limit(phase.plan.n_people),
            hourly=phase.settings.address_hourly,
        )  # fmt: skip
        if take():
            return
        # People who have answered, in any process, have left their places.
        settled = await self._db.read(self.storage.settled, study, self._places.held(study, host))
        self._places.leave(study, host, settled)
        if not take():
            raise no_place()

    async def _add(self, study: str, token: bytes, until: float | None) -> None:
        """Store the hash of a token and its time of expiry."""
        await self.phases.get(study)
        outcome = await self.enrolments.add((study, token, until))
        if outcome == "unknown":
            raise self._gone(study)
        if outcome == "finished":
            raise no_ticket("finished")

    async def task(self, study: str, token: bytes) -> bytes:
        """The task of one person, the same at each request: a `TaskMessage` as JSON."""
        known = await self.phases.get(study)
        issued = await self.tickets.add((study, token, known.lapse))
        if issued == "gone":
            raise self._gone(study)
        if not isinstance(issued, Ticket):
            raise no_ticket(issued)
        assert issued.phase is not None
        assert issued.number is not None
        phase = await self.phases.get(study, at_least=issued.phase)
        if phase.record.phase != issued.phase:
            raise Refused(410, "late", "the phase of this person's task is over")
        return phase.message(issued.number)

    async def knows(self, study: str, token: bytes) -> bool:
        """Whether this is the token of a participant of the study."""
        await self.phases.get(study)
        return await self._db.read(self.storage.knows, study, token)

    async def reply(self, study: str, sent: Sent) -> Receipt:
        """Store a reply; return its receipt when it is durable."""
        (verdict,) = await self.take(study, [sent])
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    async def take(self, study: str, sent: Sequence[Sent]) -> list[Receipt | Exception]:
        """Store replies, each checked separately; return its receipt or the refusal."""
        phase = await self.phases.get(study, at_least=max(one.message.phase for one in sent))
        arrived = [(phase, one.message, one.stored(study)) for one in sent]
        outcomes = await self.replies.add_all(arrived)
        if isinstance(outcomes[0], Unavailable):  # the same for all: they share a commit
            raise outcomes[0]
        if "gone" in outcomes:
            raise self._gone(study)
        stored = sum(outcome == "stored" for outcome in outcomes)
        if stored:
            phase.answered += stored
            if phase.answered >= phase.record.quota:
                self.watcher.call()
        return [
            receipt_of(message.phase, message.ticket, reply.digest, seal=phase.record.seal)
            if outcome in ("stored", "same")
            else not_stored(outcome)
            for (_, message, reply), outcome in zip(arrived, outcomes, strict=True)
        ]

    async def withdraw(self, study: str, sent: Sent) -> None:
        """Remove a reply while its phase accepts replies, so that no result contains it."""
        phase = await self.phases.get(study)
        if sent.message.plan != phase.record.hash:
            raise Refused(409, "wrong_study", "the reply belongs to another study")
        outcome = await self._db.write(self.storage.withdraw, sent.stored(study))
        if outcome == "gone":
            raise self._gone(study)
        if outcome != "withdrawn":
            raise not_removed(outcome)
        self._forgetter.call()
        self.watcher.call()  # its ticket counts as answered

    async def counted(self, study: str, receipt: str) -> Counted:
        """Whether the reply behind a receipt was counted, without identifying the person."""
        record = await self.study(study)
        place = ticket_of(receipt, seal=record.seal)  # arbitrary numbers for an invalid receipt
        phase, ticket = (min(number, _LARGEST) for number in place)
        digest = await self._db.read(self.storage.digest, study, phase, ticket)
        if digest is not None:
            known = receipt_of(phase, ticket, digest, seal=record.seal).receipt
            if secrets.compare_digest(known, receipt):
                return Counted(phase, phase < record.phase or record.status == "finished")
        raise Refused(404, "unknown_receipt", "this receipt is not from this study")

    async def confirm_clock(self, *, by: str = ADMINISTRATOR) -> None:
        """Confirm the system clock; all processes on this database follow it within seconds."""
        note = self._note(by, "confirmed")
        await self._db.write(self.storage.confirm_clock, now=self.clock.wall(), note=note)
        self.watcher.call()

    # -- phases --------------------------------------------------------------------------------

    async def close_phase(self, study: str, phase: int, *, by: str = ADMINISTRATOR) -> None:
        """End a phase with the replies that have arrived."""
        record = await self.study(study)
        if record.phase != phase or record.status == "finished":
            raise Refused(409, "wrong_phase", "this is not the present phase")
        note = self._note(by, "ended", study, f"phase {phase}")
        await self._db.write(self.storage.begin_closing, study, phase, note=note)
        self.watcher.stuck.hurry(study)
        self.watcher.call()

    def measure(self) -> None:
        """Update the gauges of the metrics."""
        now, at_work, stuck = time.monotonic(), self.watcher.at_work, self.watcher.stuck
        first = stuck.listed(1)
        self.metrics.set(
            writes_waiting=self.pending.depth,
            oldest_write_seconds=self.pending.oldest(),
            concluding_seconds=0.0 if at_work is None else now - at_work.since,
            studies_stuck=len(stuck),
            longest_stuck_seconds=now - first[0].since if first else 0.0,
            clock_jump_seconds=self.clock.jump(),
        )

    async def _tick(self) -> None:
        """Do the work of each second, also while phases are being concluded."""
        with suppress(Unavailable):  # the health check reports it
            self.measure()
            await self._follow_clock()
            await self._purge_old()

    async def _purge_old(self) -> None:
        """Purge replies of studies that were finished long ago, if the operator wants that."""
        if self._purge_after is None or time.monotonic() < self._looked_for_old + _LOOK_FOR_OLD:
            return
        self._looked_for_old = time.monotonic()
        before = self.clock.now() - self._purge_after * _DAY
        for study in await self._db.read(self.storage.purgeable, before=before):
            await self._db.write(self.storage.purge, study)
            log.info("replies purged", extra={"fields": {"study": study}})
            self._forgetter.call()

    async def _due(self) -> list[StudyRecord]:
        await self._follow_clock()
        return await self._db.read(self.storage.due, now=self.clock.now())

    async def _follow_clock(self) -> None:
        """Follow the system's clock, detect a jump, and store the state of the clock."""
        had_jumped = self.clock.has_jumped
        if self.clock.is_off():
            _, confirmed = await self._db.read(self.storage.clock)
            self.clock.look(confirmed=confirmed)
        else:
            self.clock.look(confirmed=None)
        waited = time.monotonic() - self._marked
        if waited >= _MARKED_EVERY or had_jumped != self.clock.has_jumped:
            self._marked = time.monotonic()
            await self.pulse.trouble()

    async def _conclude(self, record: StudyRecord) -> None:
        """End a phase. Every step can be repeated, by this process or another."""
        if not await self._db.write(self.storage.begin_closing, record.id, record.phase):
            return
        settings = msgspec.json.decode(record.settings, type=StudySettings)
        with tracing.span("conclude", study=record.id, phase=record.phase):
            found = await self._learn(record, settings.median_group)
        model = found.recorded(record.id, record.phase, record.kind, created=self.clock.now())
        fields = {"study": record.id, "phase": record.phase, "replies": found.people}
        successor = None
        if found.carried is not None and settings.online:  # the next round of a stream
            carried = msgspec.json.decode(found.carried)
            successor = await self._begin(carried, settings, owner=record.owner)
        ended = Ended(following=found.following, model=model, successor=successor)
        if await self._db.write(self.storage.advance, record.id, record.phase, ended):
            log.info("phase concluded", extra={"fields": fields})
            self._forgetter.call()
        self.phases.forget(record.id)
        self.watcher.call()  # the next phase may be complete already

    async def _learn(self, record: StudyRecord, median_group: int) -> Conclusion:
        """Compute the conclusion of a closing phase."""
        if self.storage.url is not None:
            return await self._worker.run(conclude_stored, self.storage.url, record, median_group)
        replies = await self._db.in_reader(self.storage.replies, record.id, record.phase)
        return await self._worker.run(conclude, record.plan, record.state, replies, median_group)

    async def _opened(self, study: str, known: OpenPhase | None) -> OpenPhase:
        """Read the current phase from the storage."""
        record = await self.study(study)
        phase = known
        before = None if phase is None else (phase.record.phase, phase.record.settings)
        if phase is None or before != (record.phase, record.settings):
            phase = await self._db.read(opened, record)
            phase.answered = await self.answered(record)
        phase.record = record
        return phase

    async def _forget(self) -> bool:
        with tracing.span("forget"):
            return await self._db.in_writer(self.storage.forget)

    def _gone(self, study: str) -> Refused:
        """Handle a study that another process has deleted."""
        self.phases.forget(study)
        return no_study()

    def _enrol(self, people: Sequence[tuple[str, bytes, float | None]]) -> list[Enrolled]:
        until = {token: until for _, token, until in people if until is not None}
        return self.storage.enrol([(study, token) for study, token, _ in people], until=until)

    def _issue(self, people: Sequence[tuple[str, bytes, Lapse]]) -> list[Issued]:
        lapse = {study: lapse for study, _, lapse in people}
        asking = [(study, token) for study, token, _ in people]
        return self.storage.issue(asking, now=self.clock.now(), lapse=lapse)


def _new_token() -> str:
    return secrets.token_urlsafe(32)
