"""A site's guard: all incoming and outgoing messages pass through it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from dpfda.errors import DpfdaError, ProtocolError, printable
from dpfda.protocol.secure_sum import Identity
from dpfda.sites.messages import ASKED, Agreement, Envelope, Reply, decode, encode
from dpfda.sites.plan import Plan
from dpfda.sites.shared import Part
from dpfda.sites.stored_files import Journal

Approve = Callable[[str], bool]
"""Shows a query to a person at the site; returns whether it may be answered."""


class Guard:
    """A site's side of a plan: decodes messages, answers the steps of the plan, keeps a journal.

    It handles each question in this order. Does the message belong to the plan that this site
    signed? Does the plan allow it at this point (decided by the part)? If `approve` is given, does
    a person agree? Then it charges the ledger, draws and stores noise once, writes the journal, and
    replies.

    Privacy:
        The guarantee of the part. The coordinator gets only answers to queries of the plan, at the
        price of the plan and each with noise that is drawn once, or a refusal that names a rule and
        no value.

    Args:
        plan: the plan that this site signed.
        part: the data of the site, and the computation of its answers.
        identity: the key of the site.
        journal: the record of queries and outgoing messages.
        approve: asks a person before a new question is answered; None asks nobody.

    Attributes:
        over: whether the coordinator announced that it has a result; a process may then stop
            waiting.
    """

    def __init__(
        self,
        plan: Plan,
        part: Part,
        *,
        identity: Identity,
        journal: Journal,
        approve: Approve | None = None,
    ) -> None:
        if part.rows != plan.card(part.name).rows:
            raise ProtocolError(
                f"the plan lists {plan.card(part.name).rows} rows of this site, "
                f"which has {part.rows}"
            )
        self.plan, self.part, self.journal = plan, part, journal
        self._identity, self._approve = identity, approve
        self.over = False
        self._replies: dict[bytes, bytes] = {}  # for messages that are delivered twice

    def handle(self, content: bytes) -> bytes:
        """The reply to a message, or a refusal; a repeated message gets the same bytes."""
        mark, step = hashlib.sha256(content).digest(), "message"
        if mark in self._replies:
            return self._replies[mark]
        try:
            envelope: Envelope = decode(content, Envelope)
            step = envelope.step if envelope.step in ASKED else step
            body = self._answered(envelope)
            signature = self._identity.sign(self.plan.replied(content, body))
            reply = encode(Reply(body=body, signature=signature))
        except Exception as error:  # any error becomes a refusal without values
            reason = str(error) if isinstance(error, DpfdaError) else "this cannot be computed"
            self.journal.write("refused", f"{step}: {reason}")
            return encode(Reply(refused=printable(reason)))
        if step == self.part.steps[0]:
            self._replies.clear()
        self._replies[mark] = reply
        return reply

    def _answered(self, envelope: Envelope) -> bytes:
        step = envelope.step
        if envelope.plan != self.plan.digest:
            raise ProtocolError("this site did not sign the plan that the message belongs to")
        if step not in ("agree", "over", *self.part.steps):
            raise ProtocolError("the plan has no such step")
        message = decode(envelope.body, ASKED[step])
        if step in ("agree", "over"):
            self.over = self.over or step == "over"
            signature = self._identity.sign(self.plan.agreement)
            reply: object = Agreement(site=self.part.name, signature=signature)
            words = "signature on the plan"
        else:
            reply = self.part.answer(step, message, self._allow)
            words = self.part.described(step, reply)
        left = encode(reply)
        mark = hashlib.sha256(left).hexdigest()
        self.journal.write("leaves", f"{step}: {words} ({mark})")
        return left

    def _allow(self, text: str) -> None:
        """Write the query into the journal, and ask a person for approval."""
        self.journal.write("asked", text)
        if self._approve is not None and not self._approve(text):
            raise ProtocolError(f"this site did not agree to {text.partition(':')[0]}")
