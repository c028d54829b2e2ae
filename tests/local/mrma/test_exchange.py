"""Several servers: judging each other's classifiers, and paying for it once."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.errors import BudgetExceeded, InvalidParameter
from dpfda.estimators.multi_server_mrma import MultiServerMRMA
from dpfda.local.mrma.designs import ExchangeDesign, MRMADesign
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import Person, Server, StudyPlan

ENCODER = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2)
CANDIDATES = {"intercepts": (0.0, 0.0, 0.0), "coefficients": ((1.0, 0), (-1.0, 0), (0, 1.0))}


def plan(n_people: int = 1500, *, epsilon: float = 2.0, **design) -> StudyPlan:
    parts = {"name": "exchange", **CANDIDATES, **design}
    return StudyPlan(
        epsilon=epsilon, n_people=n_people, encoder=ENCODER, classes=(0, 1), design=parts
    )


def finish(server: Server, features, numbers, *, seed: int = 0) -> None:
    source, person = SimulationSource(seed), 0
    while not server.finished:
        start = server.issued
        task = server.issue(100)
        who = slice(person, person + task.people)
        server.receive(task.answer((features[who], numbers[who]), source).values, start=start)
        person += task.people


def test_uses_reverses_and_ignores(crowd) -> None:
    """A right, an opposite and a useless classifier: weight, reversed weight, none."""
    server = Server(plan(evaluation_share=0.2))
    finish(server, *crowd(1500, seed=1))
    judgement = server.findings.judgement
    assert judgement.reversed.tolist()[:2] == [False, True]
    # 400 verdicts each at ε = 2: the useless one passes one standard error once in three; its
    # weight stays small beside two that lie twelve above.
    assert judgement.weight.value[2] < 0.15
    features, numbers = crowd(2000, seed=2)
    best = np.mean((features[:, 0] > 0) != numbers)
    assert np.mean(server.model.decide(features) != numbers) < best + 0.03
    assert abs(server.findings.error.value - best) < 0.25  # 300 verdicts: 5 × 0.04


def test_resumes(crowd) -> None:
    features, numbers = crowd(1500, seed=3)
    server = Server(plan())
    source = SimulationSource(4)
    task = server.issue(500)
    server.receive(task.answer((features[:500], numbers[:500]), source).values, start=0)
    again = Server.resume(plan(), server.state())
    np.testing.assert_array_equal(again.model.coefficients, server.model.coefficients)


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"intercepts": (0.0,)}, "coefficients"),
        ({"coefficients": ((1.0,), (1.0,), (1.0, 2.0))}, "coefficients"),
        ({"intercepts": (0.0, 0.0, float("nan"))}, "intercepts"),
        ({"cutoff": 1.5}, "cutoff"),
    ],
)
def test_malformed_candidates_are_refused(parts, name: str) -> None:
    with pytest.raises(InvalidParameter, match=name):
        ExchangeDesign(**CANDIDATES | parts)
    with pytest.raises(InvalidParameter, match="coefficients"):
        Server(plan(coefficients=((1.0,),) * 3))


def test_split_stays_within_epsilon_and_not_a_bit_more() -> None:
    """ε/2 for a server's own members, ε/2 for shared ones, then the ledger refuses."""
    own = StudyPlan(
        epsilon=1.0, n_people=200, encoder=ENCODER, classes=(0, 1),
        design=MRMADesign(learner="logistic", n_classifiers=3, verdict_share=0.5).to_dict(),
    )  # fmt: skip
    server = Server(own)
    server.close_phase()  # nobody reports: members that say nothing can still be judged
    ledger = Ledger(limit_epsilon=1.0)
    mine = {"curve": [0.1, 0.2], "label": 1}
    first = Person(own, **mine, ledger=ledger).answer(server.issue(1)).values
    shared = plan(200, epsilon=0.5)
    second = Person(shared, **mine, ledger=ledger).answer(Server(shared).issue(1)).values
    assert first.shape == second.shape == (1, 1)
    assert ledger.remaining.epsilon == 0
    another = plan(201, epsilon=0.5)
    with pytest.raises(BudgetExceeded):
        Person(another, **mine, ledger=ledger).answer(Server(another).issue(1))


@pytest.mark.parametrize("exchange", ["split", "separate"])
def test_servers_learn_from_each_other_but_not_what_is_wrong_for_them(crowd, exchange) -> None:
    """Servers a, b share a rule; c has the opposite one."""
    parts = [crowd(1200, seed=5), crowd(1200, seed=6), crowd(1200, seed=7, sign=-1.0)]
    features = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    where = np.repeat(["a", "b", "c"], 1200)
    clf = MultiServerMRMA(
        encoder=ENCODER, epsilon=4.0, exchange=exchange, learner="logistic", n_classifiers=20,
        random_state=1,
    )  # fmt: skip
    clf.fit(features, labels, servers=where)
    for server, sign in (("a", 1.0), ("b", 1.0), ("c", -1.0)):
        test, truth = crowd(2000, seed=8, sign=sign)
        best = np.mean((sign * test[:, 0] > 0) != truth)
        assert np.mean(clf.predict(test, server=server) != truth) < best + 0.06
    assert clf.guarantee_.epsilon == 4.0
    assert clf.guarantee_.sampler == "simulation"
    with pytest.raises(InvalidParameter, match="server"):
        clf.predict(features[:1], server="d")
    with pytest.raises(InvalidParameter, match="servers"):
        clf.fit(features, labels, servers=where[:5])


def test_sharing_helps_a_server_whose_own_study_failed(crowd) -> None:
    """A small server gets the large one's classifier."""
    large, small = crowd(4000, seed=9), crowd(300, seed=10)
    clf = MultiServerMRMA(
        encoder=ENCODER, epsilon=1.0, learner="logistic", n_classifiers=20, random_state=3
    ).fit(
        np.concatenate([large[0], small[0]]),
        np.concatenate([large[1], small[1]]),
        servers=np.repeat([0, 1], [4000, 300]),
    )
    features, numbers = crowd(4000, seed=11)
    alone = np.mean(clf.local_models_[1].decide(features) != numbers)
    together = np.mean(clf.models_[1].decide(features) != numbers)
    assert together < alone


def test_every_server_has_its_own_cutoff(crowd) -> None:
    features, labels = crowd(1200, seed=12)
    clf = MultiServerMRMA(
        encoder=ENCODER, epsilon=4.0, learner="logistic", n_classifiers=5, random_state=1,
        exchange_cutoff={"a": 0.9},
    )  # fmt: skip
    clf.fit(features, labels, servers=np.repeat(["a", "b"], 600))
    assert clf.exchanges_[0].judgement.cutoff.tolist() == [0.9, 0.9]
    assert (clf.exchanges_[1].judgement.cutoff < 0.6).all()


def test_every_server_has_scores_and_probabilities_of_its_own() -> None:
    here, there = simulate_001(2000, 0), simulate_001(2000, 1)
    X, y = np.concatenate([here.X, there.X]), np.concatenate([here.y, -there.y])
    where = np.repeat(["a", "b"], 2000)
    clf = MultiServerMRMA(8.0, value_range=(-3, 3), random_state=0).fit(X, y, servers=where)
    assert clf.score(here.X, here.y, server="a") > 0.75
    assert clf.score(there.X, -there.y, server="b") > 0.75
    for server in ("a", "b", None):
        found = clf.predict_proba(X[:50], server=server)
        scores = clf.decision_function(X[:50], server=server)
        likelier = clf.classes_[found.argmax(axis=1)]
        np.testing.assert_array_equal(likelier, clf.predict(X[:50], server=server))
        assert np.array_equal(scores >= 0, found[:, 1] >= 0.5)
    assert np.array_equal(clf.predict_proba(X), clf.predict_proba(X, server="a"))
    assert not np.array_equal(clf.predict(X, server="a"), clf.predict(X, server="b"))
