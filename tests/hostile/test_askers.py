"""Whoever writes queries learns nothing from whether, how and with what words they are refused."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hostile.parties import HostileAsker, seeded

from dpfda.central.queries import BallMean
from dpfda.curves import CurveEncoder
from dpfda.privacy.cost import Cost
from dpfda.privacy.guarantee import NUMBER_IS_PUBLIC
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import compose
from dpfda.protocol import Server, StudyPlan
from dpfda.protocol.holder import Curator, Holder, Stream
from dpfda.protocol.person import Person
from dpfda.protocol.query import AdditiveQuery, DatasetQuery, Query

DESIGNS: tuple[dict[str, Any], ...] = (
    {"name": "moments"},
    {"name": "mrma", "n_classifiers": 3, "member_size": 5},
    {"name": "answers"},
    {"name": "vectors"},
)
CURVES = ([0.2, -0.4, 0.9], [-1.0, 1.0, 1.0], [np.nan, 5e300, -np.inf], [0.0, 0.0, 0.0])


def study(design: dict[str, Any]) -> StudyPlan:
    return StudyPlan(
        epsilon=1.0,
        n_people=60,
        encoder=CurveEncoder("identity", n_basis=3, rescale="clip", scale=1.0),
        classes=("no", "yes"),
        design=design,
    )


def person(plan: StudyPlan, curve: Any, label: str, ledger: Ledger) -> Holder:
    return Person(plan, curve=curve, label=label, ledger=ledger, source=seeded())


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design["name"])
def test_a_collector_learns_nothing_from_refusals(design: dict[str, Any]) -> None:
    plan = study(design)
    collector = HostileAsker(Server(plan).issue(1))
    people = [
        partial(person, plan, curve, label) for curve in CURVES for label in ("no", "yes", "HIV")
    ]
    answered = 0
    for told, body in collector.messages():
        outcomes = {collector.ask(victim, body) for victim in people}
        assert len(outcomes) == 1, told
        outcome = outcomes.pop()
        # One question, one price; a refusal costs nothing.
        assert outcome.spent == (outcome.seen[0] == "answer"), told
        answered += outcome.spent
    assert answered >= 1


LOOKS = [
    pytest.param(member.examples()[0], id=name)
    for name, member in Query.members().items()
    if issubclass(member, DatasetQuery)
]


def curator(query: DatasetQuery, records: Any, ledger: Ledger) -> Holder:
    return Curator(
        records,
        most=compose([query.event]),
        source=seeded(),
        unit=query.unit,
        accepts=(NUMBER_IS_PUBLIC, *query.assumptions),
        ledger=None,
    )


@pytest.mark.parametrize("query", LOOKS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_an_analyst_learns_nothing_from_refusals(query: DatasetQuery, data: Any) -> None:
    analyst = HostileAsker(query)
    told, body = data.draw(st.sampled_from(list(analyst.messages())), label="message")
    rng = np.random.default_rng(0)
    usual = query.trial(rng)
    held = [usual, *(query.trial(rng, size=size) for size in (0.0, 1e3, 1e300))]
    broken = tuple(column.copy() for column in usual)
    for column in broken:
        if column.dtype.kind == "f":
            column[0] = np.nan
    outcomes = {analyst.ask(partial(curator, query, records), body) for records in (*held, broken)}
    assert len(outcomes) == 1, told


@pytest.mark.parametrize("query", LOOKS)
def test_a_stream_answers_only_what_was_summed(query: DatasetQuery) -> None:
    if not isinstance(query, AdditiveQuery):
        return
    holder = Stream(
        most=compose([query.event]),
        source=seeded(),
        unit=query.unit,
        accepts=(NUMBER_IS_PUBLIC, *query.assumptions),
    )
    records = query.trial(np.random.default_rng(0))
    holder.open(query)
    holder.add(records)
    first = holder.answer(query, number=0)
    assert holder.answer(query, number=0) is first
    holder.open(query)
    holder.add(records)
    with pytest.raises(Exception, match="announced"):
        holder.answer(query, number=1)


class Slow(Ledger):
    """A ledger on a slow disk: whoever asks at the same time has time to be let through."""

    def spend(self, *args: Any, **more: Any) -> Any:
        time.sleep(0.2)
        return super().spend(*args, **more)


def test_analysts_who_ask_at_once_get_no_more_than_was_announced() -> None:
    query = BallMean(cost=Cost(epsilon=1.0), n=5, center=[0.0], axes=[1.0], radius=1.0)
    holder = Curator(
        (np.zeros((5, 1)),),
        most=compose([query.event]),
        source=seeded(),
        accepts=(NUMBER_IS_PUBLIC,),
        ledger=Slow(9.0),
    )
    with ThreadPoolExecutor(4) as analysts:
        answers = list(analysts.map(lambda _: holder.answer(query, number=0), range(4)))
    assert all(answer is answers[0] for answer in answers)
    assert len(holder.transcript) == 1
