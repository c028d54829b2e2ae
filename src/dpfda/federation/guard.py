"""A site's guard: everything that arrives passes here, and nothing else leaves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from dpfda.errors import DpfdaError, ProtocolError, printable
from dpfda.federation.journal import Journal
from dpfda.federation.messages import (
    ASKED,
    Agreement,
    Ask,
    Envelope,
    Reply,
    Told,
    decode,
    encode,
)
from dpfda.federation.plan import Plan
from dpfda.federation.questions import length, next_question, same_question
from dpfda.protocol.query import Query
from dpfda.protocol.secure_sum import Identity
from dpfda.protocol.secure_sum.messages import KeyOffer
from dpfda.protocol.site import Site

Approve = Callable[[str], bool]
"""Shows a person what would be answered; whether it may be."""


class Guard:
    """One site in one plan: reads messages as data, answers the plan's questions, masks, logs.

    In this order, for each question: is it a message of the plan that this site signed → is it what
    the plan's conversation asks after the answers that were told → does a person agree, where one
    is to be asked → the `Site`'s own checks: unit, price, ledger → noise once, on disk → the log →
    only then the reply.

    Privacy:
        That of `Site`. Whatever the coordinator sends, it gets masked sums of the plan's questions
        under the plan's price, each with one noise, or a refusal that names a rule and no value.

    Args:
        plan: what this site signed.
        site: its records, ledger and secure-sum account.
        identity: its lasting key.
        journal: where it is written what was asked and what leaves.
        approve: asks a person before a new question is answered; None: nobody is asked.
    """

    def __init__(
        self,
        plan: Plan,
        site: Site,
        *,
        identity: Identity,
        journal: Journal,
        approve: Approve | None = None,
    ) -> None:
        if site.member.terms.digest != plan.terms.digest:
            raise ProtocolError("the site was made for another plan")
        if site.n != plan.card(site.member.name).rows:
            raise ProtocolError(
                f"the plan counts on {plan.card(site.member.name).rows} rows of this site, "
                f"and there are {site.n}"
            )
        self.plan, self.site, self.journal = plan, site, journal
        self._identity, self._approve = identity, approve
        self._replies: dict[bytes, bytes] = {}  # of this round: networks deliver twice

    def handle(self, content: bytes) -> bytes:
        """The reply to a message, or why there is none; delivered twice, the same bytes again."""
        mark, step = hashlib.sha256(content).digest(), "message"
        if mark in self._replies:
            return self._replies[mark]
        try:
            envelope: Envelope = decode(content, Envelope)
            step = envelope.step if envelope.step in ASKED else step
            reply = encode(Reply(body=self._answered(envelope)))
        except Exception as error:  # whatever it is: nothing leaves, and no value is told
            reason = str(error) if isinstance(error, DpfdaError) else "this cannot be computed"
            self.journal.write("refused", f"{step}: {reason}")
            return encode(Reply(refused=printable(reason)))
        if step == "advertise":
            self._replies.clear()
        self._replies[mark] = reply
        return reply

    def _answered(self, envelope: Envelope) -> bytes:
        if envelope.plan != self.plan.digest:
            raise ProtocolError("this site did not sign the plan that the message belongs to")
        if envelope.step not in ASKED:
            raise ProtocolError("the plan has no such step")
        message = decode(envelope.body, ASKED[envelope.step])
        if envelope.step == "agree":
            signature = self._identity.sign(self.plan.agreement)
            reply: Any = Agreement(site=self.site.member.name, signature=signature)
        elif envelope.step == "advertise":
            reply = self._question(message)
        else:
            reply = getattr(self.site.member, envelope.step)(message)
        left = encode(reply)
        self.journal.write("leaves", _described(envelope.step, reply, left))
        return left

    def _question(self, ask: Ask) -> KeyOffer:
        query, number = Query.from_dict(ask.query), ask.round.stage
        if query.digest != ask.round.question:
            raise ProtocolError("the question is not the one that its round names")
        assert isinstance(query, Query)
        account = self.site.member.account
        if number >= len(account.stages):
            self._expect(query, number, ask.told)
            text = _shown(query, number)
            self.journal.write("asked", text)
            if self._approve is not None and not self._approve(text):
                raise ProtocolError(f"nobody at this site agreed to question {number}")
            for missed in range(len(account.stages), number):
                account.begin(missed, ask.told[missed].question)  # never answered, never paid
        self.site.answer(query, number=number)
        return self.site.member.advertise(ask.round)

    def _expect(self, query: Query, number: int, told: Sequence[Told]) -> None:
        """Refuse whatever the agreed conversation would not ask here."""
        stages = self.site.member.account.stages
        for place, stage in stages.items():
            if place < len(told) and told[place].question != stage.question:
                raise ProtocolError(f"question {place} was another one")
        expected = next_question(self.plan, number, told)
        if expected is None or not same_question(expected, query):
            raise ProtocolError(f"the plan does not ask this as question {number}")


def _shown(query: Query, number: int) -> str:
    """A question, as a person at the site reads it."""
    written = json.dumps(query.to_dict(), ensure_ascii=False)
    what = f"{query.name} about a {query.unit}, {length(query)} sums, {query.event}"
    return f"question {number}: {what}: {written}"


def _described(step: str, reply: Any, content: bytes) -> str:
    """What leaves, as a person at the site reads it."""
    mark = hashlib.sha256(content).hexdigest()[:16]
    words = {
        "agree": "signature on the plan",
        "advertise": "fresh keys",
        "share": "sealed shares of this round's keys",
        "confirm": "signature on the set of sites",
        "unmask": "shares that open the sum",
    }
    if step == "mask":
        return f"mask: {len(reply.residues) // 8} numbers under masks ({mark})"
    return f"{step}: {words[step]} ({mark})"
