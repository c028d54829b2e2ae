"""Weights, cutoffs and averages."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.errors import InvalidParameter
from dpfda.local.mrma.averaging import (
    check_cutoff,
    default_cutoff,
    directions,
    strengths,
    unit_norm,
    weights,
)
from dpfda.local.mrma.members import draw_members, judge

RNG = np.random.default_rng(0)


def test_weights_follow_equation_10() -> None:
    found = weights([0.9, 0.7, 0.85], cutoff=0.8)
    np.testing.assert_allclose(found.value, [0.1 / 0.15, 0, 0.05 / 0.15])
    assert found.survived


def test_no_survivor_uses_the_strongest_and_says_so() -> None:
    found = weights([[0.7, 0.75], [0.9, 0.1]], cutoff=0.8)
    np.testing.assert_allclose(found.value, [[0, 1], [1, 0]])
    assert found.survived.tolist() == [False, True]


def test_batches_equal_single_studies() -> None:
    totals = RNG.integers(-20, 21, (3, 4, 7)).astype(float)
    people = RNG.integers(20, 25, (7,))
    whole = judge(totals, people, epsilon=1.0)
    for place in np.ndindex(3, 4):
        one = judge(totals[place], people, epsilon=1.0)
        np.testing.assert_array_equal(whole.signed_weight[place], one.signed_weight)
        np.testing.assert_array_equal(whole.cutoff[place], one.cutoff)


def test_default_cutoff_follows_noise_and_group_size() -> None:
    found = default_cutoff([10, 1000, 0], epsilon=0.5, strictness=1.0)
    assert found[0] > found[1] > 0.5
    assert np.isinf(found[2])
    assert np.isinf(default_cutoff(0, epsilon=0.5, strictness=0.0))
    wider = default_cutoff(10, epsilon=0.5, strictness=2.0)
    np.testing.assert_allclose(wider - 0.5, 2 * (found[0] - 0.5))


def test_reversal_keeps_a_half() -> None:
    assert directions([0.5, 0.4999, 0.6]).tolist() == [1.0, -1.0, 1.0]
    assert strengths([0.5, 0.4, 1.3]).tolist() == [0.5, 0.6, 1.3]


def test_unit_norm_keeps_every_decision_and_a_silent_member() -> None:
    intercept, slopes = RNG.normal(size=5) * 100, RNG.normal(size=(5, 2))
    slopes[4], intercept[4] = 0, 0
    a, b = unit_norm(intercept, slopes)
    np.testing.assert_allclose(a[:4] ** 2 + (b[:4] ** 2).sum(axis=1), 1)
    assert a[4] == 0
    rows = RNG.normal(size=(50, 2))
    np.testing.assert_array_equal(rows @ b.T + a >= 0, rows @ slopes.T + intercept >= 0)


@pytest.mark.parametrize("cutoff", [0.4, 1.0, float("nan"), "0.8"])
def test_impossible_cutoffs_are_refused(cutoff: object) -> None:
    with pytest.raises(InvalidParameter, match="cutoff"):
        check_cutoff(cutoff)


def test_members_are_uniform_subsets() -> None:
    chosen = draw_members(RNG.random((30_000, 3)), among=5)
    assert (np.diff(np.sort(chosen, axis=1)) > 0).all()
    codes = np.sort(chosen, axis=1) @ [25, 5, 1]
    _, counts = np.unique(codes, return_counts=True)
    assert len(counts) == 10
    # Each of the 10 subsets has 3000 ± sqrt(2700) draws; five standard deviations.
    assert abs(counts - 3000).max() < 5 * np.sqrt(2700)
