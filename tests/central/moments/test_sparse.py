"""Means of curves of which few points are known: accuracy, bands, times, and how they are read."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda import PrivateMean, rehearse
from dpfda.central.sparse_queries import SparseMean, sparse_rows
from dpfda.cli._group import dpfda as main
from dpfda.errors import InvalidParameter

T = np.linspace(0, 1, 101)


def mean_at(t: Any) -> Any:
    return np.sin(2 * np.pi * t) + 0.5 * np.sin(4 * np.pi * t)


def points_of(n: int, each: int, seed: int, *, skewed: bool = False) -> list[Any]:
    """A few noisy points of each of n curves; skewed times have the density (1 + 2t)/2."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(size=(n, each))
    if skewed:
        t = (np.sqrt(1 + 8 * t) - 1) / 2
    scores = 0.3 * rng.normal(size=(2, n, 1))
    x = mean_at(t) + scores[0] + scores[1] * np.sqrt(2) * np.cos(np.pi * t)
    x += 0.2 * rng.normal(size=t.shape)
    return list(zip(t, x, strict=True))


def sparse(seed: int, epsilon: float = 1.0, **given: Any) -> PrivateMean:
    known: dict[str, Any] = {"delta": 0.0, "value_range": (-2.5, 2.5), "domain_range": (0, 1)}
    return PrivateMean(epsilon, design="sparse", random_state=seed, **known | given)


def error(model: PrivateMean) -> float:
    return float(np.mean((model.mean_ - mean_at(T)) ** 2))


@pytest.mark.parametrize(("each", "most"), [(2, 0.012), (4, 0.0045), (10, 0.0035)])
def test_few_points_a_person_are_enough(each: int, most: float) -> None:
    """Interpolated, the same points give errors of .27, .10 and .04."""
    errors = [error(sparse(seed).fit(points_of(3000, each, seed))) for seed in range(4)]
    assert np.mean(errors) < most


def test_a_release_says_what_it_assumes_of_times_and_waves() -> None:
    for times in ("uniform", "estimate"):
        found = sparse(0, times=times).fit(points_of(1000, 3, 0)).release_
        said = found.to_dict()["parameters"]["reading"]
        assert ("declared density" in said) == (times == "uniform")
        assert f"finer than {found.parameters['components']} smooth functions are left out" in said


def test_bands_hold_the_mean_of_the_population() -> None:
    held = []
    for seed in range(40):
        found = sparse(seed, 2.0, delta=1e-5 * (seed % 2)).fit(points_of(1000, 3, seed)).release_
        low, high = found.interval(0.95, simultaneous=True)
        held.append(np.all((low <= mean_at(T)) & (mean_at(T) <= high)))
    assert np.mean(held) >= 0.92 - 2 * 0.04  # two standard errors of 40 runs
    assert found.covered == "of noise and sampling"


def test_a_declared_density_is_used_and_checked() -> None:
    rows = points_of(3000, 3, 0, skewed=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for times in (lambda t: 1 + 2 * t, 1 + 2 * T, "estimate"):
            assert error(sparse(0, times=times).fit(rows)) < 0.01
    with pytest.warns(UserWarning, match="times of the points are not distributed as declared"):
        wrong = sparse(0, 6.0).fit(rows)
    assert error(wrong) < 0.03  # about the first mean only what that missed is weighted wrongly


def test_right_times_are_not_doubted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(15):
            sparse(seed, delta=1e-5 * (seed % 2)).fit(points_of(600, 2, seed))


def test_gaps_on_a_shared_grid_are_sparse_points() -> None:
    rng, t = np.random.default_rng(0), np.linspace(0, 1, 24)
    rows = mean_at(t) + 0.3 * rng.normal(size=(3000, 1))
    few = np.argsort(rng.uniform(size=rows.shape), axis=1) < 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sparse(0).fit(np.where(few, rows, np.nan), grid_points=t)
    assert np.mean((found.mean_ - mean_at(t)) ** 2) < 0.01


def test_units_of_time_do_not_matter() -> None:
    rows = points_of(900, 3, 1)
    hours = [(8 + 16 * t, x) for t, x in rows]
    one, other = sparse(0).fit(rows), sparse(0, domain_range=(8, 24)).fit(hours)
    assert one.mean_ == pytest.approx(other.mean_, abs=1e-6)
    bands = [model.release_.interval(0.95, simultaneous=True) for model in (one, other)]
    assert bands[0][0] == pytest.approx(bands[1][0], abs=0.02)  # quantiles of drawn paths


def test_a_level_far_from_the_center_costs_little() -> None:
    """Points are taken about a first mean: their times alone would move a mean of level 2."""
    near = [error(sparse(s).fit(points_of(3000, 2, s))) for s in range(3)]
    far = []
    for seed in range(3):
        rows = [(t, x + 8.0) for t, x in points_of(3000, 2, seed)]
        found = sparse(seed, value_range=(0, 12)).fit(rows)
        far.append(np.mean((found.mean_ - 8 - mean_at(T)) ** 2))
    assert np.mean(far) < 8 * np.mean(near)  # noise of a range 2.4 times as wide: 5.8


def test_chunks_give_the_same_bits() -> None:
    rows = points_of(900, 3, 1)
    whole = sparse(0).fit(rows)
    chunked = sparse(0).fit_stream(lambda: iter([rows[:500], rows[500:]]))
    assert np.array_equal(whole.mean_, chunked.mean_)


def test_chunks_and_sites_of_arrays_with_gaps() -> None:
    rng, t = np.random.default_rng(0), np.linspace(0, 1, 24)
    rows = mean_at(t) + 0.3 * rng.normal(size=(2000, 1))
    rows[np.argsort(rng.uniform(size=rows.shape), axis=1) >= 3] = np.nan
    whole = sparse(0, delta=1e-5).fit(rows, grid_points=t)
    assert whole.n_features_in_ == 24
    chunked = sparse(0, delta=1e-5).fit_stream(
        lambda: iter([rows[:500], rows[500:]]), grid_points=t
    )
    assert np.array_equal(whole.mean_, chunked.mean_)
    sites = {"a": rows[:500], "b": rows[500:]}
    joined = rehearse(sparse(0, delta=1e-5), sites, grid_points=t)[0]
    assert np.mean((joined.mean_ - mean_at(t)) ** 2) < 0.02


@pytest.mark.filterwarnings("ignore:n·epsilon is 350")
def test_bands_hold_for_few_people_and_pure_epsilon() -> None:
    """With a radius that leaves many people outside, bands held 8 of 30 means."""
    held = []
    for seed in range(30):
        found = sparse(seed).fit(points_of(350, 2, seed)).release_
        low, high = found.interval(0.95, simultaneous=True)
        held.append(np.all((low <= mean_at(T)) & (mean_at(T) <= high)))
    assert np.mean(held) >= 0.92 - 2 * 0.045  # two standard errors of 30 runs


def test_the_first_query_does_not_depend_on_the_records() -> None:
    one, other = (sparse(0).fit(points_of(500, each, each)) for each in (1, 9))
    kept = [{**model.release_.parameters, "radius": 0} for model in (one, other)]
    assert kept[0] == kept[1]
    assert one.release_.noisy.shape == other.release_.noisy.shape


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_dense_curves_name_the_option_whatever_is_missing() -> None:
    """Curves of two points each, filled along, gave a wrong mean, a thin band and no word."""
    known: dict[str, Any] = {"value_range": (-2.5, 2.5), "domain_range": (0, 1)}
    gaps = np.full((300, 9), np.nan)
    gaps[:, ::8] = 0.0
    for curves in (points_of(300, 2, 0), np.zeros((300, 9)), gaps):
        found = PrivateMean(1.0, random_state=0, **known).fit(curves)
        assert "design='sparse'" in found.release_.parameters["reading"]
        assert "design=" not in sparse(0).fit(curves).release_.parameters["reading"]


def crowded(n: int, each: int, seed: int, *, fall: float) -> list[Any]:
    """Points whose density falls like exp(-fall t)."""
    rng = np.random.default_rng(seed)
    times = -np.log(1 - rng.uniform(size=(n, each)) * (1 - np.exp(-fall))) / fall
    level = 0.3 * rng.normal(size=(n, 1))
    return list(zip(times, mean_at(times) + level, strict=True))


def told_of_times(model: PrivateMean) -> bool:
    return any("not distributed as declared" in text for text in model.release_.warnings)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_times_far_from_the_declared_ones_are_noticed() -> None:
    """Four of five were, while the mean of times that crowd at one end was worse than 0."""
    far = [told_of_times(sparse(s).fit(crowded(3000, 4, s, fall=3.0))) for s in range(12)]
    even = [told_of_times(sparse(s).fit(points_of(3000, 4, s))) for s in range(12)]
    assert sum(far) >= 11
    assert sum(even) <= 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("fall", [2.0, 3.0])
def test_bands_allow_for_estimated_times(fall: float) -> None:
    """They held half of the means: noise in the density, and its floor, were left out."""
    held, told = [], []
    for seed in range(12):
        found = sparse(seed, times="estimate").fit(crowded(3000, 4, seed, fall=fall)).release_
        low, high = found.interval(0.95, simultaneous=True)
        held.append(bool(np.all((low <= mean_at(T)) & (mean_at(T) <= high))))
        told.append(any("few points" in text for text in found.warnings))
    assert np.mean(held) >= 0.92 - 2 * 0.08  # two standard errors of 12 runs
    assert all(np.array(held) | np.array(told))


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"value_range": None}, "value_range must be given"),
        ({"mechanism": "frl"}, "mechanism must be 'adaptive' with design='sparse'"),
        ({"times": "often"}, "times must be 'uniform', 'estimate'"),
        ({"times": [1.0, 2.0]}, "times must be 101 finite numbers"),
        ({"times": T}, "times must be a density that is never below 0.01"),
        ({"design": "few"}, "design must be"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        PrivateMean(
            **{"value_range": (-2.5, 2.5), "domain_range": (0, 1), "design": "sparse"} | given
        ).fit(points_of(20, 2, 0))


def test_rows_carry_the_expectation_of_a_function_of_time() -> None:
    rng = np.random.default_rng(0)
    t, grid = rng.uniform(size=(50, 4)), np.linspace(0, 1, 201)
    x = rng.normal(size=t.shape)
    x[rng.uniform(size=x.shape) < 0.3] = np.nan
    x[:, 0] = 1.0
    rows = sparse_rows(t, x, grid)
    wave = np.cos(3 * grid)
    wanted = np.nanmean(np.where(np.isnan(x), np.nan, x * np.cos(3 * t)), axis=1)
    assert rows[:, 201:] @ wave == pytest.approx(wanted, abs=1e-4)
    assert rows[:, :201].sum(axis=1) == pytest.approx(1.0)


def test_a_query_about_a_curve_takes_that_curve_off() -> None:
    """z about the very curve that all points lie on is 0, whatever the density."""
    look = SparseMean.examples()[0]
    curve, grid = look.points.center @ look.points.functions, look.points.grid
    t = np.random.default_rng(0).choice(grid, size=(6, 3))
    rows = sparse_rows(t, np.interp(t, grid, curve), grid)
    assert look.points.residuals.of((rows,)) == pytest.approx(0.0, abs=1e-9)


def test_the_command_line_pools_sparse_points(tmp_path: Path) -> None:
    rng, t = np.random.default_rng(0), np.linspace(0, 1, 24)
    rows = mean_at(t) + 0.3 * rng.normal(size=(800, 1))
    few = np.argsort(rng.uniform(size=rows.shape), axis=1) < 3
    table = [",".join(f"{point:.4f}" for point in t)]
    for row, seen in zip(rows, few, strict=True):
        table.append(",".join(f"{x:.4f}" if s else "" for x, s in zip(row, seen, strict=True)))
    path = tmp_path / "few.csv"
    path.write_text("\n".join(table) + "\n")
    asked = f"release mean {path} --epsilon 1 --range -2.5 2.5 --header --design sparse --seed 0"
    ran = CliRunner().invoke(main, asked.split())
    assert ran.exit_code == 0, ran.output
    ran = CliRunner().invoke(main, [*asked.split(), "--times", "estimate", "--json"])
    assert ran.exit_code == 0, ran.output
    assert '"estimated"' in ran.output


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_times_of_a_pivoted_table_are_no_public_domain() -> None:
    """Its columns are the times at which anybody was observed."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(np.full((30, 3), 0.5), columns=["0", "1", "9.5"])
    known: dict[str, Any] = {"value_range": (0, 1), "design": "sparse", "random_state": 0}
    with pytest.raises(InvalidParameter, match="grid_points must be given where names"):
        PrivateMean(1.0, **known).fit(table)
    found = PrivateMean(1.0, **known).fit(table, grid_points=[0, 1, 9.5])
    assert found.release_.basis.grid[0][-1] == 9.5
