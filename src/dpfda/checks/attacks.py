"""All cases of `dpfda audit --all`: queries and conversations, attacked through their holders.

No algorithm is copied here. An attack first checks that the answers of the data holder equal the
draws of its mechanism from the same random words, bit for bit. After that it draws many reports
directly from the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.regression.perturbation import TiltedQuery
from dpfda.checks import expect, load_all
from dpfda.checks.conversations import Rehearsal
from dpfda.checks.queries import Counting, distance, exact_answer, losses, search
from dpfda.curate import curate
from dpfda.curves import CurveEncoder
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.exponential import Exponential
from dpfda.noise import SimulationSource, Source
from dpfda.privacy.audit import GOAL, PILOT, AuditResult, audit
from dpfda.privacy.calibration import gaussian_epsilon, gaussian_mu
from dpfda.privacy.events import Event, GaussianEvent
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import compose, rounded_up
from dpfda.protocol import Server, StudyPlan
from dpfda.protocol.conversation import Conversation, converse
from dpfda.protocol.holder import Curator, Holder
from dpfda.protocol.person import Person
from dpfda.protocol.query import Answer, Query, Records
from dpfda.protocol.task import Task

Pairs = list[tuple[FloatArray, FloatArray]]
Holding = Callable[[Records, Source], Holder]
_DELTA = 0.01  # δ at which a Gaussian price is converted to ε
_STEPS = 30  # steps of hill climbing to worse neighbors
_SEEDS = 20  # seeds for which answers are compared bit for bit
_FIRST, _SECOND = np.zeros((1, 1)), np.ones((1, 1))


def priced(event: Event) -> tuple[Guarantee, float | None]:
    """The price of an event as a claim: ε, and μ if it is Gaussian."""
    if isinstance(event, GaussianEvent):
        epsilon = gaussian_epsilon(delta=_DELTA, multiplier=event.multiplier)
        return Guarantee(epsilon=epsilon, delta=_DELTA), 1 / event.multiplier
    price = compose([event])
    return Guarantee(epsilon=rounded_up(price.epsilon), delta=float(price.delta)), None


def curator(query: Query, records: Records, source: Source) -> Holder:
    """A curator who has accepted and answered one query."""
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
    """An attack on one query, at the worst neighbors that a search finds.

    Args:
        query: the query.
        holding: creates a data holder of records; without one, tasks are answered directly.
        labels: number of labels of such a holder.
    """

    def __init__(
        self, query: Query, holding: Holding | None = None, *, labels: int | None = None
    ) -> None:
        self.query, self.mechanism = query, query.mechanism
        self.guarantee, self.mu = priced(query.event)
        # The mechanism of a task accepts any input, so a short search is sufficient.
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
        """Check that the holder sends exactly what the mechanism draws."""
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

        A mechanism that is not additive is attacked at its own worst inputs too, although a query
        may not reach them. The holder uses the same mechanism.
        """
        if self.draws_inside:
            return [(_FIRST, _SECOND)]
        own = [] if isinstance(self.mechanism, Additive) else self.mechanism.worst_cases()[:1]
        return [(self.exact[0], self.exact[1]), *own]

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """Answers about the same records, one per row of `values`."""
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

    A report describes a whole transcript. Its first number is the loss ln p(transcript | first
    records) - ln p(transcript | second records), which an attacker who knows everything else can
    compute. Then follow the depth and the shape of its distribution (`privacy.audit.Fit`), and the
    first numbers of the answers.

    Args:
        asked: returns a holder of given records after the whole conversation.
        sides: the two data sets.
        guarantee, mu: the claim.
    """

    depth_shape = 1.0  # not 0; the actual shape is part of each report

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
        """The numbers of the two data sets."""
        return [(_FIRST, _SECOND)]

    def randomize(self, values: FloatArray, source: Source) -> FloatArray:
        """Transcripts, one per row of `values`."""
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
        """The log-likelihood, up to a term that is common to both sides."""
        sign = 0.5 if not np.ravel(values)[0] else -0.5
        return np.asarray(sign * reports[:, 0])

    def depths(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Depths of all noise in each transcript."""
        return reports[:, 1:3]


def _loss_and_depth(query: Query, answer: Answer, own: Records, other: Records) -> FloatArray:
    """Privacy loss of one answer about `own`, its depth, and the shape of the depth."""
    if isinstance(query, TiltedQuery):  # this query draws inside its computation
        source = SimulationSource(0)
        here, there = (query.log_likelihood(answer, side, source) for side in (own, other))
        return np.array([here - there, *query.depth(answer, own)])
    mechanism, sent = query.mechanism, answer.values[None]
    one, two = (exact_answer(query, side) for side in (own, other))
    lost = losses(mechanism, sent, one, two)
    depths = mechanism.depths(sent, one)[0] if mechanism.depth_shape else np.zeros(2)
    return np.concatenate([lost, depths])


def conversation_attack(conversation: Conversation[Any], n: int) -> QueryAttack | TranscriptAttack:
    """The attack on a whole conversation; if it is a single sum, reports are drawn in batches."""

    def asked(rows: Records, source: Source) -> Holder:
        # Like `curate`, but without its tally, because invented records cost nobody anything.
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
    """Approximate share of the announced budget that a pair of data sets uses: Σ ε_i or √Σ μ_i²."""
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
    """One audit case, created when it is run.

    Attributes:
        kind: mechanism, query, study or conversation.
        name: name of the case.
        make: creates the object to attack.
        goal: the relative violation that the audit should detect.
    """

    kind: str
    name: str
    make: Callable[[], Any]
    goal: float


RECORDS = 250
"""Number of records in audits of conversations."""
_WHOLE = 0.25  # violation of a whole conversation to detect
_SMALL = 0.3  # ε below which a coarser goal is used
_FEW = 100  # pilot draws that select an event
_RUNS = 0.0008  # share of draws for conversations, which are slow
_STUDIES: tuple[tuple[dict[str, Any], int, int], ...] = (
    ({"name": "moments"}, 400, 2),
    ({"name": "mrma"}, 400, 2),
    ({"name": "mrma"}, 400, 3),
    ({"name": "mrma_stream"}, 400, 2),
    ({"name": "answers", "evaluation_share": 0.1, "temperature_share": 0.1}, 400, 2),
    ({"name": "answers", "evaluation_share": 0.1, "spread_differs": True}, 400, 2),
    ({"name": "vectors", "evaluation_share": 0.1, "temperature_share": 0.1}, 4000, 2),
    ({"name": "vectors", "spread_differs": True}, 4000, 2),
    ({"name": "vectors"}, 4000, 3),
    ({"name": "vector_numbers", "evaluation_share": 0.1}, 4000, 0),
)
"""Designs, people and classes (0: a number), such that every phase has participants."""


def audit_cases() -> list[Case]:
    """Every mechanism, every query through its holder, every study, every whole conversation."""
    load_all()
    return [*_mechanisms(), *_queries(), *_studies(), *_conversations()]


def run(case: Case, *, draws: int, source: Source) -> AuditResult:
    """Attack one case."""
    name = f"{case.kind}: {case.name}"
    return attacked(case.make(), name, draws=draws, source=source, goal=case.goal)


def attacked(
    subject: Mechanism | QueryAttack | TranscriptAttack,
    name: str,
    *,
    draws: int,
    source: Source,
    goal: float = GOAL,
) -> AuditResult:
    """Audit a mechanism, or the attack on a query or conversation."""
    slow = isinstance(subject, TranscriptAttack)
    event = getattr(subject, "event", None)
    mu = 1 / event.multiplier if isinstance(event, GaussianEvent) else getattr(subject, "mu", None)
    return audit(
        subject,
        name=name,
        draws=max(1000, int(_RUNS * draws)) if slow else draws,
        source=source,
        mu=mu,
        depths=subject.depths if subject.depth_shape else None,
        goal=goal,
        pilot=_FEW if slow else PILOT,
    )


def _mechanisms() -> Iterator[Case]:
    for member in Mechanism.members().values():
        for example in member.examples():
            yield Case("mechanism", _label(example), partial(copy, example), _goal(example))


def _goal(mechanism: Mechanism) -> float:
    """The relative violation to detect; coarser for a small ε and for choices."""
    coarse = isinstance(mechanism, Exponential) or mechanism.epsilon < _SMALL
    return 0.1 if coarse else GOAL


def _label(mechanism: Mechanism) -> str:
    parameters = mechanism.to_dict()
    name = parameters.pop("name")
    return f"{name}({', '.join(f'{key}={value}' for key, value in parameters.items())})"


def _queries() -> Iterator[Case]:
    for name, member in Query.members().items():
        for number, query in enumerate(member.examples()):
            goal = _WHOLE if query.inside else _goal(query.mechanism)
            yield Case("query", f"{name} {number}", partial(query_attack, query), goal)


def _studies() -> Iterator[Case]:
    """The first person of every phase of every study, after the replies of earlier phases."""
    seen = set()
    for design, people, classes in _STUDIES:
        plan = StudyPlan(
            epsilon=1.0,
            n_people=people,
            encoder=CurveEncoder("identity", n_basis=3, rescale="clip", scale=1.0),
            classes=tuple(range(classes)),
            target_range=None if classes else (-1.0, 1.0),
            design=design,
        )
        server = Server(plan)
        source, rng = SimulationSource(0), np.random.default_rng(0)
        while not server.finished:
            start, phase = server.issued, server.kind
            task = server.issue(server.wanted)
            title = f"{design['name']}, {phase}" + ", several classes" * (classes > 2)
            title += ", distances" * bool(len(getattr(task, "folds", ())))
            if title not in seen:
                seen.add(title)
                known = {"labels": classes or 1}
                make = partial(QueryAttack, task.rows([0]), partial(person, plan), **known)
                yield Case("study", title, make, GOAL)
            z = rng.uniform(-1, 1, (task.people, 3 if classes else 4))
            reply = task.answer((z, (z[:, 0] > 0).astype(np.int64)), source)
            server.receive(reply.values, start=start)


def person(plan: StudyPlan, records: Records, source: Source) -> Holder:
    """A person with these encoded features; features that the task does not use are 0."""
    (features,), (label,) = records
    if plan.target_range is not None:  # the first column, which fills its range
        label, features = features[0], features[1:]
    curve = np.zeros(plan.encoder.n_features)
    curve[: len(features)] = features
    return Person(plan, curve=curve, label=label, ledger=Ledger(plan.epsilon), source=source)


def _conversations() -> Iterator[Case]:
    members: dict[str, Any] = Conversation.members()
    for name, member in members.items():
        for delta in (0.0, 0.05):
            examples = member.examples(n=RECORDS, epsilon=1.0, delta=delta)
            for number, conversation in _courses(examples):
                title = f"{name} {number}, δ = {delta:g}"
                make = partial(conversation_attack, conversation, RECORDS)
                yield Case("conversation", title, make, _WHOLE)


def _courses(examples: list[Conversation[Any]]) -> list[tuple[int, Conversation[Any]]]:
    """The first conversation for each sequence of kinds of queries."""
    found: dict[tuple[str, ...], tuple[int, Conversation[Any]]] = {}
    for number, conversation in enumerate(examples):
        holder = Rehearsal(conversation, RECORDS)
        converse(conversation, lambda query, place: holder.answer(query, number=place))  # noqa: B023
        course = tuple(exchange.query.name for exchange in holder.transcript)
        found.setdefault(course, (number, conversation))
    return list(found.values())
