"""Sums over sites: the inquiry in a plan, the coordinator's side, and the site's side.

The coordinator runs a conversation whose every answer is a secure sum. A site has its rows, a
ledger and a role in the secure sum. Both sides compute the next query of the plan from the public
answers so far.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpfda._registry import revive
from dpfda._validate import AnyArray
from dpfda.curves.files import Table
from dpfda.curves.files.cells import label
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.estimators.file_block import Frame, frame
from dpfda.mechanisms.additive import Gaussian
from dpfda.noise import Source
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.account import Stage, StoredAccount
from dpfda.protocol.consortium import decentralized
from dpfda.protocol.conversation import Conversation, converse
from dpfda.protocol.holder import Exchange
from dpfda.protocol.query import AdditiveQuery, Answer, Query, Records
from dpfda.protocol.secure_sum import Aggregator, Member, RoundFailed, Terms
from dpfda.protocol.secure_sum.aggregator import ATTEMPTS, Carry, one_round
from dpfda.protocol.secure_sum.crypto import signed
from dpfda.protocol.secure_sum.messages import (
    KeyOffer,
    MaskedVector,
    Message,
    RoundId,
    offer_content,
)
from dpfda.protocol.site import Site, addable, opened
from dpfda.report.documents import Documented
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.identity import Card
from dpfda.sites.inquiry import Inquiry
from dpfda.sites.messages import Ask, SiteAnswer
from dpfda.sites.plan import Plan
from dpfda.sites.shared import Allow, Facts, Part, SharedInquiry

if TYPE_CHECKING:
    from dpfda.sites.site_folder import SiteFolder


_ROUNDING = 1e-6
"""Relative tolerance for queries that two machines compute from the same answers."""


def length(query: Query) -> int:
    """Length of the answer; queries that are not Gaussian sums are refused."""
    if not addable(query):
        raise ProtocolError(
            f"sites answer only sums with Gaussian noise, and {query.name} is not one"
        )
    assert isinstance(query.mechanism, Gaussian)
    return len(query.mechanism.axes)


def answer_of(plan: Plan, query: Query, opened_sum: SiteAnswer) -> Answer:
    """The answer that corresponds to an opened sum."""
    assert isinstance(query, AdditiveQuery)
    survivors = tuple(dict.fromkeys(opened_sum.survivors))
    if survivors != opened_sum.survivors or len(survivors) < plan.terms.needed:
        raise ProtocolError(f"a sum needs vectors of at least {plan.terms.needed} different sites")
    if len(opened_sum.total) != length(query):
        raise ProtocolError("the length of the sum differs from that of its query")
    return opened(
        query,
        np.array(opened_sum.total, dtype=np.int64),
        survivors=len(survivors),
        sharing=plan.terms.noisy_sites,
        n=sum(plan.card(name).rows for name in survivors),
    )


def next_question(
    plan: Plan, conversation: Conversation[Any], number: int, answers: Sequence[SiteAnswer]
) -> Query | None:
    """Query `number` of the plan's conversation; None if the conversation has ended."""
    if len(answers) != number:
        raise ProtocolError(
            f"question {number} must come with the answers to all earlier questions"
        )
    questions = conversation.questions()
    query = next(questions)
    try:
        for one in answers:
            query = questions.send(answer_of(plan, query, one))
    except StopIteration:
        return None
    return query


def same_question(expected: Query, asked: Query) -> bool:
    """Whether two queries are equal up to rounding; their costs must be equal exactly.

    The site pays the cost of `asked`, which also determines the noise.
    """
    own, other = expected.to_dict(), asked.to_dict()
    if type(expected) is not type(asked) or own.get("cost") != other.get("cost"):
        return False
    return _alike(own, other) and _alike(expected.event.to_dict(), asked.event.to_dict())


def _alike(one: object, other: object) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return type(one) is type(other) and bool(one == other)


class Sums:
    """Sends a query to all sites and opens the sum of their masked vectors.

    If the process dies after a sum was opened and before it was stored, the sum is lost, and the
    study ends with an error.

    Args:
        coordinator: sends messages, and stores opened sums.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator, self._plan = coordinator, coordinator.plan
        self.transcript: list[Exchange] = []
        self._answers: list[SiteAnswer] = []

    def ask(self, query: Query, number: int) -> Answer:
        """The sum of the sites' answers to a question."""
        folder = self._coordinator.folder
        stored = folder.answer(number, SiteAnswer)
        if stored is None:
            stored = self._opened(query, number)
            folder.keep(number, stored)
        elif stored.question != query.digest:
            raise ProtocolError(
                f"the stored answer to question {number} belongs to another question"
            )
        self._answers.append(stored)
        answer = answer_of(self._plan, query, stored)
        self.transcript.append(Exchange(query, answer))
        self._coordinator.say_answered(number, query.name, stored.survivors)
        return answer

    def _opened(self, query: Query, number: int) -> SiteAnswer:
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
                return SiteAnswer(question=query.digest, total=total, survivors=found.survivors)
        raise AssertionError  # the loop returns or raises

    def _round(self, query: Query, round_id: RoundId, size: int) -> Carry:
        """The transport of the steps of one attempt."""
        asked = Ask(round=round_id, query=query.to_dict(), answers=tuple(self._answers))

        def carry(step: str, messages: Mapping[str, Any]) -> dict[str, Any]:
            given = dict.fromkeys(messages, asked) if step == "advertise" else messages
            return self._coordinator.carry(
                step, given, lambda name, reply: self._wrong(name, reply, round_id, size)
            )

        return carry

    def _wrong(self, name: str, reply: Message, round_id: RoundId, size: int) -> str:
        """The violation of the protocol in a reply, in words; the site is then left out."""
        if reply.site != name or reply.round != round_id:
            return "replied in another site's name, or to another round"
        if isinstance(reply, KeyOffer):
            content = offer_content(self._plan.terms, round_id, name, reply.keys)
            if not signed(self._plan.card(name).public, reply.keys.signature, content):
                return "signed with another key than the plan's"
        if isinstance(reply, MaskedVector) and len(reply.residues) != 8 * size:
            return f"sent {len(reply.residues) // 8} numbers where {size} were asked for"
        return ""


_WORDS = {
    "advertise": "fresh keys",
    "share": "sealed shares of this round's keys",
    "confirm": "signature on the set of sites",
    "unmask": "shares that open the sum",
}


class SumsPart(Part):
    """Answers the next query of the plan's conversation, masked.

    Privacy:
        The guarantee of `Site`: masked sums for the plan's queries, each with noise drawn once.

    Args:
        plan: the plan that the site signed.
        conversation: the conversation of the plan, with all allowed queries.
        site: its records, ledger and secure-sum account.
    """

    steps = ("advertise", "share", "mask", "confirm", "unmask")

    def __init__(self, plan: Plan, conversation: Conversation[Any], site: Site) -> None:
        if site.member.terms.digest != plan.terms.digest:
            raise ProtocolError("the site was made for another plan")
        self.plan, self.conversation, self.site = plan, conversation, site
        self.name, self.rows = site.member.name, site.n

    def answer(self, step: str, message: object, allow: Allow) -> object:
        """The keys for a question of the plan, or the reply to a later step of its round."""
        if step == "advertise":
            assert isinstance(message, Ask)
            return self._question(message, allow)
        return getattr(self.site.member, step)(message)

    def described(self, step: str, reply: object) -> str:
        """A description of the reply, for the site's journal."""
        if isinstance(reply, MaskedVector):
            return f"{len(reply.residues) // 8} numbers under masks"
        return _WORDS[step]

    def _question(self, ask: Ask, allow: Allow) -> KeyOffer:
        query, number = Query.from_dict(ask.query), ask.round.stage
        if query.digest != ask.round.question:
            raise ProtocolError("the question is not the one that its round names")
        assert isinstance(query, Query)
        account = self.site.member.account
        if number >= len(account.stages):
            self._expect(query, number, ask.answers)
            allow(_shown(query, number))
            for missed in range(len(account.stages), number):
                account.begin(missed, ask.answers[missed].question)  # never answered, never paid
        self.site.answer(query, number=number)
        return self.site.member.advertise(ask.round)

    def _expect(self, query: Query, number: int, answers: Sequence[SiteAnswer]) -> None:
        """Refuse a query that is not the next one of the agreed conversation."""
        stages = self.site.member.account.stages
        for place, stage in stages.items():
            if place < len(answers) and answers[place].question != stage.question:
                raise ProtocolError(f"question {place} differs from the one that was answered")
        expected = next_question(self.plan, self.conversation, number, answers)
        if expected is None or not same_question(expected, query):
            raise ProtocolError(f"the plan does not ask this as question {number}")


def _shown(query: Query, number: int) -> str:
    """A description of a query for a person at the site."""
    written = json.dumps(query.to_dict(), ensure_ascii=False)
    what = f"{query.name} about a {query.unit}, {length(query)} sums, {query.event}"
    return f"question {number}: {what}: {written}"


_LEFT = ("model_", "release_", "moments_")  # attributes of a fit that can be published


@dataclass(frozen=True, kw_only=True, eq=False)
class TableInquiry(SharedInquiry, name="table"):
    """An `Inquiry` and the columns of y, from which a site reads its table.

    Attributes:
        inquiry: estimator, parameters, columns of X.
        targets: columns of y: none, one, or one per grid point of curves.

    Examples:
        >>> ranges = {"age": [18, 99]}
        >>> inquiry = Inquiry(
        ...     estimator="PrivateLinearRegression", rows=500, columns=("age",),
        ...     parameters={"epsilon": 1.0, "delta": 1e-6, "feature_ranges": ranges,
        ...                 "target_range": [0, 100]},
        ... )
        >>> TableInquiry(inquiry=inquiry, targets=("dose",)).columns
        {'age': [18.0, 99.0], 'dose': [0, 100]}
    """

    masked: ClassVar[bool] = True

    inquiry: Inquiry
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        revive(self, "inquiry", Inquiry.from_dict)
        object.__setattr__(self, "targets", tuple(self.targets))
        targets = self.targets
        if set(targets) & set(self.inquiry.columns) or len(set(targets)) < len(targets):
            raise InvalidParameter("target", "different from the other columns", targets)
        _ = self.columns  # refuses columns without a public range
        if not addable(first := next(self.conversation.questions())):
            rule = "one whose questions are sums with Gaussian noise (delta above 0)"
            raise InvalidParameter("estimator", rule, f"{self.inquiry.estimator}, {first.name}")

    @property
    def facts(self) -> Facts:
        """Title, unit, and the largest total cost of all queries."""
        asked = self.conversation
        price = f"ε = {asked.epsilon:g}, δ = {asked.delta:g}, for each {asked.unit}"
        return Facts(self.inquiry.estimator, asked.unit, asked.most, price)

    def check(self, cards: Sequence[Card]) -> None:
        """Refuse sites whose cards state a different number of rows."""
        rows = sum(card.rows for card in cards)
        if self.inquiry.rows != rows:
            raise InvalidParameter("rows", f"{rows}, as the cards say", self.inquiry.rows)

    def guarantee(self, terms: Terms) -> Guarantee:
        """The guarantee of the conversation, among sites."""
        return decentralized(self.conversation.guarantee, terms)

    def part(self, plan: Plan, folder: SiteFolder, source: Source) -> SumsPart:
        """The part of a site with the rows of its table."""
        agreed = self.conversation.agreed(source, folder.ledger)
        agreed["label"] = f"{plan.body.study} {plan.digest[:12]}"
        account = StoredAccount(folder.account(plan), study=plan.digest)
        member = Member(folder.config.name, folder.identity, plan.terms, account)
        site = Site(self.records(folder.table()), member=member, **agreed)
        return SumsPart(plan, self.conversation, site)

    def lead(self, coordinator: Coordinator) -> dict[str, Documented]:
        """Run the conversation, and return its published result."""
        sums = Sums(coordinator)
        result = converse(self.conversation, sums.ask)
        promise = coordinator.plan.guarantee
        return {"result": self.document(result, sums.transcript, promise)}

    def progress(self, account: Path, study: str) -> list[str]:
        """The progress of each query at a site."""
        stages = StoredAccount(account, study=study).stages
        return [_how(stages[number]) for number in sorted(stages)]

    @property
    def conversation(self) -> Conversation[Any]:
        """The conversation with all its queries."""
        return self.inquiry.conversation

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The columns that are read, each with its public range or categories."""
        given, names = self.inquiry.parameters, list(self.inquiry.columns)
        found: dict[str, list[Any]] = {}
        if self._features is not None:
            for name, column in zip(names, self._features.columns, strict=True):
                found[name] = list(column.categories) or [column.low, column.high]
        curves = list(self.targets) if found else names
        if given.get("value_range") is not None:
            found |= {name: list(given["value_range"]) for name in curves}
        for kind in ("target_range", "classes", "groups"):
            if given.get(kind) is not None and len(self.targets) == 1:
                found[self.targets[0]] = list(given[kind])
        for name in (*names, *self.targets):
            if name not in found:
                raise ProtocolError(f"the plan has no public range of the column {name!r}")
        return found

    @property
    def _features(self) -> PublicColumns | None:
        """The public columns of X; None if X contains curves."""
        ranges, names = self.inquiry.parameters.get("feature_ranges"), self.inquiry.columns
        if ranges is None:
            return None
        if isinstance(ranges, Mapping):
            if set(ranges) != set(names):
                raise ProtocolError("the plan's columns differ from those with ranges")
            ranges = {name: ranges[name] for name in names}
        return PublicColumns.of(ranges, width=len(names))

    def records(self, table: Table) -> Records:
        """A site's private rows, in the form that the queries need."""
        for name in (*self.inquiry.columns, *self.targets):
            if name not in table.names:
                raise InvalidData("data", f"a table with the column {name!r}")
        if isinstance(self.inquiry.parameters.get("feature_ranges"), Mapping):
            assert self._features is not None
            X = frame(table, self._features, gaps=True)
        else:
            columns = list(self.inquiry.columns)
            X = Frame(zip(columns, table.numbers(columns).T, strict=True))
        return self.inquiry.records(X, self._target(table))

    def _target(self, table: Table) -> AnyArray | None:
        """The labels in the form of the plan, or numbers."""
        if not self.targets:
            return None
        for kind in ("classes", "groups"):
            if self.inquiry.parameters.get(kind) is not None:
                known = {label(str(one)): one for one in self.inquiry.parameters[kind]}
                return np.array([known.get(word, word) for word in table.text(self.targets[0])])
        numbers = table.numbers(list(self.targets))
        return numbers[:, 0] if len(self.targets) == 1 else numbers

    def document(
        self, result: object, transcript: Sequence[Exchange], guarantee: Guarantee
    ) -> Documented:
        """The published result."""
        fitted = self.inquiry.conclude(result, transcript=transcript, guarantee=guarantee)
        for name in _LEFT:
            if isinstance(left := getattr(fitted, name, None), Documented):
                return left
        raise ProtocolError(f"{self.inquiry.estimator} has no result to publish")


def _how(stage: Stage) -> str:
    if stage.opened:
        return "in an opened sum"
    if stage.noisy is not None:
        return "answered under masks, not opened"
    return "missed, or stopped while it was answered: never answered"
