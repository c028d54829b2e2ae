"""Minimizers on private rows: tolerances that always hold, and the noise of a random tilt."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from dpfda.central.regression.perturbation import (
    CURVATURE,
    TOLERANCE,
    MinimizerQuery,
    Risk,
    TiltedQuery,
    minimize_risk,
    most_steps,
)
from dpfda.central.regression.problem import Bounds, Problem
from dpfda.noise import SimulationSource
from dpfda.privacy.calibration import gaussian_delta
from dpfda.privacy.cost import Cost


def hard_rows(kind, n=200, dimension=5):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, dimension))
    x /= np.maximum(np.linalg.norm(x, axis=1), 1.0)[:, None]
    v = np.where(x[:, 0] > 0, 1.0, -1.0)  # separable: without a ridge there is no minimum
    if kind == "one line":
        x[:] = x[0] / np.linalg.norm(x[0])
    elif kind == "zeros":
        x[:] = 0.0
    elif kind == "tiny":
        x *= 1e-12
    elif kind == "outvoted":
        x[:], v[:], v[0] = np.eye(dimension)[0], 1.0, -1.0
    return x, v


@pytest.mark.parametrize("link", ["linear", "logistic"])
@pytest.mark.parametrize("kind", ["separable", "one line", "zeros", "tiny", "outvoted"])
@pytest.mark.parametrize("ridge", [1e-5, 0.006, 1.0, 1e4])
@pytest.mark.parametrize("tilt", [0.0, 30.0, 1e4])
def test_the_solver_meets_its_tolerance_whatever_the_rows(link, kind, ridge, tilt):
    x, v = hard_rows(kind)
    slope = tilt * np.array([1.0, -1.0, 0.0, 0.5, 0.0])
    theta = minimize_risk(x, v, link=link, ridge=ridge, tilt=slope)
    gradient, _ = Risk(x=x, v=v, link=link, ridge=ridge, tilt=slope).derivatives(theta)
    # A float gradient of size |ridge θ| errs in its last digits.
    assert np.linalg.norm(gradient) <= TOLERANCE + 1e-13 * (ridge * np.linalg.norm(theta) + tilt)


def test_the_number_of_steps_is_public():
    assert most_steps(100, link="linear", ridge=2.0, tilt=np.zeros(3)) == math.ceil(
        80 * 4 / 8 * 100 * math.log(2)
    ) + 9  # fmt: skip


@pytest.mark.parametrize("look", MinimizerQuery.examples())
def test_the_sensitivity_of_a_minimizer_includes_the_solver(look):
    """Two people's gradients, of length 1 each, and what either solution may be off by."""
    assert look.l2 == 2 + 2 * TOLERANCE
    assert look.mechanism.sensitivity >= look.l2


@pytest.mark.parametrize("delta", [0.05, 1e-13])
@pytest.mark.parametrize("look", TiltedQuery.examples())
def test_the_parts_of_objective_perturbation_add_up_to_its_price(look, delta):
    look = replace(look, cost=replace(look.cost, delta=delta))
    noise, beta = look.mechanism, CURVATURE[look.problem.link]
    spent = float(look.cost.epsilon), float(look.cost.delta)
    assert (look.event.epsilon, look.event.delta) == spent
    # ε₁ = ln(1 + β/Λ) + (2qσ + 2)/σ² where 4Q(q) = δ₁; the rest pays for the output noise, and a
    # distance of 2^-50 a coordinate from a Gaussian for the lattice of the tilt, on either side.
    first_delta = 0.98 * spent[1] - look.size * 2**-50 * (1 + math.exp(spent[0]))
    q = norm.isf(first_delta / 4)
    first = math.log1p(beta / noise.ridge) + (2 * q * noise.tilt_sigma + 2) / noise.tilt_sigma**2
    assert first == pytest.approx(0.98 * spent[0], rel=1e-6)
    assert noise.sensitivity >= 2 * TOLERANCE + math.sqrt(look.size) * noise.tilt_sigma / 2**24
    multiplier = float(noise.scales[0]) / noise.sensitivity
    assert gaussian_delta(epsilon=0.02 * spent[0], multiplier=multiplier) <= 0.02 * spent[1]


@pytest.mark.parametrize("link", ["linear", "logistic"])
def test_the_tilt_that_is_drawn_is_the_tilt_that_is_stated(link):
    problem = Problem(link=link, bounds=Bounds(center=np.zeros(3)), fit_intercept=False)
    look = TiltedQuery(cost=Cost(epsilon=1.0, delta=1e-3), problem=problem)
    rng, source = np.random.default_rng(0), SimulationSource(1)
    records = rng.uniform(-0.5, 0.5, (30, 3)), rng.uniform(-1, 1, 30)
    drawn = [look.untilted(look.answer(records, source), records)[0] for _ in range(400)]
    # 1200 numbers: a standard deviation is known to 1/√2400 = 2 %; four of those.
    assert np.std(drawn) == pytest.approx(look.mechanism.tilt_sigma, rel=0.08)


@pytest.mark.parametrize("link", ["linear", "logistic"])
def test_losses_of_objective_perturbation_stay_below_its_price(link):
    """One row on one side or the other: the loss that the likelihood states exceeds ε rarely."""
    bounds = Bounds(center=np.zeros(1), target_center=0.0)
    problem = Problem(link=link, bounds=bounds, fit_intercept=False)
    look = TiltedQuery(cost=Cost(epsilon=1.0, delta=0.01), problem=problem)
    sides = [(np.ones((3, 1)), np.array([1.0, -1.0, last])) for last in (1.0, -1.0)]
    source = SimulationSource(2)
    for here, there in (sides, sides[::-1]):
        answers = [look.answer(here, source) for _ in range(3000)]
        lost = np.array(
            [
                look.log_likelihood(one, here, source) - look.log_likelihood(one, there, source)
                for one in answers
            ]
        )
        assert np.mean(-np.expm1(np.minimum(1.0 - lost, 0.0))) <= 0.01
        assert lost.max() > 0.2  # not vacuous
