"""The same distribution as OpenDP's samplers, an independent exact implementation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpfda.noise import SimulationSource, discrete_gaussian, discrete_laplace

dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed")

DRAWS = 50_000
# OpenDP draws from OS entropy: each run is a new sample, so the level is the rate of false alarms.
LEVEL = 1e-9


@pytest.fixture(scope="module", autouse=True)
def features() -> None:
    dp.enable_features("contrib")


def two_sample_pvalue(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Chi-square test of homogeneity over bins of about equal size."""
    edges = np.unique(np.quantile(np.concatenate([ours, theirs]), np.linspace(0, 1, 41)[1:-1]))
    table = [
        np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (ours, theirs)
    ]
    counts = np.array(table)
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) >= 10]).pvalue)


@pytest.mark.parametrize("scale", [1, 40, 1 << 20])
def test_laplace_agrees(scale: int) -> None:
    domain = dp.vector_domain(dp.atom_domain(T=int))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(scale))
    theirs = np.array(measurement([0] * DRAWS))
    ours = discrete_laplace(DRAWS, scale=scale, source=SimulationSource(scale))
    assert two_sample_pvalue(ours, theirs) > LEVEL


@pytest.mark.parametrize("sigma", [1, 40, 1 << 20])
def test_gaussian_agrees(sigma: int) -> None:
    domain = dp.vector_domain(dp.atom_domain(T=int))
    measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(sigma))
    theirs = np.array(measurement([0] * DRAWS))
    ours = discrete_gaussian(DRAWS, sigma=sigma, source=SimulationSource(sigma))
    assert two_sample_pvalue(ours, theirs) > LEVEL


def test_a_wrong_scale_is_noticed() -> None:
    one = discrete_laplace(DRAWS, scale=40, source=SimulationSource(0))
    other = discrete_laplace(DRAWS, scale=46, source=SimulationSource(1))
    assert two_sample_pvalue(one, other) < LEVEL
