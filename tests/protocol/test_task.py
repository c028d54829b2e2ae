"""Every task type: round trips, rows, refusals, and the bits it promises."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import dpfda.protocol.tasks  # noqa: F401 (registers the task types)
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.price import compose, exact
from dpfda.protocol.query import Answer
from dpfda.protocol.task import Task, check_reply
from dpfda.protocol.tasks.questions import (
    EvaluationTask,
    MemberTask,
    StumpTask,
    verdict_epsilon,
)
from dpfda.protocol.tasks.vector import MomentTask, VectorTask

N, D = 6, 3
RNG = np.random.default_rng(0)


def linear_rows(people: int) -> dict[str, np.ndarray]:
    return {
        "intercept": RNG.normal(size=(people, 1)),
        "coefficients": RNG.normal(size=(people, 1, D)),
        "centers": np.zeros((people, 1, D)),
        "scales": np.ones((people, 1, D)),
    }


def example(name: str, *, epsilon: float = 1.5, people: int = N) -> Task:
    whole = {"positive": np.ones(people, dtype=int)}
    parts: dict[str, dict[str, object]] = {
        "vector": {"dimension": D},
        "evaluation": linear_rows(people),
        "member": linear_rows(people)
        | {"member": np.arange(people)[:, None] % 2, "positive": np.ones((people, 1, 1), int)},
        "moment": {"dimension": D, **whole},
        "stump": {
            "coordinates": RNG.integers(0, D, (people, 2)),
            "thresholds": RNG.uniform(-1, 1, (people, 2)),
            **whole,
        },
        "confidence": linear_rows(people)
        | {
            "variances": np.full((people, 1, 1 + D), 0.1),
            "damping": 0.7,
            "dithers": RNG.uniform(-1, 1, (people, 2)),
        },
        "summary": {
            "statistic": "products",
            "classes": 2,
            "centers": np.zeros(D),
            "scales": np.ones(D),
            "clip": 2.0,
            "matrix": RNG.normal(size=(2, D)),
            "offsets": np.zeros((1, 2)),
            "limit": 1.5,
        },
    }
    return Task.named(name)(epsilon=epsilon, people=people, **parts[name])


KNOWN = ["vector", "evaluation", "member", "moment", "stump", "confidence", "summary"]
PEOPLE = RNG.uniform(-1, 1, (N, D)), np.arange(N) % 2


@pytest.mark.parametrize("name", KNOWN)
class TestEveryTask:
    def test_survives_json(self, name: str) -> None:
        task = example(name)
        again = Task.from_dict(json.loads(json.dumps(task.to_dict())))
        assert type(again) is type(task)
        assert again.digest == task.digest
        first, second = (one.answer(PEOPLE, SimulationSource(1)).values for one in (task, again))
        np.testing.assert_array_equal(first, second)

    def test_answers_are_possible_outputs(self, name: str) -> None:
        task = example(name)
        reply = task.answer(PEOPLE, SimulationSource(2)).values
        assert check_reply(task, reply).shape == (N, task.width)

    def test_rows_ask_the_same_of_some(self, name: str) -> None:
        task = example(name)
        mask = np.array([True, False, True, False, False, True])
        by_mask, by_index = task.rows(mask), task.rows([0, 2, 5])
        assert by_mask.people == 3
        assert by_mask.to_dict() == by_index.to_dict()
        reply = by_mask.answer((PEOPLE[0][mask], PEOPLE[1][mask]), SimulationSource(3)).values
        assert reply.shape == (3, task.width)

    def test_records_never_decide_whether_a_reply_leaves(self, name: str) -> None:
        task = example(name)
        for value in (37.25, np.nan, np.inf, -1e308):
            secret = PEOPLE[0].copy()
            secret[0, 0] = value
            reply = task.answer((secret, PEOPLE[1]), SimulationSource(0)).values
            assert check_reply(task, reply).shape == (N, task.width)
        with pytest.raises(ProtocolError):
            task.answer((PEOPLE[0][:2], PEOPLE[1]), SimulationSource(0))

    def test_impossible_replies_are_refused(self, name: str) -> None:
        task = example(name)
        good = task.answer(PEOPLE, SimulationSource(4)).values
        others = (good.astype(complex), good.astype(str), good.astype(object), "reply", None)
        for bad in (good[:2], good[:, :-1], good * np.nan, [[1.0], [1.0, 2.0]], *others):
            with pytest.raises(ProtocolError):
                check_reply(task, bad)

    def test_costs_what_its_mechanisms_cost(self, name: str) -> None:
        task = example(name)
        assert compose([task.event]).epsilon <= exact(task.epsilon)
        assert task.mechanism.epsilon == pytest.approx(task.epsilon)

    def test_unknown_parameters_are_refused(self, name: str) -> None:
        with pytest.raises(InvalidParameter, match="backdoor"):
            Task.from_dict(example(name).to_dict() | {"backdoor": 1})


def test_all_task_types_are_tested() -> None:
    here = {
        name: member
        for name, member in Task.members().items()
        if member.__module__.startswith("dpfda.protocol")
    }
    assert sorted(here) == sorted(KNOWN)


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ({"intercept": np.zeros((N - 1, 1))}, "intercept"),
        ({"scales": np.full((N, 1, D), np.inf)}, "scales"),
        ({"coefficients": [["a"]] * N}, "coefficients"),
    ],
)
def test_malformed_candidates_are_refused(rows, name: str) -> None:
    with pytest.raises(InvalidParameter, match=name):
        EvaluationTask(epsilon=1.0, people=N, **linear_rows(N) | rows)


def test_a_verdict_is_about_the_candidate() -> None:
    """At a huge ε the bit is the truth: right where the sign of the score is the label."""
    task = example("evaluation", epsilon=30.0, people=500)
    features, labels = RNG.uniform(-1, 1, (500, D)), RNG.integers(0, 2, 500)
    scores = np.einsum("nd,nd->n", features, task.coefficients[:, 0]) + task.intercept[:, 0]
    truth = np.where((scores >= 0) == (labels == 1), 1.0, -1.0)
    # Randomized response keeps the bit with probability 1 - 3e-10 at its largest odds.
    reply = task.answer((features, labels), SimulationSource(5)).values
    np.testing.assert_array_equal(reply[:, 0], truth)


def test_several_scores_let_the_largest_win() -> None:
    task = EvaluationTask(
        epsilon=30.0, people=2, intercept=[[0.0, 1.0, 0.5]] * 2,
        coefficients=np.zeros((2, 3, D)), centers=np.zeros((2, 3, D)), scales=np.ones((2, 3, D)),
    )  # fmt: skip
    reply = task.answer((PEOPLE[0][:2], np.array([1, 2])), SimulationSource(6)).values
    assert reply[:, 0].tolist() == [1.0, -1.0]


def test_a_member_task_says_which_member() -> None:
    task = example("member")
    assert isinstance(task, MemberTask)
    assert task.rows([1, 2]).member.tolist() == [[1], [0]]
    assert json.loads(json.dumps(task.to_dict()))["member"] == [[0], [1], [0], [1], [0], [1]]


def test_several_members_are_judged_one_by_one_with_equal_parts_of_epsilon() -> None:
    z, y = np.array([[0.5, -0.5], [-0.5, 0.5]]), np.array([1, 0])
    slopes = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    task = MemberTask(
        epsilon=0.7, people=2, intercept=np.zeros((2, 3)), coefficients=np.tile(slopes, (2, 1, 1)),
        centers=np.zeros((2, 3, 2)), scales=np.ones((2, 3, 2)), member=[[0, 1, 2]] * 2,
        positive=[[[1], [1], [0]]] * 2,
    )  # type: ignore[arg-type]  # fmt: skip
    assert task.exact((z, y), SimulationSource(0)).tolist() == [[1, -1, 1], [1, -1, 1]]
    epsilons = [part.epsilon for part in task.mechanism.parts]
    assert epsilons == [verdict_epsilon(0.7, 3)] * 3
    assert exact(0.7) * Fraction(999, 1000) < compose([task.event]).epsilon <= exact(0.7)


def fields(positive: int) -> dict[str, object]:
    return {"epsilon": 1.0, "people": N, "positive": [positive] * N}


def test_a_moment_is_the_signed_curve() -> None:
    features, labels = PEOPLE
    task = MomentTask(dimension=2, **fields(1))
    signs = np.array([1.0 if label == 1 else -1.0 for label in labels])
    assert set(signs) == {-1.0, 1.0}
    np.testing.assert_array_equal(
        task.exact(PEOPLE, SimulationSource(0)), features[:, :2] * signs[:, None]
    )


def test_a_stump_asks_about_its_coordinates() -> None:
    task = StumpTask(coordinates=[[0, 2]] * N, thresholds=[[0.0, 0.1]] * N, **fields(1))
    assert task.columns == 3
    with pytest.raises(ProtocolError, match="3 features"):
        task.fitting((PEOPLE[0][:, :2], PEOPLE[1]))


class Fragile(MomentTask):
    """Cannot be computed for some people."""

    def exact(self, records, source):
        if (records[0] == 0.5).any():
            raise ValueError("a private value is in here")
        return super().exact(records, source)


def test_who_cannot_be_computed_is_blank_and_stops_nobody() -> None:
    features = np.array([[0.1, 0.2], [0.5, 0.5], [0.3, -0.4]])
    labels = np.array([1, 1, 0])
    task = Fragile(epsilon=1.0, people=3, positive=[1] * 3, dimension=2)
    (blank,) = task.blank
    found = task._computed((features, labels), SimulationSource(0))
    np.testing.assert_array_equal(found, [[0.1, 0.2], blank, [-0.3, 0.4]])
    assert task.answer((features, labels), SimulationSource(0)).values.shape == (3, 2)


def test_likelihoods_are_those_of_the_mechanism() -> None:
    """Replies of one number and of several; the sum over people."""
    keep = 1 / (1 + math.exp(-1.5))
    task = example("evaluation")
    true = task.exact(PEOPLE, SimulationSource(0))
    told = Answer(values=np.append(-true[:1], true[1:])[:, None], n=N)
    stated = task.log_likelihood(told, PEOPLE, SimulationSource(0))
    assert stated == pytest.approx(math.log(1 - keep) + (N - 1) * math.log(keep), rel=1e-6)
    task = MomentTask(dimension=2, mechanism_name="laplace", **fields(1))
    true = task.exact(PEOPLE, SimulationSource(0))
    exact, off = (
        task.log_likelihood(Answer(values=values, n=N), PEOPLE, SimulationSource(0))
        for values in (true, true + 1.0)
    )
    # 2 N numbers, each one off by 1 in scales of 2d/ε = 4.
    assert exact - off == pytest.approx(2 * N / 4, rel=1e-5)


def test_vector_budget_split() -> None:
    task = VectorTask(epsilon=1.0, people=1, dimension=D, label_share=0.25)
    assert [part.epsilon for part in task.mechanism.parts] == [0.75, 0.25]
    for protects in ("features", "labels"):
        whole = VectorTask(epsilon=1.0, people=1, dimension=D, protects=protects)
        assert [part.epsilon for part in whole.mechanism.parts] == [1.0]
        assert whole.assumptions
