"""The default mean on random curves: beside the public center, with a δ, and in its band."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpfda import PrivateMean
from dpfda_bench.random_curves import HOLDING, SHAPES, CurveProblem, problem

SEEDS = range(4)


def problems(n: int) -> list[CurveProblem]:
    return [
        problem(seed, shape=shape, slack=slack, n=n)
        for seed in SEEDS
        for shape in SHAPES
        for slack in HOLDING
    ]


def released(drawn: list[CurveProblem], epsilon: float, delta: float) -> tuple[float, float]:
    """Mean error, and how many bands hold the sample's mean."""
    errors, held = [], []
    for seed, one in enumerate(drawn):
        model = PrivateMean(epsilon, delta=delta, value_range=one.value_range, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = model.fit(one.curves, grid_points=one.grid_points).release_
        low, high = release.interval(simultaneous=True)
        truth = one.curves.mean(axis=0)
        errors.append(one.error(release.values()))
        held.append(bool(np.all((low <= truth) & (truth <= high))))
    return float(np.mean(errors)), float(np.mean(held))


@pytest.mark.parametrize(("n", "epsilon"), [(10, 0.1), (100, 0.1), (100, 1.0), (300, 1.0)])
def test_no_worse_than_the_center_and_no_worse_with_a_delta(n: int, epsilon: float) -> None:
    drawn = problems(n)
    center = float(np.mean([one.error(one.center) for one in drawn]))
    pure, held = released(drawn, epsilon, 0.0)
    both, held_too = released(drawn, epsilon, 1e-6)
    assert pure <= 1.05 * center
    assert both <= 1.05 * pure
    # At least .92 of all; three standard deviations of 60 are .1.
    assert min(held, held_too) >= 0.82


def test_a_delta_leaves_pure_noise_where_that_is_smaller() -> None:
    curves = np.sin(3 * np.linspace(0, 1, 30)) + np.zeros((30, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few, many = (
            PrivateMean(1.0, delta=1e-6, value_range=(-2, 2), random_state=0).fit(
                np.repeat(curves, times, axis=0)
            )
            for times in (1, 100)
        )
    assert {law.law for law in few.release_.noise} == {"spherical"}
    assert {law.law for law in many.release_.noise} == {"gaussian"}
