"""Variances as the cost of small releases: every step of the proof, in numbers."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from dpfda.privacy.calibration import LATTICE_RESERVE, gaussian_delta, gaussian_mu
from dpfda.privacy.events import LaplaceEvent, PureEvent, RandomizedResponseEvent
from dpfda.privacy.mixture import log_delta, orders
from dpfda.privacy.moments import moment
from dpfda.privacy.symmetrized import (
    EXCESS,
    _factor,
    _log_value,
    capacity,
    hockey_stick,
    laplace_spread,
    pure_spread,
)

LIMITS = [(0.05, 1e-4), (0.5, 1e-4), (1.0, 1e-6), (3.0, 1e-4), (10.0, 1e-9), (1.0, 0.05)]


def value(x: float, v: float, epsilon: float, shift: float) -> float:
    """V(x; v) in closed form."""
    begin, root = epsilon - 2 * shift - x, math.sqrt(v)
    plus = norm.cdf((v / 2 - begin) / root) * math.exp(v / 8 - begin / 2)
    minus = norm.cdf((-v / 2 - begin) / root) * math.exp(v / 8 + begin / 2)
    line = (root * norm.pdf(begin / root) - begin * norm.cdf(-begin / root)) / 2
    scale = 2 * _factor(shift) * math.exp((epsilon - x) / 2 - v / 8)
    return scale * ((plus - minus) / 2 - line)


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
def test_the_integral_is_right_to_many_digits(epsilon, delta):
    v = gaussian_mu(epsilon=epsilon, delta=delta) ** 2
    shift = min(0.9 * v / epsilon, epsilon / 4)
    with mpmath.workdps(50):
        root, begin, b = mpmath.sqrt(v), mpmath.mpf(epsilon) - 2 * mpmath.mpf(shift), shift
        plus = mpmath.ncdf((v / 2 - begin) / root) * mpmath.exp(v / 8 - begin / 2)
        minus = mpmath.ncdf((-v / 2 - begin) / root) * mpmath.exp(v / 8 + begin / 2)
        line = (root * mpmath.npdf(begin / root) - begin * mpmath.ncdf(-begin / root)) / 2
        inside = (plus - minus) / 2 - line
        exact = mpmath.log(2 * _factor(b) * inside) + epsilon / 2 - v / 8
    found = _log_value(v, epsilon, shift, _factor(shift))
    assert float(exact) <= found <= float(exact) + 1e-8


@pytest.mark.parametrize("shift", [1e-6, 1e-3, 0.05, 0.4, 2.0, 30.0])
def test_g_lies_above_what_it_must_and_touches_it(shift):
    y = np.concatenate([np.geomspace(1e-9, 20, 4000), np.linspace(0.2 * shift, 2 * shift, 4000)])
    with mpmath.workdps(40):
        ratios = [
            float(mpmath.sinh(t) / (mpmath.sinh(t + shift) - t - shift))
            for t in map(mpmath.mpf, y[::40].tolist())
        ]
    assert max(*ratios, math.exp(-shift)) <= _factor(shift) <= 1.01 * max(*ratios, math.exp(-shift))


def moved(kind: str, size: float, x: float, v: float, epsilon: float, shift: float) -> float:
    """E_p V(x + L; v) after one release."""
    if kind == "pure":
        keep = 1 / (1 + math.exp(-size))
        return keep * value(x + size, v, epsilon, shift) + (1 - keep) * value(
            x - size, v, epsilon, shift
        )
    ends = value(x + size, v, epsilon, shift) / 2
    ends += math.exp(-size) / 2 * value(x - size, v, epsilon, shift)
    between, _ = quad(
        lambda t: math.exp(-t) / 2 * value(x + size - 2 * t, v, epsilon, shift),
        0, size, epsabs=0, epsrel=1e-9,
    )  # fmt: skip
    return ends + between


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["pure", "laplace"]),
    st.floats(0.01, 3),
    st.floats(0.02, 4),
    st.floats(-3, 3),
    st.floats(0.02, 1),
)
def test_a_release_moves_the_supermartingale_down(kind, size, v, x, shift):
    """Step (c), at any loss so far and any variance that is left."""
    square, excess = pure_spread(size) if kind == "pure" else laplace_spread(size)
    after = moved(kind, size, x, v, 1.0, shift)
    before = value(x, v + square, 1.0, shift)
    assert after <= math.exp(excess) * before * (1 + 1e-7) + 1e-13


def test_a_smaller_variance_would_not_do():
    """A tenth less, and the step fails somewhere in the tail."""
    square, excess = pure_spread(0.3)
    ratios = [
        moved("pure", 0.3, x, 0.3, 1.0, 0.2)
        / (math.exp(excess) * value(x, 0.3 + 0.9 * square, 1.0, 0.2))
        for x in np.linspace(-2, 1, 40).tolist()
    ]
    assert max(ratios) > 1.01


@given(st.floats(1e-9, 700))
def test_laplace_noise_costs_no_more_than_any_pure_release(size):
    for one, other in zip(laplace_spread(size), pure_spread(size), strict=True):
        assert 0 <= one <= other * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
def test_capacity_is_a_little_less_than_that_of_gaussian_noise(epsilon, delta):
    most, exact = capacity(epsilon=epsilon, delta=delta), gaussian_mu(epsilon=epsilon, delta=delta)
    assert 0.65 * exact**2 < most < exact**2
    if delta < 1e-2:
        assert most > 0.84 * exact**2
    real = gaussian_delta(epsilon=epsilon, multiplier=1 / math.sqrt(most))
    assert delta / real > 1.2  # e^C, and what majorizing costs
    assert hockey_stick(epsilon=epsilon, squares=most, excess=EXCESS) >= real


@pytest.mark.parametrize("epsilon", [1e-12, 4 * LATTICE_RESERVE, 2e3, 1e100])
def test_outside_its_range_nothing_is_accepted(epsilon):
    assert capacity(epsilon=epsilon, delta=1e-6) == 0
    assert hockey_stick(epsilon=epsilon, squares=1.0, excess=0.0) == 1


# Moments


def losses(event, steps=1 << 12):
    """Probabilities and losses, exactly, on the lattice that Laplace noise is drawn on."""
    match event:
        case LaplaceEvent(ratio=ratio):
            scale = steps / ratio  # of the noise; one sensitivity is `steps`
            x = np.arange(1, steps)
            rate = 1 / scale
            ends = [1 / (1 + math.exp(-rate)), math.exp(-ratio) / (1 + math.exp(-rate))]
            mass = math.tanh(rate / 2) * np.exp(-x * rate)
            return np.append(mass, ends), np.append((steps - 2 * x) * rate, [ratio, -ratio])
        case RandomizedResponseEvent(epsilon=epsilon, categories=k):
            q = 1 / (math.exp(epsilon) + k - 1)
            return (
                np.array([math.exp(epsilon) * q, q, (k - 2) * q]),
                np.array([epsilon, -epsilon, 0.0]),
            )
    raise AssertionError(event)


@pytest.mark.parametrize("order", [0.01, 0.5, 3.0, 40.0, 900.0])
@pytest.mark.parametrize("size", [1e-3, 0.05, 0.7, 3.0])
@pytest.mark.parametrize("kind", ["laplace", 2, 3, 50, 10**6])
def test_moments_are_those_of_the_losses(kind, size, order):
    event = (
        LaplaceEvent(ratio=size)
        if kind == "laplace"
        else RandomizedResponseEvent(epsilon=size, categories=kind)
    )
    mass, loss = losses(event)
    top = order * size
    exact = top + math.log(float(mass @ np.exp(order * loss - top)))
    found = moment(event, order)
    # The lattice here is coarser than any that ships, by 256 or more: 1e-6 instead of 1e-9.
    assert exact - 1e-6 * exact - 1e-12 <= found <= exact * (1 + 1e-6) + 1e-12 * (1 + order)
    assert found <= moment(PureEvent(epsilon=size), order)
    assert found <= size * size * order * (order + 1) / 2 * (1 + 1e-8)


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
@pytest.mark.parametrize("share", [0.2, 0.8, 0.95])
def test_the_condition_holds_at_every_loss(epsilon, delta, share):
    lambdas = orders(epsilon=epsilon, delta=delta)
    v = share * gaussian_mu(epsilon=epsilon, delta=delta) ** 2
    sums = [v * order * (order + 1) / 2 for order in lambdas]
    needed = math.exp(log_delta(epsilon, lambdas, sums))
    x = np.concatenate([np.geomspace(1e-9, 50, 4000) / lambdas[0]])
    told = -np.expm1(-x)
    mean = np.mean(
        [np.exp(o * (epsilon + x) - s) for o, s in zip(lambdas, sums, strict=True)], axis=0
    )
    assert np.max(told / mean) <= needed <= 1.001 * np.max(told / mean)
    assert needed >= gaussian_delta(epsilon=epsilon, multiplier=1 / math.sqrt(v))
