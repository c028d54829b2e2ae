"""Means of curves of any shape."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import PrivateMean
from dpfda.central.adaptive import MeanPlan, lost_search
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
