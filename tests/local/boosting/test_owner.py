"""Owners answer one agreed request, once; nothing about a row decides whether a reply leaves."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dpfda.errors import (
    AlreadySpent,
    BudgetExceeded,
    InvalidData,
    InvalidParameter,
    ProtocolError,
    UnknownName,
)
from dpfda.local.boosting.gradient_requests import FeatureMap
from dpfda.local.boosting.request import Owner, OwnerRows, Owners, Request
from dpfda.noise import SimulationSource
from dpfda.privacy.guarantee import LABELS_ARE_PUBLIC
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import compose
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.task import check_reply

NAMES = ["gradient", "sample", "statistic", "classifier", "feedback"]
ROWS, LABELS = [[0.2, 0.1], [0.5, -0.3]], [0, 1]


def make_owner(plan, *, curve=ROWS, label=LABELS, seed=0, limit=10.0, **arguments):
    return Owner(
        plan,
        curve=curve,
        label=label,
        ledger=Ledger(limit),
        source=SimulationSource(seed),
        **arguments,
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("classes", [2, 3])
def test_requests_survive_json(name, classes, owners, request_of):
    request, rows = request_of(name, people=6, classes=classes), owners(classes=classes)
    again = Request.from_dict(json.loads(json.dumps(request.to_dict())))
    replies = request.answer(rows, SimulationSource(4)).values
    assert np.array_equal(replies, again.answer(rows, SimulationSource(4)).values)
    assert check_reply(request, replies).shape == (6, request.width)
    assert again.digest == request.digest
    assert again.unit == "owner"


@pytest.mark.parametrize("name", NAMES)
def test_an_owner_answers_once_and_pays_first(name, request_of, plan_of):
    owner = make_owner(plan_of(name))
    request = request_of(name)
    if name == "statistic":
        assert request.thresholds.shape == (2, 2)
    sent = owner.answer(request)
    assert sent.values.shape == (1, request.width)
    assert owner._ledger.spent.epsilon == pytest.approx(1.0, rel=1e-12)
    assert owner._ledger.spent.epsilon <= 1.0
    assert owner.answer(request) is sent  # asked again: the same answer again
    other = make_owner(plan_of(name))
    other._ledger = owner._ledger  # the same owner after a restart
    with pytest.raises(AlreadySpent):
        other.answer(request)


def test_points_of_curves_are_refused(plan_of):
    with pytest.raises(InvalidParameter, match="grid_points"):
        make_owner(plan_of("gradient"), grid_points=[0.0, 1.0])


def test_an_owner_without_budget_sends_nothing(request_of, plan_of):
    owner = make_owner(plan_of("gradient", epsilon=2.0), limit=1.0)
    with pytest.raises(BudgetExceeded):
        owner.answer(request_of("gradient", epsilon=2.0))


def test_another_request_than_the_plan_names_is_refused_with_nothing_spent(request_of, plan_of):
    owner = make_owner(plan_of("gradient"))
    others = [
        request_of("statistic"),
        request_of("gradient", epsilon=2.0),
        request_of("gradient", n_rows=5),
        request_of("gradient", own_budgets=True),
        request_of("gradient", radius=0.001),
        request_of("gradient", people=2),
    ]
    for request in others:
        with pytest.raises(ProtocolError):
            owner.answer(request)
    assert owner._ledger.spent.epsilon == 0
    with pytest.raises(UnknownName):
        Request.from_dict({"name": "send_everything"})


def test_labels_in_clear_need_the_owners_consent(request_of, plan_of):
    """The data user may not decide that labels are public: exact class counts left at ε = 0.1."""
    asks = request_of("sample", epsilon=0.1, protects="features")
    assert asks.assumptions == (LABELS_ARE_PUBLIC,)
    careful = make_owner(plan_of("sample", epsilon=0.1))
    with pytest.raises(ProtocolError):  # the plan that was agreed to protects labels
        careful.answer(asks)
    public = plan_of("sample", epsilon=0.1, protects="features")
    reluctant = make_owner(public)
    with pytest.raises(ProtocolError, match="labels are public"):
        reluctant.answer(asks)
    assert careful._ledger.spent.epsilon == reluctant._ledger.spent.epsilon == 0
    willing = make_owner(public, accepts=[LABELS_ARE_PUBLIC])
    told = willing.answer(asks).values[0, -3:]
    assert told.tolist() == [0, 1, 0]  # in turns
    assert LABELS_ARE_PUBLIC in willing._ledger.entries[-1].assumptions


HOSTILE = [
    ("gradient", {"projection": np.full((3, 1), 1.7e308)}),
    ("gradient", {"projection": np.full((3, 1), 1e51)}),
    ("gradient", {"coefficients": np.full((1, 3), 1e51)}),
    ("gradient", {"projection": [[np.nan]] * 3}),
    ("gradient", {"radius": 1e-300}),
    ("classifier", {"ridge": 1e-30}),
    ("classifier", {"bound": 0.0}),
    ("sample", {"cap": 0.0}),
    ("sample", {"cap": 1e300}),
    ("statistic", {"thresholds": np.zeros((2, 0, 1))}),
    ("statistic", {"thresholds": np.zeros((1, 1))}),
    ("sample", {"mechanism_name": "cap_index"}),
]


@pytest.mark.parametrize(("name", "fields"), HOSTILE)
def test_numbers_that_overflow_on_some_rows_are_refused_on_arrival(name, fields, request_of):
    """A projection of 1.7e308 raised for label 0 and replied for label 1."""
    with pytest.raises(InvalidParameter):
        request_of(name, **fields)


@pytest.mark.parametrize("name", ["gradient", "classifier"])
def test_the_largest_numbers_that_are_accepted_raise_for_nobody(name, request_of):
    most = {
        "gradient": {"projection": np.full((3, 2), 1e50), "coefficients": np.full((1, 3), -1e50)},
        "classifier": {"ridge": 1e-3, "bound": 1e-6},
    }[name]
    request = request_of(name, radius=1e-6, **most) if name == "gradient" else None
    request = request or request_of(name, **most)
    for value in (0.0, 1.0, -1e100, 1e100, 1e308, np.nan):
        for label in (0, 1, 7, -3):
            rows = OwnerRows(
                np.full((1, 3, 2), value), np.full((1, 3), label), np.ones((1, 3), bool)
            )
            with np.errstate(all="raise", under="ignore"):
                exact = request.exact(request.fitting(rows), SimulationSource(0))
            assert np.isfinite(exact).all()
            assert np.isfinite(request.answer(rows, SimulationSource(0)).values).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_rows_is_hidden(name, request_of):
    """Replies of owners with no, one, three and seven rows have one shape and one range."""
    request = request_of(name)
    assert b"sizes" not in json.dumps(request.to_dict()).encode()
    for count in (0, 1, 3, 7):
        rows = OwnerRows(
            np.full((1, count, 2), 0.4), np.ones((1, count), int), np.ones((1, count), bool)
        )
        reply = request.answer(rows, SimulationSource(1)).values
        assert check_reply(request, reply).shape == (1, request.width)
    many = OwnerRows(np.tile([[0.3, -0.2]], (1, 7, 1)), np.ones((1, 7), int), np.ones((1, 7), bool))
    odd = OwnerRows(many.features.copy(), many.labels.copy(), many.present)
    odd.features[0, 3:], odd.labels[0, 3:] = 0.9, 0  # beyond the first three: they do not count
    here, there = (request.exact(request.fitting(one), SimulationSource(0)) for one in (many, odd))
    assert np.array_equal(here, there)


def test_rows_in_turns_fill_the_places(request_of):
    request = request_of("sample", n_rows=5)
    rows = OwnerRows.grouped([[0.1, 0.0], [0.2, 0.0]], [0, 1], groups=[0, 0])
    fitting = request.fitting(rows)
    assert fitting.features[0, :, 0].tolist() == [0.1, 0.2, 0.1, 0.2, 0.1]
    assert fitting.labels[0].tolist() == [0, 1, 0, 1, 0]
    price = compose([request.event]).epsilon
    assert float(price) == pytest.approx(1.0)
    assert price <= 1
    assert request.mechanism.part.epsilon == pytest.approx(0.2)


def test_an_owner_may_spend_less_where_the_plan_says_so(request_of, plan_of):
    plan = plan_of("gradient", epsilon=8.0, own_budgets=True)
    request = request_of("gradient", epsilon=8.0, own_budgets=True)
    thrifty = make_owner(plan, epsilon=0.5)
    reply = thrifty.answer(request).values
    assert reply.shape == (1, 3)
    assert reply[0, 0] == 0.5
    assert thrifty._ledger.spent.epsilon == 0.5
    assert make_owner(plan, epsilon=20.0).answer(request).values[0, 0] == 8.0
    with pytest.raises(BudgetExceeded):
        make_owner(plan_of("gradient", epsilon=8.0), epsilon=0.5)
    # A reply bought with 0.5 has 32 codewords, one bought with 8 has 128.
    right = [[0.5, 3.0, 31.0], [8.0, 3.0, 127.0]]
    assert request.allows(np.array(right)).all()
    wrong = [[0.5, 3.0, 32.0], [9.0, 3.0, 1.0], [0.0, 3.0, 1.0], [-1.0, 3.0, 1.0]]
    assert not request.allows(np.array(wrong)).any()
    # A wrong reply at one price says nothing about those at others.
    mixed = np.array([wrong[0], right[1], wrong[1], right[0], [8.0, 3.0, 128.0]])
    assert request.allows(mixed).tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("protects", ["both", "features"])
def test_a_liars_numbers_overflow_nothing(request_of, protects):
    """Sums of what is let in stay finite: one reply does not end a study."""
    request = request_of("sample", protects=protects)
    replies = np.ones((3, request.width))
    replies[1:, 0] = 1e100, 1.1e100
    assert request.allows(replies).tolist() == [True, True, False]
    assert np.isfinite(request.estimates(replies[:2]).sum())


def test_replies_of_different_prices_are_decoded_each_by_its_own(request_of):
    request = request_of("feedback", epsilon=5.0, people=2, own_budgets=True)
    cheap, dear = request.at(0.5), request
    replies = np.array([[0.5, 1.0], [5.0, 1.0]])
    both = request.estimates(replies)
    assert np.array_equal(both[:1], cheap.decode(replies[:1, 1:]))
    assert np.array_equal(both[1:], dear.decode(replies[1:, 1:]))
    assert both[0, 1] > 2 > both[1, 1]
    assert request.spent(replies).tolist() == [0.5, 5.0]


@pytest.mark.parametrize("name", NAMES)
def test_impossible_replies_are_refused(name, request_of):
    request = request_of(name)
    for bad in (np.full((1, request.width), np.nan), np.zeros((1, request.width + 1)), "text"):
        with pytest.raises(ProtocolError):
            check_reply(request, bad)
    if name in ("gradient", "feedback"):
        for number in (0.5, -1.0, 1e9):
            with pytest.raises(ProtocolError):
                check_reply(request, np.full((1, request.width), number))
    if name == "sample":
        open_labels = replace(request, protects="features")
        with pytest.raises(ProtocolError):
            check_reply(open_labels, np.full((1, open_labels.width), 2.0))


def test_a_crowd_is_asked_once_in_order(plan_of, owners):
    plan = plan_of("gradient", owners=10, n_rounds=3, owners_per_round=2)
    rows = owners(10)
    order = np.random.default_rng(1).permutation(10)
    crowd = Owners(plan, rows, order=order, source=SimulationSource(0))
    server = Server(plan)
    asked = []
    while not server.finished:
        task = server.issue(server.wanted)
        asked.append(task.people)
        server.receive(crowd.answer(task).values, start=0)
    assert asked == [row["owners"] for row in server.findings.history] == [2, 2, 2]
    assert crowd.asked == 6
    with pytest.raises(AlreadySpent):
        crowd.answer(task, number=0)
    again = Owners(plan, rows, order=order, source=SimulationSource(0))
    for _ in range(5):
        again.answer(task)
    with pytest.raises(ProtocolError, match="plan is for 10"):
        again.answer(task)


def test_every_owner_in_a_crowd_spends_their_own(plan_of, owners):
    plan = plan_of("gradient", owners=10, epsilon=8.0, n_rounds=2, own_budgets=True)
    order, epsilons = np.random.default_rng(1).permutation(10), np.linspace(0.5, 8.0, 10)
    crowd = Owners(plan, owners(10), order=order, epsilons=epsilons, source=SimulationSource(0))
    request = Server(plan).issue(5)
    spent = [crowd.answer(request).values[:, 0] for _ in range(2)]
    assert np.concatenate(spent).tolist() == epsilons[order].tolist()


@pytest.mark.parametrize("own_budgets", [True, False])
def test_no_owner_in_a_crowd_spends_more_than_they_agreed_to(plan_of, owners, own_budgets):
    plan = plan_of("gradient", owners=10, epsilon=1.0, n_rounds=2, own_budgets=own_budgets)
    with pytest.raises(InvalidParameter, match="epsilons must be"):
        Owners(plan, owners(10), epsilons=np.full(10, 1.5), source=SimulationSource(0))
    if not own_budgets:  # everybody would be asked at the plan's price
        with pytest.raises(InvalidParameter, match="epsilons must be 1, as the plan says"):
            Owners(plan, owners(10), epsilons=np.full(10, 0.1), source=SimulationSource(0))


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_and_odd_rows_are_answered(name, owners, request_of, plan_of):
    rows = owners()
    single = OwnerRows(rows.features.astype(np.float32), rows.labels, rows.present)
    assert len(request_of(name, people=6).answer(single, SimulationSource(0)).values) == 6
    odd = make_owner(plan_of(name), curve=[[1e308, -1e308], [np.nan, 0.0]], label=[7, "x"])
    assert odd.answer(request_of(name)).values.shape[0] == 1
    with pytest.raises(ProtocolError, match="2 features"):
        request_of(name).fitting(OwnerRows(np.zeros((1, 1, 3)), np.zeros((1, 1)), np.ones((1, 1))))


@pytest.mark.parametrize("name", NAMES)
def test_an_owner_without_rows_answers_like_any_other(name, request_of, plan_of):
    """How many rows there are is private: none may be told from one by a refusal."""
    usual = make_owner(plan_of(name)).answer(request_of(name)).values.shape
    pd = pytest.importorskip("pandas")
    empty = ([], (), np.zeros((0, 2)), np.zeros(0), np.zeros((0, 7)), {}, pd.DataFrame())
    for rows in empty:
        for labels in ([], (), np.zeros(0), np.zeros((0, 1)), np.array([], dtype=object)):
            owner = make_owner(plan_of(name), curve=rows, label=labels)
            assert owner.answer(request_of(name)).values.shape == usual
            assert owner._ledger.spent.epsilon == pytest.approx(1.0, rel=1e-12)


def test_rows_are_grouped_whatever_their_order():
    rows = OwnerRows.grouped([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0], groups=[5, 2, 5, 9])
    assert rows.sizes.tolist() == [1, 2, 1]
    assert rows.features[1, :, 0].tolist() == [1.0, 3.0]
    assert rows.labels[1].tolist() == [0, 1]
    with pytest.raises(InvalidData, match="groups"):
        OwnerRows.grouped([[1.0]], [0], groups=[1, 2])
    gaps = OwnerRows(rows.features, rows.labels, rows.present[:, ::-1]).first(1)
    assert gaps.features[1, 0, 0] == 1.0


def test_no_private_value_in_reprs_and_errors(plan_of):
    secret = 0.7654321
    owner = make_owner(plan_of("gradient"), curve=[[secret, 0.0]], label=[1])
    assert "7654" not in repr(owner) + repr(OwnerRows.grouped([[secret]], [1]))
    with pytest.raises(InvalidData) as caught:
        make_owner(plan_of("gradient"), curve=[[secret, 0.0]], label=[1, 0])
    assert "7654" not in str(caught.value)


def test_parts_of_a_request_are_checked_like_the_request():
    features = FeatureMap.learnt(np.random.default_rng(0).normal(size=(50, 2)), products=1)
    assert FeatureMap.from_dict(json.loads(json.dumps(features.to_dict()))).size == features.size
    for name, value in [
        ("whitening", [[1e200, 0.0], [0.0, 1.0]]),
        ("whitening", [[1.0]]),
        ("products", 9),
        ("product_scale", [0.0]),
        ("prior_variance", [1.0]),
        ("center", [np.inf, 0.0]),
    ]:
        with pytest.raises(InvalidParameter):
            FeatureMap.from_dict(features.to_dict() | {name: value})


def test_a_plan_is_the_same_after_json(plan_of):
    for name in ("gradient", "sample"):
        plan = plan_of(name)
        again = StudyPlan.from_dict(json.loads(json.dumps(plan.to_dict())))
        assert again.hash == plan.hash
        assert again.asks == plan.asks
