"""Gradient reports: what owners send, what the data user concludes."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import LocalGradientBoostingClassifier
from dpfda.local.boosting.gradient_requests import (
    FeatureMap,
    GradientRequest,
    information,
    mean_variance,
    most_likely,
    prior_precision,
    probabilities,
    report_gain,
)
from dpfda.local.boosting.gradient_study import Hostile, Posterior, best_view, report_slope
from dpfda.local.boosting.request import OwnerRows
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.mechanisms.codebook import CODEBOOKS
from dpfda.noise import SimulationSource


def test_reports_are_unbiased_for_the_shortened_gradient(request_of):
    request = request_of("gradient", people=40_000, epsilon=3.0)
    rows = OwnerRows.grouped([[0.9, -0.4], [0.2, 1.0]], [1, 0], groups=[0, 0])
    phi = request.features(rows.features)[0]
    gradient = ((np.array([1, 0]) - 0.5) @ phi) / 2 @ request.projection
    length = np.linalg.norm(gradient)
    wanted = gradient / length * min(length / request.longest(np.array([2]))[0], 1.0)
    many = rows.take(np.zeros(40_000, dtype=int))
    decoded = request.estimates(request.answer(many, SimulationSource(1)).values)
    # Standard error: each report has variance about 1/m² = 0.75 a coordinate; 4.5 of them.
    tolerance = 4.5 * np.sqrt(0.8 / 40_000)
    assert np.abs(decoded.mean(axis=0) - wanted).max() < tolerance
    assert np.abs(wanted).max() > 10 * tolerance


@pytest.mark.parametrize(("epsilon", "length"), [(1.0, 0.0), (1.0, 1.0), (8.0, 0.3), (8.0, 1.0)])
def test_the_noise_of_a_round_is_known(epsilon, length):
    """4000 rounds of three owners, two of whom agree; the spread of a spread is about 2 %."""
    k, rounds = 4, 4000
    words = CapIndex.best(epsilon=epsilon, dimension=k)
    gradients = length * np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    reports = words.debias(words.randomize(np.tile(gradients, (rounds, 1)), SimulationSource(0)))
    means = reports.reshape(rounds, 3, k).mean(axis=1)
    third = np.full(3, 1 / 3)
    told = np.array([mean_variance(m, third, np.array([epsilon]), np.zeros(3, int)) for m in means])
    spread = (means - means.mean(axis=0)).var(axis=0).mean()
    assert told.min() > 0
    # What owners differ by counts as noise: at most |g|²/k of one report.
    assert 0.9 * spread < told.mean() < 1.1 * spread + length**2 / (3 * k)


def test_prices_of_reports_are_told_apart():
    prices = np.array([1.0, 8.0])
    words = [CapIndex.best(epsilon=price, dimension=4) for price in prices.tolist()]
    noise = [one.variance(np.zeros((1, 4))).mean() for one in words]
    found = mean_variance(np.zeros(4), np.array([0.25, 0.75]), prices, np.array([0, 1]))
    assert found == pytest.approx(noise[0] / 16 + noise[1] * 9 / 16)


def test_a_round_of_one_owner_is_not_believed():
    """Such rounds were taken for certain: log-loss 5.1 on average, against 0.69 of no model."""
    losses = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 3))
        test = rng.normal(size=(1000, 3))
        model = LocalGradientBoostingClassifier(
            2.0, n_rounds=10, classes=(False, True), random_state=seed
        )
        owners = np.repeat(np.arange(10), 4)
        model.fit(X, X[:, 0] > 0, groups=owners, reference=rng.normal(size=(300, 3)))
        chances = model.predict_proba(test)[np.arange(1000), (test[:, 0] > 0).astype(int)]
        losses.append(-np.log(np.maximum(chances, 1e-12)).mean())
    assert np.mean(losses) < 1.0


def test_padding_changes_nothing(request_of):
    request = request_of("gradient", epsilon=5.0, n_rows=5)
    one = OwnerRows.grouped([[0.3, 0.2], [0.5, 0.1]], [1, 0], groups=[0, 0])
    padded = OwnerRows(
        np.concatenate([one.features, np.full((1, 3, 2), 7.0)], axis=1),
        np.concatenate([one.labels, np.ones((1, 3), dtype=np.int64)], axis=1),
        np.array([[True, True, False, False, False]]),
    )
    replies = [request.answer(rows, SimulationSource(2)).values for rows in (one, padded)]
    assert np.array_equal(*replies)


@pytest.mark.parametrize("classes", [2, 3])
def test_fisher_information_is_the_covariance_of_the_score(classes):
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(1, 3))
    theta = rng.normal(size=(classes - 1, 3))
    chances = probabilities(phi, theta)
    full = np.concatenate([1 - chances.sum(axis=1, keepdims=True), chances], axis=1)[0]
    scores = [np.kron((np.arange(1, classes) == k) - chances[0], phi[0]) for k in range(classes)]
    exact = sum(p * np.outer(s, s) for p, s in zip(full, scores, strict=True))
    assert np.allclose(information(phi, chances), exact)


def test_map_estimate_has_no_gradient(two_classes):
    X, y = two_classes(200, seed=5)
    phi = np.column_stack([np.ones(200), X])
    precision = prior_precision(np.full(5, 2.0), classes=2)
    theta, _ = most_likely(phi, y, precision=precision, classes=2)
    slope = (y - probabilities(phi, theta)[:, 0]) @ phi - precision @ theta[0]
    assert np.abs(slope).max() < 1e-6


def test_slope_of_reports_matches_a_simulation():
    """Move θ* a little: the mean report moves by A times the whitened move."""
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(2000, 3))
    features = FeatureMap.learnt(reference, products=0)
    belief = Posterior(np.diag(1 / features.prior_variance), np.zeros(4), 2)
    phi = features(reference)
    view = best_view(belief, phi, owners=1000, rows=4, hostile=Hostile(0.0, 1.2, 10, 4))
    request = GradientRequest(
        epsilon=5.0,
        people=20_000,
        dimension=3,
        n_classes=2,
        n_rows=4,
        features=features,
        coefficients=belief.coefficients,
        projection=view.projection,
    )
    slope = report_slope(request, phi, sizes=np.array([4]), generator=rng)
    move = np.array([[0.0, 0.3, -0.2, 0.1]])
    X = rng.normal(size=(80_000, 3))
    y = (rng.random(80_000) < probabilities(features(X), move)[:, 0]).astype(int)
    owners = OwnerRows.grouped(X, y, groups=np.repeat(np.arange(20_000), 4))
    replies = request.answer(owners, SimulationSource(0)).values
    mean = request.estimates(replies).mean(axis=0)
    expected = slope * view.design @ move.ravel()
    # Noise: 1/m² = 0.3 over 20 000 owners, 5 standard errors; 10 % for the second order.
    assert np.abs(mean - expected).max() < 5 * np.sqrt(0.35 / 20_000) + 0.1 * np.abs(expected).max()


def test_feature_map_ignores_directions_without_signal():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(300, 3))
    rows = np.column_stack([base, base @ rng.normal(size=(3, 4))])
    features = FeatureMap.learnt(rows, products=0)
    assert features.size == 4
    again = FeatureMap.from_dict(features.to_dict())
    assert np.array_equal(again(rows), features(rows))
    assert features(rows)[:, 1:].std(axis=0) == pytest.approx(np.ones(3), abs=0.05)
    assert np.abs(features(1e9 * np.ones((1, 7)))).max() <= 4


def test_many_directions_only_when_they_can_be_told():
    features = FeatureMap.learnt(np.random.default_rng(0).normal(size=(500, 8)), products=0)
    belief = Posterior(np.diag(1 / features.prior_variance), np.zeros(9), 2)
    phi = features(np.random.default_rng(1).normal(size=(500, 8)))
    few = best_view(belief, phi, owners=5, rows=1, hostile=Hostile(0.0, 0.3, 10, 9))
    many = best_view(belief, phi, owners=100_000, rows=1, hostile=Hostile(0.0, 0.3, 10, 9))
    assert len(few.doubt) < len(many.doubt) == 9


def test_hostile_owners_push_no_harder_than_the_shift_says():
    """All of them send the word of a codebook that lies farthest along one direction."""
    k, share, epsilon = 3, 0.2, 2.0
    words = CapIndex.best(epsilon=epsilon, dimension=k)
    rng = np.random.default_rng(0)
    sent = np.column_stack([rng.integers(0, CODEBOOKS, 4096), rng.integers(0, words.words, 4096)])
    farthest = share * words.debias(sent.astype(float))[:, 0].max()
    gain = report_gain(epsilon, directions=k)
    allowed = Hostile(share=share, gain=gain, rounds=1, size=k).shift(np.array(k))
    assert 0.9 * allowed < farthest**2 < 1.01 * allowed


def test_fewer_directions_where_hostile_owners_are_expected():
    features = FeatureMap.learnt(np.random.default_rng(0).normal(size=(500, 8)), products=0)
    belief = Posterior(np.diag(1 / features.prior_variance), np.zeros(9), 2)
    phi = features(np.random.default_rng(1).normal(size=(500, 8)))
    numbers = [
        len(best_view(belief, phi, owners=10_000, rows=1, hostile=Hostile(share, 0.8, 10, 9)).doubt)
        for share in (0.0, 0.05, 0.1, 0.2, 0.5)
    ]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == 9
    assert numbers[-1] == 1
