"""What owners compute before anything is randomized, number by number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dpfda.errors import InvalidParameter
from dpfda.local.boosting.ensemble import StumpRule
from dpfda.local.boosting.gradient_requests import mean_variance
from dpfda.local.boosting.request import OwnerRows
from dpfda.local.boosting.samme_study import local_logistic
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.noise import SimulationSource

SOURCE = SimulationSource(0)


def test_as_many_places_as_rows_count():
    rows = OwnerRows.grouped(np.arange(10.0)[:, None], np.zeros(10), groups=[0, 0, 0, *[1] * 7])
    assert rows.features.shape == (2, 7, 1)
    for most in (2, 7, 9):
        kept = rows.first(most)
        assert kept.features.shape == (2, most, 1)
        assert kept.labels.shape == kept.present.shape == (2, most)
        assert kept.present.sum(axis=1).tolist() == [min(3, most), min(7, most)]
    gaps = OwnerRows(np.arange(3.0).reshape(1, 3, 1), np.arange(3)[None], np.array([[0, 1, 1]]) > 0)
    assert gaps.first(2).labels.tolist() == [[1, 2]]


def test_gradients_are_cut_where_few_rows_would_be_longer(request_of):
    request = request_of("gradient", radius=0.5)
    found = request.longest(np.array([1, 4, 9]))
    np.testing.assert_allclose(found, 0.5 * np.sqrt(3 / np.array([1, 4, 9])))


def test_the_variance_of_a_mean_of_reports_is_known():
    weights, kind = np.array([0.5, 0.3, 0.2]), np.array([0, 1, 1])
    epsilons = np.array([1.0, 4.0])
    none = np.zeros((1, 2))
    one, four = (CapIndex.best(epsilon=e, dimension=2).variance(none).mean() for e in epsilons)
    noise = 0.25 * one + (0.09 + 0.04) * four
    for length in (0.1, 1.1, 50.0):
        mean = np.sqrt(2 * noise) * np.array([length, 0.0])
        shown = np.clip(2 * noise * (length**2 - 1), 0.0, 1.0)
        found = mean_variance(mean, weights, epsilons, kind)
        assert found == pytest.approx(noise - 0.38 * shown / 2, rel=1e-12)


def test_local_fits_minimize_the_weighted_loss():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(3, 6, 2)), rng.random((3, 6)) < 0.5
    weights, ridge = rng.random((3, 6)), 0.5
    theta = local_logistic(rows, labels, weights, ridge=ridge)
    chance = expit(np.einsum("hnd,hd->hn", rows, theta))
    slope = np.einsum("hn,hnd->hd", weights * (chance - labels), rows) + ridge * theta
    assert np.abs(slope).max() < 1e-12
    assert np.abs(theta).max() > 0.1


def test_local_fits_are_sent_in_units_of_their_bound(request_of):
    rows = OwnerRows(
        np.array([[[0.9, -0.5], [-0.4, 0.2]]]), np.array([[1, 0]]), np.ones((1, 2)) > 0
    )
    one, two = (
        request_of("classifier", bound=bound, n_rows=2).exact(rows, SOURCE) for bound in (1.0, 2.0)
    )
    assert 0 < np.abs(one).max() < 1
    np.testing.assert_allclose(two, one / 2)


@pytest.mark.parametrize("name", ["sample", "statistic", "classifier"])
def test_shares_stay_in_the_box(name, request_of):
    rng = np.random.default_rng(1)
    rows = OwnerRows(rng.normal(size=(50, 3, 2)), rng.integers(0, 2, (50, 3)), np.ones((50, 3)) > 0)
    small = {"classifier": {"bound": 1e-6}, "sample": {"cap": 1e-6}}.get(name, {})
    share = request_of(name, people=50, **small).exact(rows, SOURCE)
    assert np.abs(share).max() <= 1
    assert (share.max(), share.min()) == (1.0, -1.0) or name == "statistic"


def test_statistics_divide_by_the_mean_weight_or_the_cap(request_of):
    rows = OwnerRows(np.array([[[0.5, 0.0], [-0.5, 0.0]]] * 2), np.array([[1, 0], [0, 0]]),
                     np.array([[True, True], [True, False]]))  # fmt: skip
    # The vote so far is right about owner 1's rows, and wrong about owner 2's.
    low = np.exp(-0.7)
    for cap in (0.2, 0.8):
        inside, weights = request_of("statistic", people=2, n_rows=2, cap=cap).weighted(rows)
        assert np.array_equal(inside, rows.features)
        expected = [[low / max(low, cap)] * 2, [1.0, 0.0]]
        np.testing.assert_allclose(weights, expected)


def test_centroids_lie_where_rows_can(request_of):
    rule = request_of("sample").base_learner(np.array([3.0, -0.4, 0.5, 0.7, -9.0, 1.0]))
    np.testing.assert_allclose(rule.centroids, [[1.0, -0.8], [0.7, -1.0]])


@pytest.mark.parametrize("wrong", [{"feature": 2}, {"above": 2}, {"below": 2}])
def test_feedback_is_about_a_rule_for_these_rows(wrong, request_of):
    fields = {"feature": 0, "threshold": 0.1, "below": 0, "above": 1}
    assert request_of("feedback", rule=StumpRule(**fields)).rule.feature == 0
    with pytest.raises(InvalidParameter, match="rule"):
        request_of("feedback", rule=StumpRule(**(fields | wrong)))
