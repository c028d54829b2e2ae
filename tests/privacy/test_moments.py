"""Exponential moments of privacy losses, and the limit that is made of two of them."""

import math

import numpy as np
import pytest

from dpfda.privacy.calibration import gaussian_delta, gaussian_mu
from dpfda.privacy.composition import WEIGHTS, log_delta, moment, orders
from dpfda.privacy.events import LaplaceEvent, PureEvent, RandomizedResponseEvent

LIMITS = [(0.05, 1e-4), (0.5, 1e-4), (1.0, 1e-6), (3.0, 1e-4), (10.0, 1e-9), (1.0, 0.05)]


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
    known = zip(WEIGHTS, lambdas, sums, strict=True)
    mean = sum(weight * np.exp(order * (epsilon + x) - total) for weight, order, total in known)
    assert np.max(told / mean) <= needed <= 1.001 * np.max(told / mean)
    assert needed >= gaussian_delta(epsilon=epsilon, multiplier=1 / math.sqrt(v))


@pytest.mark.parametrize("epsilon", [1e-12, 2e6, 1e100])
def test_outside_its_range_nothing_is_accepted(epsilon):
    assert log_delta(epsilon, (1.0, 2.0), (0.0, 0.0)) == 0
