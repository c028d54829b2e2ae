"""The online version: rounds, memory, drift."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.online_mrma import OnlineMRMA
from dpfda.local.mrma.designs import StreamDesign
from dpfda.local.mrma.members import Candidates, Memory
from dpfda.noise import SimulationSource
from dpfda.protocol import Server, StudyPlan

ENCODER = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2)


def online(**parameters) -> OnlineMRMA:
    return OnlineMRMA(
        encoder=ENCODER, **{"epsilon": 2.0, "learner": "logistic", "random_state": 1} | parameters
    )


def test_recovers_after_an_abrupt_sign_change(crowd) -> None:
    clf = online()
    before, after = [], []
    for day in range(8):
        sign = 1.0 if day < 4 else -1.0
        clf.partial_fit(*crowd(1000, seed=day, sign=sign))
        features, numbers = crowd(4000, seed=100 + day, sign=sign)
        best = np.mean((sign * features[:, 0] > 0) != numbers)
        excess = np.mean(clf.predict(features) != numbers) - best
        (before if day < 4 else after).append(excess)
    assert before[-1] < 0.06
    # 830 verdicts at ε = 2 contradict a classifier that was right in 90 % of cases by far more than
    # the alarm's two standard errors, so the first round after the change already recovers.
    assert after[0] < 0.15
    assert after[-1] < 0.06
    assert clf.drifts_ == [5]
    assert clf.rounds_ == 8


def test_without_forgetting_it_would_not(crowd) -> None:
    """The twin that never forgets is still wrong where the real one has recovered."""
    clf = online(memory=0.999, alarm=1e6)
    for day in range(6):
        clf.partial_fit(*crowd(1000, seed=day, sign=1.0 if day < 5 else -1.0))
    features, numbers = crowd(4000, seed=99, sign=-1.0)
    assert np.mean(clf.predict(features) != numbers) > 0.5
    assert clf.drifts_ == []


def test_false_alarms_are_rare(crowd) -> None:
    clf = online()
    for day in range(15):
        clf.partial_fit(*crowd(400, seed=day))
    # Without drift an alarm needs a classifier better than chance to look worse than chance by two
    # standard errors: below 2 % a round even for a useless one.
    assert len(clf.drifts_) <= 1


def test_members_join_and_leave(crowd) -> None:
    clf = online(n_classifiers=12, new_classifiers=5)
    sizes = []
    for day in range(4):
        clf.partial_fit(*crowd(400, seed=day))
        sizes.append(len(clf.result_.candidates))
    assert sizes == [5, 10, 12, 12]


def test_every_round_is_a_study_of_its_own(crowd) -> None:
    clf = online()
    hashes = set()
    for day in range(3):
        clf.partial_fit(*crowd(300, seed=day))
        hashes.add(clf.plan_.hash)
        again = StudyPlan.from_dict(clf.plan_.to_dict())
        assert again.hash == clf.plan_.hash
    assert len(hashes) == 3
    clf.fit(*crowd(300, seed=9))
    assert clf.rounds_ == 1


def test_discounted_verdicts_have_the_stated_precision() -> None:
    """Variance of Σ λ^k T_k / Σ λ^k n_k is that of n_eff equal verdicts."""
    rng = np.random.default_rng(0)
    rounds, people, keep, copies = 6, 40, 0.6, 4000
    members = Candidates(np.zeros(copies), np.ones((copies, 1)))
    memory = Memory.from_dict(None, 1).joined_by(members)
    for _ in range(rounds):
        totals = 2 * rng.binomial(people, 0.5, copies) - people
        memory = memory.updated(totals, np.full(copies, people), keep=keep)
    # A fair verdict has variance 1; the relative error of a variance of 4000 draws is √(2/4000).
    expected = 1 / memory.effective_people[0]
    found = np.var(memory.totals / memory.people)
    assert found == pytest.approx(expected, rel=5 * np.sqrt(2 / copies))


def test_a_round_resumes_anywhere(crowd) -> None:
    features, numbers = crowd(300, seed=1)
    plan = StudyPlan(
        epsilon=2.0, n_people=300, encoder=ENCODER, classes=(0, 1),
        design=StreamDesign(learner="logistic", n_classifiers=6, new_classifiers=3).to_dict(),
    )  # fmt: skip
    for stop in (0, 30, 50, 200):
        server, person, source = Server(plan), 0, SimulationSource(2)
        while person < stop:
            start = server.issued
            task = server.issue(min(stop - person, server.wanted))
            who = slice(person, person + task.people)
            server.receive(task.answer((features[who], numbers[who]), source).values, start=start)
            person += task.people
        again = Server.resume(plan, server.state())
        ends = []
        for half in (server, again):
            source, place = SimulationSource(3), person
            while not half.finished:
                start = half.issued
                task = half.issue(half.wanted)
                who = slice(place, place + task.people)
                half.receive(task.answer((features[who], numbers[who]), source).values, start=start)
                place += task.people
            ends.append(half.findings.following.to_dict())
        assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"memory": 1.0}, "memory"),
        ({"alarm": 0.0}, "alarm"),
        ({"new_classifiers": 60}, "new_classifiers"),
        ({"boundary_spread": -1.0}, "boundary_spread"),
    ],
)
def test_bad_designs_are_refused(parameters, name: str) -> None:
    with pytest.raises(InvalidParameter, match=name):
        StreamDesign(**parameters)


def test_labels_must_stay_the_same(crowd) -> None:
    clf = online().partial_fit(*crowd(300, seed=1))
    features, numbers = crowd(300, seed=2)
    with pytest.raises(InvalidData, match="y must be") as error:
        clf.partial_fit(features, numbers + 1)
    assert "2" not in str(error.value)


def test_the_promise_to_earlier_rounds_stays_true(crowd) -> None:
    """A smaller ε later would be stated for the people of the first round as well."""
    clf = online().set_params(epsilon=5.0)
    data = crowd(300, seed=0)
    clf.partial_fit(*data)
    with pytest.raises(InvalidParameter, match="epsilon must be 5 in every round"):
        clf.set_params(epsilon=0.1).partial_fit(*data)
    assert (clf.rounds_, clf.guarantee_.epsilon) == (1, 5.0)
    assert clf.fit(*data).guarantee_.epsilon == 0.1
