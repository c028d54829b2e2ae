"""Accuracies from randomized verdicts: unbiased, with the variance they claim."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from dpfda.local.mrma.averaging import accuracies, largest_standard_error
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import SimulationSource
from dpfda.protocol.estimate import accuracy_estimate


def simulated(accuracy: float, *, people: int, epsilon: float, studies: int, seed: int):
    source = SimulationSource(seed)
    right = np.where(source.generator.random((studies, people)) < accuracy, 1.0, -1.0)
    totals = RandomizedResponse(epsilon=epsilon).randomize(right, source).sum(axis=1)
    return accuracies(totals, people, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("accuracy", [0.35, 0.5, 0.9])
def test_unbiased_with_the_stated_variance(accuracy: float, epsilon: float) -> None:
    studies, people = 20_000, 40
    found = simulated(accuracy, people=people, epsilon=epsilon, studies=studies, seed=1)
    q = RandomizedResponse(epsilon=epsilon).keep_probability
    p = q * accuracy + (1 - q) * (1 - accuracy)
    true_error = np.sqrt(p * (1 - p) / people) / (2 * q - 1)
    # Five standard errors of a mean over the studies.
    assert abs(found.value.mean() - accuracy) < 5 * true_error / np.sqrt(studies)
    # A sample standard deviation has relative error sqrt((kurtosis - 1)/(4 studies)); a binomial of
    # 40 trials has kurtosis at most 3 + 1/(40 p (1-p)) < 3.4 here: five of those are 0.028.
    assert found.value.std() == pytest.approx(true_error, rel=0.028)
    assert true_error <= largest_standard_error(people, epsilon=epsilon) * (1 + 1e-9)


def test_intervals_cover() -> None:
    found = simulated(0.7, people=200, epsilon=1.0, studies=5_000, seed=2)
    low, high = found.interval(0.9)
    covered = np.mean((low <= 0.7) & (high >= 0.7))
    # Five standard errors of a share of 5000, and the discreteness of 200 verdicts
    # (one verdict has probability 0.055 at the edge, of which half may fall either side).
    assert abs(covered - 0.9) < 5 * np.sqrt(0.09 / 5_000) + 0.01


def test_agrees_with_the_single_estimate() -> None:
    found = accuracies([12.0, -30.0], [50, 60], epsilon=0.7)
    for place, (total, people) in enumerate([(12.0, 50), (-30.0, 60)]):
        single = accuracy_estimate(total=total, people=people, epsilon=0.7)
        assert found.value[place] == pytest.approx(single.value)
        assert found.standard_error[place] == pytest.approx(single.standard_error)


def test_nobody_answered() -> None:
    found = accuracies([0.0], [0], epsilon=1.0)
    assert found.value.tolist() == [0.5]
    assert np.isinf(found.standard_error).all()
    assert largest_standard_error(0, epsilon=1.0) == np.inf


@pytest.mark.parametrize(("epsilon", "expected"), [(0.1, 0.53), (0.5, 0.64), (1.0, 0.74)])
def test_right_reversal_probability(epsilon: float, expected: float) -> None:
    # Theorem 5 of 001 leaves the randomized response out and claims 0.93 where this is 0.74 (C5).
    q = RandomizedResponse(epsilon=epsilon).keep_probability
    p = 0.6 * q + 0.4 * (1 - q)
    stated = ndtr(np.sqrt(50) * (2 * q - 1) * 0.1 / np.sqrt(p * (1 - p)))
    assert round(float(stated), 2) == expected
    found = simulated(0.6, people=50, epsilon=epsilon, studies=40_000, seed=3)
    # Ties (r̃ = ½ exactly, 25 of 50) keep the classifier: half of their mass, up to 0.056, is what
    # the normal law does not know; the rest is sampling error.
    share = np.mean(found.value > 0.5) + 0.5 * np.mean(found.value == 0.5)
    assert abs(share - stated) < 0.005 + 5 * np.sqrt(0.25 / 40_000)
