"""Densities: what they recover, what they warn of, which noise they use."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dpfda.central import (
    PrivateDensity,
)
from dpfda.central.density import HistogramDensity
from dpfda.central.functions import trapezoid
from dpfda.errors import (
    InvalidData,
    InvalidParameter,
)

RNG = np.random.default_rng(0)
SECRET = 7654.321


def test_density_in_one_and_two_variables() -> None:
    rng = np.random.default_rng(3)
    points = np.clip(rng.normal(0.4, 0.1, size=4000), 0, 1)
    x = np.linspace(0, 1, 257)
    for mechanism in ("histogram", "kernel"):
        model = PrivateDensity(1.0, feature_ranges=(0, 1), mechanism=mechanism, random_state=0)
        values = model.fit(points).release_.values(x)
        truth = np.exp(-((x - 0.4) ** 2) / 0.02) / np.sqrt(0.02 * np.pi)
        assert values.min() >= 0
        assert float(values @ trapezoid((x,))) == pytest.approx(1.0, abs=0.01)
        assert float((values - truth) ** 2 @ trapezoid((x,))) < 0.03
    both = PrivateDensity(1.0, feature_ranges=((0, 1), (0, 1)), random_state=0)
    plane = both.fit(np.stack([points, 1 - points], axis=1))
    surface = plane.release_.values((x[::16], x[::16]))
    assert surface.shape == (17, 17)
    peak = np.unravel_index(surface.argmax(), surface.shape)
    assert np.abs(np.array(peak) / 16 - [0.4, 0.6]).max() < 0.15


def test_kernel_density_of_points_outside_the_range_sits_at_the_border() -> None:
    model = PrivateDensity(5.0, feature_ranges=(0, 1), mechanism="kernel", random_state=0)
    with pytest.warns(UserWarning, match="many points lie at an end of feature_ranges"):
        model.fit(np.full(500, 1e9))
    assert model.release_.values([0.05, 0.99]).argmax() == 1


def test_points_outside_the_range_are_counted_and_left_out() -> None:
    """A quarter of the points is outside: a warning says how many; the others have their density.

    They were moved to the border, where they looked like a spike.
    """
    rng = np.random.default_rng(5)
    inside = rng.uniform(0.0, 1.0, 1500)
    model = PrivateDensity(5.0, feature_ranges=(0, 1), random_state=0)
    with pytest.warns(UserWarning, match=r"more than a few points, 25% ± 0%, lie outside"):
        release = model.fit(np.concatenate([inside, np.full(500, 3.0)])).release_
    low, high = release.interval(simultaneous=True)
    assert np.all((low <= 1) & (high >= 1))
    assert release.values()[-1] < 1.5  # 500 points in the last of 64 cells would make it 17
    nobody = PrivateDensity(5.0, feature_ranges=(0, 1), random_state=0)
    with pytest.warns(UserWarning, match=r"points, 100% ± 0%, lie outside feature_ranges"):
        nobody.fit(np.full(500, 1e9))


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_a_spike_at_an_end_of_a_right_range_is_no_alarm(epsilon: float) -> None:
    """It was taken for points that were moved there in a tenth of the runs of bench honesty."""
    rng = np.random.default_rng(6)
    places = np.where(rng.random(1000) < 0.4, 0.01, rng.uniform(0.0, 1.0, 1000))
    model = PrivateDensity(epsilon, feature_ranges=(0, 1), random_state=0)
    assert model.fit(places).release_.warnings == ()


@pytest.mark.parametrize(("delta", "law"), [(1e-6, "laplace"), (0.4, "gaussian")])
def test_density_with_delta_has_the_smaller_noise(delta: float, law: str) -> None:
    model = PrivateDensity(1.0, delta=delta, feature_ranges=(0, 1), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a large δ, an even density
        release = model.fit(RNG.uniform(size=500)).release_
    assert release.noise[0].law == law
    assert release.sensitivity == pytest.approx(2.0 if law == "laplace" else np.sqrt(2))
    pure = PrivateDensity(1.0, feature_ranges=(0, 1), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        other = pure.fit(RNG.uniform(size=500)).release_
    assert release.noise[0].variance.sum() <= 1.001 * other.noise[0].variance.sum()


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        (RNG.normal(1.0, 0.3, 1000), r"more than a few points, \d\d% ± \d+%, lie outside"),
        (RNG.normal(1.3, 0.2, 1000), r"more than a few points, 9\d% ± \d+%, lie outside"),
        (RNG.uniform(0.51, 0.52, 1000), "in one of 32 cells"),
    ],
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_histograms_say_that_points_are_outside_or_crowd_in_a_cell(
    numbers: Any, told: str, epsilon: float
) -> None:
    """A spike in a cell cannot be told from what is even there; points outside are counted."""
    model = PrivateDensity(epsilon, feature_ranges=(0, 1), random_state=0)
    with pytest.warns(UserWarning, match=told):
        model.fit(numbers)


def test_ranges_ten_times_too_wide_still_show_the_shape() -> None:
    """8 cells left 0.6 of the squared error of an even density, without a warning."""
    parts = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        places = np.where(rng.random(200) < 0.5, 3.0, 4.0) + 0.25 * rng.normal(size=200)
        model = PrivateDensity(1.0, feature_ranges=(0, 20), random_state=seed).fit(places)
        counted = np.histogram(np.clip(places, 0, 20), 32, (0, 20))[0] / 200
        x = model.release_.grid_points
        own = np.histogram(x, 32, (0, 20), weights=model.density_)[0]
        shown = own / own.sum()
        parts.append(np.sum((shown - counted) ** 2) / np.sum((counted - 1 / 32) ** 2))
    assert np.mean(parts) < 0.25


def test_few_cells_are_asked_for_where_noise_hides_more() -> None:
    """Counts of points that fill a tenth of m cells are four times their noise; 32 are enough."""
    cells = [
        HistogramDensity().cells_along(n, 1) for n in (1.0, 10.0, 20.0, 40.0, 2000.0, 20_000.0)
    ]
    assert cells == [4, 8, 16, 32, 32, 128]
    assert [HistogramDensity().cells_along(n, 2) for n in (40.0, 2000.0)] == [4, 16]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n", [1000, 3000])
def test_counts_are_not_called_noise_for_what_no_cell_shows(n: int) -> None:
    """Whole numbers have no density: the verdict is about cells, not about what is between."""
    points = np.random.default_rng(0).poisson(6.0, size=n)
    found = PrivateDensity(10.0, feature_ranges=(0, 16), random_state=0).fit(points).release_
    assert found.verdict.kind == "signal"


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 100.0, 1000.0])
def test_a_clear_density_is_not_doubted_with_little_noise(epsilon: float) -> None:
    """How points scatter was taken for fine structure, and 3000 points for noise."""
    points = np.random.default_rng(0).beta(2, 5, size=(3000, 1))
    found = PrivateDensity(epsilon, feature_ranges=(0, 1), random_state=0).fit(points).release_
    assert found.verdict.kind == "signal"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_densities_of_noise_alone_are_even() -> None:
    """Ten points and ε = 0.01: nothing is known, and the release is no worse than that."""
    errors = []
    for seed in range(40):
        model = PrivateDensity(0.01, feature_ranges=(0, 1), random_state=seed)
        errors.append(np.mean((model.fit(RNG.uniform(size=10)).density_ - 1) ** 2))
    # Noise alone stands out in one case of eight at most, by about 1.
    assert np.median(errors) < 1e-12
    assert np.mean(np.array(errors) > 1e-12) <= 0.3


@pytest.mark.parametrize(
    "bad", [[SECRET], [[SECRET, 1.0], [2.0]], [SECRET, np.nan], ["a", "b"], []]
)
def test_bad_points(bad: Any) -> None:
    with pytest.raises(InvalidData) as caught:
        PrivateDensity(1.0, feature_ranges=(0, 1)).fit(bad)
    assert "7654" not in str(caught.value)
    with pytest.raises(InvalidParameter, match="feature_ranges"):
        PrivateDensity(1.0).fit([0.1, 0.2])
