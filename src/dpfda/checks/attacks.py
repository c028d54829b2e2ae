"""What ships, as an audit sees it: queries and conversations, asked through their holders.

No algorithm is copied here. An attack first compares, bit for bit, what the holder sends with what
the mechanism draws from the same random words; from then on many reports are drawn at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.checks import expect
from dpfda.checks.neighbors import distance, exact_answer, losses, search
from dpfda.checks.queries import Counting
from dpfda.curate import curate
from dpfda.mechanisms.additive import Additive
from dpfda.noise import SimulationSource, Source
from dpfda.privacy.calibration import gaussian_epsilon, gaussian_mu
from dpfda.privacy.events import Event, GaussianEvent
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.price import compose, rounded_up
from dpfda.protocol.answer import Answer
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.holder import Curator, Holder
from dpfda.protocol.query import Look, Query, Records
from dpfda.protocol.task import Task

Pairs = list[tuple[FloatArray, FloatArray]]
Holding = Callable[[Records, Source], Holder]
_DELTA = 0.01  # at which a Gaussian price is said in ε
_QUIETER = 0.25
_TRIED = 12  # conversations that find records far enough away
_SEEDS = 20  # answers of the holder that are compared bit for bit
_FIRST, _SECOND = np.zeros((1, 1)), np.ones((1, 1))


def priced(event: Event) -> tuple[Guarantee, float | None]:
    """A price as a claim: ε, and μ where it is Gaussian."""
    if isinstance(event, GaussianEvent):
        epsilon = gaussian_epsilon(delta=_DELTA, multiplier=event.multiplier)
        return Guarantee(epsilon=epsilon, delta=_DELTA), 1 / event.multiplier
    price = compose([event])
    return Guarantee(epsilon=rounded_up(price.epsilon), delta=float(price.delta)), None


def one_look(conversation: Conversation[Any], n: int) -> Any:
    """A conversation as an attack: one that asks a single question may be drawn in batches."""
    here, _ = conversation.neighbors(n)
    _, holder = curate(conversation, here, source=SimulationSource(0))
    query = holder.transcript[0].query
    plain = type(query).log_likelihood is Look.log_likelihood
    if len(holder.transcript) > 1 or not plain or not isinstance(query.mechanism, Additive):
        return ConversationAttack(conversation, n)
    return QueryAttack(query, lambda rows, source: curate(conversation, rows, source=source)[1])


def curator(query: Query, records: Records, source: Source) -> Holder:
    """A curator who agreed to one look."""
    return Curator(
        records,
        most=compose([query.event]),
        source=source,
        unit=query.unit,
        accepts=query.assumptions,
    )


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
        # Whatever a task computes goes through a randomizer of anything: a short search will do.
        few = {"starts": 40, "steps": 40} if isinstance(query, Task) else {}
        here, there = search(query, **few).neighbors
        self.sides = _known(here, labels), _known(there, labels)
        self.exact = [exact_answer(query, side) for side in self.sides]
        counting: Any = Counting(0)
        query.exact(query.fitting(self.sides[0]), counting)
        self.draws_inside = counting.drawn > 0
        self._compare(holding)

    @property
    def additive(self) -> bool:
        """Whether reports are values plus noise whose size is stated."""
        return isinstance(self.mechanism, Additive) and not self.draws_inside

    def _compare(self, holding: Holding | None) -> None:
        """What a holder sends is what the mechanism draws, bit for bit."""
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
            drawn = np.ravel(self._reports(side, 1, SimulationSource(seed)))
            same = np.array_equal(np.ravel(answer.values), drawn)
            expect(same, "the holder sends something else than is audited")

    def worst_cases(self) -> Pairs:
        """The neighbors: what goes into the mechanism; for a task, which person."""
        return [(self.exact[0], self.exact[1])] if self.additive else [(_FIRST, _SECOND)]

    def randomize(self, values: Any, rng: Source) -> FloatArray:
        """As many answers, all about the same records."""
        if self.additive:
            return self.mechanism.randomize(values, rng, clip=True)
        return self._reports(int(values[0, 0]), len(values), rng)

    def _reports(self, side: int, count: int, source: Source) -> FloatArray:
        query = self.query
        if self.draws_inside and isinstance(query, Task):
            many = query.rows(np.zeros(count, dtype=np.int64))
            records = tuple(np.repeat(column[:1], count, axis=0) for column in self.sides[side])
            return many.answer(records, source).values
        if self.draws_inside:
            answers = [query.answer(self.sides[side], source).values for _ in range(count)]
            return np.array(answers)
        rows = np.repeat(self.exact[side], count, axis=0)
        return np.reshape(self.mechanism.randomize(rows, source, clip=True), (count, -1))

    @property
    def log_likelihood(self) -> Callable[[FloatArray, Any], FloatArray] | None:
        """As the mechanism states it; None where the query itself draws."""
        return None if self.draws_inside else self._log_likelihood

    def _log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        true = values if self.additive else self.exact[int(np.ravel(values)[0])]
        single = np.ndim(self.exact[0]) == 1
        sent = reports[:, 0] if single else reports
        return self.mechanism.log_likelihood(sent, np.repeat(true[:1], len(sent), axis=0))


def _known(records: Records, labels: int | None) -> Records:
    """Records with the labels that a holder knows."""
    if labels is None:
        return records
    return tuple(column % labels if column.dtype.kind == "i" else column for column in records)


class ConversationAttack:
    """A whole conversation with a curator, about neighbors that its looks tell apart well.

    A report is a whole transcript. Its first number is the loss ln p(transcript | first records) -
    ln p(transcript | second records), which is what an attacker who knows everything else computes
    from what was released. The next two are its loss against records that lie further away, as it
    is and had the noise been smaller by a quarter; then the answers' first numbers.
    """

    additive = False

    def __init__(self, conversation: Conversation[Any], n: int) -> None:
        self.conversation = conversation
        self.guarantee = conversation.guarantee
        gaussian = bool(conversation.most.precision)
        claim = {"epsilon": conversation.epsilon, "delta": conversation.delta}
        self.mu = gaussian_mu(**claim) if gaussian else None
        self.sides = worst_neighbors(conversation, n)
        # So many records replaced that about one scale of all noise lies between.
        self.far, replaced = self.sides[1], 1
        for _ in range(2):
            some = self.randomize(np.repeat(_FIRST, _TRIED, axis=0), SimulationSource(0))
            spread = max(float(some[:, 1].std()), 1 / n)
            replaced = min(n // 2, max(1, round(replaced / spread)))
            self.far = tuple(column.copy() for column in self.sides[0])
            for column, other in zip(self.far, self.sides[1], strict=True):
                column[:replaced] = other[:1]

    def worst_cases(self) -> Pairs:
        """Which of the two data sets."""
        return [(_FIRST, _SECOND)]

    def randomize(self, values: Any, rng: Source) -> FloatArray:
        """As many conversations."""
        side = int(values[0, 0])
        return np.array([self._transcript(side, rng) for _ in range(len(values))])

    def _transcript(self, side: int, source: Source) -> FloatArray:
        _, holder = curate(self.conversation, self.sides[side], source=source)
        lost = np.zeros(3)
        for exchange in holder.transcript:
            lost += self._lost(exchange.query, exchange.answer, side)
        numbers = np.concatenate([exchange.answer.values for exchange in holder.transcript])
        return np.concatenate([lost, numbers[:5]])

    def _lost(self, query: Query, answer: Answer, side: int) -> FloatArray:
        """Of one answer: against the neighbor, against the far records, and that with less noise.

        The last two are told of answers about the first records only.
        """
        if type(query).log_likelihood is not Look.log_likelihood:  # one that draws inside
            source = SimulationSource(0)
            here, there, far = (
                query.log_likelihood(answer, records, source) for records in (*self.sides, self.far)
            )
            return np.array([here - there, here - far, here - far])
        mechanism, sent = query.mechanism, answer.values[None]
        one, two, far_off = (exact_answer(query, it) for it in (*self.sides, self.far))
        here, there, far = (
            float(mechanism.log_likelihood(sent, exact)[0]) for exact in (one, two, far_off)
        )
        if side == 1 or not isinstance(mechanism, Additive):
            return np.array([here - there, here - far, here - far])
        quiet = one + (sent - one) / (1 + _QUIETER)
        shrunk = float(losses(mechanism, quiet, one, far_off)[0])
        return np.array([here - there, here - far, shrunk])

    def log_likelihood(self, reports: FloatArray, values: Any) -> FloatArray:
        """Up to what both sides share."""
        sign = 0.5 if not np.ravel(values)[0] else -0.5
        return np.asarray(sign * reports[:, 0])

    def weights(self, reports: FloatArray, violation: float) -> FloatArray:
        """e^{-L} against the far records, had all noise been smaller."""
        usual, shrunk = reports[:, 1], reports[:, 2]
        part = min(violation, 1.0) / _QUIETER  # a straight line goes that far
        return np.asarray(np.exp(np.clip(-(usual + (shrunk - usual) * part), -50, 50)))


def worst_neighbors(
    conversation: Conversation[Any], n: int, *, steps: int = 30, seed: int = 0
) -> tuple[Records, Records]:
    """Climb from the conversation's own neighbors to records that all its looks tell apart."""
    rng = np.random.default_rng(seed)
    best = conversation.neighbors(n)
    most = spent(conversation, best)
    for step in range(steps):
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
    """About what part of the announced budget a pair uses: Σ ε_i or √Σ μ_i², over one course."""
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
    goal: float = 0.05
