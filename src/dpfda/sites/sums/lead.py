"""The coordinator's side of sums: a conversation whose every answer is a secure sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfda.errors import ProtocolError
from dpfda.protocol.answer import Answer
from dpfda.protocol.holder import Exchange
from dpfda.protocol.query import Query
from dpfda.protocol.secure_sum import Aggregator, RoundFailed
from dpfda.protocol.secure_sum.bindings import offer_content
from dpfda.protocol.secure_sum.keys import signed
from dpfda.protocol.secure_sum.messages import KeyOffer, MaskedVector, RoundId
from dpfda.protocol.secure_sum.session import ATTEMPTS, one_round
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.messages import Ask, Told
from dpfda.sites.sums.questions import answer_of, length


class Sums:
    """Asks sites a query together, and opens the sum of what they hand out under masks.

    A sum that was opened and lost with its process cannot be had again; the study then says so.

    Args:
        coordinator: carries messages, and keeps what was opened.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator, self._plan = coordinator, coordinator.plan
        self.transcript: list[Exchange] = []
        self._told: list[Told] = []

    def ask(self, query: Query, number: int) -> Answer:
        """The sum of the sites' answers to a question."""
        folder = self._coordinator.folder
        told = folder.told(number, Told)
        if told is None:
            told = self._opened(query, number)
            folder.keep(number, told)
        elif told.question != query.digest:
            raise ProtocolError(f"the answer that is kept for question {number} is to another one")
        self._told.append(told)
        answer = answer_of(self._plan, query, told)
        self.transcript.append(Exchange(query, answer))
        self._coordinator.say_answered(number, query.name, told.survivors)
        return answer

    def _opened(self, query: Query, number: int) -> Told:
        size, terms, lead = length(query), self._plan.terms, self._coordinator
        for left in reversed(range(ATTEMPTS)):
            attempt = lead.folder.next_attempt(number)
            round_id = RoundId(stage=number, attempt=attempt, question=query.digest)
            aggregator = Aggregator(terms, lead.identity, round_id, size=size)
            lead.trouble = {}
            try:
                found = one_round(aggregator, terms.names, self._round(query, round_id, size))
            except RoundFailed as failure:
                if not failure.repeatable or not left:
                    raise lead.failed(number, failure) from failure
                lead.say(f"question {number}: attempt {attempt}: {failure}: {lead.reasons}")
            except ProtocolError as failure:
                raise lead.failed(number, failure) from failure
            else:
                if lead.trouble:
                    lead.say(f"question {number}: {lead.reasons}")
                total = tuple(map(int, found.total))
                return Told(question=query.digest, total=total, survivors=found.survivors)
        raise AssertionError  # the loop returns or raises

    def _round(self, query: Query, round_id: RoundId, size: int) -> Any:
        """Carries the steps of one attempt."""
        asked = Ask(round=round_id, query=query.to_dict(), told=tuple(self._told))

        def carry(step: str, messages: Mapping[str, Any]) -> dict[str, Any]:
            given = dict.fromkeys(messages, asked) if step == "advertise" else messages
            return self._coordinator.carry(
                step, given, lambda name, reply: self._wrong(name, reply, round_id, size)
            )

        return carry

    def _wrong(self, name: str, reply: Any, round_id: RoundId, size: int) -> str:
        """What a site did that no site may do; such a one is left out, and named."""
        if reply.site != name or reply.round != round_id:
            return "replied in another site's name, or to another round"
        if isinstance(reply, KeyOffer):
            content = offer_content(self._plan.terms, reply)
            if not signed(self._plan.card(name).public, reply.signature, content):
                return "signed with another key than the plan's"
        if isinstance(reply, MaskedVector) and len(reply.residues) != 8 * size:
            return f"sent {len(reply.residues) // 8} numbers where {size} were asked for"
        return ""
