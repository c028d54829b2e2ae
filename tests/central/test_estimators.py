"""The scikit-learn face: what goes in, what comes out, what is refused, what it costs."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scikit_checks import WITHOUT_A_BOUND
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from dpfda import PrivateMean, budget
from dpfda.central import (
    PrivateCovariance,
    PrivateDensity,
    PrivateFunctionOnScalar,
    PrivateKernelMachine,
    Release,
)
from dpfda.central.functions import as_grid, norms, trapezoid
from dpfda.central.linear import FiniteLaplace, QuadraticRegularization
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.errors import (
    DoubtfulResult,
    DpfdaError,
    InvalidData,
    InvalidParameter,
    UnknownName,
)
from dpfda_bench.reproductions._p003 import without_noise

T = np.linspace(0, 1, 40)
RNG = np.random.default_rng(0)


CURVES = np.sin(3 * T) + 0.2 * RNG.normal(size=(600, 3)) @ np.stack([np.ones(40), T, T**2])
SECRET = 7654.321


def distance(one: Any, other: Any) -> float:
    return float(norms(np.asarray(one) - other, trapezoid((T,))) ** 2)


@pytest.mark.parametrize("name", sorted(FunctionMechanism.members()))
def test_every_mechanism_estimates_the_mean(name: str) -> None:
    delta = 1e-3 if FunctionMechanism.named(name).needs_delta else 0.0
    model = PrivateMean(8.0, bound=1.5, delta=delta, mechanism=name, random_state=1).fit(CURVES)
    worst = 0.6 if name == "iclp_ar" else 0.02  # thresholding leaves a bias that ε does not mend
    assert distance(model.mean_, CURVES.mean(axis=0)) < worst
    assert model.guarantee_.epsilon == 8.0
    assert model.guarantee_.delta == delta
    assert model.guarantee_.sampler == "simulation"


def test_adaptive_beats_simple_mechanisms_here() -> None:
    errors = {}
    for name in ("adaptive", "allocation", "frl"):
        fits = [
            PrivateMean(1.0, bound=1.5, mechanism=name, random_state=seed).fit(CURVES).mean_
            for seed in range(12)
        ]
        errors[name] = np.mean([distance(fit, CURVES.mean(axis=0)) for fit in fits])
    assert errors["adaptive"] < 0.5 * min(errors["allocation"], errors["frl"])


def test_gaussian_noise_is_used_when_delta_allows_it() -> None:
    model = PrivateMean(1.0, bound=1.5, delta=1e-3, random_state=0).fit(CURVES)
    assert {law.law for law in model.release_.noise} == {"gaussian"}
    assert model.guarantee_.delta == 1e-3
    pure = PrivateMean(1.0, bound=1.5, delta=1e-3, mechanism="frl", random_state=0).fit(CURVES)
    assert {law.law for law in pure.release_.noise} == {"laplace"}
    assert pure.guarantee_.delta == 0
    with pytest.raises(InvalidParameter, match="delta"):
        PrivateMean(1.0, bound=1.5, delta=0, mechanism="gaussian_process").fit(CURVES)


def test_without_a_seed_noise_is_exact_and_never_the_same() -> None:
    with budget(epsilon=2.0):
        fits = [PrivateMean(1.0, bound=1.5).fit(CURVES) for _ in range(2)]
    assert fits[0].guarantee_.sampler == "exact"
    assert not np.array_equal(fits[0].mean_, fits[1].mean_)
    seeded = [PrivateMean(1.0, bound=1.5, random_state=3).fit(CURVES).mean_ for _ in range(2)]
    assert np.array_equal(*seeded)


def test_inputs_of_every_form_agree() -> None:
    grid = SimpleNamespace(
        data_matrix=CURVES[:, :, None], grid_points=(T,), domain_range=((0.0, 1.0),)
    )
    pairs = [(T, row) for row in CURVES]
    expected = PrivateMean(1.0, bound=1.5, random_state=5).fit(CURVES, grid_points=T).mean_
    for given, points in ((CURVES.tolist(), T), (grid, None), (CURVES, (T,))):
        model = PrivateMean(1.0, bound=1.5, random_state=5).fit(given, grid_points=points)
        np.testing.assert_allclose(model.mean_, expected, atol=1e-9)
    ragged = PrivateMean(1.0, bound=1.5, random_state=5).fit(pairs, grid_points=T)
    np.testing.assert_allclose(ragged.mean_, expected, atol=1e-6)


def test_missing_points_are_filled_along_the_curve() -> None:
    holes = CURVES.copy()
    holes[3, 5:8] = holes[9, 0] = np.nan
    model = PrivateMean(4.0, bound=1.5, random_state=0).fit(holes)
    assert distance(model.mean_, CURVES.mean(axis=0)) < 0.01


def test_one_huge_curve_changes_little() -> None:
    # The bound is enforced: a curve of 1e6 moves the mean by at most 2 τ/n plus clipping.
    spoiled = CURVES.copy()
    spoiled[0] = 1e6
    for name in ("adaptive", "iclp_qr"):
        mean = PrivateMean(50.0, bound=1.5, mechanism=name, random_state=0).fit(spoiled).mean_
        assert distance(mean, CURVES.mean(axis=0)) < 0.02


@pytest.mark.parametrize("name", sorted(FunctionMechanism.members()))
def test_numbers_as_large_as_floats_go_are_clipped_too(name: str) -> None:
    # Squares of such values overflow; a NaN would slip through every bound.
    spoiled = CURVES.copy()
    spoiled[0], spoiled[1, ::2] = 1.7e308, -1.7e308
    delta = 1e-3 if FunctionMechanism.named(name).needs_delta else 0.0
    model = PrivateMean(8.0, bound=1.5, delta=delta, mechanism=name, random_state=1).fit(spoiled)
    assert distance(model.mean_, CURVES.mean(axis=0)) < 0.6


def test_a_public_center_is_given_back() -> None:
    center = np.sin(3 * T)
    model = PrivateMean(1.0, bound=0.8, center=center, random_state=0).fit(CURVES)
    assert distance(model.mean_, CURVES.mean(axis=0)) < 0.01
    with pytest.raises(InvalidParameter, match="center"):
        PrivateMean(1.0, bound=0.8, center=[1.0, 2.0]).fit(CURVES)


def test_surfaces() -> None:
    s, t = np.linspace(0, 1, 12), np.linspace(0, 2, 15)
    truth = np.outer(np.sin(3 * s), t)
    rows = truth + 0.1 * RNG.normal(size=(800, 1, 1))
    for name in ("adaptive", "allocation", "bernstein"):
        model = PrivateMean(8.0, bound=2.5, mechanism=name, random_state=0)
        model.fit(rows, grid_points=(s, t))
        assert model.mean_.shape == (12, 15)
        assert np.abs(model.mean_ - truth).mean() < 0.3
        assert model.release_.values((s[:3], t[:4])).shape == (3, 4)


def test_clone_and_parameters() -> None:
    model = PrivateMean(0.5, bound=2.0, mechanism=FiniteLaplace(components=3))
    again = clone(model)
    assert again.get_params()["epsilon"] == 0.5
    assert again.set_params(epsilon=1.0).epsilon == 1.0
    assert not hasattr(again, "release_")


@pytest.mark.filterwarnings("ignore")  # the checks fit a handful of rows, and warn about much else
@pytest.mark.parametrize(
    "model",
    [
        PrivateMean(8.0, value_range=(-1, 1), random_state=0),
        PrivateCovariance(8.0, value_range=(-1, 1), random_state=0),
        PrivateFunctionOnScalar(8.0, feature_ranges=(-1, 1), value_range=(-1, 1), random_state=0),
        PrivateDensity(8.0, feature_ranges={0: (-1, 1)}, random_state=0),
        PrivateKernelMachine(
            8.0, feature_ranges={0: (-1, 1)}, target_range=(-1, 1), random_state=0
        ),
        PrivateKernelMachine(8.0, feature_ranges={0: (-1, 1)}, loss="logistic", random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_scikit_learn_contract(model: Any) -> None:
    known = WITHOUT_A_BOUND if isinstance(model, PrivateMean) else None
    found = check_estimator(model, on_skip=None, expected_failed_checks=known)
    assert sum(one["status"] == "passed" for one in found) >= 39


def test_one_range_is_that_of_every_column() -> None:
    points = RNG.uniform(0, 1, size=(600, 2))
    y = points[:, 0]
    for make in (
        lambda ranges: PrivateDensity(4.0, feature_ranges=ranges, random_state=0).fit(points),
        lambda ranges: PrivateKernelMachine(
            4.0, feature_ranges=ranges, target_range=(0, 1), random_state=0
        ).fit(points, y),
    ):
        one, each = make((0, 1)).release_, make([(0, 1), (0, 1)]).release_
        np.testing.assert_array_equal(one.values(), each.values())
        assert one.parameters["feature_ranges"] == ((0.0, 1.0), (0.0, 1.0))
    for ranges, told in (
        ((0, 1), "feature_ranges must be of one or two columns; a mapping picks them"),
        ([(0, 1)], "as wide as feature_ranges"),
    ):
        with pytest.raises(ValueError, match=told):
            PrivateDensity(4.0, feature_ranges=ranges).fit(np.ones((50, 3)))


def test_a_mapping_picks_columns_of_a_table() -> None:
    table = RNG.uniform(0, 1, size=(600, 4))
    picked = PrivateDensity(4.0, feature_ranges={2: (0, 1)}, random_state=0)
    alone = PrivateDensity(4.0, feature_ranges=(0, 1), random_state=0).fit(table[:, 2])
    frame = pd.DataFrame(table, columns=list("abcd"))
    for X in (table, frame):
        np.testing.assert_array_equal(picked.fit(X).density_, alone.density_)
    named = PrivateDensity(4.0, feature_ranges={"c": (0, 1)}, random_state=0).fit(frame)
    np.testing.assert_array_equal(named.density_, alone.density_)
    numbered = pd.DataFrame(table, columns=[2, 1, 0, 3])  # numbers as names: they count
    first = PrivateDensity(4.0, feature_ranges=(0, 1), random_state=0).fit(table[:, 0])
    np.testing.assert_array_equal(picked.fit(numbered).density_, first.density_)
    with pytest.raises(InvalidData, match="X must be a table of 3 columns or more"):
        picked.fit(table[:, :2])
    with pytest.raises(ValueError, match="Reshape your data"):
        picked.fit(table[:, 2])


def test_a_range_is_a_center_and_a_bound() -> None:
    by_range = PrivateMean(1.0, value_range=(-1, 2), random_state=3).fit(CURVES)
    by_bound = PrivateMean(1.0, bound=1.5, center=0.5, random_state=3).fit(CURVES)
    np.testing.assert_allclose(by_range.mean_, by_bound.mean_)
    beyond = CURVES.copy()
    beyond[0] = 50.0
    # What is far outside counts as 1½ widths beyond the range; a mechanism with no search clips it.
    far = PrivateMean(1.0, value_range=(-1, 2), random_state=3)
    assert np.array_equal(far.fit(beyond).mean_, far.fit(beyond.clip(-5.5, 6.5)).mean_)
    assert not np.array_equal(far.fit(beyond).mean_, far.fit(beyond.clip(-5, 6)).mean_)
    plain = PrivateMean(1.0, value_range=(-1, 2), mechanism="allocation", random_state=3)
    assert np.array_equal(plain.fit(beyond).mean_, plain.fit(beyond.clip(-1, 2)).mean_)


def test_a_range_and_a_bound_are_not_both_given() -> None:
    for wrong in (
        {"value_range": (0, 1), "bound": 1.0},
        {"value_range": (0, 1), "center": 0.5},
        {},
    ):
        with pytest.raises(InvalidParameter, match="value_range"):
            PrivateMean(1.0, **wrong).fit(CURVES[:400])
    with pytest.raises(InvalidParameter, match="bound must be left out where value_range is given"):
        PrivateMean(1.0, value_range=(0, 1), bound=1.0).fit(CURVES)


def test_several_curves_of_one_person_count_once() -> None:
    persons = np.repeat(np.arange(len(CURVES) // 2), 2)
    pairs = CURVES[: 2 * (len(CURVES) // 2)]
    model = PrivateMean(1.0, value_range=(-2, 2), random_state=3)
    grouped = model.fit(pairs, groups=persons).release_
    averaged = model.fit((pairs[::2] + pairs[1::2]) / 2).release_
    assert grouped.parameters["n"] == len(CURVES) // 2
    np.testing.assert_allclose(grouped.values(), averaged.values())
    one = PrivateCovariance(1.0, value_range=(-2, 2), random_state=3).fit(pairs, groups=persons)
    assert one.release_.parameters["n"] == len(CURVES) // 2


def test_chunks_give_the_same_bits_as_all_rows() -> None:
    x = RNG.uniform(20, 60, size=(400, 1))
    y = x / 60 * np.sin(3 * T)
    parts = [slice(0, 7), slice(7, 300), slice(300, 400)]
    for model, rows in (
        (PrivateMean(1.0, value_range=(-2, 2), random_state=3), (y,)),
        (PrivateCovariance(4.0, value_range=(-2, 2), random_state=3), (y,)),
        (PrivateDensity(1.0, feature_ranges=(20, 60), random_state=3), (x,)),
        (
            PrivateFunctionOnScalar(
                1.0, feature_ranges=(20, 60), value_range=(-2, 2), random_state=3
            ),
            (x, y),
        ),
    ):
        whole = model.fit(*rows).release_.values()
        chunks = [tuple(part[some] for part in rows) for some in parts]
        streamed = model.fit_stream(lambda: [c if len(c) == 2 else c[0] for c in chunks])  # noqa: B023
        np.testing.assert_array_equal(streamed.release_.values(), whole)


def test_coefficients_are_told_in_the_units_of_the_covariates() -> None:
    frame = pd.DataFrame({"age": RNG.uniform(20, 60, 3000), "sex": RNG.choice(["f", "m"], 3000)})
    y = np.outer(frame["age"] / 60, T) + np.outer(frame["sex"] == "m", np.ones(T.size))
    model = PrivateFunctionOnScalar(
        100.0,
        feature_ranges={"sex": ["f", "m"], "age": (20, 60)},
        value_range=(0, 2),
        random_state=0,
    ).fit(frame, y)
    assert model.coef_names_ == ("sex=m", "age")  # the first category is the reference
    np.testing.assert_allclose(model.coef_[0], 1, atol=0.05)
    np.testing.assert_allclose(model.coef_[1], T / 60, atol=3e-3)
    new = pd.DataFrame({"age": [20, 60], "sex": ["f", "m"]})
    np.testing.assert_allclose(model.predict(new)[1], T + 1, atol=0.15)


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        ({"bound": None, "delta": 0}, "value_range"),
        ({"bound": -1.0}, "bound"),
        ({"bound": 1.0, "epsilon": 0}, "epsilon"),
        ({"bound": 1.0, "epsilon": float("nan")}, "epsilon"),
        ({"bound": 1.0, "delta": 2.0}, "delta"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        PrivateMean(**parameters).fit(CURVES)


def test_unknown_mechanism() -> None:
    with pytest.raises(UnknownName, match="adaptive"):
        PrivateMean(1.0, bound=1.0, mechanism="nothing").fit(CURVES)


BAD = {
    "one curve": [[SECRET, 1.0, 2.0]],
    "nothing": np.empty((0, 5)),
    "text": [["7654.321", "a"], ["b", "c"]],
    "infinity": [[SECRET, np.inf], [1.0, 2.0]],
    "only NaN": [[np.nan, np.nan], [SECRET, 1.0]],
    "ragged": [[SECRET, 1.0], [2.0]],
    "a number": SECRET,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("model", [PrivateMean, PrivateCovariance], ids=lambda m: m.__name__)
def test_bad_curves_are_refused_in_silence(model: Any, bad: Any) -> None:
    with pytest.raises(DpfdaError) as caught:
        model(1.0, bound=1.0).fit(bad)
    assert "7654" not in str(caught.value)


def test_covariance_is_symmetric_positive_and_close() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(6000, 2)) * [1.0, 0.5]
    waves = np.sqrt(2) * np.stack([np.sin(np.pi * T), np.cos(np.pi * T)])
    model = PrivateCovariance(2.0, bound=5.0, random_state=0).fit(2 * T + scores @ waves)
    truth = waves.T @ np.diag([1.0, 0.25]) @ waves
    np.testing.assert_allclose(model.covariance_, model.covariance_.T, atol=1e-12)
    assert np.linalg.eigvalsh(model.covariance_).min() > -1e-9
    weights = trapezoid((T,))
    assert ((model.covariance_ - truth) ** 2 * np.outer(weights, weights)).sum() < 0.05
    assert model.explained_variance_[0] == pytest.approx(1.0, abs=0.2)
    first = model.components_[0]
    assert abs((first * waves[0]) @ weights) > 0.95
    np.testing.assert_allclose((first**2) @ weights, 1.0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("wide", [3.0, 10.0])
def test_covariance_leaves_out_the_error_of_its_center(wide: float) -> None:
    """In a wide range the first center is off by more than curves vary: products must not hold it.

    What noise hides nevertheless is told.
    """
    t, missed = np.linspace(0, 1, 20), []
    for seed in range(12):
        curves = 0.3 * np.random.default_rng(seed).normal(size=(1000, 1)) * np.sin(3 * t)
        truth = np.cov(curves.T, bias=True)
        span = -0.4 * wide, 1.6 * wide
        model = PrivateCovariance(1.0, value_range=span, random_state=seed).fit(curves)
        error = np.mean((model.covariance_ - truth) ** 2) / np.mean(truth**2)
        missed.append(error > 0.5 and not model.release_.warnings)
    assert np.mean(missed) <= 0.2


def test_covariance_of_few_curves_warns_and_is_not_absurd() -> None:
    rng = np.random.default_rng(2)
    curves = 3 * T + rng.normal(size=(150, 1)) * np.sin(np.pi * T)
    with pytest.warns(DoubtfulResult, match="noise .* a covariance of 0"):
        model = PrivateCovariance(1.0, delta=0, bound=3.0, random_state=0).fit(curves)
    # The public mean 3t has ‖·‖⁴ = 9; a release that mixed it in would be of that size.
    assert np.abs(model.covariance_).max() < 5


def test_function_on_scalar_recovers_its_coefficients() -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, size=(8000, 2))
    beta = np.stack([np.sin(3 * T), T - 0.5])
    curves = x @ beta + 1.0 + 0.1 * rng.normal(size=(8000, 1))
    model = PrivateFunctionOnScalar(2.0, bound=2.5, feature_norm_bound=1.5, random_state=0)
    model.fit(x, curves)
    assert max(distance(a, b) for a, b in zip(model.coef_, beta, strict=True)) < 0.02
    assert distance(model.intercept_, np.ones(40)) < 0.02
    assert model.predict([[0.5, -0.5]]).shape == (1, 40)
    assert model.release_.values([0.0, 1.0]).shape == (3, 2)
    with pytest.raises(InvalidData, match="one row for each curve"):
        model.fit(x[:5], curves)
    with pytest.raises(InvalidParameter, match="feature_norm_bound"):
        PrivateFunctionOnScalar(1.0, bound=1.0).fit(x, curves)


@pytest.mark.filterwarnings("ignore:noise hides how")
def test_large_numbers_in_other_summaries() -> None:
    curves = np.vstack([CURVES, np.full((1, 40), -1.7e308)])
    assert np.isfinite(
        PrivateCovariance(2.0, bound=1.5, random_state=0).fit(curves).covariance_
    ).all()
    x = np.full((601, 1), 1.7e308)
    model = PrivateFunctionOnScalar(2.0, bound=1.5, feature_norm_bound=1e-3, random_state=0)
    assert np.isfinite(model.fit(x, curves).coef_).all()


@pytest.mark.filterwarnings("ignore:noise hides how")
def test_function_on_scalar_survives_too_little_budget() -> None:
    # T1's noise dwarfs T1: the floor keeps the solution finite and of moderate size (C9).
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, size=(50, 3))
    model = PrivateFunctionOnScalar(0.5, bound=1.0, feature_norm_bound=1.0, random_state=0)
    model.fit(x, rng.normal(size=(50, 20)) * 0.1)
    assert np.isfinite(model.coef_).all()
    assert np.abs(model.coef_).max() < 50


def release_of(n: int = 600) -> Release:
    return PrivateMean(1.0, bound=1.5, random_state=11).fit(CURVES[:n]).release_


def test_release_shows_nothing_private_and_everything_public() -> None:
    release = release_of()
    assert repr(release).startswith("Release(mean, grid 40")
    document = json.loads(release.to_json())
    assert document["guarantee"]["epsilon"] == 1.0
    assert document["parameters"]["bound"] == 1.5
    assert len(document["values"]) == 40
    assert len(document["noise"]) == 2


def test_release_on_any_grid() -> None:
    release = release_of()
    np.testing.assert_allclose(release(T), release.values(), atol=1e-9)
    assert release.values(np.linspace(0, 1, 301)).shape == (301,)
    with pytest.raises(InvalidParameter, match="domain"):
        release.values([0.0, 1.5])


def test_bands_hold_the_summary_as_often_as_they_say() -> None:
    # The mechanism is linear, so the target is known. Coverage over 400 releases is binomial:
    # 4 standard errors are 4·√(0.9·0.1/400) = 0.06.
    mechanism = QuadraticRegularization()
    mean = MeanRelease(epsilon=1.0, n=600, bound=1.5, grid=as_grid(T), mechanism=mechanism)
    target = without_noise(mean, CURVES)[0]
    fits = [
        PrivateMean(1.0, bound=1.5, mechanism=mechanism, random_state=seed).fit(CURVES).release_
        for seed in range(400)
    ]
    misses = np.abs(np.array([fit.values() for fit in fits]) - target)
    # Half a band is the same for every release: it depends on the noise alone.
    low, high = fits[0].interval(0.9)
    assert np.abs(np.mean(misses <= (high - low) / 2, axis=0)[[0, 13, 39]] - 0.9).max() < 0.06
    np.testing.assert_allclose((low + high) / 2, fits[0].values(), atol=1e-9)
    low, high = fits[0].interval(0.9, simultaneous=True)
    assert abs(np.mean((misses <= (high - low) / 2).all(axis=1)) - 0.9) < 0.06


def test_plot_and_scikit_fda(tmp_path: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for release in (
        release_of(),
        PrivateCovariance(2.0, bound=1.5, random_state=0).fit(CURVES).release_,
    ):
        axes = release.plot()
        axes.figure.savefig(tmp_path / "release.png")
        plt.close(axes.figure)
        assert (tmp_path / "release.png").stat().st_size > 1000


def test_to_skfda_round_trip() -> None:
    pytest.importorskip("skfda")
    release = release_of()
    grid = release.to_skfda()
    np.testing.assert_allclose(grid.data_matrix[0, :, 0], release.values())
    again = PrivateMean(1.0, bound=1.5, random_state=0)
    again.fit(type(grid)(CURVES, grid_points=T))
    assert again.mean_.shape == (40,)


def test_bands_of_surfaces_fit_into_memory() -> None:
    release = PrivateCovariance(2.0, bound=1.5, random_state=0).fit(CURVES).release_
    low, high = release.interval(0.9, simultaneous=True)
    assert low.shape == (40, 40)
    assert np.all(low < high)
