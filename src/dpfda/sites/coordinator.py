"""The coordinator of a shared study: sends the plan's queries to sites, and stores answers."""

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
"""The transport: sends a message to each site and returns replies; silent sites are left out."""
Wrong = Callable[[str, Any], str]
"""Returns the error in a site's reply in words; empty if it is valid."""


class StudyFailed(ProtocolError):
    """A query got no answer. The message states which, why, and what each site did."""


class Coordinator:
    """Sends a plan's messages; the inquiry defines queries and interprets answers.

    Every answer is on the disk before the next query is sent. A restarted coordinator continues
    where it stopped, and repeats no answered query.

    Args:
        plan: the plan that the sites signed.
        identity: the coordinator's long-term key.
        folder: the folder of stored answers.
        carrier: the transport of messages to sites.
        say: reports progress in words.

    Attributes:
        trouble: for each site that failed in the current query, the reason.
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
        """Tell these sites, or all that answered, that there is a result."""
        everybody = self.plan.terms.names if sites is None else sites
        here = [name for name in everybody if name not in self.trouble]
        self.carry("over", dict.fromkeys(here, self.plan.digest), lambda name, reply: "")

    def gather(self) -> None:
        """Collect the sites' signatures on the plan; the study needs enough of them to begin."""
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
            except Exception as error:  # an invalid reply must not end the study of the other sites
                reason = str(error) if isinstance(error, DpfdaError) else "it cannot be read"
                self.trouble[name] = f"sent no {step}: {printable(reason)}"
        return replies

    def each(
        self, number: int, step: str, messages: Mapping[str, Any], *, question: str, wrong: Wrong
    ) -> dict[str, Any]:
        """The reply of each site to a query; each reply is stored before it is used.

        Silent sites are asked again. If no more sites remain silent than the plan permits, they are
        left out.

        Args:
            number: number of the query.
            step: step of the messages.
            messages: the message to each site.
            question: digest of the query; a stored answer to a different query is refused.
            wrong: checks a reply.
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
        """Report how many sites contributed to an answer, and which are missing."""
        left_out = [name for name in self.plan.terms.names if name not in sites]
        without = f", without {', '.join(left_out)}" if left_out else ""
        self.say(f"question {number}: {what}: {len(sites)} sites{without}")

    def failed(self, number: int, failure: Exception | str) -> StudyFailed:
        """The error that states why a query was not answered."""
        return StudyFailed(f"question {number} was not answered: {failure}: {self.reasons}")

    @property
    def reasons(self) -> str:
        """The reasons of the sites that failed."""
        found = [f"site {name!r} {reason}" for name, reason in self.trouble.items()]
        return "; ".join(found) or "every site did its part"
