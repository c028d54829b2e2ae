"""Owners answer once; messages are plain values; what comes back is checked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpfda.boosting.feature_map import FeatureMap
from dpfda.boosting.gradient_user import GradientUser
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.requests import Request
from dpfda.boosting.roles import Crowd, Owner, Replies, run
from dpfda.errors import AlreadySpent, BudgetExceeded, InvalidData, ProtocolError, UnknownName
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger

NAMES = ["gradient", "sample", "statistic", "classifier", "feedback"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("classes", [2, 3])
def test_requests_survive_json(name, classes, owners, requests):
    request, rows = requests(classes)[name], owners(classes=classes)
    again = Request.from_dict(json.loads(json.dumps(request.to_dict())))
    replies = request.answer(rows, epsilon=2.0, rng=SimulationSource(4))
    assert np.array_equal(replies, again.answer(rows, epsilon=2.0, rng=SimulationSource(4)))
    assert replies.shape == (len(rows), request.width)
    assert json.loads(json.dumps(again.to_dict())) == json.loads(json.dumps(request.to_dict()))


@pytest.mark.parametrize("name", NAMES)
def test_an_owner_answers_once(name, requests):
    owner = Owner([[0.2, 0.1]], [1], epsilon=1.0, ledger=Ledger(10.0), rng=SimulationSource(0))
    message = {"study": "s", "request": requests()[name].to_dict()}
    reply = json.loads(json.dumps(owner.reply(message)))
    assert reply["epsilon"] == 1.0
    assert reply["rows"] == 1
    assert owner.ledger.spent.epsilon == 1.0
    with pytest.raises(AlreadySpent):
        owner.reply(message)
    assert owner.ledger.spent.epsilon == 1.0


def test_an_owner_without_budget_sends_nothing(requests):
    owner = Owner([[0.2, 0.1]], [1], epsilon=2.0, ledger=Ledger(1.0))
    with pytest.raises(BudgetExceeded):
        owner.reply({"study": "s", "request": requests()["gradient"].to_dict()})


@pytest.mark.parametrize("message", [{}, {"study": "", "request": {}}, {"study": "s"}, None, 3])
def test_odd_messages_are_refused_before_anything_is_spent(message):
    owner = Owner([[0.2, 0.1]], [1], epsilon=1.0, ledger=Ledger(1.0))
    with pytest.raises(ProtocolError):
        owner.reply(message)
    assert owner.ledger.spent.epsilon == 0


def test_unknown_requests_are_refused():
    owner = Owner([[0.2, 0.1]], [1], epsilon=1.0, ledger=Ledger(1.0))
    with pytest.raises(UnknownName):
        owner.reply({"study": "s", "request": {"name": "send_everything"}})


def test_a_crowd_answers_once(owners, requests):
    crowd = Crowd(owners(), epsilon=1.0, rng=SimulationSource(0))
    crowd.answer(requests()["gradient"], np.array([0, 1]))
    with pytest.raises(AlreadySpent):
        crowd.answer(requests()["gradient"], np.array([1, 2]))
    with pytest.raises(AlreadySpent):
        crowd.answer(requests()["gradient"], np.array([3, 3]))
    assert crowd.spent.tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize("name", NAMES)
def test_impossible_replies_are_refused(name, requests):
    request = requests()[name]
    sizes = np.ones(1, dtype=np.int64)
    for bad in (np.full((1, request.width), np.nan), np.zeros((1, request.width + 1)), "text"):
        with pytest.raises(ProtocolError):
            request.decode(bad, epsilon=1.0, sizes=sizes)
    if name in ("gradient", "feedback"):
        with pytest.raises(ProtocolError):
            request.decode(np.full((1, request.width), 0.5), epsilon=1.0, sizes=sizes)
        with pytest.raises(ProtocolError):
            request.decode(np.full((1, request.width), 1e9), epsilon=1.0, sizes=sizes)


def test_a_study_by_messages_equals_a_study_in_a_batch():
    """The carrier's way (single owners, JSON) gives the model of the simulation's way."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    rows = OwnerRows.grouped(X, (X[:, 0] > 0).astype(int), groups=np.repeat(np.arange(40), 3))
    reference = rng.normal(size=(100, 2))

    def user():
        return GradientUser(
            "s",
            features=FeatureMap.learnt(reference, products=0),
            reference=reference,
            classes=2,
            owners=40,
            epsilon=4.0,
            rows=3,
            rounds=2,
        )

    carried, batched = user(), user()
    for start in (0, 20):
        message = json.loads(json.dumps(carried.message()))
        replies = []
        for place in range(start, start + 20):
            owner = Owner(
                rows.features[place],
                rows.labels[place],
                epsilon=4.0,
                ledger=Ledger(4.0),
                rng=SimulationSource(place),
            )
            replies.append(json.loads(json.dumps(owner.reply(message))))
        batched.absorb(Replies.collected(replies))
        carried.receive(replies)
    assert carried.wanted == 0
    assert np.array_equal(carried.model.coefficients, batched.model.coefficients)
    assert np.abs(carried.model.coefficients).max() > 0


def test_owners_are_asked_in_order_and_spent_ones_counted(owners):
    rows = owners(10)
    reference = np.random.default_rng(0).normal(size=(50, 2))
    user = GradientUser(
        "s",
        features=FeatureMap.learnt(reference, products=0),
        reference=reference,
        classes=2,
        owners=8,
        epsilon=1.0,
        rows=3,
        rounds=3,
    )
    crowd = Crowd(rows, epsilon=1.0, rng=SimulationSource(0))
    assert run(user, crowd, order=np.arange(10)) == 8
    assert crowd.spent.sum() == 8
    assert [row["owners"] for row in user.history] == [2, 3, 3]


@pytest.mark.parametrize(
    "replies",
    [
        [{"epsilon": 1.0, "rows": 1}],
        [{"epsilon": 0.0, "rows": 1, "values": [1, 2]}],
        [{"epsilon": 1.0, "rows": 0, "values": [1, 2]}],
        [{"epsilon": 1.0, "rows": 1, "values": [1]}, {"epsilon": 1.0, "rows": 1, "values": [1, 2]}],
        ["text"],
    ],
)
def test_damaged_replies_are_refused(replies):
    with pytest.raises(ProtocolError):
        Replies.collected(replies)


def test_single_precision_rows_are_answered(owners, requests):
    rows = owners()
    single = OwnerRows(rows.features.astype(np.float32), rows.labels, rows.present)
    crowd = Crowd(single, epsilon=1.0, rng=SimulationSource(0))
    assert crowd.answer(requests()["statistic"], np.arange(6)).values.shape[0] == 6


def test_rows_are_grouped_whatever_their_order():
    rows = OwnerRows.grouped([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0], groups=[5, 2, 5, 9])
    assert rows.sizes.tolist() == [1, 2, 1]
    assert rows.features[1, :, 0].tolist() == [1.0, 3.0]
    assert rows.labels[1].tolist() == [0, 1]
    with pytest.raises(InvalidData, match="groups"):
        OwnerRows.grouped([[1.0]], [0], groups=[1, 2])


def test_no_private_value_in_reprs_and_errors():
    secret = 0.7654321
    owner = Owner([[secret, 0.0]], [1], epsilon=1.0, ledger=Ledger(1.0))
    assert "7654" not in repr(owner)
    assert "7654" not in repr(OwnerRows.grouped([[secret]], [1]))
    with pytest.raises(InvalidData) as caught:
        Owner([[secret, np.nan]], [1], epsilon=1.0, ledger=Ledger(1.0))
    assert "7654" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_odd_rows_are_refused_before_or_answered_after_the_spend(name, requests):
    message = {"study": "s", "request": requests()[name].to_dict()}
    wide = Owner([[0.2, 0.1, 0.3]], [1], epsilon=1.0, ledger=Ledger(1.0))
    with pytest.raises(ProtocolError, match="2 features"):
        wide.reply(message)
    assert wide.ledger.spent.epsilon == 0
    odd = Owner([[1e308, -1e308], [0.0, 0.0]], [7, -3], epsilon=1.0, ledger=Ledger(1.0))
    assert len(odd.reply(message)["values"]) == requests()[name].width
