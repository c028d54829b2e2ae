"""Coefficient functions: one representation, named rows, and bands that hold them."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dpfda import PrivateFunctionOnScalar
from dpfda.central import coefficient_functions as effects
from dpfda.central import release as release_module
from dpfda.central.function_on_scalar import FunctionOnScalarRelease
from dpfda.central.functions import as_grid, spline_basis
from dpfda.central.release import Release
from dpfda.cli._group import dpfda
from dpfda.privacy.events import PureEvent

T = np.linspace(0, 1, 25)
RANGES: dict[str, Any] = {"age": (20, 80), "dose": ["placebo", "low", "high"]}


def people(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 80, n), "dose": rng.choice(["placebo", "low", "high"], n)}
    )
    shape = np.sin(3 * T)
    curves = 600 + np.outer(frame["age"] - 50, shape) * 2
    curves = curves + np.outer(frame["dose"] == "high", 80 * T) + rng.normal(size=(n, 1)) * 30
    return frame, curves


def least_squares(frame: pd.DataFrame, curves: np.ndarray) -> np.ndarray:
    columns = [frame["age"], frame["dose"] == "low", frame["dose"] == "high", np.ones(len(frame))]
    return np.linalg.lstsq(np.column_stack(columns).astype(float), curves)[0]


def fitted(n: int, epsilon: float, seed: int, **given: Any) -> PrivateFunctionOnScalar:
    known = {"feature_ranges": RANGES, "value_range": (0, 1000), "random_state": seed}
    return PrivateFunctionOnScalar(epsilon, **(known | given)).fit(*people(n), grid_points=T)


def test_everything_shows_the_intercept_that_predictions_use() -> None:
    model = fitted(4000, 20.0, 0)
    release = model.release_
    truth = least_squares(*people(4000))
    assert release.names == ("age", "dose=low", "dose=high", "intercept")
    np.testing.assert_allclose(release.values(), np.vstack([model.coef_, model.intercept_]))
    np.testing.assert_allclose(model.intercept_, truth[-1], atol=60)  # its range is 1000 wide
    there = T[3:7] + 0.01
    own = model.predict(pd.DataFrame({"age": [0], "dose": ["placebo"]}), grid_points=there)
    assert own.shape == (1, 4)
    low, high = release.interval(simultaneous=True)
    assert np.all((low[-1] < truth[-1]) & (truth[-1] < high[-1]))
    again = Release.from_json(release.to_json())
    np.testing.assert_allclose(again.values(), release.values(), rtol=1e-12)
    np.testing.assert_allclose(np.array(json.loads(release.to_json())["values"]), release.values())
    for one, other in zip(again.interval(grid_points=there), release.interval(grid_points=there),
                          strict=True):  # fmt: skip
        np.testing.assert_allclose(one, other)
    assert "dose=high" in [ax.get_title() for ax in release.plot().figure.axes]
    page = model.report().html()
    assert "dose=high" in page
    assert "intercept" in page


def test_the_command_line_names_coefficients_and_reads_categories(
    tmp_path: Any, monkeypatch: Any
) -> None:
    frame, curves = people(3000)
    table = pd.concat([frame, pd.DataFrame(curves, columns=[f"t{k}" for k in range(25)])], axis=1)
    table.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "ranges.json").write_text(json.dumps(RANGES))
    asked = "release function-on-scalar people.csv --epsilon 20 --covariates age,dose"
    asked += " --feature-ranges ranges.json --range 0 1000 --seed 0 --out out.json"
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(dpfda, asked.split(), catch_exceptions=False)
    assert said.exit_code == 0, said.output
    release = Release.from_json((tmp_path / "out.json").read_text())
    assert release.names == ("age", "dose=low", "dose=high", "intercept")
    shown = CliRunner().invoke(dpfda, ["show", str(tmp_path / "out.json")])
    assert "dose=high" in shown.output


@pytest.mark.parametrize(
    ("n", "epsilon", "delta"), [(400, 8.0, 0.0), (400, 4.0, 1e-6), (2000, 4.0, 0.0)]
)
def test_bands_hold_the_coefficients_of_the_sample(
    n: int, epsilon: float, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_module, "_PATHS", 1000)
    truth = least_squares(*people(n))
    runs = 80
    held = []
    for seed in range(runs):
        model = fitted(n, epsilon, seed, delta=delta)
        low, high = model.release_.interval(0.95, of="sample", simultaneous=True)
        held.append(np.all((low <= truth) & (truth <= high)))
    # Binomial: three standard errors of 80 runs at 0.95 are 3·√(0.95·0.05/80) = 0.073.
    assert np.mean(held) >= 0.95 - 0.073


def test_noise_that_hides_covariates_is_said_and_bands_are_wide() -> None:
    with pytest.warns(UserWarning, match="noise hides how these covariates vary"):
        model = fitted(40, 0.1, 1)
    low, high = model.release_.interval()
    truth = least_squares(*people(40))
    assert np.all((low < truth) & (truth < high))
    assert (high - low)[-1].min() > 1000
    assert not fitted(4000, 20.0, 0).release_.warnings


def test_two_covariates_that_move_together_are_named() -> None:
    rng = np.random.default_rng(0)
    one = rng.uniform(-1, 1, 3000)
    frame = pd.DataFrame({"x": one, "twin": one, "other": rng.uniform(-1, 1, 3000)})
    ranges = dict.fromkeys(frame, (-1, 1))
    model = PrivateFunctionOnScalar(8.0, feature_ranges=ranges, value_range=(-3, 3), random_state=0)
    with pytest.warns(UserWarning, match="intercept: x, twin. The bands"):
        model.fit(frame, np.outer(one, T), grid_points=T)


def test_without_an_intercept_all_categories_have_a_coefficient() -> None:
    model = fitted(2000, 10.0, 0, fit_intercept=False)
    assert model.release_.names == ("age", "dose=placebo", "dose=low", "dose=high")
    np.testing.assert_array_equal(model.release_.values(), model.coef_)
    np.testing.assert_array_equal(model.intercept_, np.full(25, 500.0))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_alone_predicts_the_public_center(delta: float) -> None:
    """Curves that are anywhere in their range, and noise far above them: it is left out."""
    rng, errors = np.random.default_rng(0), []
    for seed in range(40):
        rows, curves = rng.uniform(-1, 1, (20, 2)), rng.uniform(-1, 1, (20, 1)) * np.ones(12)
        model = PrivateFunctionOnScalar(
            0.02, delta=delta, feature_ranges=(-1, 1), value_range=(-1, 1), random_state=seed
        ).fit(rows, curves)
        errors.append(np.mean((model.predict(rows) - curves) ** 2) / np.mean(curves**2))
    # Noise of the level has 5 times the length of what it hides; a belief keeps a part of 1/25.
    assert np.mean(errors) <= 1.01
    assert np.max(errors) <= 1.1
    assert model.release_.verdict.kind == "center"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_level_is_learned_where_effects_are_hidden() -> None:
    """Effects of noise would be as large as the level; a belief in none leaves them out."""
    rng, errors = np.random.default_rng(0), []
    for seed in range(20):
        rows, curves = rng.uniform(-1, 1, (200, 2)), np.full((200, 12), 0.5)
        curves += 0.1 * rng.normal(size=(200, 1))
        model = PrivateFunctionOnScalar(
            1.0, feature_ranges=(-1, 1), value_range=(-1, 1), random_state=seed
        ).fit(rows, curves)
        predicted = model.predict(rows)
        errors.append([np.mean((predicted.mean(0) - 0.5) ** 2), np.var(predicted, axis=0).mean()])
    # The center is 0.25 off; noise of the level has variance 2 * 4 * (2 / (140))² = .0016.
    assert np.all(np.mean(errors, axis=0) < 0.02)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("bound", [{"value_range": (0, 1000)}, {"bound": 500, "center": 500}])
def test_bands_end_where_lines_would_leave_the_public_range(bound: dict[str, Any]) -> None:
    model = fitted(40, 0.05, 0, **({"value_range": None} | bound))
    low, high = model.release_.interval(simultaneous=True)
    ages, width = high[0] - low[0], 1000 if "value_range" in bound else 1000 * 3
    assert np.all(ages <= 1.0001 * width / 30)  # through half of its range
    # The intercept is told for an age of 0, 5/3 of half of the range below its middle.
    assert np.all((high - low)[-1] <= 1.0001 * width * 5 / 3)
    truth = least_squares(*people(40))
    assert np.all((low <= truth) & (truth <= high))


def test_pure_noise_is_used_where_it_is_smaller() -> None:
    """Laplace noise of one function at a small δ; Gaussian noise among sites, or of many."""
    small, large = (
        FunctionOnScalarRelease(
            epsilon=1.0, delta=1e-9, n=50, bound=1.0, covariate_bound=1.0, covariates=1,
            basis=spline_basis(as_grid(T), size=size), either=True,
        )
        for size in (1, 25)
    )  # fmt: skip
    assert small.pure
    assert small.event == PureEvent(epsilon=1.0)
    assert not small.among_sites().pure
    assert not large.pure


@pytest.mark.filterwarnings("ignore")
def test_many_covariates_and_long_grids_take_little_memory() -> None:
    """40 covariates at 400 points took 1.4 GB; their bands are still those of all rows at once."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(-1, 1, size=(600, 40)), np.linspace(0, 1, 400)
    curves = np.sin(3 * t) + 0.3 * x[:, :1] * t
    model = PrivateFunctionOnScalar(
        100.0, feature_ranges=(-1, 1), value_range=(-3, 3), random_state=0
    )
    tracemalloc.start()
    low, high = model.fit(x, curves).release_.interval(0.95, simultaneous=True)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 600e6
    assert low.shape == high.shape == (41, 400)


def test_rows_are_solved_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result does not depend on how many."""
    rng = np.random.default_rng(0)
    vectors, noise = rng.normal(size=(3, 20)), np.full((3, 20), 0.1)
    moments = effects.NoisySystem(np.diag([0.3, 0.3, 1.0]), np.zeros((3, 3)), vectors, noise, True)
    whole = effects.posterior_effects(moments, reach=2.0)
    monkeypatch.setattr(effects, "_MOST_NUMBERS", 200)
    parts = effects.posterior_effects(moments, reach=2.0)
    assert parts.mean == pytest.approx(whole.mean)
    assert (parts.error, parts.size) == pytest.approx((whole.error, whole.size))
