"""All cases of `dpfda audit --all`, found through the registries."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from dpfda.checks import load_all
from dpfda.checks.attacks import (
    Case,
    QueryAttack,
    TranscriptAttack,
    conversation_attack,
    query_attack,
)
from dpfda.checks.conversations import Rehearsal
from dpfda.curves import CurveEncoder
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.exponential import Exponential
from dpfda.noise import SimulationSource, Source
from dpfda.privacy.audit import GOAL, PILOT, AuditResult, audit
from dpfda.privacy.events import GaussianEvent
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import Server, StudyPlan
from dpfda.protocol.conversation import Conversation, converse
from dpfda.protocol.holder import Holder
from dpfda.protocol.person import Person
from dpfda.protocol.query import Query, Records

RECORDS = 250
"""In the data sets that conversations are audited about."""
_WHOLE = 0.25  # violation of a whole conversation that is seen
_SMALL = 0.3  # ε
_FEW = 100  # of them find an event
_RUNS = 0.0008  # conversations are slow: this part of a mechanism's draws
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
"""Designs, people and classes (0: a number), such that every phase has somebody."""


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
    """Attack a mechanism, or what `checks.attacks` makes of queries and conversations."""
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
    """The relative violation that is to be seen; a small ε is hard to see, and so are choices."""
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
    """The first person of every phase of every study, in a server's state that others left."""
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
    """The first of those that ask the same kinds of questions."""
    found: dict[tuple[str, ...], tuple[int, Conversation[Any]]] = {}
    for number, conversation in enumerate(examples):
        holder = Rehearsal(conversation, RECORDS)
        converse(conversation, lambda query, place: holder.answer(query, number=place))  # noqa: B023
        course = tuple(exchange.query.name for exchange in holder.transcript)
        found.setdefault(course, (number, conversation))
    return list(found.values())
