"""Queries and conversations as an audit attacks them, through their holders.

No algorithm is copied here. An attack first compares, bit for bit, what the holder sends with what
the mechanism draws from the same random words; from then on many reports are drawn at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.regression.perturbation import TiltedQuery
from dpfda.checks import expect
from dpfda.checks.queries import Counting, distance, exact_answer, losses, search
from dpfda.curate import curate
from dpfda.mechanisms.additive import Additive
from dpfda.noise import SimulationSource, Source
from dpfda.privacy.calibration import gaussian_epsilon, gaussian_mu
from dpfda.privacy.events import Event, GaussianEvent
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.price import compose, rounded_up
from dpfda.protocol.conversation import Conversation, converse
from dpfda.protocol.holder import Curator, Holder
from dpfda.protocol.query import Answer, Query, Records
from dpfda.protocol.task import Task

Pairs = list[tuple[FloatArray, FloatArray]]
Holding = Callable[[Records, Source], Holder]
_DELTA = 0.01  # at which a Gaussian price is said in ε
_STEPS = 30  # of a climb to worse neighbors
_SEEDS = 20  # answers of the holder that are compared bit for bit
_FIRST, _SECOND = np.zeros((1, 1)), np.ones((1, 1))


def priced(event: Event) -> tuple[Guarantee, float | None]:
    """A price as a claim: ε, and μ where it is Gaussian."""
    if isinstance(event, GaussianEvent):
        epsilon = gaussian_epsilon(delta=_DELTA, multiplier=event.multiplier)
        return Guarantee(epsilon=epsilon, delta=_DELTA), 1 / event.multiplier
    price = compose([event])
    return Guarantee(epsilon=rounded_up(price.epsilon), delta=float(price.delta)), None


def curator(query: Query, records: Records, source: Source) -> Holder:
    """A curator who agreed to one query and answered it."""
    holder = Curator(
        records,
        most=compose([query.event]),
        source=source,
        unit=query.unit,
        accepts=query.assumptions,
    )
    holder.answer(query, number=0)
    return holder


class QueryAttack:
    """One query about the worst neighbors that a search finds.

    Args:
        query: it.
        holding: makes a holder of records; without one, tasks are answered as they stand.
        labels: how many labels such a holder knows.
    """

    def __init__(
        self, query: Query, holding: Holding | None = None, *, labels: int | None = None
    ) -> None:
        self.query, self.mechanism = query, query.mechanism
        self.guarantee, self.mu = priced(query.event)
        # Whatever a task computes goes through a mechanism of anything: a short search will do.
        few = {"starts": 40, "steps": 40} if isinstance(query, Task) else {}
        here, there = search(query, **few).neighbors
        self.sides = _known(here, labels), _known(there, labels)
        self.exact = [exact_answer(query, side) for side in self.sides]
        counting = Counting(0)
        query.exact(query.fitting(self.sides[0]), counting)
        self.draws_inside = isinstance(query, Task) and counting.drawn > 0
        self.depth_shape = None if self.draws_inside else self.mechanism.depth_shape
        self.depths = self.mechanism.depths
        self._compare(holding)

    def _compare(self, holding: Holding | None) -> None:
        """The holder sends what the mechanism draws, bit for bit."""
        for seed in range(_SEEDS):
            side, query = seed % 2, self.query
            records, source = self.sides[side], SimulationSource(seed)
            if holding is None and isinstance(query, Task):
                answer = query.answer(records, source)
            else:
                holder = (
                    curator(query, records, source) if holding is None else holding(records, source)
                )
                answer = holder.answer(query, number=0)
                expect(holder.events == [query.event], "the holder spends something else")
            value = np.full((1, 1), side) if self.draws_inside else self.exact[side]
            drawn = np.ravel(self.randomize(value, SimulationSource(seed)))
            same = np.array_equal(np.ravel(answer.values), drawn)
            expect(same, "the holder sends something else than is audited")

    def worst_cases(self) -> Pairs:
        """The input of the mechanism for the neighbors, drawn at random if there are several.

        A mechanism of anything is attacked at its own worst inputs too, which a query may not
        reach: what it draws there is what the holder's mechanism draws.
        """
        if self.draws_inside:
            return [(_FIRST, _SECOND)]
        own = [] if isinstance(self.mechanism, Additive) else self.mechanism.worst_cases()[:1]
        return [(self.exact[0], self.exact[1]), *own]

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """This many answers about the same records."""
        if not self.draws_inside:
            return self.mechanism.randomize(values, source, clip=True)
        assert isinstance(self.query, Task)
        people = len(values)
        records = self.sides[int(values[0, 0])]
        records = tuple(np.repeat(column[:1], people, axis=0) for column in records)
        return np.asarray(
            self.query.rows(np.zeros(people, dtype=np.int64)).answer(records, source).values
        )

    @property
    def log_likelihood(self) -> Callable[[FloatArray, Any], FloatArray] | None:
        """Log-likelihood by the mechanism; None if the query itself draws."""
        return None if self.draws_inside else self._log_likelihood

    def _log_likelihood(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        return self.mechanism.log_likelihood(reports, np.repeat(values, len(reports), axis=0))


def _known(records: Records, labels: int | None) -> Records:
    """Records with the labels that a holder knows."""
    if labels is None:
        return records
    return tuple(column % labels if column.dtype.kind == "i" else column for column in records)


class TranscriptAttack:
    """All answers of a holder, about two neighboring data sets.

    A report is a whole transcript: its loss ln p(transcript | first records) - ln p(transcript |
    second records), which is what an attacker who knows everything else computes from what was
    released; its depth and that law's shape (`privacy.audit.Fit`); then the answers' first numbers.

    Args:
        asked: a holder of these records, who was asked everything.
        sides: the two data sets.
        guarantee, mu: what is claimed.
    """

    depth_shape = 1.0  # each transcript says its own

    def __init__(
        self,
        asked: Holding,
        sides: tuple[Records, Records],
        *,
        guarantee: Guarantee,
        mu: float | None,
    ) -> None:
        self._asked, self.sides, self.guarantee, self.mu = asked, sides, guarantee, mu

    def worst_cases(self) -> Pairs:
        """Which of the two data sets."""
        return [(_FIRST, _SECOND)]

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """This many transcripts."""
        side = int(values[0, 0])
        return np.array([self._transcript(side, source) for _ in range(len(values))])

    def _transcript(self, side: int, source: Source) -> FloatArray:
        transcript = self._asked(self.sides[side], source).transcript
        own, other = self.sides[side], self.sides[1 - side]
        sums = np.sum(
            [_loss_and_depth(it.query, it.answer, own, other) for it in transcript], axis=0
        )
        sums[0] *= 1 - 2 * side
        numbers = np.concatenate([np.ravel(exchange.answer.values) for exchange in transcript])
        return np.concatenate([sums, numbers[:5]])

    def log_likelihood(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Up to what both sides share."""
        sign = 0.5 if not np.ravel(values)[0] else -0.5
        return np.asarray(sign * reports[:, 0])

    def depths(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Depths of all noise in each transcript."""
        return reports[:, 1:3]


def _loss_and_depth(query: Query, answer: Answer, own: Records, other: Records) -> FloatArray:
    """Privacy loss of one answer about the own records, its depth, and the shape of that."""
    if isinstance(query, TiltedQuery):  # it draws inside
        source = SimulationSource(0)
        here, there = (query.log_likelihood(answer, side, source) for side in (own, other))
        return np.array([here - there, *query.depth(answer, own)])
    mechanism, sent = query.mechanism, answer.values[None]
    one, two = (exact_answer(query, side) for side in (own, other))
    lost = losses(mechanism, sent, one, two)
    depths = mechanism.depths(sent, one)[0] if mechanism.depth_shape else np.zeros(2)
    return np.concatenate([lost, depths])


def conversation_attack(conversation: Conversation[Any], n: int) -> QueryAttack | TranscriptAttack:
    """A whole conversation with a curator; one that asks a single sum is drawn in batches."""

    def asked(rows: Records, source: Source) -> Holder:
        # As `curate` does, without its tally: made-up records with real noise cost nobody anything.
        holder = Curator(rows, **conversation.agreed(source, None))
        converse(conversation, lambda query, number: holder.answer(query, number=number))
        return holder

    transcript = asked(conversation.neighbors(n)[0], SimulationSource(0)).transcript
    query = transcript[0].query
    if len(transcript) == 1 and isinstance(query.mechanism, Additive) and not query.inside:
        return QueryAttack(query, asked)
    claim = {"epsilon": conversation.epsilon, "delta": conversation.delta}
    mu = gaussian_mu(**claim) if conversation.most.precision else None
    sides = conversation.neighbors(n) if query.inside else worst_neighbors(conversation, n)
    return TranscriptAttack(asked, sides, guarantee=conversation.guarantee, mu=mu)


def query_attack(query: Query) -> QueryAttack | TranscriptAttack:
    """The attack on one query; a query that draws inside is attacked answer by answer."""
    if not query.inside:
        return QueryAttack(query)
    guarantee, mu = priced(query.event)
    sides = search(query, starts=10, steps=20).neighbors
    return TranscriptAttack(partial(curator, query), sides, guarantee=guarantee, mu=mu)


def worst_neighbors(conversation: Conversation[Any], n: int) -> tuple[Records, Records]:
    """Hill climbing from the conversation's neighbors to records that its queries distinguish."""
    rng = np.random.default_rng(0)
    best = conversation.neighbors(n)
    most = spent(conversation, best)
    for step in range(_STEPS):
        reach = 0.95**step
        here, there = (tuple(column.copy() for column in side) for side in best)
        for side in ((here, there), (here,), (there,))[step % 3]:
            for column in side:
                scale = max(float(np.abs(column[0]).max()), 0.1)
                column[0] += reach * scale * rng.normal(size=column[0].shape)
        found = spent(conversation, (here, there))
        if found > most:
            best, most = (here, there), found
    return best


def spent(conversation: Conversation[Any], sides: tuple[Records, Records]) -> float:
    """Approximate share of the announced budget that a pair uses: Σ ε_i or √Σ μ_i²."""
    _, holder = curate(conversation, sides[0], source=SimulationSource(0))
    pure, precision = 0.0, 0.0
    for exchange in holder.transcript:
        query = exchange.query
        one, other = (exact_answer(query, side) for side in sides)
        if isinstance(query.event, GaussianEvent):
            precision += 2 * float(losses(query.mechanism, one, one, other)[0])
        else:
            price = float(compose([query.event]).epsilon)
            pure += price * distance(query.mechanism, one, other)
    most = conversation.most
    parts = [pure / float(most.epsilon)] if most.epsilon else []
    parts += [math.sqrt(precision / float(most.precision))] if most.precision else []
    return max(parts)


@dataclass(frozen=True)
class Case:
    """One thing to audit, made when its turn comes.

    Attributes:
        kind: mechanism, query, study or conversation.
        name: which.
        make: what is attacked.
        goal: the relative violation that the audit should see.
    """

    kind: str
    name: str
    make: Callable[[], Any]
    goal: float
