"""Sensitivities where the shipped search cannot go: thresholds, published bounds, all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpfda.central.cell_queries import cell_sensitivity
from dpfda.central.functions import Matern, as_grid
from dpfda.central.kernel_density import KernelDensity
from dpfda.central.kernel_machine import KernelMachine, Space
from dpfda.central.linear import (
    AbsoluteRegularization,
    FiniteLaplace,
    GaussianProcess,
    LinearMechanism,
    OptimalAllocation,
    QuadraticRegularization,
)
from dpfda.central.losses import Loss
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.queries import MOST_RECORDS, BallMean, integer_sums, mean_of, units
from dpfda.central.records import clip_rows
from dpfda.checks.queries import search
from dpfda.errors import InvalidParameter
from dpfda.privacy.cost import Cost

GRID = as_grid(np.linspace(0, 1, 41))
N, BOUND = 20, 1.5
RADIUS = 2 * BOUND / N
TIGHT: list[LinearMechanism] = [
    FiniteLaplace(components=5),
    QuadraticRegularization(),
    QuadraticRegularization(eta=2.0, psi=0.01),
    OptimalAllocation(),
    GaussianProcess(),
]


def release(mechanism: FunctionMechanism) -> MeanRelease:
    delta = 0.01 if mechanism.needs_delta else 0.0
    return MeanRelease(epsilon=1.0, delta=delta, n=N, bound=BOUND, grid=GRID, mechanism=mechanism)


@pytest.mark.parametrize("mechanism", TIGHT, ids=lambda m: m.name)
def test_the_stated_worst_curves_attain_the_bound(mechanism: LinearMechanism) -> None:
    mean = release(mechanism)
    look = mechanism.query(mean)
    here, there = (look.exact(side, None) for side in mean.neighbors(N))  # type: ignore[arg-type]
    found = look.mechanism.reach(here - there)
    # The Gaussian bound is attained in one coordinate, not along s/a.
    least = 0.99 if look.cost.pure else 0.99 / np.sqrt(look.size)
    most = look.mechanism.sensitivity
    assert least * most <= found <= most * (1 + 1e-9)


@pytest.mark.parametrize("mechanism", TIGHT[:3], ids=lambda m: m.name)
def test_published_bounds_hold_and_are_loose(mechanism: LinearMechanism) -> None:
    published = replace(mechanism, published=True).query(release(mechanism))
    tight = mechanism.query(release(mechanism)).mechanism.sensitivity
    assert published.mechanism.sensitivity > 1.5 * tight
    assert search(published, starts=5, steps=20).ratio <= 1


def test_thresholding_contracts_and_its_bound_is_reached() -> None:
    # With all n curves equal and large the mean is above every threshold, so a move is not damped.
    mechanism = AbsoluteRegularization(psi=0.05)
    look = mechanism.query(release(mechanism))
    pull = 1 / look.axes
    direction = pull / np.linalg.norm(pull)
    high = np.full(look.size, 10.0)
    reach, most = look.mechanism.reach, look.mechanism.sensitivity
    moved = direction * RADIUS / 2
    moved = look.shrunk(high + moved) - look.shrunk(high - moved)
    assert reach(moved) == pytest.approx(most)
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, d = rng.normal(size=(2, look.size))
        d *= RADIUS / np.linalg.norm(d)
        assert reach(look.shrunk(a + d) - look.shrunk(a)) <= most
    # J*: beyond it the threshold is at least τ, so nothing is left out that data could fill.
    thresholds = 0.05 / (2 * mechanism.basis(GRID).eigenvalues ** 0.5)
    assert look.size == int(np.sum(thresholds < BOUND))


@pytest.mark.parametrize("kind", ["iclp_qr", "frl", "bernstein"])
def test_density_sensitivity_is_the_largest_over_pairs(kind: str) -> None:
    mechanism = KernelDensity(kind=kind, components=6, bandwidth=0.1)  # type: ignore[arg-type]
    _, features, axes = mechanism.layout(((0.0, 1.0),), 50)
    bound = cell_sensitivity(features, axes)
    rng = np.random.default_rng(4)
    one, other = rng.integers(0, len(features), size=(2, 3000))
    found = (np.abs(features[one] - features[other]) / axes).sum(axis=1).max()
    assert 0.9 * bound <= found <= bound * (1 + 1e-12)


def test_integer_sums_do_not_depend_on_order_and_are_bounded() -> None:
    rows = np.random.default_rng(6).normal(size=(1000, 3))
    sums = integer_sums(rows, 8.0, 2**40)
    assert np.array_equal(sums, integer_sums(rows[::-1], 8.0, 2**40))
    np.testing.assert_allclose(mean_of(sums, 8.0, 1000), rows.mean(axis=0), atol=8 * 2.0**-40)
    assert np.abs(mean_of(integer_sums(1e9 * rows, 8.0, 2**40), 8.0, 1000)).max() <= 8.0


def test_sums_of_any_number_of_records_have_room() -> None:
    for n in (2, 1000, 2**22, 2**22 + 1, 10**8, MOST_RECORDS):
        assert n * units(n) < 2**62
        assert units(n) == 2**40 or n * units(n) >= 2**61  # and no unit is given away
        total = integer_sums(np.ones((1, 1)), 1.0, units(n)) * n  # all at the bound
        assert mean_of(total, 1.0, n)[0] == pytest.approx(1.0, abs=1e-9)
    look = BallMean(cost=Cost(epsilon=1.0, delta=1e-6), n=MOST_RECORDS, center=np.zeros(2),
                    axes=np.ones(2), radius=3.0)  # fmt: skip
    rows = np.full((4, 2), 9.0)
    assert look.sums((rows,)).tolist() == [4 * round(2**34 / 2**0.5)] * 2
    step = look.mechanism.lattice_step[0]
    assert 3.0 / (units(look.n) * look.n) < step / 1000  # a unit is far below a step of the noise
    with pytest.raises(InvalidParameter):
        BallMean(cost=look.cost, n=MOST_RECORDS + 1, center=np.zeros(2), axes=np.ones(2),
                 radius=3.0)  # fmt: skip


def test_clipping_keeps_small_rows_and_shortens_long_ones() -> None:
    rows = np.array([[0.3, 0.4], [30.0, 40.0], [0.0, 0.0]])
    np.testing.assert_allclose(clip_rows(rows, 1.0), [[0.3, 0.4], [0.6, 0.8], [0.0, 0.0]])


LOSSES = sorted(Loss.members())


def machine(loss: str, *, psi: float, n: int = 40) -> KernelMachine:
    example = next(one for one in KernelMachine.examples() if one.loss == loss)
    return replace(example, psi=psi, n=n)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("psi", [0.01, 0.1, 1.0])
def test_no_minimizer_is_longer_or_steeper_than_the_reach_assumes(loss: str, psi: float) -> None:
    """D at minimizers of random and of one-sided data, over every pair that could be replaced."""
    rng, look = np.random.default_rng(0), machine(loss, psi=psi)
    rule, table = Loss.named(loss)(), look.space.features
    bound = rule.widest(look.space.gram, psi=psi, target_bound=1.0)
    largest = 0.0
    for trial in range(40):
        x = rng.uniform(size=(40, 1)) if trial % 2 else np.full((40, 1), rng.uniform())
        y = np.sign(rng.normal(size=40)) if trial % 4 < 2 else np.full(40, 1.0)
        w = look.statistic(look.sums((x, y))) / look.space.weights
        slopes = {label: rule.slope(label, table @ w)[:, None] * table for label in (-1.0, 1.0)}
        sides = np.concatenate(list(slopes.values()))
        gaps = np.linalg.norm(sides[:, None, :] - sides[None, :, :], axis=2)
        largest = max(largest, float(gaps.max()))
    assert largest <= bound * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("psi", [2e-5, 0.01, 10.0])
def test_a_public_number_of_steps_is_enough_for_any_data(loss: str, psi: float) -> None:
    rng, look = np.random.default_rng(1), machine(loss, psi=psi)
    rule, table = Loss.named(loss)(), look.space.features
    for spread in (1.0, 0.0):
        x, y = spread * rng.uniform(size=(40, 1)), np.where(rng.uniform(size=40) < 0.9, 1.0, -1.0)
        w = look.statistic(look.sums((x, y))) / look.space.weights
        shares = look.sums((x, y)).reshape(2, -1) / 40
        if not rule.classification:
            shares[1] /= 1 << 40
        gradient = rule.total_slopes(table @ w, shares) @ table + 2 * psi * w
        # ‖w - w*‖ ≤ ‖gradient‖/(2ψ), and 10⁻⁹ √(L₀/ψ) is what the reach allows for.
        assert np.linalg.norm(gradient) / (2 * psi) <= 1e-9 * (rule.at_zero(1.0) / psi) ** 0.5


def test_reach_of_the_squared_loss_is_a_third_of_the_published_one() -> None:
    space = Space.of(Matern(nu=2.5, length=0.3), ((0.0, 1.0),), along=200)
    psi, kappa = 0.01, space.kappa
    published = 2 * (1 + kappa / psi**0.5) * kappa / (psi * 1000)
    ours = space.reach(Loss.named("squared")(), n=1000, psi=psi, target_bound=1.0)
    assert 0.25 * published < ours < 0.4 * published
