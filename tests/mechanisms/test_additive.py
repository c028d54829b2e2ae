"""Laplace and Gaussian noise: scales, rounding, and values of any size."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.additive import AdditiveLaplace, Gaussian, Laplace
from dpfda.mechanisms.base import Mechanism
from dpfda.noise import SecureSource, SimulationSource

EPSILON = st.floats(1e-3, 50)
CURATORS = [
    AdditiveLaplace(epsilon=1.0, sensitivity=1.0),
    Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0),
]


@given(epsilon=EPSILON, dimension=st.integers(1, 100))
def test_laplace_scale_is_never_too_small(epsilon: float, dimension: int) -> None:
    mechanism = Laplace(epsilon=epsilon, dimension=dimension)
    wanted = Fraction(2 * dimension) / Fraction(epsilon)
    assert Fraction(mechanism.scale) >= wanted
    assert mechanism.scale == pytest.approx(float(wanted), rel=1e-5)
    assert mechanism.variance(np.zeros((1, dimension)))[0, 0] == pytest.approx(
        2 * float(wanted) ** 2, rel=1e-5
    )


@given(epsilon=EPSILON)
def test_laplace_likelihood_adds_up(epsilon: float) -> None:
    """tanh(1/2s) Σ e^{-|k|/s} = 1: the constant against the sum over 40 scales around the truth."""
    mechanism = Laplace(epsilon=epsilon)
    steps, step = round(mechanism.scale / mechanism.step), mechanism.step
    k = np.arange(-40 * 64, 40 * 64 + 1) * max(1, steps // 64)
    p = np.exp(mechanism.log_likelihood((k * step)[:, None], np.zeros((k.size, 1))))
    # A Riemann sum with 64 points a scale errs by (1/64)²/12 = 2e-5.
    assert p.sum() * max(1, steps // 64) == pytest.approx(1, abs=1e-4)


@given(
    epsilon=EPSILON,
    sensitivity=st.floats(1e-6, 1e6),
    axes=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20),
)
def test_additive_laplace_pays_for_rounding(
    epsilon: float, sensitivity: float, axes: list[float]
) -> None:
    """Σ (a_j S_j + two steps)/b_j ≤ ε when the whole difference may lie in any coordinate."""
    mechanism = AdditiveLaplace(epsilon=epsilon, sensitivity=sensitivity, axes=tuple(axes))
    step = mechanism.scales / 2**26
    whole = sensitivity * np.asarray(axes) / mechanism.scales
    rounding = (2 * step / mechanism.scales).sum()
    assert (whole + rounding).max() <= epsilon * (1 + 1e-12)


@given(epsilon=st.floats(0.05, 10), delta=st.floats(1e-9, 0.1))
def test_gaussian_is_calibrated_after_rounding(epsilon: float, delta: float) -> None:
    """Balle & Wang's δ at σ and the enlarged sensitivity stays below δ, and close to it."""
    from scipy.stats import norm

    mechanism = Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=2.0)
    sigma = float(mechanism.scales[0])
    mu = (2.0 + 2 * sigma / 2**24) / sigma
    spent = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert spent <= delta * (1 + 1e-6)
    assert spent >= delta * (1 - 1e-3)


@pytest.mark.parametrize("mechanism", CURATORS, ids=lambda m: m.name)
def test_large_values_keep_their_place(mechanism: Mechanism) -> None:
    values = np.full((2000, 1), 12_345_678.0)
    reports = mechanism.randomize(values, SimulationSource(0))
    deviation = math.sqrt(float(mechanism.variance(values)[0, 0]))
    # Six standard errors of a mean, fixed seed.
    assert abs(reports.mean() - 12_345_678.0) < 6 * deviation / math.sqrt(2000)


@pytest.mark.parametrize("mechanism", CURATORS, ids=lambda m: m.name)
@pytest.mark.parametrize("value", [1e300, -1e300, 1e12])
def test_values_beyond_the_lattice_are_refused(mechanism: Mechanism, value: float) -> None:
    """An integer that wraps around would put neighbors at opposite ends."""
    with pytest.raises(InvalidData, match="lattice steps"):
        mechanism.randomize([[value]], SecureSource())
    clipped = mechanism.randomize([[value]], SecureSource(), clip=True)
    assert np.sign(clipped) == np.sign(value)


@pytest.mark.parametrize("axes", [(), (1.0, 0.0), (1.0, -1.0), (math.nan,), (math.inf,)])
@pytest.mark.parametrize("kind", [AdditiveLaplace, Gaussian])
def test_bad_axes_are_refused(kind: type, axes: tuple[float, ...]) -> None:
    cost = {"mu": 1.0} if kind is Gaussian else {"epsilon": 1.0}
    with pytest.raises(InvalidParameter, match="axes must be"):
        kind(sensitivity=1.0, axes=axes, **cost)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_bad_delta_is_refused(delta: float) -> None:
    with pytest.raises(InvalidParameter, match="delta must be"):
        Gaussian.calibrated(epsilon=1.0, delta=delta, sensitivity=1.0)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf])
def test_bad_mu_is_refused(mu: float) -> None:
    with pytest.raises(InvalidParameter, match="mu must be"):
        Gaussian(mu=mu, sensitivity=1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_gaussian_says_what_it_was_calibrated_for(epsilon: float) -> None:
    mechanism = Gaussian.calibrated(epsilon=epsilon, delta=1e-4, sensitivity=1.0)
    assert mechanism.guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert mechanism.guarantee.delta == 1e-4
    # So much noise that δ alone covers it: the least ε that a mechanism may state.
    assert Gaussian(mu=1e-5, delta=0.1, sensitivity=1.0).epsilon == 1e-6


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.inf])
def test_bad_sensitivity_is_refused(sensitivity: float) -> None:
    with pytest.raises(InvalidParameter, match="sensitivity must be"):
        AdditiveLaplace(epsilon=1.0, sensitivity=sensitivity)


def test_reports_lie_on_the_public_lattice() -> None:
    """Nothing but the sum of integers can be read off: reports of different values share a grid."""
    mechanism = Laplace(epsilon=1.0, dimension=2)
    values = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2))
    reports = mechanism.randomize(values, SimulationSource(0)) / mechanism.step
    assert np.array_equal(reports, np.rint(reports))


@pytest.mark.parametrize(("epsilon", "dimension"), [(0.3, 1), (1.0, 3), (7.7, 5), (1e-6, 1)])
def test_the_scale_is_rounded_up_to_whole_steps(epsilon: float, dimension: int) -> None:
    mechanism = Laplace(epsilon=epsilon, dimension=dimension)
    least = Fraction(2 * dimension) / Fraction(epsilon)
    assert least <= Fraction(mechanism.scale) < least + Fraction(mechanism.step)
