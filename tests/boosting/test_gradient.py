"""Gradient reports: what owners send, what the data user concludes."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.boosting.feature_map import FeatureMap
from dpfda.boosting.logistic import information, most_likely, prior_precision, probabilities
from dpfda.boosting.owner_rows import OwnerRows
from dpfda.boosting.posterior import Posterior, best_view, report_slope
from dpfda.boosting.requests.gradient import GradientRequest
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
    view = best_view(belief, phi, owners=1000, rows=4, gain=1.2)
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
    few = best_view(belief, phi, owners=5, rows=1, gain=0.3)
    many = best_view(belief, phi, owners=100_000, rows=1, gain=0.3)
    assert len(few.doubt) < len(many.doubt) == 9
