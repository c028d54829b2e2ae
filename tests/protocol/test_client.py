"""A person's side: one task, one reply, one spend."""

from __future__ import annotations

import numpy as np
import pytest

import dpfda.mrma  # noqa: F401 (registers its designs)
from dpfda.curves import CurveEncoder
from dpfda.errors import AlreadySpent, BudgetExceeded, ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import Client, Server, StudyPlan
from dpfda.protocol.client import encode_people
from dpfda.protocol.tasks.vector import VectorTask


def plan(**changes) -> StudyPlan:
    parts = {
        "epsilon": 1.0, "n_people": 60, "encoder": CurveEncoder(n_basis=4),
        "classes": ("no", "yes"),
        "design": {"name": "mrma", "learner": "logistic", "n_classifiers": 4},
    }  # fmt: skip
    return StudyPlan(**parts | changes)


CURVE = [0.1, 0.4, -0.2, 0.3]


def test_a_whole_study_of_single_people() -> None:
    server = Server(plan())
    ticket = {"report": 0, "evaluate": 0}
    rng = np.random.default_rng(0)
    for person in range(60):
        kind = server.phase_name
        client = Client(plan(), Ledger(limit_epsilon=1.0), rng=SimulationSource(person))
        sign = rng.choice([-1.0, 1.0])
        reply = client.reply(
            server.issue(1), curve=(sign * np.ones(4)).tolist(), label="yes" if sign > 0 else "no"
        )
        server.receive(reply, start=ticket[kind])
        ticket[kind] += 1
        assert client.ledger.remaining.epsilon == 0
    assert server.finished


def test_a_second_task_of_the_same_study_is_refused_whatever_is_left() -> None:
    client = Client(plan(), Ledger(limit_epsilon=100.0))
    server = Server(plan())
    client.reply(server.issue(1), curve=CURVE, label="yes")
    with pytest.raises(AlreadySpent):
        client.reply(server.issue(1), curve=CURVE, label="yes")


def test_another_study_needs_budget() -> None:
    ledger = Ledger(limit_epsilon=1.5)
    for number, allowed in ((0, True), (1, False)):
        study = plan(seed=number)
        client = Client(study, ledger)
        if allowed:
            client.reply(Server(study).issue(1), curve=CURVE, label="no")
        else:
            with pytest.raises(BudgetExceeded):
                client.reply(Server(study).issue(1), curve=CURVE, label="no")
    assert ledger.remaining.epsilon == pytest.approx(0.5)


def test_dear_or_careless_tasks_are_refused_before_anything_is_spent() -> None:
    ledger = Ledger(limit_epsilon=100.0)
    client = Client(plan(), ledger)
    tasks = [
        VectorTask(epsilon=1.1, people=1, dimension=4),
        VectorTask(epsilon=1.0, people=1, dimension=4, protects="features"),
        VectorTask(epsilon=1.0, people=2, dimension=4),
    ]
    for task in tasks:
        with pytest.raises(ProtocolError):
            client.reply(task, curve=CURVE, label="yes")
    assert ledger.remaining.epsilon == 100.0


@pytest.mark.parametrize(
    "curve", [[np.nan] * 4, [], [np.inf, 0, 0, 0], "noise", ([0.5], [np.nan]), None, [[1, 2], [3]]]
)
def test_an_unusable_curve_still_reports(curve: object) -> None:
    """Refusing would reveal something; the reply looks like any other."""
    client = Client(plan(), Ledger(limit_epsilon=1.0))
    reply = client.reply(Server(plan()).issue(1), curve=curve, label="yes")
    assert reply.shape == (1, 5)
    assert np.isfinite(reply).all()


@pytest.mark.parametrize("label", ["maybe", 1, None, np.nan, 2.5, ("yes",)])
def test_an_unknown_label_still_reports(label: object) -> None:
    client = Client(plan(), Ledger(limit_epsilon=1.0))
    assert client.reply(Server(plan()).issue(1), curve=CURVE, label=label).shape == (1, 5)


def test_labels_become_numbers() -> None:
    _, numbers = encode_people(plan(), np.zeros((3, 4)), ["yes", "no", "other"])
    assert numbers.tolist() == [1, 0, 0]
    _, numbers = encode_people(plan(classes=(-1, 1)), np.zeros((2, 4)), np.array([1.0, -1.0]))
    assert numbers.tolist() == [1, 0]


def test_own_grids() -> None:
    study, points = plan(), np.linspace(0, 1, 9)
    server = Server(study)
    for curve, grid in (((points, points**2), None), (points**2, points)):
        client = Client(study, Ledger(limit_epsilon=1.0))
        reply = client.reply(server.issue(1), curve=curve, label="no", grid_points=grid)
        assert np.isfinite(reply).all()
