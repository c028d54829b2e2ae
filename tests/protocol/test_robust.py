"""Defenses against people who lie."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.noise import SimulationSource
from dpfda.protocol.server import clipped, report_bound, steadied
from dpfda.protocol.tasks.questions import StumpTask
from dpfda.protocol.tasks.vector import MomentTask, VectorTask


def test_a_lie_is_clipped_and_honest_reports_stay() -> None:
    task = VectorTask(epsilon=2.0, people=4000, dimension=4)
    honest = task.answer(
        (np.zeros((4000, 4)), np.ones(4000, dtype=int)), SimulationSource(0)
    ).values
    kept = clipped(task, honest)
    # Laplace beyond 4 standard deviations plus 1: a chance below e^-5.6 = 0.4 % for each number.
    assert np.mean(kept != honest) < 0.008
    bound = report_bound(task)
    assert bound is not None
    assert clipped(task, np.full((1, 5), 1e9)).max() == bound


def test_bits_are_left_alone() -> None:
    task = StumpTask(
        epsilon=1.0, people=1, coordinates=[[0, 1]], thresholds=[[0.0, 0.0]], positive=[1]
    )
    assert report_bound(task) is None
    assert clipped(task, np.array([[1.0, -1.0]])).tolist() == [[1.0, -1.0]]


@pytest.mark.parametrize("liars", [0, 10])
def test_the_median_of_means_withstands_liars(liars: int) -> None:
    task = MomentTask(epsilon=4.0, people=1000, dimension=2, positive=np.ones(1000, dtype=int))
    told = task.answer(
        (np.full((1000, 2), 0.5), np.ones(1000, dtype=int)), SimulationSource(1)
    ).values
    told[:liars] = 1e3
    plain, steady = told.mean(axis=0), steadied(told, groups=100).mean(axis=0)
    # Standard error of the mean: deviation / √1000; the median of 100 means has √(π/2) times that,
    # and 10 bad groups of 100 shift it by a tenth in rank. Four of these bound it.
    error = np.sqrt(task.mechanism.variance(np.full((1, 2), 0.5)).max() / 1000)
    assert np.abs(steady - 0.5).max() < 4 * error * np.sqrt(np.pi / 2) + error
    if liars:
        assert plain.min() > 5, "what it withstands"


def test_the_spread_is_kept() -> None:
    told = np.random.default_rng(0).normal(size=(300, 2))
    assert np.allclose(steadied(told, groups=10).var(axis=0), told.var(axis=0))
