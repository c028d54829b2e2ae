"""Sensitivities by search over neighbouring data sets: never above the bound, and reached."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from dpfda.central.bernstein import Bernstein
from dpfda.central.density_mechanism import cell_sensitivity
from dpfda.central.function_mechanism import Plan, Task
from dpfda.central.kernel_density import KernelDensity
from dpfda.central.linear import (
    AbsoluteRegularization,
    FiniteLaplace,
    GaussianProcess,
    LinearMechanism,
    OptimalAllocation,
    QuadraticRegularization,
)
from dpfda.central.quadrature import as_grid
from dpfda.central.records import clip_rows, exact_mean
from dpfda.central.symmetric import Triangle

GRID = as_grid(np.linspace(0, 1, 41))
TASK = Task(n=20, bound=1.5, epsilon=1.0)
TIGHT = [
    FiniteLaplace(components=5),
    QuadraticRegularization(),
    QuadraticRegularization(eta=2.0, psi=0.01),
    OptimalAllocation(),
    GaussianProcess(),
]


def size(plan: Plan, difference: np.ndarray) -> float:
    scaled = difference / plan.axes
    return float(np.linalg.norm(scaled) if plan.task.delta else np.abs(scaled).sum())


def plan_of(mechanism: LinearMechanism) -> Plan:
    task = replace(TASK, delta=0.01) if mechanism.needs_delta else TASK
    return mechanism.plan(GRID, task)


def search(plan: Plan, seed: int) -> float:
    """Largest difference found: random curves (some far too large), then climbing."""
    rng = np.random.default_rng(seed)
    others = rng.normal(size=(plan.task.n, 41)) * 3
    best = 0.0
    for curve in rng.normal(size=(20, 41)) * rng.choice([0.1, 1, 100], size=(20, 1)):
        first, second = others.copy(), others.copy()
        first[0], second[0] = curve, -curve
        best = max(best, size(plan, plan.summary(first) - plan.summary(second)))

    def loss(c: np.ndarray) -> float:
        unit = c / np.linalg.norm(c) * plan.task.bound
        return -size(plan, plan.shrink(unit / plan.task.n) - plan.shrink(-unit / plan.task.n))

    start = plan.factors / plan.axes + 0.1 * rng.normal(size=plan.axes.size)
    found = minimize(loss, start, method="L-BFGS-B")
    return max(best, -float(found.fun))


@pytest.mark.parametrize("mechanism", TIGHT, ids=lambda m: m.name)
def test_tight_bounds_hold_and_are_reached(mechanism: LinearMechanism) -> None:
    plan = plan_of(mechanism)
    found = search(plan, seed=1)
    assert found <= plan.sensitivity * (1 + 1e-6)
    assert found >= 0.95 * plan.sensitivity


@pytest.mark.parametrize("mechanism", TIGHT[:3], ids=lambda m: m.name)
def test_published_bounds_hold_and_are_loose(mechanism: LinearMechanism) -> None:
    published = plan_of(replace(mechanism, published=True))
    tight = plan_of(mechanism)
    assert search(published, seed=2) <= published.sensitivity
    assert published.sensitivity > 1.5 * tight.sensitivity


def test_thresholding_contracts_and_its_bound_is_reached() -> None:
    # With all n curves equal and large the mean is above every threshold, so a move is not damped.
    mechanism = AbsoluteRegularization(psi=0.05)
    plan = mechanism.plan(GRID, TASK)
    pull = 1 / plan.axes
    direction = pull / np.linalg.norm(pull)
    high = np.full(plan.axes.size, 1.0) * 10
    moved = plan.shrink(high + direction * TASK.radius / 2) - plan.shrink(
        high - direction * TASK.radius / 2
    )
    assert size(plan, moved) == pytest.approx(plan.sensitivity)
    rng = np.random.default_rng(0)
    for _ in range(200):
        a = rng.normal(size=plan.axes.size)
        d = rng.normal(size=plan.axes.size)
        d *= TASK.radius / np.linalg.norm(d)
        assert size(plan, plan.shrink(a + d) - plan.shrink(a)) <= plan.sensitivity
    # J*: beyond it the threshold is at least τ, so nothing is left out that data could fill.
    thresholds = 0.05 / (2 * mechanism.basis(GRID).eigenvalues ** 0.5)
    assert plan.axes.size == int(np.sum(thresholds < TASK.bound))


def test_bernstein_sensitivity() -> None:
    mechanism = Bernstein(order=6)
    rng = np.random.default_rng(3)
    others = rng.normal(size=(20, 41)) * 5
    bound = TASK.radius * 7
    largest = 0.0
    for curve in [np.full(41, 9.0), *rng.normal(size=(10, 41)) * 4]:
        first, second = others.copy(), others.copy()
        first[0], second[0] = curve, -curve
        gap = mechanism.summary(first, GRID, TASK) - mechanism.summary(second, GRID, TASK)
        largest = max(largest, float(np.abs(gap).sum()))
    assert 0.95 * bound <= largest <= bound * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["iclp_qr", "frl", "bernstein"])
def test_density_sensitivity_is_the_largest_over_pairs(kind: str) -> None:
    mechanism = KernelDensity(kind=kind, components=6, bandwidth=0.1)
    _, features, axes = mechanism.layout(((0.0, 1.0),), Task(n=50, bound=1.0, epsilon=1.0))
    bound = cell_sensitivity(features, axes)
    rng = np.random.default_rng(4)
    one, other = rng.integers(0, len(features), size=(2, 3000))
    found = (np.abs(features[one] - features[other]) / axes).sum(axis=1).max()
    assert 0.9 * bound <= found <= bound * (1 + 1e-12)


def test_products_of_residuals() -> None:
    axes = np.arange(1, 6) ** -0.5
    triangle = Triangle(axes)
    rng = np.random.default_rng(5)
    u, v = (clip_rows(rng.normal(size=(4000, 5)) * 3, 2.0, axes=axes) for _ in range(2))
    gap = triangle.vector(u[:, :, None] * u[:, None, :] - v[:, :, None] * v[:, None, :])
    found = np.linalg.norm(gap / triangle.axes, axis=1).max()
    bound = math.sqrt(2) * 4
    assert 0.95 * bound < found <= bound * (1 + 1e-9)


def test_exact_mean_does_not_depend_on_order_and_is_bounded() -> None:
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(1000, 3))
    mean = exact_mean(rows, bound=8.0)
    assert np.array_equal(mean, exact_mean(rows[::-1], bound=8.0))
    np.testing.assert_allclose(mean, rows.mean(axis=0), atol=8 * 2.0**-40)
    assert np.abs(exact_mean(1e9 * rows, bound=8.0)).max() <= 8.0


def test_clipping_keeps_small_rows_and_shortens_long_ones() -> None:
    rows = np.array([[0.3, 0.4], [30.0, 40.0], [0.0, 0.0]])
    np.testing.assert_allclose(clip_rows(rows, 1.0), [[0.3, 0.4], [0.6, 0.8], [0.0, 0.0]])
