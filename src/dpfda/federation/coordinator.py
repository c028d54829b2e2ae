"""The coordinator of a shared study: asks the plan's questions, and sees sums alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpfda.documents import Documented
from dpfda.errors import DpfdaError, ProtocolError, printable
from dpfda.federation.messages import (
    REPLIED,
    Ask,
    Envelope,
    Reply,
    Told,
    decode,
    encode,
)
from dpfda.federation.plan import Plan
from dpfda.federation.questions import answer_of, length
from dpfda.federation.study_folder import StudyFolder
from dpfda.protocol.answer import Answer
from dpfda.protocol.conversation import converse
from dpfda.protocol.holder import Exchange
from dpfda.protocol.query import Query
from dpfda.protocol.secure_sum import Aggregator, Identity, RoundFailed
from dpfda.protocol.secure_sum.bindings import offer_content
from dpfda.protocol.secure_sum.keys import signed
from dpfda.protocol.secure_sum.messages import KeyOffer, MaskedVector, RoundId
from dpfda.protocol.secure_sum.session import one_round

_ATTEMPTS = 3

Carrier = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
"""Brings each site a message and back its reply; a site that is silent is left out."""


class StudyFailed(ProtocolError):
    """A question found no answer. Says which, why, and what each site did."""


class Coordinator:
    """Carries a plan's conversation from question to question.

    It holds no key that opens anything but sums. Every opened sum is on its disk before the next
    question is asked: started again, it goes on where it stopped, and asks nothing twice. A sum
    that was opened and lost with its process cannot be had again; the study then says so.

    Args:
        plan: what the sites signed.
        identity: the coordinator's lasting key.
        folder: where answers are kept.
        carrier: brings messages to sites.
        say: told in words how it goes.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        identity: Identity,
        folder: StudyFolder,
        carrier: Carrier,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.plan, self.folder = plan, folder
        self.transcript: list[Exchange] = []
        self._identity, self._carrier, self._say = identity, carrier, say
        self._told: list[Told] = []
        self._trouble: dict[str, str] = {}

    def run(self) -> Documented:
        """Ask everything, and publish."""
        self.gather()
        result = converse(self.plan.conversation, self.ask)
        return self.plan.task.document(result, self.transcript, self.plan.guarantee)

    def gather(self) -> None:
        """Every site's signature on the plan; the study does not begin with fewer than it needs."""
        self._trouble = {}
        plan, names = self.plan, self.plan.terms.names
        for name, reply in self._carry("agree", dict.fromkeys(names, plan.digest)).items():
            if reply.site == name and signed(
                plan.card(name).public, reply.signature, plan.agreement
            ):
                self.folder.keep_agreement(name, reply.signature)
            else:
                self._trouble[name] = "sent a signature that is not by the key in the plan"
        if len(names) - len(self._trouble) < plan.terms.needed:
            raise StudyFailed(f"the study did not begin: {self._reasons()}")
        for name, reason in self._trouble.items():
            self._say(f"site {name!r} {reason}")

    def ask(self, query: Query, number: int) -> Answer:
        """The sum of the sites' answers to a question."""
        told = self.folder.told(number)
        if told is None:
            told = self._opened(query, number)
            self.folder.keep(number, told)
        elif told.question != query.digest:
            raise ProtocolError(f"the answer that is kept for question {number} is to another one")
        self._told.append(told)
        answer = answer_of(self.plan, query, told)
        self.transcript.append(Exchange(query, answer))
        left_out = [name for name in self.plan.terms.names if name not in told.survivors]
        without = f", without {', '.join(left_out)}" if left_out else ""
        self._say(f"question {number}: {query.name}: {len(told.survivors)} sites{without}")
        return answer

    def _opened(self, query: Query, number: int) -> Told:
        size, terms = length(query), self.plan.terms
        for left in reversed(range(_ATTEMPTS)):
            attempt = self.folder.next_attempt(number)
            round_id = RoundId(stage=number, attempt=attempt, question=query.digest)
            aggregator = Aggregator(terms, self._identity, round_id, size=size)
            self._trouble = {}
            try:
                found = one_round(aggregator, terms.names, self._round(query, round_id, size))
            except RoundFailed as failure:
                if not failure.repeatable or not left:
                    raise self._failed(number, failure) from failure
                self._say(f"question {number}: attempt {attempt}: {failure}: {self._reasons()}")
            except ProtocolError as failure:
                raise self._failed(number, failure) from failure
            else:
                if self._trouble:
                    self._say(f"question {number}: {self._reasons()}")
                total = tuple(map(int, found.total))
                return Told(question=query.digest, total=total, survivors=found.survivors)
        raise AssertionError  # the loop returns or raises

    def _round(self, query: Query, round_id: RoundId, size: int) -> Any:
        """Carries the steps of one attempt."""
        asked = Ask(round=round_id, query=query.to_dict(), told=tuple(self._told))

        def carry(step: str, messages: Mapping[str, Any]) -> dict[str, Any]:
            given = dict.fromkeys(messages, asked) if step == "advertise" else messages
            replies = self._carry(step, given)
            for name, reply in list(replies.items()):
                if wrong := self._wrong(name, reply, round_id, size):
                    self._trouble[name] = wrong
                    del replies[name]
            return replies

        return carry

    def _wrong(self, name: str, reply: Any, round_id: RoundId, size: int) -> str:
        """What a site did that no site may do; such a one is left out, and named."""
        if reply.site != name or reply.round != round_id:
            return "replied in another site's name, or to another round"
        if isinstance(reply, KeyOffer):
            content = offer_content(self.plan.terms, reply)
            if not signed(self.plan.card(name).public, reply.signature, content):
                return "signed with another key than the plan's"
        if isinstance(reply, MaskedVector) and len(reply.residues) != 8 * size:
            return f"sent {len(reply.residues) // 8} numbers where {size} were asked for"
        return ""

    def _carry(self, step: str, messages: Mapping[str, Any]) -> dict[str, Any]:
        """What sites replied; the others are remembered with the reason."""
        sent = {
            name: encode(Envelope(plan=self.plan.digest, step=step, body=encode(message)))
            for name, message in messages.items()
        }
        replies, received = {}, self._carrier(sent)
        for name in messages:
            if name not in received:
                self._trouble[name] = f"was silent at {step}"
                continue
            try:
                reply: Reply = decode(received[name], Reply)
                if reply.refused:
                    self._trouble[name] = f"refused {step}: {printable(reply.refused)}"
                else:
                    replies[name] = decode(reply.body, REPLIED[step])
            except DpfdaError as error:
                self._trouble[name] = f"sent no {step}: {error}"
        return replies

    def _failed(self, number: int, failure: Exception) -> StudyFailed:
        return StudyFailed(f"question {number} was not answered: {failure}: {self._reasons()}")

    def _reasons(self) -> str:
        found = [f"site {name!r} {reason}" for name, reason in self._trouble.items()]
        return "; ".join(found) or "every site did its part"
