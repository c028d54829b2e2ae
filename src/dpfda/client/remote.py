"""Take part in a study over HTTP: `RemoteClient`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from dpfda import _validate
from dpfda.client.http import Answer, Connection, persistently
from dpfda.client.outbox import Outbox, PendingReply
from dpfda.client.own_data import OwnData, Preview, describe, look_over
from dpfda.curves.observations import GridPoints
from dpfda.errors import (
    AlreadySpent,
    BudgetExceeded,
    DpfdaError,
    InvalidParameter,
    LedgerDamaged,
    ProtocolError,
)
from dpfda.noise import SecureSource, Source
from dpfda.privacy.cost import limit
from dpfda.privacy.ledger import BaseLedger, Ledger
from dpfda.privacy.ledger_file import FileLedger
from dpfda.protocol.person import Person
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import ReplyMessage, TaskMessage, Withdrawal, new_secret


class RemoteClient:
    """One person's device: joins studies and answers one task of each, only once.

    The order of the steps protects the person. The client checks the plan against the hash that the
    person was given, spends ε in a ledger on disk, draws the reply and stores its exact bytes. Only
    then does it send anything. A retry sends the same bytes. If the device stops between spending
    and storing, ε is spent and nothing was sent: the person cannot answer this study any more, and
    no data were revealed.

    Args:
        folder: where ledger and replies are kept; readable by the person only.
        limit_epsilon: limit on the total ε of all studies; required the first time. It becomes
            permanent when the first study that fits into it is joined.
        source: source of randomness; by default the operating system.
        certificates: file of certificates to trust instead of the system's.
        patience: seconds to wait for a free place in the study.
        holder: class of the data holder that answers: `Person` or a subclass.
        notify: called with lines of text, for example before a request is repeated.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     client = RemoteClient(folder, limit_epsilon=2.0)
        ...     client.ledger.remaining.epsilon, client.studies()
        (2.0, [])
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        limit_epsilon: float | None = None,
        source: Source | None = None,
        certificates: str | None = None,
        patience: float = 60.0,
        holder: Callable[..., Person] = Person,
        notify: Callable[[str], object] = lambda words: None,
    ) -> None:
        place = Path(folder)
        self._outbox = Outbox(place / "studies")
        self._path = place / "ledger"
        self._limit = limit_epsilon
        self._notify = notify
        self._unkept: BaseLedger | None = None  # a limit that is not permanent yet
        if limit_epsilon is None or self._path.exists():
            _ = self.ledger  # raises an error now if it is not a ledger or has another limit
        else:
            self._unkept = Ledger(limit_epsilon)
        self.source: Source = SecureSource() if source is None else source
        self._certificates = certificates
        self._patience = patience
        self._holder = holder
        self._sleep: Callable[[float], None] = time.sleep

    @cached_property
    def ledger(self) -> BaseLedger:
        """The budget on disk, created at first use."""
        self._unkept = None
        return FileLedger(self._path, limit_epsilon=self._limit)

    def studies(self) -> list[str]:
        """Hashes of the studies that were joined."""
        return self._outbox.hashes()

    def fetch_plan(self, url: str, plan_hash: str, *, insecure: bool = False) -> StudyPlan:
        """The plan with this hash, from a collector that need not be trusted."""
        known = self._outbox.find(_checked(plan_hash))
        if known is not None:
            return _agreed(known, plan_hash)
        found = self._ask(url, insecure, "GET", f"/api/studies/{plan_hash[:16]}").json()
        try:
            plan = StudyPlan.from_dict(found["plan"])
            _ = plan.asks  # raises an error for impossible tasks, also under python -O
            found_hash = plan.hash
        except Exception:  # a hostile collector may send anything
            raise ProtocolError("the collector's plan cannot be understood") from None
        if found_hash != plan_hash:
            raise ProtocolError("the collector's plan is not the one with this hash")
        return plan

    def join(
        self,
        url: str,
        plan_hash: str,
        *,
        most_epsilon: float,
        accepts: Iterable[str] = (),
        invitation: str | None = None,
        insecure: bool = False,
    ) -> StudyPlan:
        """Agree to a plan and get a token for it; joining again changes nothing.

        The only exception: an invitation can be replaced by another one until the reply is drawn. A
        study that does not fit into the remaining budget is refused, and nothing is stored.

        Args:
            url: the collector.
            plan_hash: the hash of the plan, from a source that the person trusts.
            most_epsilon: the largest ε that the person accepts for this study.
            accepts: the assumptions that the person accepts, such as "labels are public"; a plan
                with further assumptions is refused.
            invitation: the token that the organizer gave this person; without it, a study must be
                open to anybody.
            insecure: allow a collector on another machine without encryption.
        """
        plan = self.fetch_plan(url, plan_hash, insecure=insecure)
        if plan.epsilon > _validate.positive("most_epsilon", most_epsilon):
            raise BudgetExceeded(
                f"the study costs ε = {plan.epsilon:g}, which is above most_epsilon = "
                f"{most_epsilon:g}"
            )
        agreed = tuple(accepts)
        with self._outbox.exclusive(plan_hash):
            known = self._outbox.find(plan_hash)
            if known is not None and (
                known.body is not None or invitation is None or invitation == known.token
            ):
                return plan
            plan.check_accepted(agreed)
            if invitation is not None and not _WORD.fullmatch(invitation):
                raise InvalidParameter("invitation", "one word", "something else")
            self._afford(plan)
            token = invitation or self._enrolled(url, insecure, plan_hash)
            pending = PendingReply(
                url=url, plan=plan.to_dict(), token=token, accepts=agreed, insecure=insecure,
                invited=invitation is not None,
            )  # fmt: skip
            self._outbox.keep(plan_hash, pending)
        return plan

    def stage(self, plan_hash: str) -> Literal["joined", "drawn", "sent", "withdrawn"]:
        """The state of a study on this device: joined, replied, acknowledged, or withdrawn."""
        pending = self._pending(plan_hash)
        if pending.withdrawn:
            return "withdrawn"
        return "joined" if pending.body is None else "drawn" if pending.receipt is None else "sent"

    def look_over(
        self, plan_hash: str, *, curve: object, label: object, grid_points: GridPoints = None
    ) -> list[str]:
        """List what the study would omit or change in these data; nothing is spent or sent.

        Raises:
            InvalidData: the data are not usable; `prepare` refuses them, too.
        """
        plan = _agreed(self._pending(plan_hash), plan_hash)
        return look_over(plan, curve=curve, label=label, grid_points=grid_points)

    def prepare(
        self, plan_hash: str, *, curve: object, label: object, grid_points: GridPoints = None
    ) -> Preview:
        """Get the task, spend ε, draw the reply and store it, without sending it.

        Unusable data (`look_over`) and a study that exceeds the budget are refused before that. A
        reply that exists already is not changed, even if the data are different now.

        Raises:
            InvitationUsed: this invitation was already used for a reply; nothing is drawn or spent.

        Returns:
            The reply and the data that it hides. ε is spent even if the reply is never sent.
        """
        with self._outbox.exclusive(_checked(plan_hash)):
            pending = self._pending(plan_hash)
            plan = _agreed(pending, plan_hash)
            if pending.body is not None:
                curve = None  # the stored reply may belong to another curve
            else:
                given: OwnData = {"curve": curve, "label": label, "grid_points": grid_points}
                look_over(plan, **given)
                self._afford(plan)
                pending = self._answered(pending, plan, plan_hash, given)
                self._outbox.keep(plan_hash, pending)
        assert pending.body is not None
        return describe(
            plan, pending.task or {}, pending.body.encode(), curve=curve, grid_points=grid_points
        )

    def _afford(self, plan: StudyPlan) -> None:
        """Refuse a study that exceeds the budget before the collector assigns a place in it."""
        ledger = self.ledger if self._unkept is None else self._unkept
        if any(entry.key == plan.hash for entry in ledger.entries):
            raise AlreadySpent("this study was paid for before, and no reply to it is stored")
        # With individual budgets, a person may answer with less than the plan's ε.
        reason = ledger.refusal(limit(epsilon=plan.epsilon, delta=0.0))
        if reason and not plan.design.get("own_budgets"):
            raise BudgetExceeded(reason)
        _ = self.ledger  # stores the limit permanently

    def _answered(
        self, pending: PendingReply, plan: StudyPlan, plan_hash: str, given: OwnData
    ) -> PendingReply:
        """The pending reply after its task was received and answered."""
        try:
            message = self._task(pending, plan_hash)
        except NotGranted as refusal:
            if refusal.code == "answered":
                raise InvitationUsed("nothing was drawn, spent or sent here") from None
            if refusal.code != "lapsed":
                raise
            # The place has expired, and nothing was drawn or spent: enrol again.
            token = self._enrolled(pending.url, pending.insecure, plan_hash)
            pending = msgspec.structs.replace(pending, token=token)
            self._outbox.keep(plan_hash, pending)
            message = self._task(pending, plan_hash)
        task = plan.read_task(message.task)
        person = self._holder(
            plan, **given, ledger=self.ledger, accepts=pending.accepts, source=self.source
        )
        values = person.answer(task).values
        secret, place = new_secret(), (message.phase, message.ticket)
        reply = ReplyMessage.saying(plan_hash, *place, values[0].tolist(), secret=secret)
        body = msgspec.json.encode(reply).decode()
        return msgspec.structs.replace(pending, task=message.task, body=body, secret=secret)

    def send(self, plan_hash: str) -> str:
        """Send the stored bytes until they are acknowledged; returns the receipt.

        Raises:
            InvitationUsed: this invitation was used for another reply since this one was drawn.
        """
        with self._outbox.exclusive(_checked(plan_hash)):
            pending = self._pending(plan_hash)
            if pending.withdrawn:
                raise ProtocolError("the reply to this study was withdrawn: it is never sent again")
            if pending.receipt is not None:
                return pending.receipt
            body = pending.body
            if body is None:
                raise ProtocolError("nothing was prepared for this study")
            if not pending.tried:
                if pending.invited and self._is_used(pending, plan_hash):
                    raise InvitationUsed("the reply that was drawn here is not sent")
                pending = msgspec.structs.replace(pending, tried=True)
                self._outbox.keep(plan_hash, pending)
            path, sent = f"/api/studies/{plan_hash[:16]}/reply", body.encode()
            where = (pending.url, pending.insecure, "POST", path)
            try:
                answer = self._ask(*where, body=sent, headers=_bearer(pending))
            except NotGranted as refusal:
                if refusal.code != "answered":
                    raise
                raise InvitationUsed("the reply that was drawn here is not counted") from None
            receipt = _word(answer, "receipt")
            self._outbox.keep(plan_hash, msgspec.structs.replace(pending, receipt=receipt))
            return receipt

    def withdraw(self, plan_hash: str) -> None:
        """Withdraw the reply from the study, while its phase accepts replies.

        The collector removes the reply before it computes anything from it. ε stays spent, because
        the collector has seen the reply, and this device does not answer the study again. A reply
        that was not sent yet will never be sent.

        Raises:
            NotGranted: the phase is over (`code` is ``late``), or the collector has no such reply.
        """
        with self._outbox.exclusive(_checked(plan_hash)):
            pending = self._pending(plan_hash)
            if pending.withdrawn:
                return
            if pending.body is None:
                raise ProtocolError("nothing was prepared for this study")
            if pending.tried:
                if pending.secret is None:
                    raise ProtocolError("this reply was drawn by a release that withdraws none")
                wish = msgspec.json.encode(Withdrawal(pending.body, pending.secret))
                path = f"/api/studies/{plan_hash[:16]}/withdraw"
                where = (pending.url, pending.insecure, "POST", path)
                answer = self._ask(*where, body=wish, headers=_bearer(pending))
                if answer.json() != {"withdrawn": True}:
                    raise ProtocolError("the collector does not say that the reply was removed")
            self._outbox.keep(plan_hash, msgspec.structs.replace(pending, withdrawn=True))

    def _is_used(self, pending: PendingReply, plan_hash: str) -> bool:
        """Whether this invitation was used before; checked before anything is sent."""
        path = f"/api/studies/{plan_hash[:16]}/task"
        try:
            self._ask(pending.url, pending.insecure, "GET", path, headers=_bearer(pending))
        except NotGranted as refusal:
            return refusal.code == "answered"
        return False

    def counted(self, plan_hash: str) -> bool:
        """Whether the study has counted this device's reply; only the receipt is sent.

        False means that the reply was received and its phase is not finished.
        """
        pending = self._pending(plan_hash)
        if pending.withdrawn:
            raise ProtocolError("the reply to this study was withdrawn: it does not count")
        if pending.receipt is None:
            raise ProtocolError("there is no receipt of this study")
        path = f"/api/studies/{plan_hash[:16]}/receipts/{quote(pending.receipt, safe='')}"
        found = self._ask(pending.url, pending.insecure, "GET", path).json()
        counted = found.get("counted") if isinstance(found, dict) else None
        if not isinstance(counted, bool):
            raise ProtocolError("the collector does not say whether the reply was counted")
        return counted

    def submit(
        self, plan_hash: str, *, curve: object, label: object, grid_points: GridPoints = None
    ) -> str:
        """Prepare and send."""
        self.prepare(plan_hash, curve=curve, label=label, grid_points=grid_points)
        return self.send(plan_hash)

    def _enrolled(self, url: str, insecure: bool, plan_hash: str) -> str:
        """A token from a study that is open to anybody."""
        path = f"/api/studies/{plan_hash[:16]}/enrol"
        return _word(self._ask(url, insecure, "POST", path), "token")

    def _task(self, pending: PendingReply, plan_hash: str) -> TaskMessage:
        """Wait for the message with the task."""
        path = f"/api/studies/{plan_hash[:16]}/task"
        deadline = time.monotonic() + self._patience
        with self._connect(pending.url, pending.insecure) as connection:
            while True:
                answer = self._granted(
                    lambda: connection.ask("GET", path, headers=_bearer(pending))
                )
                if answer.status == 200:
                    break
                if time.monotonic() > deadline:
                    raise ProtocolError("the study has no free place now; try again later")
                self._sleep(0.5)
        try:
            message = msgspec.json.decode(answer.body, type=TaskMessage)
        # invalid JSON, invalid text, or nested too deeply
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise ProtocolError("the collector's message cannot be understood") from None
        if message.plan != plan_hash:
            raise ProtocolError("the task belongs to another study")
        return message

    def _pending(self, plan_hash: str) -> PendingReply:
        pending = self._outbox.find(_checked(plan_hash))
        if pending is None:
            raise ProtocolError("this device has not joined the study: join it first")
        return pending

    def _connect(self, url: str, insecure: bool) -> Connection:
        return Connection(url, certificates=self._certificates, insecure=insecure)

    def _ask(
        self,
        url: str,
        insecure: bool,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a new connection."""
        with self._connect(url, insecure) as connection:
            return self._granted(lambda: connection.ask(method, path, body=body, headers=headers))

    def _granted(self, request: Callable[[], Answer]) -> Answer:
        answer = persistently(request, sleep=self._sleep, notify=self._notify)
        if answer.status not in (200, 201, 202):
            raise NotGranted(answer.status, answer.reason, answer.code)
        return answer


class NotGranted(DpfdaError):
    """The collector refused a request of this device."""

    def __init__(self, status: int, reason: str, code: str = "") -> None:
        super().__init__(f"the collector refused: {reason}")
        self.status = status
        self.code = code


class InvitationUsed(NotGranted):
    """The study has a reply to this person's invitation, from another device or folder."""

    def __init__(self, here: str) -> None:
        text = "this invitation was used already: the study has a reply to it; "
        super().__init__(409, text + here, "answered")


_WORD = re.compile("[!-~]{1,200}")  # characters that can be sent in a header and printed


def _word(answer: Answer, name: str) -> str:
    """One field of the collector's answer, which must be a single word."""
    found = answer.json()
    word = found.get(name) if isinstance(found, dict) else None
    if not isinstance(word, str) or not _WORD.fullmatch(word):
        raise ProtocolError(f"the collector's answer holds no {name}")
    return word


def _agreed(pending: PendingReply, plan_hash: str) -> StudyPlan:
    """The stored plan; refused if it is not the one that the person agreed to."""
    plan = StudyPlan.from_dict(pending.plan)
    if plan.hash != plan_hash:
        raise LedgerDamaged("the stored plan of this study was changed")
    return plan


def _bearer(pending: PendingReply) -> dict[str, str]:
    return {"Authorization": f"Bearer {pending.token}"}


def _checked(plan_hash: str) -> str:
    if len(plan_hash) != 64 or set(plan_hash) - set("0123456789abcdef"):
        raise InvalidParameter("plan_hash", "the 64 digits that name a study", plan_hash)
    return plan_hash
