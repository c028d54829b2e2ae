"""A site's part in sums: its rows, a ledger, a role in the secure sum."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dpfda.errors import ProtocolError
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.query import Query
from dpfda.protocol.secure_sum.messages import KeyOffer
from dpfda.protocol.site import Site
from dpfda.sites.messages import Ask, Told
from dpfda.sites.plan import Plan
from dpfda.sites.shared import Allow, Part
from dpfda.sites.sums.questions import length, next_question, same_question

_WORDS = {
    "advertise": "fresh keys",
    "share": "sealed shares of this round's keys",
    "confirm": "signature on the set of sites",
    "unmask": "shares that open the sum",
}


class SumsPart(Part):
    """Answers what the plan's conversation asks after the answers that were told, and masks it.

    Privacy:
        That of `Site`: masked sums of the plan's questions, each with one noise.

    Args:
        plan: what the site signed.
        conversation: the plan's: all questions that may be asked.
        site: its records, ledger and secure-sum account.
    """

    steps = ("advertise", "share", "mask", "confirm", "unmask")

    def __init__(self, plan: Plan, conversation: Conversation[Any], site: Site) -> None:
        if site.member.terms.digest != plan.terms.digest:
            raise ProtocolError("the site was made for another plan")
        self.plan, self.conversation, self.site = plan, conversation, site
        self.name, self.rows = site.member.name, site.n

    def answer(self, step: str, message: Any, allow: Allow) -> Any:
        """Keys for a question that is the plan's, or one of the later steps of its round."""
        if step == "advertise":
            return self._question(message, allow)
        return getattr(self.site.member, step)(message)

    def described(self, step: str, reply: Any) -> str:
        """What leaves."""
        if step == "mask":
            return f"{len(reply.residues) // 8} numbers under masks"
        return _WORDS[step]

    def _question(self, ask: Ask, allow: Allow) -> KeyOffer:
        query, number = Query.from_dict(ask.query), ask.round.stage
        if query.digest != ask.round.question:
            raise ProtocolError("the question is not the one that its round names")
        assert isinstance(query, Query)
        account = self.site.member.account
        if number >= len(account.stages):
            self._expect(query, number, ask.told)
            allow(_shown(query, number))
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
        expected = next_question(self.plan, self.conversation, number, told)
        if expected is None or not same_question(expected, query):
            raise ProtocolError(f"the plan does not ask this as question {number}")


def _shown(query: Query, number: int) -> str:
    """A question, as a person at the site reads it."""
    written = json.dumps(query.to_dict(), ensure_ascii=False)
    what = f"{query.name} about a {query.unit}, {length(query)} sums, {query.event}"
    return f"question {number}: {what}: {written}"
