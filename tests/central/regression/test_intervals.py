"""Intervals of coefficients: they hold least squares without noise, also of correlated features."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from dpfda import PrivateLinearRegression
from dpfda.central.regression.model import RegressionModel
from dpfda.errors import InvalidParameter
from dpfda.noise.law import (
    belief,
    drawn_systems,
    hidden_columns,
    least_variances,
    plausible_solutions,
    possible_systems,
    symmetric_errors,
    variances,
)

RANGES = [(0, 18), (0, 63), (0, 63**2), (0, 1), (0, 1)]


def wages(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Years of education and experience, its square, and two groups, one of them small."""
    rng = np.random.default_rng(seed)
    years = np.clip(rng.normal(13, 2.9, n), 0, 18), np.clip(np.abs(rng.normal(18, 13, n)), 0, 63)
    groups = rng.random((n, 2)) < [0.08, 0.74]
    X = np.column_stack([years[0], years[1], years[1] ** 2, *groups.T])
    y = 4.3 + X @ [0.085, 0.078, -0.0013, -0.24, 0.16] + rng.normal(0, 0.55, n)
    return X, np.clip(y, 3, 10)


def fitted(n: int, epsilon: float, seed: int, **given: Any) -> PrivateLinearRegression:
    known: dict[str, Any] = {"feature_ranges": RANGES, "target_range": (3, 10), "delta": 1e-5}
    known |= {"mechanism": "gaussian_fm", "random_state": seed} | given
    return PrivateLinearRegression(epsilon, **known).fit(*wages(n))


@pytest.mark.filterwarnings("ignore:noise hides how")
@pytest.mark.parametrize(
    ("mechanism", "n", "epsilon", "delta"),
    [
        ("gaussian_fm", 20_000, 1.0, 1e-5),
        ("gaussian_fm", 20_000, 8.0, 1e-5),
        ("gaussian_fm", 500, 2.0, 1e-5),
        ("adassp", 20_000, 4.0, 1e-5),
    ],
)
def test_intervals_hold_the_coefficients_of_the_sample(
    mechanism: str, n: int, epsilon: float, delta: float
) -> None:
    X, y = wages(n)
    truth = np.linalg.lstsq(np.column_stack([X, np.ones(n)]), y)[0][:-1]
    runs, each, together = 60, [], []
    for seed in range(runs):
        model = fitted(n, epsilon, seed, mechanism=mechanism, delta=delta).model_
        low, high = model.interval(0.95, of="sample")
        each.append((low <= truth) & (truth <= high))
        low, high = model.interval(0.95, simultaneous=True)
        together.append(np.all((low <= truth) & (truth <= high)))
    # Binomial: three standard errors of 60 runs at 0.95 are 3·√(0.95·0.05/60) = 0.084.
    assert np.mean(each, axis=0).min() >= 0.95 - 0.084
    assert np.mean(together) >= 0.95 - 0.084


def test_features_that_move_together_are_named() -> None:
    with pytest.warns(UserWarning, match="vary apart from each other: 1, 2"):
        model = fitted(20_000, 1.0, 0)
    low, high = model.model_.interval()
    # Noise hides whether experience or its square counts; not that education does.
    assert low[1] < 0 < high[1]
    assert low[0] < 0.085 < high[0]
    assert (high - low)[0] < 0.3 * (high - low)[1]
    assert not fitted(20_000, 20.0, 0).model_.warnings


@pytest.mark.filterwarnings("ignore:noise hides how")
def test_intervals_hold_with_ranges_that_are_far_too_wide() -> None:
    n, runs = 20_000, 40
    X, y = wages(n)
    truth = np.linalg.lstsq(np.column_stack([X, np.ones(n)]), y)[0][:-1]
    wide = {"feature_ranges": [(-9 * high, 10 * high) for _, high in RANGES]}
    held = []
    for seed in range(runs):
        low, high = fitted(n, 4.0, seed, target_range=(-30, 40), **wide).model_.interval()
        held.append((low <= truth) & (truth <= high))
    # Three standard errors of 40 runs at 0.95 are 0.103.
    assert np.mean(held, axis=0).min() >= 0.95 - 0.103


@pytest.mark.filterwarnings("ignore:too few rows", "ignore:noise hides how")
@pytest.mark.filterwarnings("ignore:No coefficient stands out")
@pytest.mark.parametrize("narrow", [1.0, 0.1])
def test_intervals_hold_where_noise_hides_everything(narrow: float) -> None:
    """Rows that fill their ranges, and rows that fill a tenth of them, and noise far above both."""
    rng, held = np.random.default_rng(0), []
    for seed in range(60):
        X = narrow * rng.uniform(-1, 1, (30, 2))
        y = X @ [0.5, -0.5] / narrow
        model = PrivateLinearRegression(
            0.01, feature_ranges=(-1, 1), target_range=(-1, 1), delta=1e-6,
            mechanism="gaussian_fm", random_state=seed,
        ).fit(X, y).model_  # fmt: skip
        low, high = model.interval(simultaneous=True)
        truth = np.array([0.5, -0.5]) / narrow
        held.append(bool(np.all((low <= truth) & (truth <= high))))
    # Three standard errors of 60 runs at 0.95 are 0.084.
    assert np.mean(held) >= 0.95 - 0.084


@pytest.mark.filterwarnings("ignore:too few rows", "ignore:noise hides how")
@pytest.mark.filterwarnings("ignore:No coefficient stands out")
def test_few_rows_predict_the_middle_of_the_public_range() -> None:
    """Noise alone must not make predictions worse than what is known without data."""
    rng, errors = np.random.default_rng(0), []
    for seed in range(60):
        X = rng.uniform(-1, 1, (30, 2))
        y = X @ [0.5, -0.5]
        model = PrivateLinearRegression(
            0.01, feature_ranges=(-1, 1), target_range=(-1, 1), delta=1e-6, random_state=seed
        ).fit(X, y)
        errors.append(np.mean((model.predict(X) - y) ** 2) / np.mean(y**2))
    assert np.mean(errors) <= 1.05


@pytest.mark.parametrize("least", [0.3, 0.03, 0.01, 0.0])
def test_solutions_hold_however_ill_conditioned_the_system_is(least: float) -> None:
    """A β = b with noise of deviation 0.01 on all numbers; the least eigenvalue is `least`."""
    rng = np.random.default_rng(1)
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    matrix, truth = (turned * [1.0, 0.5, least]) @ turned.T, turned @ [1.0, -1.0, 2.0]
    variance = np.full((3, 3), 0.01**2 / 2) + np.eye(3) * 0.01**2 / 2
    held = []
    for _ in range(150):
        released = matrix + symmetric_errors(variance, 1, rng)[0]
        vector = matrix @ truth + 0.01 * rng.normal(size=3)
        errors = symmetric_errors(variance, 400, rng)
        systems = drawn_systems(released, errors, most=2.0)
        varies = variances(systems, most=2.0, constant=False)
        found = plausible_solutions(
            possible_systems(systems, most=2.0),
            vector[:, None],
            vector_errors=0.01 * rng.normal(size=(400, 3, 1)),
            vector_covariance=0.01**2 * np.eye(3),
            prior=belief(np.maximum(varies, least_variances(variance, most=2.0)), 1.0),
            generator=rng,
        )[..., 0]
        low, high = np.quantile(found, (0.025, 0.975), axis=0)
        held.append((low <= truth) & (truth <= high))
        if least == 0.3:
            assert not hidden_columns(released, variance, ("a", "b", "c"))
    # 450 intervals of 150 systems: three standard errors of 150 are 0.053; quantiles of 400 draws
    # are known to 0.011.
    assert np.mean(held) >= 0.95 - 0.053 - 0.011


def test_saved_models_know_their_intervals_and_who_they_are_about() -> None:
    model = fitted(20_000, 20.0, 0).model_
    again = RegressionModel.from_json(model.to_json())
    np.testing.assert_allclose(again.interval(), model.interval())
    assert "least-squares coefficients of these rows" in model.target
    assert "moved into their public ranges" in " ".join(model.notes)
    with pytest.raises(InvalidParameter, match="of must be 'sample'"):
        model.interval(of="population")


@pytest.mark.filterwarnings("ignore:too few rows", "ignore:The fit explains no more")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_few_rows_tell_the_mean_target(delta: float) -> None:
    """Where no slope can be learned: the budget goes to the mean, and no slope is made of noise."""
    rng, errors = np.random.default_rng(0), []
    for seed in range(20):
        X, y = rng.uniform(-1, 1, (200, 8)), 0.4 + 0.1 * rng.normal(size=200)
        model = PrivateLinearRegression(
            1.0, feature_ranges=(-1, 1), target_range=(-1, 1), delta=delta, random_state=seed
        ).fit(X, y)
        errors.append(np.mean((model.predict(X) - 0.4) ** 2))
    # Noise of all of ε on the mean has variance 2(2/200)² = 2e-4, that of a quarter shared with
    # rows and squares 800 times as much; the middle of the range is 0.16 off.
    assert np.mean(errors) < 0.01


def wide(columns: int, *, signal: float, epsilon: float = 1.0) -> PrivateLinearRegression:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(4000, columns))
    target = np.clip(signal * rows[:, :5].sum(axis=1) + 0.1 * rng.normal(size=4000), -1, 1)
    known: dict[str, Any] = {"feature_ranges": (-1, 1), "target_range": (-1, 1)}
    return PrivateLinearRegression(
        epsilon, delta=1e-5, mechanism="gaussian_fm", random_state=0, **known
    ).fit(rows, target)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_many_columns_are_fitted_and_judged_without_drawing_their_noise_again() -> None:
    """Fitting 200 columns took half a minute and 4 GB; 600 had no room."""
    begun = time.process_time()
    clear, hidden = wide(300, signal=0.2, epsilon=100.0), wide(300, signal=0.0)
    assert time.process_time() - begun < 5
    assert (clear.model_.verdict.kind, hidden.model_.verdict.kind) == ("signal", "noise")
    assert not clear.model_.has_interval
    assert clear.model_.coefficients()[1][0].low is None
    with pytest.raises(InvalidParameter, match="features must be at most 256"):
        clear.model_.interval()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_intervals_of_many_columns_hold_with_fewer_draws() -> None:
    model = wide(100, signal=0.2, epsilon=10.0).model_
    assert model.fit.released is not None
    assert 200 <= model.fit.released.draws < 500
    low, high = model.interval()
    truth = np.r_[np.full(5, 0.2), np.zeros(95)]  # with an error of .1/√(4000/3) for each
    held = np.mean((low - 0.01 <= truth) & (truth <= high + 0.01))
    assert held >= 0.95 - 3 * 0.022  # three standard errors of 100 intervals
