"""Spherical noise is exact on the lattice and pays for an ellipsoid only."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from planted import Words
from scipy import stats

from dpfda.mechanisms.ellipsoid_laplace import EllipsoidLaplace, best_blocks
from dpfda.noise import SimulationSource
from dpfda.noise.discrete import _acceptance, _accepted, _exact_coin, spherical_laplace


def test_small_lattice_has_the_stated_probabilities() -> None:
    draws = 40_000
    k = spherical_laplace(draws, dimension=2, scale=2, source=SimulationSource(1))
    reach = np.arange(-80, 81)
    p = np.exp(-np.hypot(reach[:, None], reach[None, :]) / 2)
    p /= p.sum()
    inside = (np.abs(k) <= 4).all(axis=1)
    counts = np.zeros((9, 9))
    np.add.at(counts, (k[inside, 0] + 4, k[inside, 1] + 4), 1)
    expected = draws * p[76:85, 76:85]
    # Pearson's statistic of 81 cells and the rest, level 1e-6.
    rest, rest_expected = draws - counts.sum(), draws - expected.sum()
    statistic = ((counts - expected) ** 2 / expected).sum() + (rest - rest_expected) ** 2 / (
        rest_expected
    )
    assert statistic < stats.chi2.isf(1e-6, 81)


@pytest.mark.parametrize("dimension", [2, 5, 12])
def test_radius_is_gamma(dimension: int) -> None:
    draws = 3000
    k = spherical_laplace(draws, dimension=dimension, scale=1 << 20, source=SimulationSource(2))
    radius = np.sqrt((k.astype(float) ** 2).sum(axis=1)) / 2**20
    assert stats.kstest(radius, stats.gamma(dimension).cdf).pvalue > 1e-6
    # Directions: no coordinate and no sign is preferred (mean 0 within 5 standard errors).
    unit = k / radius[:, None] / 2**20
    assert np.abs(unit.mean(axis=0)).max() < 5 / math.sqrt(dimension * draws)


def test_acceptance_is_the_stated_share() -> None:
    rng = np.random.default_rng(0)
    k = np.rint(rng.laplace(scale=2**10 * 2, size=(20_000, 4))).astype(np.int64)
    kept = _accepted(k, 2**10, 2**11, SimulationSource(3)).mean()
    # Binomial, 5 standard errors.
    assert abs(kept - _acceptance(4)) < 5 * math.sqrt(0.25 / 20_000)


def test_the_exact_coin_decides_where_floats_cannot() -> None:
    k, scale, proposal = [3, -4, 12], 8, 14
    chance = math.exp(-(13 / 8 - 19 / 14))
    word = int(chance * 2**64)
    source = SimulationSource(0)
    assert _exact_coin(k, scale, proposal, word - (1 << 14), source)
    assert not _exact_coin(k, scale, proposal, word + (1 << 14), source)


NEAR = np.random.default_rng(5).integers(-40, 41, size=(40, 3))
FAR = (1 << 50) + np.random.default_rng(6).integers(-(1 << 35), 1 << 35, size=(40, 4))


@pytest.mark.parametrize(
    ("k", "scale", "proposal"),
    [(NEAR, 8, 14), (FAR, 1 << 20, 1 << 21), (-FAR, 1 << 20, 1 << 21)],
    ids=["near", "far", "far below"],
)
def test_the_coin_is_right_next_to_the_threshold(k: np.ndarray, scale: int, proposal: int) -> None:
    """Words one above and one below the chance, where floats would err half of the time.

    Far out a float is off by more than the margin: those vectors are always decided exactly.
    """
    words, heads = [], []
    with mpmath.workprec(300):
        for row in k.tolist():
            length = mpmath.sqrt(sum(x * x for x in row))
            exponent = length / scale - mpmath.mpf(sum(map(abs, row))) / proposal
            word = int(mpmath.floor(mpmath.exp(-exponent) * 2**64))
            words += [word - 1, word + 1]
            heads += [True, False]
    kept = _accepted(np.repeat(k, 2, axis=0), scale, proposal, Words(*words))  # type: ignore[arg-type]
    assert kept.tolist() == heads


@pytest.mark.parametrize(("more", "heads"), [(0, True), ((1 << 64) - 1, False)])
def test_a_word_that_begins_like_the_chance_is_extended(more: int, *, heads: bool) -> None:
    with mpmath.workprec(300):
        chance = mpmath.exp(mpmath.mpf(19) / 14 - mpmath.mpf(13) / 8)
        word = int(mpmath.floor(chance * 2**64))
    assert _accepted(np.array([[3, -4, 12]]), 8, 14, Words(word, more)).tolist() == [heads]  # type: ignore[arg-type]


def test_acceptance_has_a_closed_form() -> None:
    """Γ(d) times the surface of the ball, over the box's (2√d)^d."""
    for d in range(1, 17):
        ball = 2 * math.pi ** (d / 2) / math.gamma(d / 2)
        expected = ball * math.gamma(d) / (2 * math.sqrt(d)) ** d
        assert _acceptance(d) == pytest.approx(expected, rel=1e-12)


def test_blocks_are_the_best_cut() -> None:
    axes = tuple(j**-0.5 for j in range(1, 8))

    def cost(cuts: tuple[int, ...]) -> float:
        edges = (0, *cuts, len(axes))
        parts = [axes[a:b] for a, b in itertools.pairwise(edges)]
        return sum(math.sqrt((len(part) + 1) * sum(a * a for a in part)) for part in parts)

    every = [tuple(c for c in range(1, len(axes)) if mask >> (c - 1) & 1) for mask in range(1 << 6)]
    chosen = tuple(start for start, _ in best_blocks(axes)[1:])
    assert cost(chosen) == pytest.approx(min(cost(cuts) for cuts in every))


def test_noise_for_an_ellipsoid_beats_independent_laplace() -> None:
    axes = np.arange(1, 61) ** -0.5
    spherical = EllipsoidLaplace(epsilon=1.0, sensitivity=1.0, axes=tuple(axes))
    independent = 2 * axes.sum() ** 2  # least total variance of independent Laplace noise (8.4)
    assert spherical.law.variance.sum() < 0.6 * independent


def test_privacy_loss_over_random_neighbors() -> None:
    mechanism = EllipsoidLaplace(epsilon=1.5, sensitivity=0.7, axes=(1.0, 0.5, 0.5, 0.1))
    rng = np.random.default_rng(4)
    h = rng.normal(size=(2000, 4))
    h *= 0.7 / np.linalg.norm(h / mechanism.axes, axis=1, keepdims=True)
    reports = mechanism.randomize(np.zeros((2000, 4)), SimulationSource(5))
    loss = mechanism.log_likelihood(reports, np.zeros((2000, 4))) - mechanism.log_likelihood(
        reports, -h * np.sign((reports * h).sum(axis=1, keepdims=True))
    )
    assert loss.max() <= 1.5
    # Tight: far out along a block-weighted direction the loss reaches ε (within 1 %).
    here, there = mechanism.worst_cases()[1]
    far = here + 1e4 * (here - there)
    gap = mechanism.log_likelihood(far, here) - mechanism.log_likelihood(far, there)
    assert 0.99 * 1.5 < gap[0] <= 1.5
