"""Derivatives of released curves."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import PrivateDensity, PrivateMean
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter

T = np.linspace(0, 1, 50)
SLOPE = 0.6 * np.pi * np.cos(2 * np.pi * T)


def released(seed: int, n: int = 3000) -> Release:
    shifts = 0.05 * np.random.default_rng(0).normal(size=(n, 1))
    curves = 0.5 + 0.3 * np.sin(2 * np.pi * T) + shifts - shifts.mean()
    fit = PrivateMean(1.0, value_range=(0, 1), random_state=seed)
    return fit.fit(curves, grid_points=T).release_


def test_bands_of_the_derivative_hold_it() -> None:
    held, whole = [], []
    for seed in range(12):
        release = released(seed)
        own, low, high = release.derivative()
        held.append(np.mean((low <= SLOPE) & (high >= SLOPE)))
        assert np.all((low <= own) & (own <= high))
        _, low, high = release.derivative(simultaneous=True)
        whole.append(np.all((low <= SLOPE) & (high >= SLOPE)))
    # Nominal 0.95; points of a curve move together, so 12 curves scatter by about 0.05.
    assert np.mean(held) > 0.85
    assert sum(whole) >= 9


def test_a_derivative_is_that_of_the_released_curve() -> None:
    release = released(0)
    fine = np.linspace(0.1, 0.9, 801)
    slope, _, _ = release.derivative(grid_points=fine)
    steps = np.gradient(release.values(fine), fine)
    np.testing.assert_allclose(slope[1:-1], steps[1:-1], atol=0.02)
    bend, _, _ = release.derivative(2, grid_points=fine)
    np.testing.assert_allclose(bend[1:-1], np.gradient(slope, fine)[1:-1], atol=2.0)


@pytest.mark.parametrize("order", [0, 3])
def test_other_orders_are_refused(order: int) -> None:
    with pytest.raises(InvalidParameter, match="order"):
        released(0, 300).derivative(order)


def test_densities_and_places_outside_are_refused() -> None:
    points = np.random.default_rng(0).uniform(size=500)
    density = PrivateDensity(1.0, feature_ranges=[(0, 1)], random_state=0).fit(points[:, None])
    with pytest.raises(InvalidParameter, match="order"):
        density.release_.derivative()
    with pytest.raises(InvalidParameter, match="inside the domain"):
        released(0, 300).derivative(grid_points=[0.5, 1.5])
