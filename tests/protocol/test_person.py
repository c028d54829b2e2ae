"""A person's side: one task, one reply, one spend."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.errors import AlreadySpent, BudgetExceeded, ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import Person, Server, StudyPlan
from dpfda.protocol.person import encode_people, label_numbers, one_curve, target_places
from dpfda.protocol.tasks.vector import VectorTask


def plan(**changes) -> StudyPlan:
    parts = {
        "epsilon": 1.0, "n_people": 60, "encoder": CurveEncoder(n_basis=4),
        "classes": ("no", "yes"),
        "design": {"name": "mrma", "learner": "logistic", "n_classifiers": 4},
    }  # fmt: skip
    return StudyPlan(**parts | changes)


CURVE = [0.1, 0.4, -0.2, 0.3]


def person(
    study: StudyPlan, ledger: Ledger, *, curve: object = CURVE, label: object = "yes", **more
):
    return Person(study, curve=curve, label=label, ledger=ledger, **more)


def test_a_whole_study_of_single_people() -> None:
    server = Server(plan())
    ticket = {"report": 0, "evaluate": 0}
    rng = np.random.default_rng(0)
    for number in range(60):
        kind, ledger = server.kind, Ledger(limit_epsilon=1.0)
        sign = rng.choice([-1.0, 1.0])
        curve, label = (sign * np.ones(4)).tolist(), "yes" if sign > 0 else "no"
        one = person(plan(), ledger, curve=curve, label=label, source=SimulationSource(number))
        server.receive(one.answer(server.issue(1)).values, start=ticket[kind])
        ticket[kind] += 1
        assert ledger.remaining.epsilon == 0
    assert server.finished


def test_a_second_task_of_the_same_study_is_refused_whatever_is_left() -> None:
    ledger, server = Ledger(limit_epsilon=100.0), Server(plan())
    one, task = person(plan(), ledger), server.issue(1)
    first = one.answer(task)
    assert one.answer(task) is first  # a repeat gets the same bytes
    other = VectorTask(epsilon=1.0, people=1, dimension=4, positive=[0])
    with pytest.raises(ProtocolError):
        one.answer(other)
    with pytest.raises(AlreadySpent):
        person(plan(), ledger).answer(task)
    assert len(ledger.entries) == 1


def test_another_study_needs_budget() -> None:
    ledger = Ledger(limit_epsilon=1.5)
    for number, allowed in ((0, True), (1, False)):
        study = plan(seed=number)
        one = person(study, ledger)
        if allowed:
            one.answer(Server(study).issue(1))
        else:
            with pytest.raises(BudgetExceeded):
                one.answer(Server(study).issue(1))
    assert ledger.remaining.epsilon == pytest.approx(0.5)


def test_dear_or_careless_tasks_are_refused_before_anything_is_spent() -> None:
    ledger = Ledger(limit_epsilon=100.0)
    one = person(plan(), ledger)
    tasks = [
        VectorTask(epsilon=1.1, people=1, dimension=4),
        VectorTask(epsilon=1.0, people=1, dimension=4, protects="features"),
        VectorTask(epsilon=1.0, people=2, dimension=4),
    ]
    for task in tasks:
        with pytest.raises(ProtocolError):
            one.answer(task)
    assert ledger.remaining.epsilon == 100.0


def test_what_a_plan_takes_for_granted_must_be_accepted() -> None:
    """Also where no task of the design needs it: what is promised is what the plan says."""
    for design in ({"name": "mrma"}, {"name": "answers"}):
        study, ledger = plan(protects="features", design=design), Ledger(limit_epsilon=1.0)
        task = Server(study).issue(1)
        with pytest.raises(ProtocolError, match="labels are public"):
            person(study, ledger).answer(task)
        with pytest.raises(ProtocolError, match="labels are public"):
            person(study, ledger, accepts=["curves are public"]).answer(task)
        assert not ledger.entries
        person(study, ledger, accepts=["labels are public", "more"]).answer(task)
        assert ledger.entries[0].assumptions == ("labels are public",)


class Watched(SimulationSource):
    """A source that tells what was spent when it was first drawn from."""

    ledger: Ledger
    spent_before: float | None = None

    def words(self, count: int):
        if self.spent_before is None:
            self.spent_before = self.ledger.spent.epsilon
        return super().words(count)


def test_nothing_is_drawn_before_it_is_paid_for() -> None:
    source = Watched(0)
    source.ledger = Ledger(limit_epsilon=1.0)
    person(plan(), source.ledger, source=source).answer(Server(plan()).issue(1))
    assert source.spent_before == pytest.approx(1.0)
    empty = Watched(0)
    empty.ledger = Ledger(limit_epsilon=0.5)
    with pytest.raises(BudgetExceeded):
        person(plan(), empty.ledger, source=empty).answer(Server(plan()).issue(1))
    assert empty.spent_before is None


class Odd:
    """Neither equal to anything nor different, as a missing value of pandas is."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("boolean value is ambiguous")


@pytest.mark.parametrize(
    "curve",
    [
        [np.nan] * 4,
        [],
        [np.inf, 0, 0, 0],
        "noise",
        ([0.5], [np.nan]),
        None,
        [[1, 2], [3]],
        [10**400],
    ],
)
def test_an_unusable_curve_still_reports(curve: object) -> None:
    """Refusing would reveal something; the reply looks like any other."""
    one = person(plan(), Ledger(limit_epsilon=1.0), curve=curve)
    reply = one.answer(Server(plan()).issue(1)).values
    assert reply.shape == (1, 5)
    assert np.isfinite(reply).all()


@pytest.mark.parametrize("label", ["maybe", 1, None, np.nan, 2.5, ("yes",), np.ones(2), Odd()])
def test_an_unknown_label_still_reports(label: object) -> None:
    one = person(plan(), Ledger(limit_epsilon=1.0), label=label)
    assert one.answer(Server(plan()).issue(1)).values.shape == (1, 5)


def test_labels_become_numbers() -> None:
    _, numbers = encode_people(plan(), np.zeros((3, 4)), ["yes", "no", "other"])
    assert numbers.tolist() == [1, 0, 0]
    _, numbers = encode_people(plan(), np.zeros((3, 4)), ["yes", Odd(), "yes"])
    assert numbers.tolist() == [1, 0, 1]
    _, numbers = encode_people(plan(classes=("no", 1)), np.zeros((3, 4)), [1, "HIV", 1])
    assert numbers.tolist() == [1, 0, 1]
    _, numbers = encode_people(plan(classes=(-1, 1)), np.zeros((2, 4)), np.array([1.0, -1.0]))
    assert numbers.tolist() == [1, 0]


@pytest.mark.parametrize(
    "labels",
    [
        ["yes", "no", "yes"],
        np.array(["yes", "no", "yes"]),
        np.array([["yes"], ["no"], ["yes"]]),
    ],
    ids=["list", "array", "column"],
)
def test_labels_come_in_many_forms(labels: object) -> None:
    assert label_numbers(labels, ("no", "yes")).tolist() == [1, 0, 1]
    assert label_numbers(["yes"], np.array(["no", "yes"])).tolist() == [1]


@pytest.mark.parametrize(
    ("curve", "channels", "shape"),
    [
        ([1.0, 2.0, 3.0], 1, (1, 3)),
        ((1.0, 2.0), 1, (1, 2)),
        (np.zeros((3, 2)), 2, (1, 3, 2)),
        (np.zeros((1, 3)), 1, (1, 3)),
        ("no curve", 1, (1, 1)),
    ],
)
def test_one_curve_is_a_batch_of_one(curve: object, channels: int, shape: tuple[int, ...]) -> None:
    assert np.shape(one_curve(curve, channels=channels)) == shape


def test_a_curve_may_say_where_it_was_seen() -> None:
    pair = (np.array([0.0, 1.0]), np.array([3.0, 4.0]))
    assert one_curve(pair) == [pair]
    three = (np.zeros(2), np.zeros(2), np.zeros(2))  # no pair: three curves at two points
    assert np.shape(one_curve(three)) == (3, 2)
    for name in ("grid_points", "columns"):
        known = type("Known", (), {name: ()})()
        assert one_curve(known) is known
    assert one_curve({"age": 3.0}) == {"age": [3.0]}


def test_own_grids() -> None:
    study, points = plan(), np.linspace(0, 1, 9)
    server = Server(study)
    for curve, grid in (((points, points**2), None), (points**2, points)):
        one = person(study, Ledger(limit_epsilon=1.0), curve=curve, grid_points=grid)
        assert np.isfinite(one.answer(server.issue(1)).values).all()


def test_targets_are_placed_in_their_range() -> None:
    assert target_places([10, 15, 30.0, 9, 99], (10, 30)).tolist() == [-1.0, -0.5, 1.0, -1.0, 1.0]
    odd = np.array([-30, "x"], dtype=object)
    for numbers in (np.array([-30, -20]), np.array([-30.0, np.nan]), odd):
        assert target_places(numbers, (-30.0, -10.0)).tolist() == [-1.0, 0.0]
    assert target_places([1.3], (1.3, 11.100000000000001)).tolist() == [-1.0]  # not an ulp beyond


@pytest.mark.parametrize(
    "ends", [(-1.7e308, 1.7e308), (1e308, 1.7e308), (-1.7e308, 0.0), (0.0, 5e-324)]
)
def test_no_range_makes_a_target_what_is_no_number(ends: tuple[float, float]) -> None:
    """A plan may come from anybody; what a person's number is must not show in an error."""
    numbers = [np.inf, -np.inf, np.nan, 3.0, 1.7e308, *ends]
    for targets in ([*numbers, "x", None, 10**400], np.array(numbers)):
        places = target_places(targets, ends)
        assert np.all(np.abs(places) <= 1)
