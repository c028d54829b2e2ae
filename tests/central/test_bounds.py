"""A public bound that is far too small shows in what was released, and is said."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda import (
    Ledger,
    PrivateCovariance,
    PrivateDensity,
    PrivateFunctionOnScalar,
    PrivateKernelMachine,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateMoments,
)
from dpfda.central.conversation import reaches
from dpfda.central.mean import FunctionMechanism
from dpfda.central.regression.base import RegressionMechanism
from dpfda.central.regression.queries import OUTSIDE
from dpfda.cli._group import dpfda
from dpfda.errors import InvalidParameter
from dpfda.estimators.private_curve_classifier import PrivateCurveClassifier
from dpfda.estimators.private_curve_regression import PrivateCurveRegression

T = np.linspace(0, 1, 40)
RNG = np.random.default_rng(0)
WAVES = np.stack([np.ones(40), T, T**2])
LARGE = 70 + 10 * np.sin(5 * T) + 5 * RNG.normal(size=(500, 3)) @ WAVES  # of norm 72
SMALL = 0.9 + 0.02 * RNG.normal(size=(500, 1)) + 0 * T
PHASES = 70 * np.sin(2 * np.pi * (T + RNG.uniform(size=(500, 1))))  # of norm 50, of mean 0
TELLING = sorted(set(FunctionMechanism.members()) - {"iclp_ar"})


def told(model: Any, *data: Any) -> tuple[str, ...]:
    """What is said of public bounds; how much of a release is noise is another question."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(*data)
    found: tuple[str, ...] = model.release_.warnings
    assert set(found) <= {str(one.message) for one in seen}
    return tuple(text for text in found if text not in model.release_.verdict.sentences)


@pytest.mark.parametrize("name", TELLING)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_means(name: str, epsilon: float) -> None:
    if (name, epsilon) == ("sparse", 1.0):
        pytest.skip("the count of sparse curves beyond their bound is mostly noise here")
    delta = 1e-3 if FunctionMechanism.named(name).needs_delta else 0.0
    model = PrivateMean(epsilon, bound=1.0, mechanism=name, delta=delta, random_state=0)
    (warning,) = told(model, LARGE)
    assert "nearly all curves reach their public bound" in warning
    assert told(model, SMALL) == ()
    assert told(PrivateMean(epsilon, bound=100.0, mechanism=name, delta=delta), LARGE) == ()


def test_a_mean_that_a_penalty_shortens() -> None:
    """How long it is at least tells, where many curves leave little noise; and never wrongly."""
    model = PrivateMean(4.0, bound=1.0, mechanism="iclp_ar", random_state=0)
    (warning,) = told(model, np.tile(LARGE, (40, 1)))
    assert "nearly all curves reach their public bound" in warning
    assert told(model, np.tile(SMALL, (40, 1))) == ()
    for bound in (80.0, 100.0):
        right = PrivateMean(4.0, bound=bound, mechanism="iclp_ar", random_state=0)
        assert told(right, np.tile(LARGE, (40, 1))) == ()
    assert told(model, LARGE) == ()  # noise is no evidence


def test_ranges_that_are_too_small() -> None:
    assert told(PrivateMean(1.0, value_range=(0, 1), random_state=0), LARGE)
    assert not told(PrivateMean(1.0, value_range=(0, 100), random_state=0), LARGE)


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("width", [1, 10, 100])
def test_a_range_that_is_far_too_wide_is_not_called_too_small(width: int, inference: bool) -> None:
    """Curves at one end of it are as far from its center as curves that were pulled to a bound."""
    rng = np.random.default_rng(0)
    curves = 300 + 200 * np.sin(6 * T) + rng.uniform(-90, 90, size=(2000, 1))
    for seed in range(3):
        wide = PrivateMean(
            1.0, value_range=(0, 1000 * width), inference=inference, random_state=seed
        )
        assert told(wide, curves) == ()
    small = PrivateMean(1.0, value_range=(0, 150), inference=inference, random_state=0)
    assert "too small" in " ".join(told(small, curves))


def test_a_search_that_finds_nobody() -> None:
    """Curves of mean 0 leave their trace in the radius alone, where it is found by counts."""
    warning, *_ = told(PrivateMean(1.0, delta=1e-5, bound=1.0, random_state=0), PHASES)
    assert "nearly all curves reach their public bound" in warning
    assert not told(PrivateMean(1.0, delta=1e-5, bound=100.0, random_state=0), PHASES)


def test_other_summaries() -> None:
    x = RNG.uniform(-1, 1, size=(500, 1))
    assert told(PrivateCovariance(4.0, bound=1.0, random_state=0), LARGE)
    assert not told(PrivateCovariance(4.0, bound=1.0, random_state=0), SMALL)
    slopes = PrivateFunctionOnScalar(2.0, bound=1.0, feature_ranges=(-1, 1), random_state=0)
    assert told(slopes, x, LARGE)
    assert not told(slopes, x, SMALL)
    ages = RNG.beta(8, 2, size=2000) * 100
    for mechanism in ("histogram", "kernel"):
        for ends, wrong in (
            ((0, 100), False),
            ((60, 95), mechanism == "histogram"),  # which counts them: 13 % are outside
            ((0, 50), True),
            ((200, 300), True),
        ):
            density = PrivateDensity(1.0, feature_ranges=ends, mechanism=mechanism, random_state=0)
            assert bool(told(density, ages)) is wrong, (mechanism, ends)


def test_covariates_at_the_end_of_a_range() -> None:
    x, y = RNG.uniform(size=(4000, 2)), np.repeat(SMALL, 8, axis=0)
    for ends, said in (
        ((0, 1), ()),
        ([(0, 1), (-9, -5)], ("an end of the range of covariate 2:",)),
        ((-9, -5), ("an end of the range of covariate 1, covariate 2:",)),
    ):
        slopes = PrivateFunctionOnScalar(2.0, bound=1.0, feature_ranges=ends, random_state=0)
        found = told(slopes, x, y)
        assert len(found) == len(said)
        assert all(part in text for part, text in zip(said, found, strict=True))
    groups = np.where(x > 0.5, 1.0, -1.0)  # all reach the bound, and rightly
    slopes = PrivateFunctionOnScalar(2.0, bound=1.0, feature_ranges=(-1, 1), random_state=0)
    assert not told(slopes, groups, y)


def test_targets_of_a_kernel_machine() -> None:
    x, noise = RNG.uniform(size=40_000), RNG.normal(size=40_000)
    for target, wrong in ((70 + noise, True), (-70 + noise, True), (0.8 + 0.1 * noise, False)):
        machine = PrivateKernelMachine(
            4.0, feature_ranges=(0, 1), target_range=(-1, 1), random_state=0
        )
        assert bool(told(machine, x, target)) is wrong
    steep = np.where(x < 0.6, 1.0, 2.5 - 2.5 * x)  # at an end, but not everywhere
    assert not told(machine, x, steep)
    few = PrivateKernelMachine(0.1, feature_ranges=(0, 1), target_range=(-1, 1), random_state=0)
    assert not told(few, x[:200], np.full(200, 70.0))  # noise is no evidence
    square = [(0, 1), (0, 1)]
    plane = PrivateKernelMachine(4.0, feature_ranges=square, target_range=(-1, 1), random_state=0)
    assert told(plane, RNG.uniform(size=(40_000, 2)), 70 + noise)


def test_curves_in_their_range_as_a_whole_are_not_cut() -> None:
    """Points beyond a range count where the curve is no longer than the range allows."""
    x = RNG.uniform(-1, 1, size=(4000, 1))
    peaks = np.exp(-0.5 * ((T - 0.5) / 0.05) ** 2) * (3 + x)  # up to 4, of norm 1.2 at most
    slopes = PrivateFunctionOnScalar(
        10.0, value_range=(-2, 2), feature_ranges=(-1, 1), random_state=0
    )
    assert not told(slopes, x, peaks)
    assert slopes.predict([[0.0]]).max() == pytest.approx(3, abs=0.2)  # and not 2


def test_noise_is_no_evidence() -> None:
    limit = 2.0
    edge = np.array([0.96 * limit, 0.0])
    assert reaches(edge, np.zeros(2), limit)
    assert not reaches(0.98 * edge, np.zeros(2), limit)
    assert not reaches(edge, np.array([0.03, 0.03]) * limit**2, limit)  # too noisy to tell
    # Noise alone makes vectors longer: it is taken off.
    assert not reaches(np.array([0.953 * limit, 0.0]), np.full(2, 0.0045 * limit**2), limit)


AGE, WEIGHT = RNG.uniform(20, 90, 4000), RNG.uniform(40, 120, 4000)
ROWS, DOSE = np.stack([AGE, WEIGHT], 1), 60 - 0.4 * AGE + 0.2 * WEIGHT
SEEING = ["adassp", "gaussian_fm", "moments"]


def heard(model: Any, target: Any = DOSE) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(ROWS, target)
    assert {str(one.message) for one in seen} >= set(model.fit_.warnings)
    return [text.split(":")[0] for text in model.fit_.warnings]


def boxed(*ranges: tuple[float, float]) -> dict[str, Any]:
    return {"feature_ranges": list(ranges)}


@pytest.mark.parametrize("name", SEEING)
def test_regressions(name: str) -> None:
    def model(**more: Any) -> Any:
        shared = {"mechanism": name, "delta": 1e-5, "target_range": (0, 100), "random_state": 0}
        return PrivateLinearRegression(2.0, **(shared | more))

    assert heard(model(feature_norm_bound=200.0)) == []
    assert heard(model(feature_norm_bound=1.0)) == [
        "nearly all rows reach the bound on their length"
    ]
    assert heard(model(**boxed((18, 100), (30, 150)))) == []
    assert heard(model(**boxed((18, 100), (0, 1)))) == [
        "nearly everybody is at an end of the range of feature 2"
    ]
    right = boxed((18, 100), (30, 150))
    assert heard(model(**right, target_range=(-1, 1))) == [
        "nearly all targets are at one end of their range"
    ]


def test_classes_are_ends_of_nothing() -> None:
    rare = (RNG.uniform(size=4000) < 0.001).astype(int)
    right = boxed((18, 100), (30, 150))
    assert heard(PrivateLogisticRegression(2.0, **right, random_state=0), rare) == []


BLIND = sorted(
    name for name, method in RegressionMechanism.members().items() if not method.shows_rows
)


@pytest.mark.filterwarnings("ignore:noise hides how")
def test_methods_that_see_no_rows_say_so() -> None:
    assert BLIND == ["noisy_gradient", "objective_perturbation", "output_perturbation"]
    for name in (*SEEING, *BLIND):
        model = PrivateLinearRegression(
            2.0, mechanism=name, target_range=(0, 100), feature_norm_bound=200.0, random_state=0
        ).fit(ROWS, DOSE)
        assert any("nothing that" in note for note in model.model_.notes) is (name in BLIND)


@pytest.mark.parametrize("name", BLIND)
def test_their_targets_show(name: str) -> None:
    many = np.tile(ROWS, (10, 1)), np.tile(DOSE, 10)  # a line through much noise shows nothing
    right = {"mechanism": name, "random_state": 0, **boxed((0, 150), (0, 150))}
    for ends, said in (((0, 1), 1), ((100, 101), 1), ((0, 100), 0), ((0, 62), 0)):
        model = PrivateLinearRegression(4.0, target_range=ends, **right)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.fit(*many).fit_.warnings
        if ends == (0, 62) and RegressionMechanism.named(name).additive:  # a tenth of them outside
            assert found == (OUTSIDE,)
            continue
        assert len(found) == said, (ends, found)
        assert all("nearly all targets are at one end" in text for text in found)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("intercept", [True, False])
def test_people_outside_their_ranges_are_counted(delta: float, intercept: bool) -> None:
    """Also those below the range of a line through 0, and not those at an end."""
    whole = np.round(AGE / 10)[:, None]  # from 2 to 9
    right: dict[str, Any] = {"feature_ranges": (2, 9), "target_range": (-100, 100)}
    for more, outside in (
        ({}, False),
        ({"feature_ranges": (2, 6)}, True),
        ({"feature_ranges": (5, 9)}, True),
        ({"target_range": (-1, 5)}, True),
    ):
        model = PrivateLinearRegression(
            4.0, delta=delta, fit_intercept=intercept, random_state=0, **(right | more)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.fit(whole, whole[:, 0]).model_.warnings
        assert (OUTSIDE in found) is outside, more


def test_values_outside_count_as_the_end_of_their_range() -> None:
    far = np.where(AGE > 60, 1000.0, AGE)[:, None]
    cut = np.minimum(far, 60.0)
    known: dict[str, Any] = {
        "mechanism": "gaussian_fm", "feature_ranges": (20, 60), "target_range": (20, 90)
    }  # fmt: skip
    slopes = []
    for rows in (far, cut):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            slopes.append(PrivateLinearRegression(2.0, random_state=0, **known).fit(rows, AGE))
    assert slopes[0].coef_.tolist() == slopes[1].coef_.tolist()


@pytest.mark.parametrize("low", [0.0, 90.0])
def test_curves_of_a_regression(low: float) -> None:
    curves = np.repeat(LARGE, 8, axis=0)
    ill = (RNG.uniform(size=4000) < 0.5).astype(int)
    for ends, wrong in (((low, low + 10), True), ((0, 150), False)):
        shared = {"value_range": ends, "random_state": 0}
        models = (
            (PrivateCurveClassifier(1.0, **shared, classes=(0, 1)), ill),
            (PrivateCurveRegression(1.0, **shared, target_range=(0, 100)), DOSE),
        )
        for model, target in models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = model.fit(curves, target).fit_.warnings
            assert [text.split(":")[0] for text in found] == [
                "nearly all curves are at an end of the range of their values"
            ] * wrong


def test_many_features_at_their_ends() -> None:
    """Too much noise for each of them, not for all together."""
    inside = RNG.uniform(size=(20_000, 40))
    target = 100 * inside[:, 0]
    for ends, said in (((0, 1), 0), ((-9, -5), 1)):
        shared = {"feature_ranges": ends, "target_range": (0, 100), "random_state": 0}
        model = PrivateLinearRegression(1.0, **shared)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.fit(inside, target).fit_.warnings
        assert sum("nearly everybody is at an end" in text for text in found) == said


def test_commands_print_it(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    np.savetxt(path, LARGE, delimiter=",", fmt="%.4f")
    call = ["release", "mean", str(path), "--epsilon", "1", "--bound", "1", "--seed", "0"]
    done = CliRunner().invoke(dpfda, call, catch_exceptions=False)
    assert "warning: nearly all curves reach" in done.stdout
    done = CliRunner().invoke(dpfda, [*call, "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    others = [one for one in found["warnings"] if one not in found["verdict"]["sentences"]]
    assert len(others) == 1
    assert "narrower" not in " ".join(found["warnings"])  # the bound is too small
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([ROWS, DOSE]), delimiter=",", header="age,weight,dose",
               comments="", fmt="%.4f")  # fmt: skip
    call = ["regress", str(path), "--target", "dose", "--epsilon", "2", "--target-range", "0", "1",
            "--feature-ranges", "age=18:100,weight=30:150", "--seed", "0"]  # fmt: skip
    done = CliRunner().invoke(dpfda, call, catch_exceptions=False)
    assert "warning: nearly all targets are at one end" in done.stdout


@pytest.mark.parametrize("bound", [9e-26, 1.1e40])
def test_bounds_beyond_numbers_are_refused_before_anything_is_spent(bound: float) -> None:
    ledger = Ledger(9.0, limit_delta=1e-3)
    for kind in (PrivateMean, PrivateMoments, PrivateCovariance):
        model = kind(2.0, delta=1e-5, bound=bound, ledger=ledger)
        with pytest.raises(InvalidParameter, match="bound must be from 1e-25 to 1e40"):
            model.fit(bound * SMALL)
    assert not ledger.entries
    for kind in (PrivateMean, PrivateMoments, PrivateCovariance):
        kind(2.0, delta=1e-5, bound=1.1e-25, random_state=0).fit(1e-27 * SMALL)


def test_a_range_beyond_numbers_is_refused_by_its_own_name() -> None:
    ledger = Ledger(9.0, limit_delta=1e-3)
    for kind in (PrivateMean, PrivateMoments, PrivateCovariance):
        for size in (1e-30, 1e50):
            model = kind(2.0, value_range=(0, size), ledger=ledger)
            with pytest.raises(InvalidParameter, match="value_range must be of a half-width"):
                model.fit(size * SMALL)
    assert not ledger.entries
