"""What follows from the joint release: means, sizes, covariances, bands, tests, new curves."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import dpfda
from dpfda import PrivateGroupComparison, PrivateMoments
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.inference import errors, moved
from dpfda.errors import InvalidData, InvalidParameter

T = np.linspace(0, 1, 30)
SHAPES = np.stack([np.ones(30), np.sqrt(2) * np.cos(np.pi * T), np.sqrt(2) * np.cos(2 * np.pi * T)])
SPREAD = np.array([0.8, 0.5, 0.3])
MEAN = np.sin(2 * np.pi * T)


def curves(n: int, seed: int, *, spread: Any = SPREAD) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(n, 3)) * spread
    return np.asarray(MEAN + scores @ SHAPES)


def fitted(n: int = 4000, seed: int = 0, *, epsilon: float = 4.0, **given: Any) -> PrivateMoments:
    estimator = PrivateMoments(epsilon, value_range=(-4, 4), random_state=seed, **given)
    return estimator.fit(curves(n, seed))


def two_groups(
    n: int = 4000, *, apart: float = 0.0, seed: int = 0, wider: float = 2.0, **given: Any
) -> Any:
    """Two of three belong to b, whose spread is twice as large."""
    group = np.arange(n) % 3 > 0
    wide = curves(n, seed, spread=wider * SPREAD) + apart
    rows = np.where(group[:, None], wide, curves(n, seed + 1))
    known = {"value_range": (-8, 8), "groups": ("a", "b"), "random_state": seed} | given
    return PrivateGroupComparison(4.0, **known).fit(rows, np.where(group, "b", "a"))


def test_means_sizes_and_covariances_are_near_the_truth() -> None:
    found = two_groups(9000, apart=1.0)
    assert found.sizes_ == pytest.approx([3000, 6000], abs=25)
    assert np.abs(found.means_ - [MEAN, MEAN + 1]).max() < 0.15
    functions = found.moments_.basis.functions
    for group, factor in (("a", 1.0), ("b", 2.0)):
        surface = functions.T @ found.moments_.covariance(group) @ functions
        true = (SHAPES.T * (factor * SPREAD) ** 2) @ SHAPES
        assert np.abs(surface - true).mean() < 0.2 * np.abs(true).mean()


def test_a_pooled_covariance_is_the_one_within_groups() -> None:
    n = 6000
    group = np.arange(n) % 2
    rows = curves(n, 0) + 2.0 * group[:, None]
    known: dict[str, Any] = {"value_range": (-6, 6), "groups": (0, 1), "random_state": 0}
    found = PrivateMoments(4.0, separate=False, **known).fit(rows, group)
    functions = found.moments_.basis.functions
    surface = functions.T @ found.moments_.covariance() @ functions
    true = (SHAPES.T * SPREAD**2) @ SHAPES
    assert np.abs(surface - true).mean() < 0.2 * np.abs(true).mean()


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_bands_hold_the_population_mean_as_often_as_they_say(delta: float) -> None:
    inside, points, sample = 0, [], []
    for seed in range(60):
        found = fitted(1000, seed, delta=delta)
        _, low, high = found.interval(0.9)
        inside += bool(np.all((low <= MEAN) & (high >= MEAN)))
        _, low, high = found.interval(0.9, simultaneous=False)
        points.append(np.mean((low <= MEAN) & (high >= MEAN)))
        middle = curves(1000, seed).mean(axis=0)
        _, low, high = found.interval(0.9, of="sample", simultaneous=False)
        sample.append(np.mean((low <= middle) & (high >= middle)))
    # 54 of 60 are expected; 3 standard deviations are 7.
    assert 47 <= inside <= 60
    assert 0.8 < np.mean(points) < 0.97
    assert 0.8 < np.mean(sample) < 0.97


def test_bands_of_the_sample_are_narrower_and_of_more_people_too() -> None:
    one = fitted()
    both = one.interval(of="population"), one.interval(of="sample")
    widths = [np.mean(band.high - band.low) for band in both]
    assert widths[1] < 0.8 * widths[0]
    few = fitted(1000)
    assert np.mean(few.interval().high - few.interval().low) > 1.5 * widths[0]


def test_the_test_keeps_its_level_and_finds_what_there_is() -> None:
    null = [two_groups(1500, seed=seed).pvalue_ for seed in range(60)]
    assert np.sum(np.array(null) <= 0.05) <= 8  # 3 expected, 3 standard deviations are 5
    assert (
        np.mean(null) > 0.3
    )  # what clipping might do where one group scatters more is allowed for
    alike = [two_groups(1500, seed=seed, wider=1.0).pvalue_ for seed in range(60)]
    assert np.sum(np.array(alike) <= 0.05) <= 8
    assert 0.3 < np.mean(alike) < 0.7
    assert two_groups(1500, apart=0.6).pvalue_ < 0.01


def test_differences_are_those_of_the_groups() -> None:
    found = two_groups(9000, apart=1.0)
    forth, back = found.difference("b", "a"), found.difference("a", "b")
    assert np.all((forth.low <= 1.0) & (forth.high >= 1.0))
    assert forth.middle == pytest.approx(-back.middle)
    assert forth.low == pytest.approx(-back.high)
    wide = found.difference("b", "a", 0.99)
    assert np.all(wide.high - wide.low > forth.high - forth.low)


def test_it_says_in_words_what_was_found() -> None:
    assert "above 0 from t = 0 to 1; largest" in two_groups(9000, apart=1.0).in_words()
    assert "below 0 from t = 0 to 1; largest -" in two_groups(9000, apart=-1.0).in_words()
    assert two_groups(1500).in_words().startswith("No difference between the groups was found (p =")


def test_a_picture_shows_the_bands() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = two_groups(1500, apart=1.0).plot()
    assert axes.get_legend().get_texts()[0].get_text() == "b minus a"
    assert len(axes.collections) == 1
    assert "sampling" in axes.get_legend().get_title().get_text()


def test_synthetic_curves_are_like_the_people() -> None:
    found = two_groups(9000, apart=1.0, emphasis="means")
    drawn = found.sample(6000, seed=1)
    rows, numbers = drawn.curves, (drawn.groups == "b").astype(int)
    assert np.mean(numbers) == pytest.approx(2 / 3, abs=0.03)
    for number, factor, shift in ((0, 1.0, 0.0), (1, 2.0, 1.0)):
        own = rows[numbers == number]
        assert np.abs(own.mean(axis=0) - MEAN - shift).max() < 0.25
        spread = np.sqrt((factor**2 * SPREAD**2) @ SHAPES**2)
        assert np.abs(own.std(axis=0) / spread - 1).mean() < 0.15
    only = found.sample(10, group="b", seed=1)
    assert (len(only), only.curves.shape, set(only.groups)) == (10, (10, 30), {"b"})
    assert repr(only) == "SyntheticCurves(10 curves at 30 points)"


def test_synthetic_curves_are_handed_around() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("skfda")
    drawn = two_groups(1500).moments_.sample(50, seed=1)
    frame = drawn.to_frame()
    assert list(frame.columns[:2]) == ["group", "0"]
    assert frame.shape == (50, 31)
    assert np.array_equal(frame.iloc[:, 1:], drawn.curves)
    assert frame["group"].tolist() == drawn.groups.tolist()
    fda = drawn.to_skfda()
    assert np.array_equal(fda.data_matrix[..., 0], drawn.curves)
    assert fda.grid_points[0] == pytest.approx(T)
    axes = drawn.plot()
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"a", "b"}
    assert len(axes.lines) == 40 + 2
    one = fitted(1000).sample(7)
    assert list(one.to_frame().columns[:1]) == ["0"]
    assert one.plot().get_legend() is None


def test_it_can_be_saved_and_read_again(tmp_path: Any) -> None:
    found = two_groups(1500)
    found.moments_.save(tmp_path / "moments.json")
    again = dpfda.load(tmp_path / "moments.json")
    assert isinstance(again, CurveMoments)
    assert np.array_equal(again.means, found.means_)
    assert str(again.guarantee) == str(found.guarantee_)
    assert again.warnings == found.moments_.warnings
    body = found.moments_.to_dict()
    for name, odd in (
        ("noisy", [1.0]),
        ("center", [0.0]),
        ("functions", [[1.0]]),
        ("groups", ["a"]),
    ):
        with pytest.raises(InvalidData, match=f"{name} must be of the length"):
            CurveMoments.from_json(json.dumps(body | {name: odd}))


def test_few_people_are_warned_and_many_are_not() -> None:
    with pytest.warns(UserWarning, match="n·epsilon is 400, below 500: bands and tests may hold"):
        fitted(100, emphasis="covariances")
    with pytest.warns(UserWarning, match="mean: noise hides where the curves are"):
        fitted(100, epsilon=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(125)


@pytest.mark.parametrize("groups", [("a",), ("a", "a")])
def test_groups_are_two_names_at_least(groups: Any) -> None:
    with pytest.raises(InvalidParameter, match="groups must be at least two names, all different"):
        PrivateMoments(1.0, value_range=(-4, 4), groups=groups).fit(curves(50, 0), ["a"] * 50)


def test_what_is_missing_is_named() -> None:
    rows, names = curves(50, 0), ["a", "b"] * 25
    known: Any = {"value_range": (-4, 4), "random_state": 0}
    with pytest.raises(InvalidParameter, match="groups must be given where random_state is None"):
        PrivateGroupComparison(1.0, value_range=(-4, 4)).fit(rows, names)
    with pytest.raises(ValueError, match="requires y to be passed"):
        PrivateMoments(1.0, groups=("a", "b"), **known).fit(rows)
    with pytest.raises(InvalidData, match="y must be the group of each curve"):
        PrivateMoments(1.0, groups=("a", "b"), **known).fit(rows, names[:-1])
    with pytest.raises(InvalidData, match="y must be among the given groups"):
        PrivateMoments(1.0, groups=("a", "c"), **known).fit(rows, names)
    found = two_groups(1500)
    with pytest.raises(InvalidParameter, match="group must be one of"):
        found.interval(group="c")
    with pytest.raises(InvalidParameter, match="of must be"):
        found.interval(group="a", of="people")
    with pytest.raises(InvalidParameter, match="groups must be at least two"):
        dpfda.central.moments.inference.pvalue(fitted().moments_)


def test_with_real_noise_no_label_is_refused() -> None:
    rows = curves(600, 0)
    names = ["a", "b", None] * 200
    found = PrivateMoments(4.0, value_range=(-4, 4), groups=("a", "b")).fit(rows, names)
    assert found.sizes_[0] > found.sizes_[1]  # what is no group is the first


def test_chunks_give_the_same_bits() -> None:
    rows, names = curves(1500, 0), np.arange(1500) % 2
    known: Any = {"value_range": (-4, 4), "groups": (0, 1), "random_state": 0}
    whole = PrivateMoments(4.0, **known).fit(rows, names)
    parts = [(rows[:700], names[:700]), (rows[700:], names[700:])]
    chunked = PrivateMoments(4.0, **known).fit_stream(lambda: iter(parts))
    assert np.array_equal(whole.moments_.noisy, chunked.moments_.noisy)


@pytest.mark.parametrize("emphasis", ["means", "differences"])
def test_simulated_noise_is_that_of_the_release(emphasis: str) -> None:
    found = two_groups(9000, emphasis=emphasis).moments_
    drawn = errors(found, sampling=False)
    # What sizes add to it is small here: means lie near the center.
    wanted = found.shift_variance * found.unit**2
    assert drawn.var(axis=0) == pytest.approx(wanted, rel=0.15)
    apart = (
        drawn[:, 1] / found.unit * found.share[1] - drawn[:, 0] / found.unit * found.share[0]
    ).var(axis=0)
    noise = found.shift_variance[0] * found.share[0] ** 2
    # Sums of both groups have independent noise, or such that their difference has less.
    assert (apart / noise).mean() == pytest.approx(
        {"means": 2.0, "differences": 1.0}[emphasis], rel=0.1
    )


def test_sizes_add_up_to_everybody() -> None:
    found = two_groups(1500).moments_
    assert found.sizes.sum() == pytest.approx(1500, abs=1e-6)
    assert np.ptp(found.variances.shares) == 0
    raw = found._cut(found.law.variance).shares
    assert found.variances.shares == pytest.approx(raw / 2)


def test_clipping_moves_groups_apart_that_scatter_differently() -> None:
    wide = two_groups(9000).moments_
    deviations = np.sqrt([np.diag(wide.covariance(name, floor=0.0)) for name in wide.groups])
    far = moved(wide, deviations)
    share = wide.sizes / wide.sizes.sum()
    assert share @ far == pytest.approx(np.zeros(far.shape[1]), abs=1e-9)
    squares = ((deviations / wide.unit) ** 2).sum(axis=1)
    assert squares[1] > 2 * squares[0]
    one, other = (0.3 * squares[k] ** 1.5 * deviations[k] for k in (0, 1))
    assert (far[1] - far[0]) == pytest.approx(other - one, rel=0.1)
    paths = errors(wide)[:, 1] - errors(wide)[:, 0]
    alone = errors(wide, sampling=False)
    assert paths.var(axis=0)[0] > (alone[:, 1] - alone[:, 0]).var(axis=0)[0] + (other - one)[0] ** 2


def test_groups_that_scatter_alike_are_not_said_to_be_moved() -> None:
    group = np.arange(3000) % 2
    rows = curves(3000, 3)
    found = PrivateGroupComparison(1.0, value_range=(-8, 8), groups=(0, 1), random_state=0)
    moments = found.fit(rows, group).moments_
    deviations = np.sqrt([np.diag(moments.covariance(name, floor=0.0)) for name in (0, 1)])
    assert np.abs(moved(moments, deviations)).max() < 0.01 * deviations.max()
    pooled = PrivateGroupComparison(
        1.0, value_range=(-8, 8), groups=(0, 1), separate=False, random_state=0
    ).fit(rows, group)
    both = np.sqrt([np.diag(pooled.moments_.covariance())] * 2)
    assert np.abs(moved(pooled.moments_, both)).max() < 1e-15
