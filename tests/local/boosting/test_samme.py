"""SAMME with perturbed shares: weights, α, retries, feedback."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dpfda.errors import InvalidParameter
from dpfda.local.boosting.ensemble import Ensemble, StumpRule
from dpfda.local.boosting.request import OwnerRows, Owners
from dpfda.local.boosting.samme_study import ClassifierRequest, FeedbackRequest, SammeDesign
from dpfda.local.boosting.shares import SampleRequest, StatisticRequest
from dpfda.noise import SimulationSource
from dpfda.protocol.server import Server
from dpfda.simulate import simulate

STUMP = StumpRule(feature=0, threshold=0.0, below=0, above=1)


def vote(d=2, classes=2):
    return Ensemble.empty([(-1.0, 1.0)] * d, classes=classes)


def common(d=2, classes=2, people=1, n_rows=4, epsilon=6.0):
    sizes = {"people": people, "dimension": d, "n_classes": classes, "n_rows": n_rows}
    return sizes | {"epsilon": epsilon}


def parts_of(request, rows):
    fitting = request.fitting(rows)
    inside, weights = request.weighted(fitting)
    return inside, fitting.labels, weights


def test_weights_are_samme_weights_over_their_public_bound():
    x, y = np.array([[0.5, 0.0], [-0.5, 0.0], [0.7, 0.0]]), np.array([1, 1, 0])
    one = vote().joined(STUMP, alpha=0.8).joined(STUMP, alpha=0.3)
    plain = np.exp(0.8 * (STUMP.decide(x) != y) + 0.3 * (STUMP.decide(x) != y))
    assert one.weights(x, y) == pytest.approx(plain / math.exp(1.1))
    assert one.weights(x, y).max() <= 1


@pytest.mark.parametrize("classes", [2, 3])
def test_shares_stay_in_the_box(classes):
    rng = np.random.default_rng(0)
    rows = OwnerRows.grouped(
        rng.normal(scale=3, size=(300, 2)),
        rng.integers(0, classes, 300),
        groups=rng.integers(0, 60, 300),
    )
    ensemble = vote(classes=classes).joined(STUMP, alpha=2.0)
    asked = common(classes=classes, people=rows.owners) | {"ensemble": ensemble, "cap": 0.2}
    for request in (
        SampleRequest(**asked),
        StatisticRequest(**asked, thresholds=np.zeros((2, 1))),
        ClassifierRequest(**asked, bound=0.1),
    ):
        share = request.share(*parts_of(request, rows))
        assert share.shape == (rows.owners, request.width)
        if request.name != "classifier":  # cut at its bound
            assert np.abs(share).max() <= 1
        assert np.abs(request.exact(request.fitting(rows), None)).max() <= 1


def test_cross_table_by_hand():
    """Two rows of class 1 above the threshold, one of class 0 below: Eq. (8) of 004."""
    request = StatisticRequest(**common(1), ensemble=vote(1), thresholds=np.zeros((1, 1)))
    rows = OwnerRows.grouped([[0.5], [0.2], [-0.4]], [1, 1, 0], groups=[0, 0, 0])
    share = request.exact(request.fitting(rows), None)
    assert share == pytest.approx(np.array([[-1 / 3, 2 / 3]]))
    rule = request.base_learner(share[0])
    assert (rule.feature, rule.below, rule.above) == (0, 0, 1)


def test_the_split_maximizes_the_difference():
    """C17: the printed inequality picks the worst feature."""
    cuts = np.array([[0.0, 0.5], [0.0, 0.5]])
    request = StatisticRequest(**common(2), ensemble=vote(2), thresholds=cuts)
    table = np.zeros((1, 2, 2, 2))
    table[0, :, 1, 1] = [0.4, -0.3]  # feature 1, its second threshold; reversed classes
    rule = request.base_learner(table.ravel())
    assert (rule.feature, rule.threshold, rule.below, rule.above) == (1, 0.5, 1, 0)


def test_centroids_without_noise_are_weighted_means():
    rng = np.random.default_rng(0)
    rows = OwnerRows.grouped(
        rng.uniform(-1, 1, (200, 2)), rng.integers(0, 2, 200), groups=np.repeat(np.arange(50), 4)
    )
    ensemble = vote().joined(STUMP, alpha=1.0)
    request = SampleRequest(**common(people=50), ensemble=ensemble)
    inside, weights = ensemble.prepared(rows, cap=1.0)
    clean_shares = request.decode(request.exact(request.fitting(rows), None))
    rule = request.base_learner(clean_shares.mean(axis=0))
    for label in (0, 1):
        own = rows.labels == label
        wanted = np.average(inside[own], axis=0, weights=weights[own])
        assert rule.centroids[label] == pytest.approx(wanted)


@pytest.mark.parametrize("mechanism", ["piecewise", "duchi", "laplace", "hybrid"])
def test_noisy_shares_are_unbiased(mechanism):
    rng = np.random.default_rng(0)
    one = OwnerRows.grouped([[0.5, -0.2], [-0.4, 0.3]], [1, 0], groups=[0, 0])
    many = one.take(np.zeros(20_000, dtype=int))
    asked = common(people=20_000, n_rows=2) | {"mechanism_name": mechanism}
    told = vote().joined(STUMP, alpha=0.5)
    for request in (
        SampleRequest(ensemble=told, **asked),
        SampleRequest(ensemble=told, **asked, protects="features"),
        StatisticRequest(ensemble=vote(), thresholds=np.zeros((2, 1)), **asked),
        ClassifierRequest(ensemble=vote(), **asked),
    ):
        hidden = replace(request, protects="both") if request.name == "sample" else request
        wanted = hidden.decode(hidden.exact(request.fitting(many), None))[0]
        source = SimulationSource(int(rng.integers(99)))
        replies = request.estimates(request.answer(many, source).values)
        errors = replies.std(axis=0) / np.sqrt(len(replies))
        # 4.5 standard errors, at most 18 comparisons in all.
        assert (np.abs(replies.mean(axis=0) - wanted) <= 4.5 * errors + 1e-6).all()


def crowd(n=200, *, flip=False, seed=0):
    """Owners whose class is the sign of the first feature, or its opposite."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (4 * n, 2))
    y = ((X[:, 0] > 0) ^ flip).astype(int)
    return OwnerRows.grouped(X, y, groups=np.repeat(np.arange(n), 4))


def clean(n=100, seed=9):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return {"labeled": X, "labels": (X[:, 0] > 0).astype(int)}


def samme(rows, *, epsilon=50.0, classes=(0, 1), seed=0, **parameters):
    """A whole study, and how many owners it asked."""
    defaults = {"rule": "statistic", "feature_ranges": [(-1.0, 1.0)] * 2, "n_rows": 4}
    defaults |= {"owners_per_round": 10, "n_rounds": 2, "retries": 2}
    design = SammeDesign(**defaults | parameters)
    plan = design.plan(epsilon=epsilon, owners=rows.owners, classes=classes)
    owners = Owners(plan, rows, source=SimulationSource(seed))
    return simulate(plan, owners, source=owners.source), owners.asked


def test_alpha_is_samme_and_error_is_clipped():
    """A perfect rule has err = 1/(2 N^u), not 0 (C17)."""
    study, _ = samme(crowd(), **clean(), n_rounds=1)
    first = study.findings.history[0]
    assert first["error"] == 1 / 200
    assert first["alpha"] == pytest.approx(math.log(199))
    assert first["kept"]


def test_weights_fall_and_the_box_is_used_again():
    study, _ = samme(crowd(), **clean(), n_rounds=2)
    rows, again = crowd(), Server(study.plan)
    owners = Owners(study.plan, rows, source=SimulationSource(0))
    task = again.issue(again.wanted)
    assert task.cap == 1
    again.receive(owners.answer(task).values, start=0)
    assert again.issue(1).cap < 1


def test_rounds_no_better_than_chance_are_dropped_and_owners_reported():
    study, spent = samme(crowd(flip=True), **clean(), n_rounds=3)  # the opposite of the truth
    assert [row["kept"] for row in study.findings.history] == [
        False
    ] * 9  # 3 rounds, 2 retries each
    assert [row["attempt"] for row in study.findings.history] == [1, 2, 3] * 3
    assert spent == 90
    assert study.model.boosted.rules == ()
    assert set(study.model.boosted.decide(clean()["labeled"])) == {1}  # nobody voted: class 1


def test_feedback_estimates_the_weighted_error():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60_000, 2))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    rows = OwnerRows.grouped(X, y, groups=np.repeat(np.arange(30_000), 2))
    ensemble = vote().joined(STUMP, alpha=1.2)
    rule = StumpRule(feature=1, threshold=0.0, below=0, above=1)
    asked = common(people=30_000, epsilon=3.0)
    request = FeedbackRequest(ensemble=ensemble, rule=rule, cap=0.8, **asked)
    weights = np.minimum(ensemble.weights(X, y) / 0.8, 1)
    wrong = rule.decide(X) != y
    decoded = request.estimates(request.answer(rows, SimulationSource(0)).values)
    truth = np.array([np.mean(weights * wrong), np.mean(weights * ~wrong)])
    # Variance of an indicator at most 0.4 over 30 000 owners: 4 standard errors.
    assert np.abs(decoded.mean(axis=0)[:2] - truth).max() < 4 * math.sqrt(0.4 / 30_000)
    assert decoded.mean(axis=0).sum() == pytest.approx(1)


def test_feedback_needs_no_clean_labels():
    study, spent = samme(crowd(300), epsilon=4.0, owners_per_round=50, judges=50, n_rounds=1)
    assert spent == 100
    assert [row["owners"] for row in study.findings.history] == [100]
    own = clean()
    assert np.mean(study.model.boosted.decide(own["labeled"]) != own["labels"]) < 0.05
    with pytest.raises(InvalidParameter, match="judges"):
        samme(crowd())


def test_a_phase_without_replies_is_a_failed_attempt():
    design = SammeDesign(
        rule="statistic", feature_ranges=[(-1.0, 1.0)] * 2, owners_per_round=5, judges=5, n_rounds=1
    )
    plan = design.plan(epsilon=1.0, owners=20, classes=(0, 1))
    study = Server(plan)
    while not study.finished:
        study.close_phase()
    assert [row["kept"] for row in study.findings.history] == [False, False]
    assert study.model.boosted.rules == ()


def test_a_study_that_ended_early_stays_ended():
    study, spent = samme(crowd(), **clean(), n_rounds=1, retries=5)
    assert spent == 10
    assert not Server(study.plan).finished
    again = Server.resume(study.plan, json.loads(json.dumps(study.state())))
    assert again.finished
    assert again.state() == study.state()


def test_three_classes_accept_rules_above_one_third():
    """α = log((1 - err)/err) + log(K - 1): 60 % error is better than chance among three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = np.column_stack([np.where(y == 0, -0.5, 0.5), rng.uniform(-1, 1, 600)])
    rows = OwnerRows.grouped(X, y, groups=np.repeat(np.arange(150), 4))
    parameters = {"n_rounds": 1, "owners_per_round": 150, "labeled": X, "labels": y}
    study, _ = samme(rows, epsilon=100.0, classes=(0, 1, 2), **parameters)
    row = study.findings.history[0]
    assert row["kept"]
    assert row["alpha"] == pytest.approx(math.log((1 - row["error"]) / row["error"]) + math.log(2))
    assert 0.2 < row["error"] < 0.5


def test_votes_of_rules_that_do_not_fit_are_refused():
    with pytest.raises(InvalidParameter, match="rules"):
        vote(1).joined(StumpRule(feature=1, threshold=0.0, below=0, above=1), alpha=1.0)
    with pytest.raises(InvalidParameter, match="rules"):
        vote().joined(StumpRule(feature=1, threshold=0.0, below=0, above=2), alpha=1.0)
    with pytest.raises(InvalidParameter, match="alphas"):
        vote().joined(STUMP, alpha=-1.0)
    with pytest.raises(InvalidParameter, match="half_range"):
        Ensemble.empty([(1.0, 1.0)], classes=2)
    with pytest.raises(InvalidParameter, match="ensemble"):
        SampleRequest(**common(3), ensemble=vote(2))
