"""A number from a curve: predictions, and the slope function with a band in the units of t."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import (
    CurveEncoder,
    PrivateCurveClassifier,
    PrivateCurveRegression,
    PrivateLinearRegression,
)
from dpfda.central.regression.model import RegressionModel
from dpfda.central.regression.released import Released
from dpfda.errors import InvalidParameter

T = np.linspace(0, 1, 41)
WAVES = np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(8), T))
WAVES[0] = 1.0
WEIGHTS = np.array([1.0, 2.0, -1.0, 0, 0, 0, 0, 0])
SLOPE = WEIGHTS @ WAVES


def people(n: int, seed: int, *, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 8)) / np.arange(1, 9) ** 0.5
    return scores @ WAVES, 5 + scores @ WEIGHTS + noise * rng.normal(size=n)


def fitted(n: int = 20_000, seed: int = 0, **given: Any) -> PrivateCurveRegression:
    known: dict[str, Any] = {"value_range": (-6, 6), "target_range": (-5, 15)}
    model = PrivateCurveRegression(8.0, random_state=seed, **(known | given))
    X, y = people(n, seed)
    return model.fit(X, y, grid_points=T)


def test_it_predicts_and_shows_the_slope() -> None:
    model = fitted()
    X, y = people(5000, 1)
    assert np.mean((model.predict(X) - y) ** 2) < 0.25 * 1.15
    beta = model.slope(points=T)
    assert np.abs(beta.middle - SLOPE).mean() < 0.15 * np.abs(SLOPE).mean()
    assert np.all((beta.low < beta.middle) & (beta.middle < beta.high))
    assert model.slope().middle.shape == (101,)


def test_the_slope_is_in_units_of_t() -> None:
    X, y = people(20_000, 0)
    known: dict[str, Any] = {"value_range": (-6, 6), "target_range": (-5, 15), "random_state": 0}
    day = PrivateCurveRegression(8.0, **known).fit(X, y, grid_points=24 * T)
    found, wanted = day.slope(points=24 * T), fitted().slope(points=T)
    for one, other in zip(found, wanted, strict=True):
        assert one == pytest.approx(other / 24, rel=1e-6)


def test_bands_hold_the_slope_about_as_often_as_they_say() -> None:
    encoder: Any = fitted(500).model_.encoder
    X, y = people(60_000, 99)
    rows = np.column_stack([np.ones(len(y)), encoder.encode(X, T)])
    truth = encoder.slope(np.linalg.lstsq(rows, y)[0][1:], T)  # of these eight functions
    whole, points = [], []
    for seed in range(40):
        model = fitted(4000, seed)
        whole.append(_holds(model.slope(0.9, points=T), truth).all())
        points.append(_holds(model.slope(0.9, points=T, simultaneous=False), truth).mean())
    # 36 of 40 are expected, 3 standard deviations are 6.
    assert sum(whole) >= 30
    assert 0.82 < np.mean(points) < 0.97


def _holds(band: Any, truth: Any) -> Any:
    return (band.low <= truth) & (band.high >= truth)


def test_bands_of_the_sample_are_narrower() -> None:
    model = fitted(4000)
    both, noise = model.slope(of="population"), model.slope(of="sample")
    assert np.mean(noise.high - noise.low) < 0.97 * np.mean(both.high - both.low)
    wider = model.slope(0.99)
    assert np.all(wider.high - wider.low > both.high - both.low)
    with pytest.raises(InvalidParameter, match="of must be"):
        model.slope(of="people")  # type: ignore[arg-type]


def test_clipping_does_not_steepen_slopes() -> None:
    # Few curves are clipped near their root-mean-square distance. Slopes of curves that are
    # shortened without their targets were 1.4 times too large in the main direction.
    found = [fitted(1500, seed).slope(points=T).middle @ SLOPE for seed in range(10)]
    # Noise of ten fits: their own spread over √10, three times.
    error = 3 * np.std(found) / np.sqrt(10)
    assert np.mean(found) < SLOPE @ SLOPE + error


def test_sampling_error_is_that_of_least_squares() -> None:
    quadratic, w = np.diag([0.4, 0.1]), np.array([0.3, -0.2])
    left = 0.2 - w @ quadratic @ w
    known = Released(
        matrix=quadratic,
        vector=quadratic @ w,
        matrix_variance=np.zeros((2, 2)),
        vector_sigma=1e-9,
        constant=False,
        combinations=5 / 3 * np.eye(2),
        residual_variance=left,
        rows=100,
    )
    found = np.cov(known.slopes(4000, sampling=True).T)
    wanted = left / 100 * np.linalg.inv(quadratic) * (5 / 3) ** 2
    # A variance of 4000 draws is known to √(2/4000) = 2 %; four of those.
    assert np.diag(found) == pytest.approx(np.diag(wanted), rel=0.09)
    assert np.cov(known.slopes(4000).T) == pytest.approx(np.zeros((2, 2)), abs=1e-6)


HOURS = np.linspace(0, 24, 25)


def day(n: int, seed: int, **given: Any) -> Any:
    """The slope .4 + .4 cos of a day; curves about 1 with seven waves of deviation .3 to .05."""
    rng, angle = np.random.default_rng(seed), 2 * np.pi * HOURS / 24
    waves = [np.ones(25)] + [wave(k * angle) for k in (1, 2, 3) for wave in (np.cos, np.sin)]
    X = 1 + rng.normal(size=(n, 7)) * np.linspace(0.3, 0.05, 7) @ np.stack(waves)
    slope = 0.4 + 0.4 * np.cos(angle)
    y = np.trapezoid(X * slope, HOURS, axis=1) + rng.normal(size=n)
    model = PrivateCurveRegression(1.0, target_range=(0, 60), random_state=seed, **given)
    return model.fit(X, y, grid_points=HOURS), slope


def test_a_generous_range_does_not_make_bands_too_narrow() -> None:
    held = []
    for seed in range(12):
        model, truth = day(8000, seed, value_range=(-6, 8))
        held.append(_holds(model.slope(points=HOURS), truth).all())
    assert sum(held) >= 9  # 0 where the factor of shortened curves was taken from a floor


def test_a_slope_that_noise_hides_is_said_to_be_pulled() -> None:
    model, _ = day(500, 0, value_range=(-20, 22))
    with pytest.warns(UserWarning, match="pulled towards 0: noise hides most"):
        model.slope(points=HOURS)
    assert any("pulled" in text for text in model.model_.warnings)
    assert not fitted(2000).model_.warnings


def test_the_band_of_a_hidden_slope_is_as_wide_as_targets_allow() -> None:
    released = Released(
        matrix=np.diag([0.4, 0.001]),
        vector=np.zeros(2),
        matrix_variance=np.full((2, 2), 0.01**2),
        vector_sigma=10.0,
        constant=False,
        combinations=np.eye(2),
        target_variance=2.0,
        rows=100,
    )
    belief = released.beliefs(released.matrix[None], np.array([1.0, 2.0]))[0]
    assert belief[1] == pytest.approx(2 * belief[0])
    # A tenth of the noise is the least that a feature is taken to vary.
    assert belief**2 @ [0.4, 0.001] == pytest.approx(2.0)
    spread = released.slopes(4000, sizes=np.array([1.0, 2.0])).std(axis=0)
    assert spread == pytest.approx(belief, rel=0.1)


def test_saved_models_know_their_errors() -> None:
    model = fitted(2000).model_
    again = RegressionModel.from_json(model.to_json())
    assert np.array_equal(again.slope_band(), model.slope_band())


def test_the_picture_shows_the_band() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = fitted(2000).model_.plot(level=0.9)
    assert len(axes.collections) == 1
    told = axes.get_legend().get_texts()[0].get_text()
    assert told == "90 % band for the whole curve"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value_range": (0, 1), "encoder": CurveEncoder("bspline", n_basis=4)}, "one of them"),
        ({"domain_range": (0, 1), "feature_norm_bound": 1.0}, "domain_range must be left out"),
        ({"domain_range": (0, 1), "encoder": CurveEncoder()}, "domain_range must be left out"),
        ({"encoder": CurveEncoder("identity", n_basis=3)}, "a CurveEncoder of curves"),
    ],
)
def test_curves_are_told_of_in_one_way(given: Any, said: str) -> None:
    X, y = people(50, 0)
    with pytest.raises(InvalidParameter, match=said):
        PrivateCurveClassifier(1.0, **given, random_state=0).fit(X, y > 0)


def test_a_table_has_no_grid() -> None:
    X, y = people(50, 0)
    model = PrivateLinearRegression(1.0, feature_ranges=(-6, 6), target_range=(-5, 15))
    with pytest.raises(InvalidParameter, match="PrivateCurveRegression and PrivateCurveClassifier"):
        model.fit(X, y, grid_points=np.linspace(0, 1, X.shape[1]))


def test_it_is_for_curves() -> None:
    X, y = people(50, 0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'feature_ranges'"):
        PrivateCurveRegression(1.0, feature_ranges=(-1, 1), target_range=(0, 1))  # type: ignore[call-arg]
    with pytest.raises(InvalidParameter, match="value_range must be given where n·epsilon is bel"):
        PrivateCurveRegression(1.0, target_range=(0, 1)).fit(X, y)
    with pytest.raises(InvalidParameter, match="mechanism must be 'moments', with link='linear'"):
        fitted(500, mechanism="objective_perturbation").slope()
