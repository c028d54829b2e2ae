"""Means of curves of any shape."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import PrivateMean

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
