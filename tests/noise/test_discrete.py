"""Discrete Laplace and Gaussian noise against their exact probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpfda.errors import InvalidParameter
from dpfda.noise import SecureSource, SimulationSource, discrete_gaussian, discrete_laplace

DRAWS = 200_000
# Seeds are fixed, so a test passes always or never; a sound sampler fails a fresh seed once in
# 10^5 for each comparison.
LEVEL = 1e-5


def laplace_cdf(k: np.ndarray, scale: float) -> np.ndarray:
    """P(noise ≤ k) for P(k) ∝ e^{-|k|/scale}: q^{-k}/(1+q) below 0, 1 - q^{k+1}/(1+q) above."""
    q = math.exp(-1 / scale)
    below = np.exp(np.minimum(k, 0) / scale) / (1 + q)
    above = 1 - np.exp(-(np.maximum(k, 0) + 1) / scale) / (1 + q)
    return np.where(k < 0, below, above)


def chi_square(sample: np.ndarray, edges: np.ndarray, cdf: np.ndarray) -> float:
    """p-value of the counts in (-∞, e_1], (e_1, e_2], ..., (e_last, ∞)."""
    counts = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=edges.size + 1)
    probabilities = np.diff(np.concatenate([[0.0], cdf, [1.0]]))
    enough = probabilities * sample.size >= 10
    expected = np.append(probabilities[enough], probabilities[~enough].sum()) * sample.size
    seen = np.append(counts[enough], counts[~enough].sum())
    if expected[-1] < 1e-9:
        assert seen[-1] == 0
        expected, seen = expected[:-1], seen[:-1]
    return float(stats.chisquare(seen, expected, sum_check=False).pvalue)


@pytest.mark.parametrize("scale", [1, 2, 7, 255, 256, 257, 1000, 1 << 20, (1 << 24) + 1, 1 << 40])
def test_laplace_has_the_exact_distribution(scale: int) -> None:
    sample = discrete_laplace(DRAWS, scale=scale, source=SimulationSource(scale))
    width = max(1, scale // 8)
    edges = np.arange(-40, 41) * width
    assert chi_square(sample, edges, laplace_cdf(edges, scale)) > LEVEL


@pytest.mark.parametrize("scale", [300, 70_000])
def test_laplace_digits_are_all_drawn(scale: int) -> None:
    """The lowest digit is nearly uniform; a chi-square over residues sees a digit that is stuck."""
    sample = discrete_laplace(DRAWS, scale=scale, source=SimulationSource(3))
    counts = np.bincount(np.abs(sample[sample != 0]) % 16, minlength=16)
    # P(|k| ≡ r mod 16 | k ≠ 0) ∝ q^r for r ≥ 1 and q^16 for r = 0.
    residues = np.where(np.arange(16) == 0, 16, np.arange(16))
    probabilities = np.exp(-residues / scale) / np.exp(-residues / scale).sum()
    assert stats.chisquare(counts, probabilities * counts.sum()).pvalue > LEVEL


@pytest.mark.parametrize("sigma", [1, 2, 5, 100, 1 << 12, 1 << 24])
def test_gaussian_has_the_exact_distribution(sigma: int) -> None:
    sample = discrete_gaussian(DRAWS, sigma=sigma, source=SimulationSource(sigma))
    width = max(1, sigma // 8)
    edges = np.arange(-40, 41) * width
    if sigma <= 100:
        support = np.arange(-40 * sigma, 40 * sigma + 1)
        weights = np.exp(-(support**2) / (2 * sigma**2))
        cdf = np.cumsum(weights / weights.sum())[np.searchsorted(support, edges)]
    else:
        # Euler–Maclaurin: the midpoint rule errs by (1/24) φ'(x)/σ² < 1e-8, far below 1/DRAWS.
        cdf = stats.norm.cdf((edges + 0.5) / sigma)
    assert chi_square(sample, edges, cdf) > LEVEL


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_tails_are_there(sampler: object) -> None:
    """Seven scales out a Laplace variable still falls once in 1100 draws, a Gaussian never."""
    name = "scale" if sampler is discrete_laplace else "sigma"
    sample = sampler(DRAWS, **{name: 1000}, source=SimulationSource(5))  # type: ignore[operator]
    beyond = int((np.abs(sample) > 7000).sum())
    expected = DRAWS * math.exp(-7) if sampler is discrete_laplace else 0.0
    # Five standard deviations of a Poisson count.
    assert abs(beyond - expected) <= 5 * math.sqrt(expected)


@pytest.mark.parametrize("scale", [0, -1, 1.5, True, (1 << 48) + 1])
def test_bad_scale_is_refused(scale: object) -> None:
    with pytest.raises(InvalidParameter, match="scale must be an integer from 1 to"):
        discrete_laplace(1, scale=scale, source=SimulationSource(0))  # type: ignore[arg-type]


@pytest.mark.parametrize("sigma", [0, 2.0, (1 << 25) + 1])
def test_bad_sigma_is_refused(sigma: object) -> None:
    with pytest.raises(InvalidParameter, match="sigma must be an integer from 1 to"):
        discrete_gaussian(1, sigma=sigma, source=SimulationSource(0))  # type: ignore[arg-type]


def test_no_draws_are_no_draws() -> None:
    assert discrete_laplace(0, scale=3, source=SecureSource()).shape == (0,)
    assert discrete_gaussian(0, sigma=3, source=SecureSource()).shape == (0,)


def test_secure_and_simulated_draws_agree_in_distribution() -> None:
    secure = discrete_laplace(50_000, scale=50, source=SecureSource())
    seeded = discrete_laplace(50_000, scale=50, source=SimulationSource(0))
    # The secure sample is new each time: the level is the rate of false alarms.
    assert stats.ks_2samp(secure, seeded).pvalue > 1e-9
