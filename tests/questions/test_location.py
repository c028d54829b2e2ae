"""Noisy halving: where a number lies that everybody has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpfda.questions.location import Search, counted

GRID = np.linspace(-1, 1, 401)
SCALES = np.geomspace(0.003, 0.3, 7)
NOBODY = np.zeros((len(GRID), 2))


def unknown(alpha: float = 1.0) -> Search:
    return Search(GRID, SCALES, np.zeros((len(SCALES), len(GRID))), NOBODY, alpha)


def test_questions_close_in() -> None:
    """Truthful people at 0.25 ± 0.01: after 200 answers thresholds lie around them."""
    rng = np.random.default_rng(0)
    search = unknown()
    early = search.thresholds(rng.random((300, 2)))
    assert early.min() < -0.4
    assert early.max() > 0.4
    for _ in range(8):
        asked = search.thresholds(rng.random((25, 2)))
        told = np.where(rng.normal(0.25, 0.01, (25, 1)) > asked, 1.0, -1.0)
        search = replace(search, counts=search.counts + counted(GRID, asked, told))
    assert abs(search.median - 0.25) < 0.01
    assert search.doubt < 0.01
    assert search.scale < 0.02
    assert np.abs(search.thresholds(rng.random((300, 2))) - 0.25).max() < 0.05


def test_the_posterior_is_that_of_the_model() -> None:
    """Two answers by hand: the sum over thresholds is a convolution."""
    asked = np.array([[-0.3], [0.4]])
    counts = counted(GRID, asked, np.array([[1.0], [-1.0]]))
    assert counts.sum() == 2
    prior = np.random.default_rng(0).normal(size=(len(SCALES), len(GRID)))
    found = replace(unknown(0.5), prior=prior, counts=counts).posterior
    expected = np.exp(prior)
    for threshold, sign in ((-0.3, 1), (0.4, -1)):
        z = np.clip((GRID - threshold) / SCALES[:, None], -500, 500)
        expected = expected * (0.5 + sign * 0.5 * 0.98 * (1 / (1 + np.exp(-z)) - 0.5))
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-12)


def test_what_is_known_is_read_off_the_posterior() -> None:
    at = np.full((2, len(GRID)), -np.inf)
    at[0, 100], at[1, 300] = np.log(0.4), np.log(0.6)  # m = -0.5 with s = 0.01, 0.5 with 0.1
    search = replace(unknown(), scales=np.array([0.01, 0.1]), prior=at)
    assert search.median == pytest.approx(0.5)
    assert search.doubt == pytest.approx(np.sqrt(0.4))
    assert search.scale == pytest.approx(0.01**0.4 * 0.1**0.6)


def test_thresholds_are_a_scale_around_the_middle_half() -> None:
    search = replace(unknown(), scales=np.array([0.1]), prior=np.zeros((1, len(GRID))))
    ends = search.thresholds(np.array([[0.0, 0.0], [0.999, 0.0]]))[:, 0]
    np.testing.assert_allclose(ends, [-0.5, 0.5], atol=0.011)
    four = search.thresholds(np.array([[0.5] * 4 + [0.0] * 4]))[0]
    np.testing.assert_allclose(four, [0, -0.11, 0, 0.11], atol=0.006)
    turned = search.thresholds(np.array([[0.5, 0.25]]))[0]
    np.testing.assert_allclose(turned, [-0.11], atol=0.006)


def test_answers_are_counted_at_the_nearest_threshold() -> None:
    counts = counted(GRID, np.array([-5.0, 0.0021, 0.0029, 5.0]), np.array([1.0, -1.0, 1.0, -1.0]))
    places = [tuple(map(int, one)) for one in np.argwhere(counts)]
    assert places == [(0, 1), (200, 0), (201, 1), (400, 0)]


def test_a_margin_is_where_nine_of_ten_lie_whatever_the_others_do() -> None:
    prior = np.full((len(SCALES), len(GRID)), -np.inf)
    prior[:, 180:221] = 0.0  # anywhere between -0.1 and 0.1
    search = Search(GRID, SCALES, prior, NOBODY, alpha=1.0)
    assert search.margin == pytest.approx(0.09, abs=0.005)
    prior[:, 400] = np.log(41 * 0.04)  # and one of twenty-six times far away
    far = Search(GRID, SCALES, prior, NOBODY, alpha=1.0)
    assert far.margin == pytest.approx(0.095, abs=0.005)
    assert far.doubt > 0.15
