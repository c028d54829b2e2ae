"""No bound known, or one far too wide: location and scale are found privately, for a small part."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from courses import course
from scipy.stats import norm

from dpfda import PrivateCovariance, PrivateMean, PrivateMoments
from dpfda.central.adaptive import Adaptive
from dpfda.central.ball_search import (
    MAGNITUDES,
    BallSearch,
    Region,
    candidates,
    left_outside,
    locate,
)
from dpfda.central.covariance import LEFT_OUTSIDE, CovarianceRelease
from dpfda.central.functions import as_grid, spline_basis
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.moments.moments_release import MomentsRelease
from dpfda.central.queries import RadiusCount
from dpfda.errors import InvalidParameter
from dpfda.privacy.calibration import gaussian_mu
from dpfda.privacy.cost import Cost
from dpfda.protocol.query import Answer

GRID = as_grid(np.linspace(0, 1, 12))
T = np.linspace(0, 1, 30)
SHAPES = np.stack([np.ones(30), np.cos(np.pi * T), np.cos(2 * np.pi * T)])


def curves(n: int, seed: int = 0, *, level: float = 5.0) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(n, 3)) * [0.8, 0.5, 0.3]
    return np.asarray(level + np.sin(2 * np.pi * T) + scores @ SHAPES)


def asked(**given: Any) -> MeanRelease:
    known: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "n": 2000, "bound": math.inf}
    return MeanRelease(**known | given, grid=GRID, mechanism=Adaptive())


def located_at(
    norm: float, near: float, *, inside: float = 1.0, guess: float = 0.0, **given: Any
) -> tuple[list[Any], Region]:
    """What is asked of curves of which a share lies within a norm, and within a radius of a guess.

    All others are nowhere.
    """
    mean = asked(**given)
    questions = locate(mean, Region(np.zeros(4), mean.bound, mean.whole, ()))
    looks, wanted = [next(questions)], norm
    while True:
        look = looks[-1]
        if isinstance(look, RadiusCount):
            values = np.array([inside * mean.n * (look.radius >= wanted * (1 - 1e-9))])
        else:
            values, wanted = np.full(look.size, guess), near
        try:
            looks.append(questions.send(Answer(values=values, n=mean.n, law=None)))
        except StopIteration as end:
            return looks, end.value


def test_norm_guess_and_distance_take_equal_shares() -> None:
    looks, region = located_at(4.0, 0.5, guess=2.0)
    share = (150 / (gaussian_mu(epsilon=1.0, delta=1e-5) * 2000)) ** 2
    assert share > 0.05
    share = 0.05
    found = [float(look.cost.share) for look in looks]
    assert found == pytest.approx([share / 6] * 6 + [share] + [share / 5] * 5)
    assert float(region.budget.share) == pytest.approx(1 - 3 * share)
    # Norms: twice the power of two that holds all. The guess: level and slope, within that.
    assert looks[6].radius == 8.0
    assert len(looks[6].center) == 2
    assert [len(look.center) for look in (looks[0], looks[7])] == [4, 4]
    assert looks[0].center.tolist() == [0, 0, 0, 0]
    assert looks[7].center.tolist() == [2, 2, 0, 0]
    assert region.center.tolist() == [2, 2, 0, 0]
    assert region.bound == pytest.approx(1.0)  # twice the radius about the guess
    assert region.warnings == ()


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({"n": 400}, 0.05),
        ({"n": 5000}, None),
        ({"n": 10**6}, 0.005),
        ({"delta": 0.0, "n": 1000}, 0.1),
        ({"delta": 0.0, "n": 100}, 0.2),
        ({"delta": 0.0, "n": 9000}, 0.05),
    ],
)
def test_a_search_takes_what_its_counts_need(given: dict[str, Any], share: float | None) -> None:
    if share is None:
        share = (150 / (gaussian_mu(epsilon=1.0, delta=1e-5) * 5000)) ** 2
        assert 0.005 < share < 0.05
    looks, _ = located_at(4.0, 0.5, **given)
    assert float(looks[6].cost.share) == pytest.approx(share)


def test_candidates_are_public_powers_of_two() -> None:
    assert MAGNITUDES.tolist() == [2.0**k for k in range(-32, 32)]
    for k in (-32, -5, 0, 30):
        assert located_at(2.0**k, 2.0**k)[0][6].radius == 2.0 ** (k + 1)
    # About a guess: half powers, from twice the norm that was found down.
    for k in (-29, -3, 1):
        _, region = located_at(4.0, 8.0 * 2.0 ** (k / 2))
        expected = min(8.0, 16.0 * 2.0 ** (k / 2))
        assert region.bound == pytest.approx(expected)
        assert (region.bound < 8.0) is (k < -2)
    # Within a public bound: powers of two of it, and never beyond.
    for k, told in ((-62, 0), (-9, 0), (0, 0), (1, 1)):
        looks, region = located_at(3.0 * 2.0**k, 3.0, bound=3.0)
        assert looks[6].radius == pytest.approx(3.0 * min(1.0, 2.0 ** (k + 1)))
        assert len(region.warnings) == told
        assert all("outside their public range" in text for text in region.warnings)


def test_a_guess_that_is_no_help_is_left() -> None:
    _, region = located_at(4.0, 100.0, guess=2.0)
    assert (region.bound, region.center.tolist()) == (8.0, [0, 0, 0, 0])
    _, region = located_at(4.0, 4.0, guess=2.0)  # as far as the norm
    assert (region.bound, region.center.tolist()) == (8.0, [0, 0, 0, 0])


def test_curves_beyond_all_norms_are_told() -> None:
    _, region = located_at(2.0**31, 1.0)
    assert len(region.warnings) == 1
    assert "2e+09, the largest norm that is looked for" in region.warnings[0]
    assert located_at(2.0**30, 1.0)[1].warnings == ()


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_count_may_be_wrong_by_what_its_noise_is(delta: float) -> None:
    """Nearly all: all but what noise hides, 2 % at least."""
    for n in (2000, 10**6):
        looks, _ = located_at(4.0, 0.5, n=n, delta=delta)
        each = looks[0].cost
        noise = math.log(6 / 0.01) / each.epsilon_spent if each.pure else 4.0 / each.mu
        outside = max(0.02, noise / n)
        assert (outside > 0.02) is (n == 2000)
        for share, found in ((1 - outside + 1e-6, 4.0), (1 - outside - 1e-6, MAGNITUDES[-1])):
            looks, _ = located_at(4.0, 0.5, n=n, delta=delta, inside=share)
            assert looks[6].radius == (3 if outside > 0.25 else 2) * found


def test_with_much_noise_there_is_more_room() -> None:
    assert located_at(4.0, 0.5, n=300)[0][6].radius == 12.0
    looks, _ = located_at(4.0, 0.5, n=20, inside=0.501)  # half of them at least
    assert looks[6].radius == 12.0
    assert located_at(4.0, 0.5, n=20, inside=0.499)[0][6].radius == 3 * MAGNITUDES[-1]


def counted(mean: MeanRelease, replies: list[float]) -> int:
    return len(course(mean.questions(), replies, n=mean.n)[0])


def test_who_searches() -> None:
    """Whose bound turns out to be loose, and whose counts can tell."""
    known = asked(bound=1.0)
    inside = [1e9, 0.0, *[9e9] * 6]  # within the smallest radius
    assert counted(replace(known, n=600), inside) == 8 + 12 + 8
    assert counted(replace(known, n=550), inside) == 9  # counts err by 0.35 of the curves
    assert counted(replace(known, n=600), [1e9]) == 9
    pure = asked(bound=1.0, delta=0.0, n=3500)
    radii = candidates(1.0, np.arange(1, 13) ** -0.5)
    eighth = int(np.flatnonzero(radii >= 1 / 8)[-1])
    assert counted(pure, [1e9, 0.0, eighth]) == 4
    assert counted(pure, [1e9, 0.0, eighth + 1]) == 3 + 12 + 3
    assert counted(replace(pure, n=3000), [1e9, 0.0, eighth + 1]) == 4  # by 0.36
    nowhere = [*[0.0] * 6, 1.0, *[0.0] * 5, 1.0]
    assert counted(replace(pure, n=999, bound=math.inf), nowhere) == 12 + 3


def test_noise_that_makes_the_radius_is_seen() -> None:
    """A center whose noise is as long as 0.45 of the radius: the bound is too wide for it."""
    pure = asked(bound=1.0, delta=0.0, n=4000)
    first, search, coarse = 0.2, 0.09, 9
    axes = np.arange(1, 13) ** -0.5
    scout = BallSearch(axes=axes, first=first, search=search, coarse=coarse)
    reply = 5.0  # much longer than noise: nothing is shrunk
    (_, look, *_), _ = course(scout.questions(pure), [1e9, reply, 0], n=4000)
    noise = look.mechanism.law.variance / axes[:coarse] ** 2
    radii = candidates(1.0, axes)
    edge = math.sqrt(float(noise.sum())) / 0.45
    above = int(np.flatnonzero(radii > edge)[-1])
    assert radii[above] > 1 / 8
    for index, loose in ((above, False), (above + 1, True)):
        looks, found = course(scout.questions(pure), [1e9, reply, index], n=4000)
        assert (len(looks) > 3) is loose
        checked = 0.99
        left = checked * (0.71 * (1 - 3 * 0.05) * 0.71 if loose else 0.71)
        assert float(found.left.share) == pytest.approx(left)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_curves_beyond_their_bound_are_counted(delta: float) -> None:
    """A twentieth and what noise exceeds twice in 1000 times: some; four fifths: nearly all."""
    known = asked(bound=1.0, delta=delta, n=4000)
    (check, *_), _ = course(known.questions(), [1e9], n=4000)
    assert isinstance(check, RadiusCount)
    assert check.radius == pytest.approx(1.0)
    scale = float(check.mechanism.law.scales[0])
    edge = 0.05 * 4000 + scale * (norm.isf(0.002) if delta else math.log(250))
    for outside, word in (
        (edge - 1, ""),
        (edge + 1, "more than a few"),
        (3199, "more than a few"),
        (3201, "nearly all"),
    ):
        _, result = course(known.questions(), [4000 - outside], n=4000)
        told = [text for text in result.warnings if "public bound" in text]
        assert [text.startswith(word) for text in told] == [True] * bool(word)


@pytest.mark.parametrize("kind", ["mean", "covariance", "moments"])
def test_what_is_left_is_shared_as_before(kind: str) -> None:
    basis = spline_basis(GRID, size=12)
    known: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "n": 2000, "bound": math.inf}
    release: Any = {
        "mean": lambda: MeanRelease(**known, grid=GRID, mechanism=Adaptive()),
        "covariance": lambda: CovarianceRelease(**known, basis=basis),
        "moments": lambda: MomentsRelease(**known, basis=basis),
    }[kind]()
    somewhere = [*[9e9] * 6, 1.0, *[9e9] * 5]
    looks, _ = course(release.questions(), somewhere, n=2000)
    left = 1 - 3 * float(looks[6].cost.share)
    last = {
        "mean": [0.1, *[0.05 / 6] * 6, 0.85],
        "covariance": [0.2, *[0.025] * 6, 0.65],
        "moments": [0.2, *[0.05 / 6] * 6, 0.75],
    }[kind]
    found = [float(look.cost.share) for look in looks[12:]]
    assert found == pytest.approx([share * left for share in last])
    few = replace(release, n=600)
    if kind == "covariance":
        looks, _ = course(few.questions(), somewhere, n=600)
        left = 1 - 3 * float(looks[6].cost.share)
        found = [float(look.cost.share) for look in looks[12:]]
        assert found == pytest.approx([share * left for share in (0.25, *[0.025] * 6, 0.25, 0.35)])


def error(model: Any, rows: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(rows)
    means = model.mean_ if hasattr(model, "mean_") else model.means_[0]
    return float(np.mean((means - rows.mean(axis=0)) ** 2))


@pytest.mark.parametrize("estimator", [PrivateMean, PrivateMoments])
def test_nothing_need_be_known(estimator: Any) -> None:
    """Squared errors beside those with a good range, for curves anywhere; 12 releases each."""
    known: dict[str, Any] = {"delta": 1e-5}
    for factor in (1e-4, 1e4):
        found = np.zeros(4)
        for seed in range(12):
            rows = factor * curves(1000, seed)
            for k, ends in enumerate(((1.0, 9.0), None, (-400.0, 400.0), (-5000.0, 5000.0))):
                span = None if ends is None else (factor * ends[0], factor * ends[1])
                model = estimator(1.0, value_range=span, random_state=seed, **known)
                found[k] += error(model, rows)
        assert found[1] < 2 * found[0]
        assert np.all(found[2:] < 3 * found[0])  # without a search, hundreds of times


def test_other_summaries_find_their_range_too() -> None:
    rows = curves(2000)
    surface = np.cov(rows.T)
    wide, none = (
        PrivateCovariance(2.0, delta=1e-5, value_range=ends, random_state=0).fit(rows)
        for ends in ((-500, 500), None)
    )
    for model in (wide, none):
        assert np.abs(model.covariance_ - surface).mean() < 0.5 * np.abs(surface).mean()
    assert none.release_.parameters["bound"] == "found privately"
    pure = PrivateMean(4.0, random_state=0).fit(rows)
    assert np.abs(pure.mean_ - rows.mean(axis=0)).max() < 0.3
    two = np.stack([rows, 100 * rows], axis=2)
    both = PrivateMean(4.0, delta=1e-5, random_state=0).fit(two)
    assert np.abs(both.mean_ / [[1.0], [100.0]] - rows.mean(axis=0)).max() < 0.3


def test_few_curves_are_refused() -> None:
    for delta, least in ((0.0, 1000), (1e-5, 500)):
        rule = f"value_range must be given where n·epsilon is below {least}: too few curves"
        with pytest.raises(InvalidParameter, match=rule):
            PrivateMean(1.0, delta=delta).fit(curves(least - 1))
        PrivateMean(1.0, delta=delta, random_state=0).fit(curves(least))
    two = np.stack([curves(1400)] * 2, axis=2)
    each = "given where each channel's share of n·epsilon, here 494.975, is below 500"
    with pytest.raises(InvalidParameter, match=each):
        PrivateMean(0.5, delta=1e-5).fit(two)  # each channel has half of μ²
    PrivateMean(0.51, delta=1e-5, random_state=0).fit(two)
    with pytest.raises(InvalidParameter, match="value_range must be given: the public"):
        PrivateMean(1.0, mechanism="allocation").fit(curves(2000))
    with pytest.raises(InvalidParameter, match="bound must be"):
        MeanRelease(
            epsilon=1.0,
            n=9,
            bound=math.inf,
            grid=GRID,
            mechanism=FunctionMechanism.named("allocation")(),
        )


def warned(estimator: Any, ends: tuple[float, float], n: int = 1000) -> float:
    """How often, of 10."""
    told = 0
    for seed in range(10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = estimator(1.0, value_range=ends, delta=1e-5, random_state=seed)
            model.fit(curves(n, seed, level=0.0))
        released = getattr(model, "moments_", None) or model.release_
        told += any("too small" in text for text in released.warnings)
    return told / 10


@pytest.mark.parametrize("estimator", [PrivateMean, PrivateMoments, PrivateCovariance])
def test_a_range_that_is_too_small_is_told(estimator: Any) -> None:
    assert warned(estimator, (-4.0, 4.0)) == 0.0
    assert warned(estimator, (-0.6, 0.6)) >= 0.9  # half of √(average of X²)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_covariances_leave_as_few_outside_with_a_delta_as_without(delta: float) -> None:
    """Twice as many made the error of heavy tails larger with a δ than without."""
    cost = Cost(epsilon=1.0, delta=delta)
    place: Any = {"n": 10**7, "axes": np.ones(3)}
    of_mean, of_covariance = (
        left_outside(cost, place, bound=1.0, certain=2.0, some=some) for some in (0.0, LEFT_OUTSIDE)
    )
    assert of_mean < 1e-4
    assert of_covariance == 0.01
