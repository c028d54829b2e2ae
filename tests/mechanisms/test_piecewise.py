"""The piecewise mechanism on its lattice: sums over every report, and the paper's formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from dpfda.mechanisms import piecewise
from dpfda.mechanisms.piecewise import Piecewise, PiecewiseScalar
from dpfda.noise import SimulationSource

SMALL = 64  # a lattice so coarse that every report can be listed


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piecewise, "HALF_WIDTH", SMALL)


def probabilities(scalar: PiecewiseScalar, position: int) -> tuple[np.ndarray, np.ndarray]:
    """Every report and its probability."""
    reports = np.arange(-SMALL - scalar.window // 2, SMALL + scalar.window // 2) + 0.5
    values = reports * scalar.unit
    return values, np.exp(scalar.log_likelihood(values, np.full(values.size, position)))


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("position", [-SMALL, -13, 0, 1, SMALL])
def test_exact_moments_by_enumeration(epsilon: float, position: int) -> None:
    scalar = PiecewiseScalar(epsilon)
    values, p = probabilities(scalar, position)
    x = position / SMALL
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert p @ values == pytest.approx(x, abs=1e-9 * values.max())
    assert p @ values**2 - x**2 == pytest.approx(float(scalar.variance(np.array(x))), rel=1e-9)


@pytest.mark.usefixtures("coarse")
@given(epsilon=st.floats(1e-3, 21), one=st.integers(-SMALL, SMALL), two=st.integers(-SMALL, SMALL))
def test_exact_privacy_by_enumeration(epsilon: float, one: int, two: int) -> None:
    scalar = PiecewiseScalar(epsilon)
    _, p = probabilities(scalar, one)
    _, q = probabilities(scalar, two)
    assert np.log(p / q).max() <= epsilon * (1 + 1e-12) + 1e-12
    high, low = scalar.weights
    assert high / low <= math.exp(epsilon) * (1 + 1e-15)


@pytest.mark.usefixtures("coarse")
def test_every_report_is_drawn_as_often_as_stated() -> None:
    scalar, draws = PiecewiseScalar(1.0), 200_000
    values, p = probabilities(scalar, 20)
    drawn = scalar.draw(np.full(draws, 20), SimulationSource(0))
    counts = np.bincount(np.rint(drawn / scalar.unit + values.size / 2 - 0.5).astype(int))
    assert counts.size == values.size
    # Level 1e-5, fixed seed.
    assert stats.chisquare(counts, p / p.sum() * draws).pvalue > 1e-5


# The window is a whole number of lattice points: at ε = 7 it has 63,000 and is off by 3e-5 at most.
LARGEST = 7.0


@settings(max_examples=200)
@given(epsilon=st.floats(0.05, LARGEST), x=st.floats(-1, 1))
def test_variance_formula_of_the_paper(epsilon: float, x: float) -> None:
    """Wang et al. 2019: x²/(e^{ε/2}-1) + (e^{ε/2}+3)/(3(e^{ε/2}-1)²), up to the lattice."""
    root = math.exp(epsilon / 2)
    expected = x * x / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    stated = float(PiecewiseScalar(epsilon).variance(np.array(x)))
    assert stated == pytest.approx(expected, rel=1e-4)


@given(epsilon=st.floats(0.05, LARGEST))
def test_output_range_of_the_paper(epsilon: float) -> None:
    scalar = PiecewiseScalar(epsilon)
    largest = (piecewise.HALF_WIDTH + scalar.window // 2 - 0.5) * scalar.unit
    root = math.exp(epsilon / 2)
    assert largest == pytest.approx((root + 1) / (root - 1), rel=1e-4)


@given(epsilon=st.floats(0.1, 20), dimension=st.integers(1, 9), x=st.floats(-1, 1))
def test_variance_in_several_dimensions(epsilon: float, dimension: int, x: float) -> None:
    """(d/k)(Var(x; ε/k) + x²) - x² with k = max(1, min(d, ⌊ε/2.5⌋))."""
    mechanism = Piecewise(epsilon=epsilon, dimension=dimension)
    k = max(1, min(dimension, math.floor(epsilon / 2.5)))
    assume(epsilon / k <= LARGEST)
    root = math.exp(epsilon / k / 2)
    scalar = x * x / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    expected = dimension / k * (scalar + x * x) - x * x
    stated = mechanism.variance(np.full((1, dimension), x))
    assert mechanism.sampled == k
    np.testing.assert_allclose(stated, expected, rtol=1e-4)


def test_reports_keep_to_their_range_and_tell_k_coordinates() -> None:
    mechanism = Piecewise(epsilon=6.0, dimension=5)
    reports = mechanism.randomize(np.full((5000, 5), 0.3), SimulationSource(1))
    root = math.exp(6.0 / 2 / 2)
    assert np.all((reports != 0).sum(axis=1) == 2)
    assert np.abs(reports).max() <= 5 / 2 * (root + 1) / (root - 1) * (1 + 1e-6)


def test_large_epsilon_tells_the_truth() -> None:
    reports = Piecewise(epsilon=40.0).randomize(np.full((1000, 1), 0.25), SimulationSource(2))
    assert np.abs(np.median(reports) - 0.25) < 1e-4
