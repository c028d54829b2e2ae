"""What a holder refuses, guard by guard, with nothing spent and nothing drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda.central.functions import as_grid
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.queries import BallMean
from dpfda.curves import CurveEncoder
from dpfda.errors import (
    AlreadySpent,
    BudgetExceeded,
    InvalidData,
    InvalidParameter,
    ProtocolError,
)
from dpfda.noise import SimulationSource
from dpfda.privacy.cost import Cost, limit
from dpfda.privacy.events import PureEvent
from dpfda.privacy.guarantee import NUMBER_IS_PUBLIC
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.consortium import convene
from dpfda.protocol.holder import Curator, Gatherer, Stream
from dpfda.protocol.person import Crowd, Person
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.query import Answer, Query
from dpfda.protocol.tasks.vector import MomentTask, VectorTask

ROWS = np.random.default_rng(0).normal(0, 0.1, (6, 2))
HALF = Cost(epsilon=1.0).part(0.5)


def look(n: int = 6, **other: Any) -> BallMean:
    return BallMean(
        cost=other.pop("cost", HALF), n=n, center=np.zeros(2), axes=np.ones(2), radius=1.0, **other
    )


class Silent:
    """A source from which nothing may be drawn."""

    sampler = "simulation"

    def words(self, count: int) -> np.ndarray:
        raise AssertionError("noise was drawn")


def holder(kind: Any = Curator, *, source: Any = None, ledger: Any = None, **other: Any) -> Any:
    given = {"most": limit(epsilon=1.0, delta=0.0), "accepts": iter([NUMBER_IS_PUBLIC])} | other
    records = ((ROWS,),) if kind is Curator else ()
    return kind(*records, source=source or SimulationSource(0), ledger=ledger, **given)


class Assuming(BallMean):
    """Rests on two assumptions."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        return NUMBER_IS_PUBLIC, "the earth is flat"


@pytest.mark.parametrize("kind", [Curator, Stream, Gatherer])
@pytest.mark.parametrize(
    "accepts", [(), (NUMBER_IS_PUBLIC,), ("the earth is flat",), ("the earth", "is flat", "")]
)
def test_what_a_holder_did_not_agree_to_take_for_granted_is_refused(
    kind: Any, accepts: tuple[str, ...]
) -> None:
    """Every assumption of a query, by itself: a holder that accepts one accepts no other."""
    given = {"cost": HALF, "n": 6, "center": np.zeros(2), "axes": np.ones(2), "radius": 1.0}
    asked = Assuming(**given)
    gathered = {"gather": lambda one: (6, one.sums((ROWS,))), "n": 6} if kind is Gatherer else {}
    for agreed, fine in ((accepts, False), ((NUMBER_IS_PUBLIC, "the earth is flat"), True)):
        ledger = Ledger(1.0)
        source = SimulationSource(0) if fine else Silent()
        one = holder(kind, accepts=agreed, ledger=ledger, source=source, **gathered)
        if kind is Stream:
            one.open(asked)
            one.add((ROWS,))
        if fine:
            assert one.answer(asked, number=0).n == 6
            continue
        with pytest.raises(ProtocolError, match="this was not agreed to"):
            one.answer(asked, number=0)
        assert ledger.entries == ()
        assert not one.transcript


@pytest.mark.parametrize("kind", [Curator, Stream])
def test_a_ledger_pays_for_every_look_and_for_nothing_else(kind: Any) -> None:
    ledger = Ledger(1.0)
    held = holder(kind, ledger=ledger)
    for number in range(2):
        question = look()
        if kind is Stream:
            held.open(question)
            held.add((ROWS,))
        held.answer(question, number=number)
        assert ledger.remaining.epsilon == pytest.approx(0.5 * (1 - number))
        assert held.answer(question, number=number) is held.transcript[number].answer
    assert ledger.remaining.epsilon == 0
    assert [entry.assumptions for entry in ledger.entries] == [(NUMBER_IS_PUBLIC,)] * 2


@pytest.mark.parametrize("kind", [Curator, Stream])
def test_a_conversation_that_the_ledger_cannot_pay_is_refused_at_once(kind: Any) -> None:
    ledger = Ledger(0.9)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        holder(kind, ledger=ledger, source=Silent())
    assert ledger.remaining.epsilon == 0.9
    holder(kind, ledger=Ledger(1.0))


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (look(n=5), ProtocolError),
        (look(unit="owner"), ProtocolError),
        (look(cost=Cost(epsilon=2.0)), BudgetExceeded),
        (BallMean(cost=HALF, n=6, center=np.zeros(3), axes=np.ones(3), radius=1.0), ProtocolError),
    ],
    ids=["number", "unit", "price", "width"],
)
def test_a_curator_refuses_before_it_spends(question: Query, error: type[Exception]) -> None:
    ledger = Ledger(1.0)
    curator = holder(ledger=ledger, source=Silent())
    with pytest.raises(error):
        curator.answer(question, number=0)
    assert ledger.remaining.epsilon == 1.0
    assert curator.events == []


def test_questions_come_in_turn() -> None:
    curator = holder()
    with pytest.raises(ProtocolError, match="question 0 is next"):
        curator.answer(look(), number=1)
    curator.answer(look(), number=0)
    with pytest.raises(ProtocolError, match="question 0 differs from"):
        curator.answer(look(cost=Cost(epsilon=1.0).part(0.4)), number=0)
    with pytest.raises(ProtocolError, match="question 1 is next"):
        curator.answer(look(), number=-1)  # the last one, as Python counts


def test_a_stream_answers_the_pass_that_was_made() -> None:
    ledger = Ledger(1.0)
    stream = holder(Stream, ledger=ledger, source=Silent())
    with pytest.raises(InvalidData, match="cannot be computed from sums"):
        stream.open(Query.named("regression_minimizer").examples()[0])
    question = look()
    stream.open(question)
    with pytest.raises(ProtocolError, match="no record was added"):
        stream.answer(question, number=0)
    stream.add((ROWS[:5],))
    with pytest.raises(ProtocolError, match="no record was added"):
        stream.answer(look(), number=0)
    with pytest.raises(ProtocolError, match="6 records"):
        stream.answer(question, number=0)
    assert ledger.remaining.epsilon == 1.0


def test_sums_of_another_number_of_records_are_not_released() -> None:
    question = look()
    with pytest.raises(ProtocolError, match="6 records"):
        question.release(question.sums((ROWS,)), n=7, source=Silent())
    with pytest.raises(InvalidData, match="one length"):
        MeanPair().fitting((ROWS, ROWS[:5]))


def MeanPair() -> Any:
    return next(iter(Query.named("cross_products").examples()))


PLAN = StudyPlan(
    epsilon=1.0,
    n_people=3,
    encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
    classes=("no", "yes"),
    design={"name": "moments"},
)


def task(people: int = 1, **other: Any) -> MomentTask:
    given: dict[str, Any] = {"epsilon": 1.0, "dimension": 2, "positive": [1] * people} | other
    return MomentTask(people=people, **given)


class Dear(MomentTask):
    """Costs more than it says."""

    @property
    def event(self) -> PureEvent:
        return PureEvent(epsilon=2 * self.epsilon)


class Wordy(MomentTask):
    """Answers more than it says."""

    def answer(self, records: Any, source: Any) -> Answer:
        return Answer(values=np.zeros((self.people, self.width + 1)), n=self.people)


class Loose(StudyPlan):
    """Asks about more features than its encoder gives."""

    @property
    def asks(self) -> Any:
        return {"moment": {"epsilon": 1.0, "unit": "person", "dimension": 3, "positive": 1}}


LOOSE = Loose(**{name: getattr(PLAN, name) for name in PLAN.to_dict()})
ONE = {"epsilon": 1.0, "people": 1, "dimension": 2, "positive": [1]}


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (task(2), "for one person"),
        (task(0), "for one person"),
        (task(epsilon=0.5), "epsilon of a moment task must be 1"),
        (look(), "for one person"),
        (VectorTask(epsilon=1.0, people=1, dimension=2), "asks no vector task"),
        (Dear(**ONE), "more than it announced"),
        (task(dimension=3), "3 features"),
    ],
    ids=["two people", "nobody", "cheaper", "a look", "another task", "dearer", "wider"],
)
def test_a_person_answers_the_task_of_the_plan_alone(question: Query, words: str) -> None:
    ledger, plan = Ledger(5.0), LOOSE if "features" in words else PLAN
    person = Person(plan, curve=[0.1, 0.2], label="yes", ledger=ledger, source=Silent())
    with pytest.raises((ProtocolError, BudgetExceeded), match=words):
        person.answer(question)
    assert ledger.remaining.epsilon == 5.0


def test_no_reply_of_another_shape_leaves() -> None:
    person = Person(PLAN, curve=[0.1, 0.2], label="yes", ledger=Ledger(1.0))
    with pytest.raises(ProtocolError, match=r"shape \(1, 2\), got \(1, 3\)"):
        person.answer(Wordy(**ONE))


def crowd(source: Any = None) -> Crowd:
    features, labels = np.zeros((9, 2)), np.zeros(9, dtype=np.int64)
    return Crowd(
        PLAN,
        lambda start, stop: (features[start:stop], labels[start:stop]),
        source=source or SimulationSource(0),
    )


def test_everybody_in_a_crowd_answers_once() -> None:
    people = crowd()
    assert people.answer(task(2), number=0).values.shape == (2, 2)
    with pytest.raises(AlreadySpent):
        people.answer(task(), number=0)
    with pytest.raises(ProtocolError, match="3 people"):
        people.answer(task(2))
    assert people.answer(task()).values.shape == (1, 2)
    assert people.asked == 3


@pytest.mark.parametrize(
    "question",
    [task(epsilon=2.0), task(epsilon=0.5), Dear(**ONE), look()],
    ids=["more", "less", "dearer", "a look"],
)
def test_a_crowd_answers_the_tasks_of_the_plan_alone(question: Query) -> None:
    with pytest.raises((ProtocolError, BudgetExceeded)):
        crowd(Silent()).answer(question)


def test_people_are_moved_into_the_box() -> None:
    rows = np.array([[3.0, -0.5], [-np.inf, np.nan]])
    inside, labels = task(2).fitting((rows, np.array([1, 0])))
    assert inside.tolist() == [[1.0, -0.5], [-1.0, 0.0]]
    assert labels.tolist() == [1, 0]
    for wrong in ((rows,), (rows[:, :1], [1, 0]), (rows[:1], [1]), (rows, [1]), (rows[0], [1, 0])):
        with pytest.raises(ProtocolError):
            task(2).fitting(wrong)


def test_sites_pay_from_their_own_ledgers_alone() -> None:
    mean = MeanRelease(
        epsilon=1.0,
        delta=1e-6,
        n=90,
        bound=2.0,
        grid=as_grid(np.linspace(0, 1, 5)),
        mechanism=FunctionMechanism.named("adaptive")(),
    )
    (held,) = mean.records(np.random.default_rng(1).normal(0, 0.1, (90, 5)))
    hospitals = {name: (part,) for name, part in zip("ABC", np.array_split(held, 3), strict=True)}
    with pytest.raises(InvalidParameter, match="ledgers"):
        convene(mean, hospitals, source=SimulationSource(0), ledgers={"D": Ledger(1.0)})
    mine = Ledger(2.0, limit_delta=1e-5)
    convene(mean, hospitals, source=SimulationSource(0), colluders=1, ledgers={"A": mine})
    assert mine.remaining.epsilon < 2.0
