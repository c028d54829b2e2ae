"""What a newcomer trips over: units of the bound, shapes, single points, messages, bands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dpfda import PrivateMean
from dpfda.central import (
    PrivateCovariance,
    PrivateDensity,
    PrivateFunctionOnScalar,
    PrivateKernelMachine,
)
from dpfda.central.mean import FunctionMechanism
from dpfda.errors import InvalidData, InvalidParameter

T = np.linspace(0, 1, 30)
DAY = 24 * T
RNG = np.random.default_rng(0)
CURVES = 0.9 + 0.05 * RNG.normal(size=(500, 2)) @ np.stack([np.ones(30), T])


# iclp_ar chooses its threshold in the units of the curve, so a longer domain is another problem.
EQUIVARIANT = sorted(set(FunctionMechanism.members()) - {"iclp_ar"})


@pytest.mark.parametrize("name", EQUIVARIANT)
def test_the_bound_means_the_same_on_every_domain(name: str) -> None:
    # √16 is a power of two: all scales are multiplied without rounding, noise bits are the same.
    delta = 1e-3 if FunctionMechanism.named(name).needs_delta else 0.0
    model = PrivateMean(4.0, bound=1.0, delta=delta, mechanism=name, random_state=1)
    unit = model.fit(CURVES, grid_points=T).release_
    long = model.fit(CURVES, grid_points=16 * T).release_
    np.testing.assert_allclose(long.values(), unit.values(), atol=1e-6)
    assert long.parameters["bound"] == 1.0
    assert long.parameters.get("radius") == pytest.approx(unit.parameters.get("radius"))
    for there, here in zip(long.interval(0.9), unit.interval(0.9), strict=True):
        np.testing.assert_allclose(there, here, atol=1e-6)


@pytest.mark.parametrize("name", EQUIVARIANT)
def test_a_level_below_the_bound_survives_a_day(name: str) -> None:
    delta = 1e-3 if FunctionMechanism.named(name).needs_delta else 0.0
    model = PrivateMean(1000.0, bound=1.0, delta=delta, mechanism=name, random_state=0)
    release = model.fit(CURVES, grid_points=DAY).release_
    # At ε = 1000 noise is below 0.02; ICLP-QR and its kin smooth the ends down by a tenth.
    assert np.abs(release.values() - 0.9)[5:-5].max() < 0.1
    if "radius" not in release.parameters:  # an adaptive radius is another draw
        here = model.fit(CURVES, grid_points=T).release_
        variances = [
            sum(law.along(one.basis.functions) for law in one.noise) for one in (release, here)
        ]
        np.testing.assert_allclose(*variances, rtol=2e-3)


def test_a_longer_domain_changes_no_covariance_and_no_regression() -> None:
    wide = 1 + 5 * (CURVES - 0.9)
    found = [
        PrivateCovariance(4.0, bound=1.5, random_state=1).fit(wide, grid_points=grid)
        for grid in (T, 16 * T)
    ]
    np.testing.assert_allclose(found[1].covariance_, found[0].covariance_, atol=1e-5)
    for key in ("bound", "radius", "noise"):
        one, other = (model.release_.parameters[key] for model in found)
        assert one == pytest.approx(other, rel=1e-5)
    x = RNG.uniform(-1, 1, size=(500, 1))
    slopes = [
        PrivateFunctionOnScalar(4.0, bound=1.5, feature_norm_bound=1.0, random_state=1)
        .fit(x, x * T + 0.5, grid_points=grid)
        .coef_
        for grid in (T, 16 * T)
    ]
    np.testing.assert_allclose(slopes[1], slopes[0], atol=1e-5)


def test_surfaces_take_the_average_over_the_rectangle() -> None:
    rows = 0.9 + np.zeros((800, 8, 9)) + 0.01 * RNG.normal(size=(800, 1, 1))
    grid = np.linspace(0, 24, 8), np.linspace(0, 7, 9)
    mean = PrivateMean(8.0, bound=1.0, random_state=0).fit(rows, grid_points=grid).mean_
    assert np.abs(mean - 0.9).max() < 0.1


@pytest.mark.parametrize("shape", [(20, 1, 30), (20, 3, 4, 5)])
def test_arrays_of_odd_shape_are_refused(shape: tuple[int, ...]) -> None:
    cube, x = np.ones(shape), np.ones((20, 1))
    box = {"feature_ranges": (0, 1)}
    for fit in (
        lambda: PrivateMean(1.0, bound=1.0).fit(cube),
        lambda: PrivateCovariance(10.0, bound=1.0).fit(cube),
        lambda: PrivateFunctionOnScalar(1.0, bound=1.0, feature_norm_bound=1.0).fit(x, cube),
        lambda: PrivateFunctionOnScalar(1.0, bound=1.0, feature_norm_bound=1.0).fit(cube, x @ x.T),
        lambda: PrivateDensity(1.0, **box).fit(cube),
        lambda: PrivateKernelMachine(1.0, target_range=(-1, 1), **box).fit(cube, x[:, 0]),
    ):
        with pytest.raises(InvalidData, match=r"array|of one channel|two points"):
            fit()


def test_a_release_is_read_off_anywhere() -> None:
    release = PrivateMean(4.0, bound=1.0, random_state=0).fit(CURVES, grid_points=DAY).release_
    line = release.values([2.0, 3.5, 24.0])
    np.testing.assert_allclose(release.values([2.0]), line[:1])
    np.testing.assert_allclose(release.values([24.0, 2.0, 3.5]), line[[2, 0, 1]])
    assert release.values(2.0).shape == (1,)
    for bad in ([], [np.nan], ["a"], [25.0], [3.0, -1.0]):
        with pytest.raises(InvalidParameter, match="grid_points"):
            release.values(bad)
    low, high = release.interval(0.9, grid_points=[2.0])
    assert low.shape == high.shape == (1,)


@pytest.mark.parametrize("mechanism", ["histogram", "kernel"])
def test_bands_of_densities_agree_with_their_release(mechanism: str) -> None:
    points = RNG.beta(8, 2, size=500)
    for seed in range(3):
        model = PrivateDensity(
            0.5, feature_ranges=(0, 1), mechanism=mechanism, random_state=seed
        ).fit(points)
        for places in (None, [0.1, 0.85]):
            for simultaneous in (False, True):
                low, high = model.release_.interval(
                    0.9, grid_points=places, simultaneous=simultaneous
                )
                values = model.release_.values(places)
                assert low.min() >= 0
                assert np.all((low <= values) & (values <= high))


def test_pictures_say_what_they_show() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axes = PrivateMean(4.0, bound=1.0, random_state=0).fit(CURVES).release_.plot(level=0.9)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("t", "mean")
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["released mean", "90 % band of the privacy noise, whole curve"]
    plt.close(axes.figure)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"random_state": 1.5}, "random_state must be an integer"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"center": "a"}, "center must be one finite number"),
        ({"center": [1.0, [2.0]]}, "center must be one finite number"),
        ({"unit": 3}, "unit must be a word"),
        ({"unit": " "}, "unit must be a word"),
    ],
)
def test_parameters_are_refused_by_name(parameters: dict[str, Any], message: str) -> None:
    models = [PrivateMean(bound=1.0, **parameters), PrivateCovariance(9.0, bound=1.0, **parameters)]
    if "center" not in parameters:
        models.append(PrivateDensity(feature_ranges=(0.0, 1.0), **parameters))
    for model in models:
        with pytest.raises(InvalidParameter, match=message):
            model.fit(CURVES[:, 0] if isinstance(model, PrivateDensity) else CURVES)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([0.0, 2.0, 1.0], r"points 2 and 3, got \(2.0, 1.0\)"),
        ([0.0, 1.0, 1.0], r"points 2 and 3, got \(1.0, 1.0\)"),
        ([0.0, np.inf, 1.0], "point 2, got inf"),
    ],
)
def test_grids_are_refused_with_the_place(grid: list[float], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        PrivateMean(1.0, bound=1.0).fit(np.ones((5, 3)), grid_points=grid)


@pytest.mark.parametrize("box", [5, "ab", (1, 0), ((0, 1), 3), ((0, 1), (0, 1), (0, 1))])
def test_ranges_are_refused_by_name(box: Any) -> None:
    with pytest.raises(InvalidParameter, match="feature_ranges"):
        PrivateDensity(1.0, feature_ranges=box).fit([0.5, 0.6])
    with pytest.raises(InvalidData, match="rectangular"):
        PrivateDensity(1.0, feature_ranges=(0, 1)).fit([[1.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (PrivateMean(), "mean_"),
        (PrivateCovariance(), "covariance_"),
        (PrivateDensity(), "density_"),
        (PrivateFunctionOnScalar(), "coef_"),
        (PrivateFunctionOnScalar(), "intercept_"),
    ],
)
def test_results_before_fit(model: Any, name: str) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(model, name)


def test_predictions_before_fit() -> None:
    for model in (PrivateKernelMachine(), PrivateFunctionOnScalar()):
        with pytest.raises(NotFittedError, match="not fitted"):
            model.predict([[1.0]])
