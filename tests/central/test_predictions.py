"""Kernel machines and regressions of curves: what they predict, and how well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dpfda.central import PrivateDensity, PrivateFunctionOnScalar, PrivateKernelMachine
from dpfda.central.functions import SquaredExponential
from dpfda.errors import InvalidData, InvalidParameter, UnknownName
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC

T, RNG = np.linspace(0, 1, 40), np.random.default_rng(1)


@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge"])
def test_kernel_machine_classifies(loss: str) -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(size=4000)
    y = np.where(rng.uniform(size=4000) < 1 / (1 + np.exp(-8 * np.sin(2 * np.pi * x))), 1, -1)
    machine = PrivateKernelMachine(1.0, loss=loss, feature_ranges=(0, 1), random_state=0).fit(x, y)
    grid = np.linspace(0.05, 0.95, 60)
    truth = np.sign(np.sin(2 * np.pi * grid))
    assert machine.score(grid, truth) > 0.9
    chances = machine.predict_proba(grid)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(
        np.log(chances[:, 1] / chances[:, 0]), machine.decision_function(grid)
    )
    assert np.array_equal(machine.classes_[chances.argmax(axis=1)], machine.predict(grid))
    if loss == "logistic":  # f are log-odds, and shrunk rather than too sure
        assert np.abs(chances[:, 1] - 1 / (1 + np.exp(-8 * np.sin(2 * np.pi * grid)))).mean() < 0.2


def test_kernel_machine_regresses_in_the_plane() -> None:
    rng = np.random.default_rng(7)
    x = rng.uniform(size=(20_000, 2))
    y = x[:, 0] - x[:, 1]
    machine = PrivateKernelMachine(
        4.0, feature_ranges=((0, 1), (0, 1)), target_range=(-1, 1), random_state=0, psi=0.1
    ).fit(x, y)
    test = rng.uniform(size=(300, 2))
    assert np.corrcoef(machine.predict(test), test[:, 0] - test[:, 1])[0, 1] > 0.9
    assert 0.7 < machine.score(test, test[:, 0] - test[:, 1]) < 1
    assert not hasattr(machine, "predict_proba")


@pytest.mark.parametrize(
    ("kernel", "error", "told"),
    [
        ("rbf", UnknownName, "unknown kernel 'rbf'.*gaussian, matern"),
        (3, InvalidParameter, "kernel must be None, a kernel or the name of one"),
    ],
)
def test_a_kernel_that_does_not_exist_is_named(kernel: Any, error: Any, told: str) -> None:
    x = np.linspace(0, 1, 50)
    box = {"feature_ranges": (0, 1), "target_range": (0, 1), "random_state": 0}
    with pytest.raises(error, match=told):
        PrivateKernelMachine(1.0, kernel=kernel, **box).fit(x, x)
    named = PrivateKernelMachine(1.0, kernel="gaussian", **box).fit(x, x)
    made = PrivateKernelMachine(1.0, kernel=SquaredExponential(), **box).fit(x, x)
    np.testing.assert_array_equal(named.predict(x), made.predict(x))


def test_classes_of_a_kernel_machine_are_fixed() -> None:
    x = np.linspace(0, 1, 50)
    machine = PrivateKernelMachine(1.0, loss="logistic", feature_ranges=(0, 1), random_state=0)
    known = clone(machine).set_params(classes=(-1, 1))
    assert known.fit(x, np.ones(50)).classes_.tolist() == [-1.0, 1.0]
    assert CLASSES_ARE_PUBLIC not in known.guarantee_.assumptions
    with pytest.raises(InvalidData, match="y must"):
        known.fit(x, 1.0 + np.arange(50) % 2)
    with pytest.raises(InvalidParameter, match="feature_ranges must be of one or two columns"):
        machine.fit(np.ones((50, 3)), np.ones(50))
    found = machine.fit(x, np.where(x > 0.5, "high", "low"))
    assert found.classes_.tolist() == ["high", "low"]
    assert CLASSES_ARE_PUBLIC in found.guarantee_.assumptions
    with pytest.raises(InvalidParameter, match="classes must be given where random_state is None"):
        machine.set_params(random_state=None).fit(x, np.ones(50))


def test_points_have_no_grid() -> None:
    density = PrivateDensity(1.0, feature_ranges=(0, 1), random_state=0)
    with pytest.raises(InvalidParameter, match="grid_points must be None"):
        density.fit(np.linspace(0, 1, 50), grid_points=T)


def test_how_well_curves_are_predicted() -> None:
    x = RNG.uniform(20, 60, size=(4000, 1))
    y = (x - 40) / 20 * np.sin(3 * T) + 1
    ranges = {"feature_ranges": (20, 60), "value_range": (-1, 3)}
    model = PrivateFunctionOnScalar(4.0, **ranges, random_state=0).fit(x, y, grid_points=T)
    score = model.score(x, y)
    residual, spread = y - model.predict(x), y - y.mean(axis=0)
    assert score == pytest.approx(1 - (residual**2).sum() / (spread**2).sum())
    assert 0.8 < score < 1
    some = T[::3]
    assert model.predict(x, grid_points=some).shape == (4000, len(some))
    np.testing.assert_allclose(model.predict(x, grid_points=T), model.predict(x), atol=1e-6)
    assert model.score(x, y[:, ::3], grid_points=some) == pytest.approx(score, abs=0.02)
    with pytest.raises(InvalidData, match="one row for each curve"):
        model.score(x[:5], y)
