"""Simulations against their formulas."""

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001, simulate_003
from dpfda.errors import InvalidParameter


def test_simulation_001_follows_its_formulas():
    n = 20_000
    data = simulate_001(n, random_state=3)
    z = CurveEncoder("cosine", n_basis=50).coefficients(data.X[:2000])
    # Var ξ = 1, so coefficient j has variance 1/j²; the sample variance of a uniform variable has
    # relative error √(0.8/n) = 0.02 here, and four of these are allowed.
    np.testing.assert_allclose(z.var(axis=0) * np.arange(1, 51) ** 2, 1.0, atol=0.08)
    assert np.abs(z[:, 1]).max() <= np.sqrt(3) / 2 + 1e-9
    # P(y = 1) averaged over X; its standard error is at most √(1/4n) = 0.0035.
    log_odds = 0.1 + np.trapezoid(data.X * data.truth["slope"], data.grid_points, axis=1)
    expected = np.mean(1 / (1 + np.exp(-log_odds)))
    assert np.mean(data.y == 1) == pytest.approx(expected, abs=4 * 0.0035)
    # The Bayes rule errs in 10.0 % of cases; standard error √(0.1·0.9/n) = 0.0021.
    assert np.mean(np.sign(log_odds) != data.y) == pytest.approx(0.100, abs=4 * 0.0021)


def test_simulations_repeat_with_their_seed():
    np.testing.assert_array_equal(
        simulate_001(5, random_state=8).X, simulate_001(5, random_state=8).X
    )
    assert not np.array_equal(simulate_001(5, random_state=8).X, simulate_001(5, random_state=9).X)
    rng = np.random.default_rng(8)
    np.testing.assert_array_equal(simulate_001(5, rng).X, simulate_001(5, random_state=8).X)
    np.testing.assert_array_equal(
        simulate_003("S-4", 5, random_state=8).X, simulate_003("S-4", 5, random_state=8).X
    )
    np.testing.assert_array_equal(
        simulate_003("S-4", 5, random_state=8).truth["mean"],
        simulate_003("S-4", 5, random_state=9).truth["mean"],
    )


def test_simulation_001_takes_another_slope():
    slope = np.zeros(50)
    slope[0] = 1e6
    data = simulate_001(200, random_state=0, slope=slope, intercept=0.0)
    np.testing.assert_array_equal(data.y, np.sign(data.X.mean(axis=1)))
    with pytest.raises(InvalidParameter, match="slope must be 50 finite coefficients"):
        simulate_001(5, slope=[1.0])


@pytest.mark.parametrize("name", ["S-1", "S-2", "S-3", "S-4"])
def test_simulation_003_is_a_mean_plus_unit_variance(name):
    n = 4000
    data = simulate_003(name, n, random_state=2)
    errors = data.X - data.truth["mean"]
    # Mean of n unit normals: standard error 0.016; variance: √(2/n) = 0.022; five are allowed,
    # because 101 correlated points are looked at.
    assert np.abs(errors.mean(axis=0)).max() < 5 * 0.016
    np.testing.assert_allclose(errors.var(axis=0), 1.0, atol=5 * 0.022)
    correlation = np.corrcoef(errors[:, 0], errors[:, 20])[0, 1]
    assert correlation == pytest.approx(np.exp(-0.5), abs=0.05)  # one length scale apart


def test_simulation_003_has_the_papers_means():
    t = np.linspace(0, 1, 101)
    np.testing.assert_allclose(simulate_003("S-1", 1).truth["mean"], 10 * t * np.exp(-t))
    two = simulate_003("S-2", 1).truth["mean"]
    assert np.trapezoid(two, t) == pytest.approx(1.0, abs=1e-4)  # 0.3 and 0.7 of a density
    three = simulate_003("S-3", 1).truth["mean"]
    assert three[75] < 0 < three[20]
    four = simulate_003("S-4", 1).truth["mean"]
    coefficients = np.random.default_rng(0).uniform(-1, 1, 25)
    # The eigenfunctions are orthonormal, so the mean has the norm of its coefficients.
    assert np.trapezoid(four**2, t) == pytest.approx(coefficients @ coefficients)
    with pytest.raises(InvalidParameter, match="name must be one of 'S-1'"):
        simulate_003("S-5", 1)


def test_simulated_people_are_counted():
    with pytest.raises(InvalidParameter, match="n must be an integer, 1 or above"):
        simulate_001(0)
