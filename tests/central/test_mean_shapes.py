"""Means of curves of any shape."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpfda import PrivateFunctionOnScalar, PrivateMean
from dpfda.central.adaptive import MeanPlan, lost_search
from dpfda.central.release import Release
from dpfda.errors import InvalidData
from dpfda.privacy.cost import Cost

T = np.linspace(0.0, 1.0, 168)


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("turns", [1, 7, 10])
def test_curves_that_turn_often_are_not_flattened(
    turns: int, delta: float, inference: bool
) -> None:
    """The center of the range would have all of the error."""
    rng = np.random.default_rng(turns)
    curves = 0.9 * np.sin(2 * np.pi * turns * T) + 0.05 * rng.normal(size=(1000, 1))
    truth = curves.mean(axis=0)
    for seed in range(3):
        model = PrivateMean(
            1.0, delta=delta, value_range=(-1, 1), inference=inference, random_state=seed
        )
        model.fit(curves, grid_points=T)
        assert np.mean((model.mean_ - truth) ** 2) < 0.35 * np.mean(truth**2)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_few_searches_for_a_radius_are_misled() -> None:
    """With 15 % of ε for the search, 8 of 40 means were flat in a thin band without a warning."""
    t, silent = np.linspace(0.0, 1.0, 50), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        curves = np.sin(16 * np.pi * t) + 0.1 * rng.normal(size=(200, 1))
        curves = curves + 0.05 * rng.normal(size=(200, 50))
        model = PrivateMean(1.0, delta=0.0, value_range=(-1.5, 1.5), random_state=seed)
        release, truth = model.fit(curves, grid_points=t).release_, curves.mean(axis=0)
        low, high = release.interval(0.95, simultaneous=True)
        silent += not (release.warnings or np.all((low <= truth) & (truth <= high)))
    assert silent <= 4  # .05 of 40 expected at most, and √2 standard deviations


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_plans_of_means_search_safely_where_they_can(delta: float) -> None:
    """A misled search is at most as probable as a band that misses."""
    for strength in np.geomspace(10, 10_000, 13):
        cost = Cost(epsilon=strength / 1000, delta=delta)
        plan = MeanPlan.of((cost,), n=1000, most=50)
        if plan.first and plan.search < 0.3:  # the largest share that is tried
            assert lost_search(plan.cost.part(plan.search), 1000) <= 0.05


def test_bands_draw_from_all_that_may_be_left_out() -> None:
    # Half of the time 1, half of the time 10: 5 % of the draws are beyond 16.4, where
    # P(|N| > 16.4) + P(|N| > 1.64) = 10 %; the largest alone would give 19.6.
    curves = np.zeros((50, 8))
    found = PrivateMean(1.0, value_range=(-1, 1), random_state=0).fit(curves).release_
    silent = tuple(replace(law, scales=0 * law.scales) for law in found.noise)
    bare = replace(found, noise=silent, coefficients=found.noisy, unseen=np.array([1.0, 10.0]))
    low, high = bare.interval(0.95)
    # 4000 paths: the share beyond has the standard error .0034, and the density there is .01.
    assert np.allclose((high - low) / 2, 16.45, atol=4 * 0.35)
    stored = Release.from_json(bare.to_json())
    assert np.array_equal(stored.interval(0.95), (low, high))


def test_several_functions_may_share_what_is_left_out() -> None:
    curves, groups = np.zeros((60, 8)), np.arange(60) % 2
    fit = PrivateFunctionOnScalar(5.0, value_range=(-1, 1), feature_ranges=(0, 1), random_state=0)
    found = fit.fit(groups[:, None], curves).release_
    alone = replace(found, solved=None, coefficients=found.noisy)
    beside = replace(alone, unseen=np.array([1.0, 10.0]))
    narrow, wide = (np.ptp(one.interval(0.95), axis=0) for one in (alone, beside))
    assert wide.shape == found.values().shape
    assert np.all(wide > narrow + 2)


@pytest.mark.parametrize("unseen", [[], [-1.0], [[1.0]], 1.0, "1"])
def test_a_stored_release_states_what_it_may_leave_out(unseen: Any) -> None:
    found = PrivateMean(1.0, value_range=(-1, 1), random_state=0).fit(np.zeros((50, 8))).release_
    body = json.loads(found.to_json()) | {"unseen": unseen}
    with pytest.raises(InvalidData, match="unseen"):
        Release.from_json(json.dumps(body))
