"""SAMME with perturbed shares: weights, α, retries, feedback."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpfda.boosting.ensemble import Ensemble
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.requests.feedback import FeedbackRequest
from dpfda.boosting.requests.local_classifier import ClassifierRequest
from dpfda.boosting.requests.sample import SampleRequest
from dpfda.boosting.requests.statistic import StatisticRequest
from dpfda.boosting.roles import Crowd, run
from dpfda.boosting.rules import StumpRule
from dpfda.boosting.samme_user import SammeUser
from dpfda.errors import InvalidParameter
from dpfda.noise import SimulationSource

STUMP = StumpRule(feature=0, threshold=0.0, below=0, above=1)


def vote(d=2, classes=2):
    return Ensemble.empty([(-1.0, 1.0)] * d, classes=classes)


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
    for request in (
        SampleRequest(ensemble=ensemble, cap=0.2),
        StatisticRequest(ensemble=ensemble, cap=0.2, thresholds=np.zeros((2, 1))),
        ClassifierRequest(ensemble=ensemble, cap=0.2, bound=0.1),
    ):
        inside, weights = request.weighted(rows)
        share = request.share(inside, rows.labels, weights)
        assert share.shape == (len(rows), request.width)
        assert np.abs(share).max() <= 1


def test_cross_table_by_hand():
    """Two rows of class 1 above the threshold, one of class 0 below: Eq. (8) of 004."""
    request = StatisticRequest(ensemble=vote(1), thresholds=np.zeros((1, 1)))
    rows = OwnerRows.grouped([[0.5], [0.2], [-0.4]], [1, 1, 0], groups=[0, 0, 0])
    inside, weights = request.ensemble.prepared(rows, cap=1.0)
    share = request.share(inside, rows.labels, weights)
    assert share == pytest.approx(np.array([[-1 / 3, 2 / 3]]))
    rule = request.base_learner(share[0])
    assert (rule.feature, rule.below, rule.above) == (0, 0, 1)


def test_the_split_maximises_the_difference():
    """C17: the printed inequality picks the worst feature."""
    request = StatisticRequest(ensemble=vote(2), thresholds=np.array([[0.0, 0.5], [0.0, 0.5]]))
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
    request = SampleRequest(ensemble=ensemble)
    inside, weights = ensemble.prepared(rows, cap=1.0)
    rule = request.base_learner(request.share(inside, rows.labels, weights).mean(axis=0))
    for label in (0, 1):
        own = rows.labels == label
        wanted = np.average(inside[own], axis=0, weights=weights[own])
        assert rule.centroids[label] == pytest.approx(wanted)


@pytest.mark.parametrize("mechanism", ["piecewise", "duchi", "laplace", "hybrid"])
def test_noisy_shares_are_unbiased(mechanism):
    rng = np.random.default_rng(0)
    one = OwnerRows.grouped([[0.5, -0.2], [-0.4, 0.3]], [1, 0], groups=[0, 0])
    many = one.take(np.zeros(20_000, dtype=int))
    for request in (
        SampleRequest(ensemble=vote().joined(STUMP, alpha=0.5), mechanism=mechanism),
        StatisticRequest(ensemble=vote(), mechanism=mechanism, thresholds=np.zeros((2, 1))),
        ClassifierRequest(ensemble=vote(), mechanism=mechanism),
    ):
        inside, weights = request.ensemble.prepared(one, cap=1.0)
        wanted = request.share(inside, one.labels, weights)[0]
        replies = request.answer(many, epsilon=6.0, rng=SimulationSource(int(rng.integers(99))))
        errors = replies.std(axis=0) / np.sqrt(len(replies))
        # 4.5 standard errors, at most 18 comparisons in all.
        assert (np.abs(replies.mean(axis=0) - wanted) <= 4.5 * errors + 1e-6).all()


def samme(request, **arguments):
    defaults = {"owners_per_round": 10, "rounds": 2, "retries": 2}
    return SammeUser("s", request=request, **defaults | arguments)


def crowd(n=200, epsilon=50.0, *, flip=False, seed=0):
    """Owners whose class is the sign of the first feature, or its opposite."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (4 * n, 2))
    y = ((X[:, 0] > 0) ^ flip).astype(int)
    rows = OwnerRows.grouped(X, y, groups=np.repeat(np.arange(n), 4))
    return Crowd(rows, epsilon=epsilon, rng=SimulationSource(seed))


def clean(n=100, seed=9):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, (X[:, 0] > 0).astype(int)


def test_alpha_is_samme_and_error_is_clipped():
    """A perfect rule has err = 1/(2 N^u), not 0 (C17)."""
    user = samme(StatisticRequest(ensemble=vote(), thresholds=np.zeros((2, 1))), validation=clean())
    owners = crowd()
    user.absorb(owners.answer(user.request, np.arange(10)))
    first = user.history[0]
    assert first["error"] == 1 / 200
    assert first["alpha"] == pytest.approx(math.log(199))
    assert first["kept"]
    assert user.request.cap < 1  # weights fell: the box is used again


def test_rounds_no_better_than_chance_are_dropped_and_owners_reported():
    user = samme(
        StatisticRequest(ensemble=vote(), thresholds=np.zeros((2, 1))),
        validation=clean(),
        rounds=3,
    )
    owners = crowd(flip=True)  # owners say the opposite of the truth
    spent = run(user, owners, order=np.arange(200))
    assert [row["kept"] for row in user.history] == [False] * 9  # 3 rounds, 2 retries each
    assert [row["attempt"] for row in user.history] == [1, 2, 3] * 3
    assert spent == owners.spent.sum() == 90
    assert user.model.rules == ()
    assert set(user.model.decide(clean()[0])) == {1}  # nobody voted: class 1 by convention


def test_feedback_estimates_the_weighted_error():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60_000, 2))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    rows = OwnerRows.grouped(X, y, groups=np.repeat(np.arange(30_000), 2))
    ensemble = vote().joined(STUMP, alpha=1.2)
    rule = StumpRule(feature=1, threshold=0.0, below=0, above=1)
    request = FeedbackRequest(ensemble=ensemble, rule=rule, cap=0.8)
    weights = np.minimum(ensemble.weights(X, y) / 0.8, 1)
    wrong = rule.decide(X) != y
    decoded = request.decode(
        request.answer(rows, epsilon=3.0, rng=SimulationSource(0)), epsilon=3.0, sizes=rows.sizes
    )
    truth = np.array([np.mean(weights * wrong), np.mean(weights * ~wrong)])
    # Variance of an indicator at most 0.4 over 30 000 owners: 4 standard errors.
    assert np.abs(decoded.mean(axis=0)[:2] - truth).max() < 4 * math.sqrt(0.4 / 30_000)
    assert decoded.mean(axis=0).sum() == pytest.approx(1)


def test_feedback_needs_no_clean_labels():
    user = samme(
        StatisticRequest(ensemble=vote(), thresholds=np.zeros((2, 1))),
        owners_per_round=50,
        feedback_owners=50,
        rounds=1,
    )
    owners = crowd(300, epsilon=4.0)
    assert run(user, owners, order=np.arange(300)) == 100
    assert [row["owners"] for row in user.history] == [100]
    X, y = clean()
    assert np.mean(user.model.decide(X) != y) < 0.05
    with pytest.raises(InvalidParameter, match="feedback_owners"):
        samme(StatisticRequest(ensemble=vote(), thresholds=np.zeros((2, 1))))


def test_three_classes_accept_rules_above_one_third():
    """α = log((1 - err)/err) + log(K - 1): 60 % error is better than chance among three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = np.column_stack([np.where(y == 0, -0.5, 0.5), rng.uniform(-1, 1, 600)])
    rows = OwnerRows.grouped(X, y, groups=np.repeat(np.arange(150), 4))
    request = StatisticRequest(ensemble=vote(classes=3), thresholds=np.zeros((2, 1)))
    user = samme(request, validation=(X, y), rounds=1, owners_per_round=150)
    user.absorb(
        Crowd(rows, epsilon=100.0, rng=SimulationSource(0)).answer(user.request, np.arange(150))
    )
    row = user.history[0]
    assert row["kept"]
    assert row["alpha"] == pytest.approx(math.log((1 - row["error"]) / row["error"]) + math.log(2))
    assert 0.2 < row["error"] < 0.5


def test_bad_requests_are_refused():
    with pytest.raises(InvalidParameter, match="thresholds"):
        StatisticRequest(ensemble=vote(), thresholds=np.zeros((1, 1)))
    with pytest.raises(InvalidParameter, match="mechanism"):
        SampleRequest(ensemble=vote(), mechanism="cap_index")
    with pytest.raises(InvalidParameter, match="bound"):
        ClassifierRequest(ensemble=vote(), bound=0.0)
    with pytest.raises(InvalidParameter, match="cap"):
        replace(SampleRequest(ensemble=vote()), cap=0.0)
    with pytest.raises(InvalidParameter, match="feature_bounds"):
        Ensemble.empty([(1.0, 1.0)], classes=2)
