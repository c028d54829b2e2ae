"""The coordinator of a shared study: brings the plan's questions to sites, and keeps answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpfda.errors import DpfdaError, ProtocolError, printable
from dpfda.protocol.secure_sum import Identity
from dpfda.protocol.secure_sum.aggregator import ATTEMPTS
from dpfda.protocol.secure_sum.crypto import signed
from dpfda.report.documents import Documented
from dpfda.sites.messages import REPLIED, Agreement, Envelope, Reply, StoredReplies, decode, encode
from dpfda.sites.plan import Plan
from dpfda.sites.study_folder import StudyFolder

Carrier = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
"""Brings each site a message and back its reply; a site that is silent is left out."""
Wrong = Callable[[str, Any], str]
"""What is wrong with a site's reply; nothing where it is as it should be."""


class StudyFailed(ProtocolError):
    """A query got no answer. The message states which, why, and what each site did."""


class Coordinator:
    """Sends a plan's messages; the inquiry defines queries and interprets answers.

    Every answer is on its disk before the next question is asked: started again, it goes on where
    it stopped, and asks nothing twice.

    Args:
        plan: what the sites signed.
        identity: the coordinator's lasting key.
        folder: where answers are kept.
        carrier: brings messages to sites.
        say: told in words how it goes.

    Attributes:
        trouble: site -> what it did, of the sites that did not do their part in this question.
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
        self.plan, self.folder, self.identity, self.say = plan, folder, identity, say
        self.trouble: dict[str, str] = {}
        self._carrier, self._silent = carrier, set[str]()

    def run(self) -> dict[str, Documented]:
        """Ask all queries; return the published results by name."""
        self.gather()
        return self.plan.inquiry.lead(self)

    def end(self, sites: Sequence[str] | None = None) -> None:
        """Tell these sites, or all that did their part, that there is a result."""
        everybody = self.plan.terms.names if sites is None else sites
        here = [name for name in everybody if name not in self.trouble]
        self.carry("over", dict.fromkeys(here, self.plan.digest), lambda name, reply: "")

    def gather(self) -> None:
        """Every site's signature on the plan; the study does not begin with fewer than it needs."""
        self.trouble = {}
        plan, names = self.plan, self.plan.terms.names

        def wrong(name: str, reply: Agreement) -> str:
            key = plan.card(name).public
            right = reply.site == name and signed(key, reply.signature, plan.agreement)
            return "" if right else "sent a signature that is not by the key in the plan"

        for name, reply in self.carry("agree", dict.fromkeys(names, plan.digest), wrong).items():
            self.folder.keep_agreement(name, reply.signature)
        if len(names) - len(self.trouble) < plan.terms.needed:
            raise StudyFailed(f"the study did not begin: {self.reasons}")
        for name, reason in self.trouble.items():
            self.say(f"site {name!r} {reason}")

    def carry(self, step: str, messages: Mapping[str, Any], wrong: Wrong) -> dict[str, Any]:
        """The replies of sites; failures are stored with their reason."""
        sent = {
            name: encode(Envelope(plan=self.plan.digest, step=step, body=encode(message)))
            for name, message in messages.items()
        }
        replies, received = {}, self._carrier(sent)
        self._silent = {name for name in messages if name not in received}
        for name in messages:
            if name in self._silent:
                self.trouble[name] = f"was silent at {step}"
                continue
            try:
                found: Reply = decode(received[name], Reply)
                if found.refused:
                    self.trouble[name] = f"refused {step}: {printable(found.refused)}"
                    continue
                content = self.plan.replied(sent[name], found.body)
                if not signed(self.plan.card(name).public, found.signature, content):
                    self.trouble[name] = f"sent no {step} that its key signed"
                    continue
                reply = decode(found.body, REPLIED[step])
                if reason := wrong(name, reply):
                    self.trouble[name] = reason
                else:
                    replies[name] = reply
            except Exception as error:  # a site's bytes end nobody's study but its own
                reason = str(error) if isinstance(error, DpfdaError) else "it cannot be read"
                self.trouble[name] = f"sent no {step}: {printable(reason)}"
        return replies

    def each(
        self, number: int, step: str, messages: Mapping[str, Any], *, question: str, wrong: Wrong
    ) -> dict[str, Any]:
        """The reply of each site to a query; each is stored before it is used.

        Whoever was silent is asked again. Sites that did not answer are left out, if no more than
        the plan lets fall silent.

        Args:
            number: of the question.
            step: of its messages.
            messages: by site.
            question: its digest; a kept answer to another one is refused.
            wrong: what is wrong with a reply.
        """
        stored = self.folder.answer(number, StoredReplies)
        if stored is None:
            found = self._found(number, step, messages, wrong)
            replies = tuple(encode(reply) for reply in found.values())
            stored = StoredReplies(question, tuple(found), replies)
            self.folder.keep(number, stored)
        elif stored.question != question:
            raise ProtocolError(
                f"the stored answer to question {number} belongs to another question"
            )
        kept = zip(stored.survivors, stored.replies, strict=True)
        return {name: decode(content, REPLIED[step]) for name, content in kept}

    def _found(
        self, number: int, step: str, messages: Mapping[str, Any], wrong: Wrong
    ) -> dict[str, Any]:
        self.trouble = {}
        found, left = dict[str, Any](), dict(messages)
        for _ in range(ATTEMPTS):
            self.folder.next_attempt(number)
            for name in left:
                self.trouble.pop(name, None)
            found |= self.carry(step, left, wrong)
            left = {name: one for name, one in left.items() if name in self._silent}
            if not left:
                break
        if len(self.trouble) > self.plan.terms.dropouts:
            raise self.failed(number, f"{len(found)} of {len(messages)} sites answered")
        if self.trouble:
            self.say(f"question {number}: {self.reasons}")
        return {name: found[name] for name in messages if name in found}

    def say_answered(self, number: int, what: str, sites: Sequence[str]) -> None:
        """Report how many sites are in an answer, and which are missing."""
        left_out = [name for name in self.plan.terms.names if name not in sites]
        without = f", without {', '.join(left_out)}" if left_out else ""
        self.say(f"question {number}: {what}: {len(sites)} sites{without}")

    def failed(self, number: int, failure: Exception | str) -> StudyFailed:
        """Why a question was not answered."""
        return StudyFailed(f"question {number} was not answered: {failure}: {self.reasons}")

    @property
    def reasons(self) -> str:
        """The reasons of the sites that failed."""
        found = [f"site {name!r} {reason}" for name, reason in self.trouble.items()]
        return "; ".join(found) or "every site did its part"
