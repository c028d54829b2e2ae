"""The test of equal means: its level, and what groups of which little is known cost it.

Errors of groups' means are drawn from laws like those of releases: sampling error of n_g people,
and noise on sums, of which a part is common to all groups.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda._validate import FloatArray
from dpfda.central.moments.inference import chance

COEFFICIENTS, DRAWS = 5, 400
SPREAD = np.arange(1, COEFFICIENTS + 1) ** -1.0


def drawn(size: int, people: FloatArray, noise: float, rng: np.random.Generator) -> FloatArray:
    """Errors of means, (size, groups, coefficients); noise has a deviation in people."""
    sampling = rng.normal(size=(size, len(people), COEFFICIENTS)) / np.sqrt(people)[:, None]
    added = rng.normal(size=sampling.shape) + rng.normal(size=(size, 1, COEFFICIENTS))
    return np.asarray((sampling + added * noise / people[:, None]) * SPREAD)


def found(people: FloatArray, apart: FloatArray, noise: float, *, times: int, seed: int) -> float:
    """How often p ≤ .05 in groups that are so far apart."""
    rng = np.random.default_rng(seed)
    null, seen = drawn(DRAWS, people, noise, rng), drawn(times, people, noise, rng)
    return float(np.mean([chance(null, one + apart) <= 0.05 for one in seen]))


def random_problem(seed: int) -> tuple[FloatArray, FloatArray, float]:
    """Two to six groups, shares of at least .08, effects that are found about half the time."""
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(2, 7))
    shares = np.clip(rng.dirichlet(np.full(groups, 3.0)), 0.08, 0.5)
    people = np.round(math.exp(rng.uniform(6, 9)) * shares / shares.sum())
    noise = math.exp(rng.uniform(0, 4))
    variance = (1 / people + 2 * (noise / people) ** 2)[:, None] * SPREAD**2
    effects = rng.normal(size=(groups, COEFFICIENTS)) * SPREAD
    weight = 1 / variance
    effects -= (weight * effects).sum(axis=0) / weight.sum(axis=0)
    reached = math.sqrt(float((effects**2 / variance).sum()))
    return people, effects * (2.6 + groups / 6) / reached, noise


def test_small_groups_cost_little_power_whatever_the_problem() -> None:
    alone, joined = [], []
    for seed in range(10):
        people, apart, noise = random_problem(seed)
        alone.append(found(people, apart, noise, times=60, seed=seed))
        rng = np.random.default_rng(seed)
        small = np.round(people.sum() * rng.uniform(0.02, 0.05, size=int(rng.integers(1, 3))))
        more = np.concatenate([people, small])
        padded = np.vstack([apart, np.zeros((len(small), COEFFICIENTS))])
        joined.append(found(more, padded, noise, times=60, seed=seed))
    assert 0.3 < np.mean(alone) < 0.9
    # The mean of 10 differences of powers from 60 replications each: standard error below .03.
    assert np.mean(alone) - np.mean(joined) < 0.05 + 2 * 0.03


@pytest.mark.parametrize("groups", [2, 5])
def test_the_level_holds(groups: int) -> None:
    people = np.geomspace(2000, 60, groups)
    share = found(people, np.zeros((groups, COEFFICIENTS)), 10.0, times=400, seed=0)
    assert share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_a_group_of_which_nothing_is_known_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    people, draws = np.array([500.0, 400.0, 600.0]), 10_000
    null, seen = drawn(draws, people, 5.0, rng), drawn(1, people, 5.0, rng)[0]
    joined = np.concatenate([null, 1e6 * rng.normal(size=(draws, 1, COEFFICIENTS))], axis=1)
    for value in (-1e6, 1e6):
        row = np.full((1, COEFFICIENTS), value)
        # Correlations of 10⁴ draws err by .01, and so do the other groups' means in deviations.
        assert chance(joined, np.vstack([seen, row])) == pytest.approx(chance(null, seen), abs=0.02)


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    people = np.array([500.0, 40.0, 600.0])
    null, seen = drawn(DRAWS, people, 5.0, rng), drawn(1, people, 5.0, rng)[0]
    for factor in (1e-9, 1e9):
        assert chance(factor * null, factor * seen) == chance(null, seen)
