"""Duchi's mechanism, by enumeration of every corner."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpfda.mechanisms.piecewise import Duchi, DuchiScalar
from dpfda.noise import SimulationSource


def corners(dimension: int) -> np.ndarray:
    return np.array(list(product([-1.0, 1.0], repeat=dimension)))


def exact_probabilities(epsilon: float, x: np.ndarray) -> np.ndarray:
    """P(report t | x) from the definition: a random corner v, then weights e^ε and 1."""
    signs = corners(x.size)
    hidden = np.prod((1 + signs * x) / 2, axis=1)  # P(v)
    weights = np.where(signs @ signs.T > 0, math.exp(epsilon), 1.0)  # [v, t]
    return hidden @ (weights / weights.sum(axis=1, keepdims=True))


def paper_bound(epsilon: float, d: int) -> float:
    """The constant B, odd and even d."""
    e = math.exp(epsilon)
    if d % 2:
        return 2 ** (d - 1) / math.comb(d - 1, (d - 1) // 2) * (e + 1) / (e - 1)
    m = math.comb(d, d // 2)
    return ((2 ** (d - 1) - m / 2) * (e + 1) + m) / ((e - 1) * math.comb(d - 1, d // 2))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_unbiased_by_enumeration(epsilon: float, dimension: int) -> None:
    mechanism = Duchi(epsilon=epsilon, dimension=dimension)
    x = np.linspace(-1, 0.75, dimension)
    p = exact_probabilities(epsilon, x)
    # The weights are 30-bit rationals just below e^ε.
    np.testing.assert_allclose(mechanism.bound * p @ corners(dimension), x, atol=2e-8)
    assert mechanism.bound == pytest.approx(paper_bound(epsilon, dimension), rel=1e-7)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6])
def test_likelihood_by_enumeration(dimension: int) -> None:
    mechanism = Duchi(epsilon=1.0, dimension=dimension)
    x = np.linspace(-0.9, 0.8, dimension)
    reports = mechanism.bound * corners(dimension)
    stated = np.exp(mechanism.log_likelihood(reports, np.tile(x, (len(reports), 1))))
    np.testing.assert_allclose(stated, exact_probabilities(1.0, x), rtol=1e-7)
    assert stated.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("dimension", [2, 4, 6])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_ties_do_not_cost_privacy(epsilon: float, dimension: int) -> None:
    """C19: over every pair of corners and every report, the exact ratio is e^ε at most."""
    x = corners(dimension)
    reports = np.repeat(Duchi(epsilon=epsilon, dimension=dimension).bound * x, len(x), axis=0)
    inputs = np.tile(x, (len(x), 1))
    logs = Duchi(epsilon=epsilon, dimension=dimension).log_likelihood(reports, inputs)
    table = logs.reshape(len(x), len(x))
    spread = (table.max(axis=1) - table.min(axis=1)).max()
    assert spread == pytest.approx(epsilon, rel=1e-6)
    assert spread <= epsilon + 1e-12
    # The form that is usually printed, ties in both halves, would have ln(1 + e^ε).
    wrong = math.log(1 + math.exp(epsilon))
    assert spread < wrong


@pytest.mark.parametrize("dimension", [2, 4])
def test_corners_are_drawn_as_often_as_stated(dimension: int) -> None:
    mechanism, draws = Duchi(epsilon=1.0, dimension=dimension), 100_000
    x = np.linspace(-0.5, 1, dimension)
    reports = mechanism.randomize(np.tile(x, (draws, 1)), SimulationSource(dimension))
    codes = (reports > 0) @ (2 ** np.arange(dimension)[::-1])
    counts = np.bincount(codes, minlength=2**dimension)
    # Level 1e-5, fixed seed; x is rounded to 2^-20 and the odds to 2^-30, far below 1/draws.
    assert stats.chisquare(counts, exact_probabilities(1.0, x) * draws).pvalue > 1e-5


@settings(max_examples=100)
@given(epsilon=st.floats(0.01, 20), x=st.floats(-1, 1))
def test_one_dimension_agrees_with_the_scalar(epsilon: float, x: float) -> None:
    vector, scalar = Duchi(epsilon=epsilon), DuchiScalar(epsilon)
    assert vector.bound == pytest.approx(scalar.bound, rel=1e-12)
    assert float(vector.variance([[x]])[0, 0]) == pytest.approx(float(scalar.variance(np.array(x))))


@given(epsilon=st.floats(0.01, 20), dimension=st.integers(1, 12))
def test_bound_formula(epsilon: float, dimension: int) -> None:
    bound = Duchi(epsilon=epsilon, dimension=dimension).bound
    # At ε = 0.01 the odds lose 2^-30 of 0.01: a relative 1e-7.
    assert bound == pytest.approx(paper_bound(epsilon, dimension), rel=1e-6)
    assert bound >= paper_bound(epsilon, dimension) * (1 - 1e-9)
