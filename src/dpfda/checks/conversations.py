"""The contract of every conversation: its cost equals the announcement, and it leaks no more.

`Rehearsal` answers without records, so it shows the cost of a conversation in advance.
`transcript_losses` runs a conversation with a real curator about neighboring records, and computes
the privacy loss of the whole transcript for an attacker who knows everything else.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from dpfda._validate import FloatArray
from dpfda.checks import expect
from dpfda.checks.queries import Counting
from dpfda.curate import curate
from dpfda.errors import BudgetExceeded, InvalidParameter
from dpfda.noise import SimulationSource
from dpfda.privacy.cost import within
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import Price, compose
from dpfda.protocol.conversation import Conversation, converse
from dpfda.protocol.holder import Curator, Holder
from dpfda.protocol.query import AdditiveQuery, Answer, DatasetQuery, Query, Records, randomized

FAMILY = Conversation
_ENDLESS = Fraction(10**30)
_LITTLE = Fraction(1, 10**9)
_RUNS = 60


def examples(member: type[Conversation[Any]]) -> list[tuple[Conversation[Any], int]]:
    """Every variant of a conversation, pure and with δ, for two numbers of records."""
    return [
        (conversation, n)
        for n in (100, 250)
        for delta in (0.0, 0.05)
        for conversation in member.examples(n=n, epsilon=1.0, delta=delta)
    ]


def check_conversation(subject: tuple[Conversation[Any], int]) -> None:
    """Run the whole contract on one conversation and a number of records."""
    conversation, n = subject
    check_price(conversation, n)
    check_ledger(conversation, n)
    check_order(conversation, n)
    check_greed(conversation, n)
    check_repeats(conversation, n)
    check_losses(conversation, n)


check = check_conversation


class Rehearsal(Holder):
    """A holder without data: answers as if every sum were 0, and accepts every query."""

    def __init__(self, conversation: Conversation[Any], n: int, *, seed: int = 0) -> None:
        endless = Price(epsilon=_ENDLESS, delta=_ENDLESS, precision=_ENDLESS)
        super().__init__(
            most=endless,
            source=SimulationSource(seed),
            unit=conversation.unit,
            accepts=conversation.assumptions,
        )
        self._n = n

    def _check(self, query: Query) -> None:
        """Accept every query."""

    def _respond(self, query: Query, number: int) -> Answer:
        if isinstance(query, AdditiveQuery):
            zeros = np.zeros(query.size, dtype=np.int64)
            return query.release(zeros, n=self._n, source=self.source)
        if isinstance(query, DatasetQuery):
            zeros = np.zeros_like(query.mechanism.worst_cases()[0][0])
            return randomized(query, np.ravel(zeros), self._n, self.source)
        return query.answer(query.trial(np.random.default_rng(0)), self.source)


def rehearse(conversation: Conversation[Any], n: int, *, seed: int = 0) -> Price:
    """The exact cost of a conversation with n records, computed without data."""
    holder = Rehearsal(conversation, n, seed=seed)
    converse(conversation, lambda query, number: holder.answer(query, number=number))
    return compose(holder.events)


def check_price(conversation: Conversation[Any], n: int, *, seed: int = 0) -> None:
    """The queries cost exactly what was announced."""
    try:
        spent, most = rehearse(conversation, n, seed=seed), conversation.most
    except InvalidParameter:  # refused because of public numbers, before the first query
        return
    expect(within(spent, most), "a conversation asks for more than it announced")
    full = spent.epsilon + spent.precision >= (most.epsilon + most.precision) * (1 - _LITTLE)
    expect(full, "a conversation leaves a part of its budget unspent")


def check_ledger(conversation: Conversation[Any], n: int) -> None:
    """Each query is spent from the ledger; an empty ledger refuses everything."""
    here, _ = conversation.neighbors(n)
    ledger = Ledger(conversation.epsilon, limit_delta=conversation.delta)
    _, curator = curate(conversation, here, source=SimulationSource(0), ledger=ledger)
    spent = [entry.event for entry in ledger.entries]
    expect(spent == curator.events, "every look must be spent from the ledger")
    expect(within(compose(spent), conversation.most), "more was spent than announced")
    try:
        curate(conversation, here, source=SimulationSource(0), ledger=ledger)
    except BudgetExceeded:
        expect(len(ledger.entries) == len(spent), "a refused conversation must spend nothing")
        return
    raise AssertionError("an empty ledger must refuse the conversation")


class _Refusing(Ledger):
    """A ledger that reports enough budget, and refuses every cost."""

    def spend(self, *_: object, **__: object) -> NoReturn:
        """Refuse."""
        raise BudgetExceeded("refused")


def check_order(conversation: Conversation[Any], n: int) -> None:
    """Spending comes first: if it is refused, no noise was drawn."""
    here, _ = conversation.neighbors(n)
    watched = Counting(0)
    ledger = _Refusing(conversation.epsilon, limit_delta=conversation.delta)
    try:
        curate(conversation, here, source=watched, ledger=ledger)
    except BudgetExceeded:
        expect(watched.drawn == 0, "noise must not be drawn before the ledger is spent")
        return
    raise AssertionError("a ledger that refuses must be obeyed")


def check_greed(conversation: Conversation[Any], n: int) -> None:
    """One question more than announced is refused before anything is drawn."""
    here, _ = conversation.neighbors(n)
    watched = Counting(0)
    _, curator = curate(conversation, here, source=watched)
    drawn, asked = watched.drawn, len(curator.transcript)
    try:
        curator.answer(next(conversation.questions()), number=asked)
    except BudgetExceeded:
        expect(watched.drawn == drawn, "a refused question must draw nothing")
        expect(len(curator.transcript) == asked, "a refused question must not be kept")
        return
    raise AssertionError("a curator must refuse more than was announced")


def check_repeats(conversation: Conversation[Any], n: int) -> None:
    """A repeated query gets the stored answer, and costs nothing."""
    here, _ = conversation.neighbors(n)
    curator = Curator(
        here,
        most=conversation.most,
        source=SimulationSource(0),
        unit=conversation.unit,
        accepts=conversation.assumptions,
    )
    query = next(conversation.questions())
    first = curator.answer(query, number=0)
    again = curator.answer(Query.from_dict(query.to_dict()), number=0)
    expect(np.array_equal(again.values, first.values), "a repeat must get the same answer")
    expect(len(curator.events) == 1, "a repeat must cost nothing")


def check_losses(conversation: Conversation[Any], n: int) -> None:
    """No transcript distinguishes neighbors better than announced."""
    lost = transcript_losses(conversation, n)
    expect(excess(conversation, lost) <= 0, "a transcript gives away more than was announced")


def transcript_losses(conversation: Conversation[Any], n: int) -> FloatArray:
    """Privacy loss of whole conversations with a real curator, about its worst neighbors."""
    source = SimulationSource(0)
    sides = conversation.neighbors(n)
    found = []
    for run in range(_RUNS):
        here, there = sides if run % 2 else sides[::-1]
        _, curator = curate(conversation, here, source=source)
        found.append(float(replay(curator, here, there).sum()))
    return np.array(found)


def replay(holder: Holder, here: Records, there: Records) -> FloatArray:
    """Loss of each answer of a conversation about `here`, compared with its neighbor `there`."""
    source = SimulationSource(0)
    return np.array(
        [
            exchange.query.log_likelihood(exchange.answer, here, source)
            - exchange.query.log_likelihood(exchange.answer, there, source)
            for exchange in holder.transcript
        ]
    )


def excess(conversation: Conversation[Any], lost: FloatArray) -> float:
    """The excess of losses over the claim; at most 0 if the claim holds.

    For pure ε, it is the largest loss minus ε. With δ, it is E(1 - e^{ε - L})₊ minus δ and minus
    five standard errors.
    """
    claim = conversation.guarantee
    if not claim.delta:
        return float(lost.max() - claim.epsilon * (1 + float(_LITTLE)))
    over = -np.expm1(np.minimum(claim.epsilon - lost, 0.0))
    return float(over.mean() - 5 * over.std() / np.sqrt(over.size) - claim.delta)
