"""What conversations ask: which looks, about what, for which share of the budget; to the digit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from courses import course

from dpfda.central.ball_search import candidates, find_radius, left_outside
from dpfda.central.covariance import CovarianceRelease
from dpfda.central.function_on_scalar import CovariateProducts, CrossProducts
from dpfda.central.functions import as_grid, spline_basis
from dpfda.central.kernel_density import Bernstein, BoxMean
from dpfda.central.linear import ShrunkMean
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.moments.moments_release import Schedule
from dpfda.central.queries import BallMean, RadiusChoice
from dpfda.central.records import clip_rows, read_records
from dpfda.central.score import ScoreRelease
from dpfda.errors import InvalidParameter
from dpfda.noise import source_for
from dpfda.privacy.calibration import gaussian_mu
from dpfda.privacy.cost import Cost, limit
from dpfda.protocol.query import Answer

PURE, GAUSSIAN = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=1e-6)
ROOT = 2**0.5
GRID = as_grid(np.linspace(0, 1, 12))


def pairs(kind: Any, *, intercept: bool) -> Any:
    given: Any = {"covariates": 2, "coefficients": 3, "covariate_bound": 5.0, "bound": 3.0}
    return kind(cost=PURE, n=10, intercept=intercept, **given)


def shrunk(cost: Cost, **more: Any) -> ShrunkMean:
    factors, axes = np.array([0.6, 0.4]), np.array([0.2, 0.1])  # ratios 3 and 4
    return ShrunkMean(
        cost=cost, n=10, bound=1.5, factors=factors, thresholds=0 * axes, axes=axes, **more
    )


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (pairs(CovariateProducts, intercept=False), ROOT / 10),
        (pairs(CovariateProducts, intercept=True), 2 * ROOT / 10),
        (pairs(CrossProducts, intercept=False), 2 * 3 / 10),
        (pairs(CrossProducts, intercept=True), 2 * ROOT * 3 / 10),
        (BoxMean(cost=PURE, n=10, bound=1.5, values=7), 2 * 1.5 * 7 / 10),
        (shrunk(PURE), 2 * 1.5 * 5 / 10),
        (shrunk(GAUSSIAN), 2 * 1.5 * 4 / 10),
        (shrunk(PURE, published=True), 2 * 1.5 * 7 / 10),
        (shrunk(GAUSSIAN, published=True), 2 * 1.5 * 4 / 10),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_how_far_one_record_moves_a_look(look: Any, expected: float) -> None:
    assert look.mechanism.sensitivity == pytest.approx(expected, rel=1e-12)


def test_rows_are_clipped_along_their_axes() -> None:
    rows = np.array([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0], [-np.inf, 0.0], [np.inf, 0.0]])
    given = rows.copy()
    expected = [[0.3, 0.4], [1.2, 1.6], [0.0, 0.0], [-2.0, 0.0], [2.0, 0.0]]
    np.testing.assert_allclose(clip_rows(rows, 2.0), expected)
    np.testing.assert_allclose(clip_rows(rows, 0.5, axes=np.full(2, 4.0)), expected)
    assert np.array_equal(rows, given)


@pytest.mark.parametrize("gap", [0.0, np.nan])
def test_values_beyond_all_measure_are_moved_inside_it(gap: float) -> None:
    curves = np.array([[-1e200, gap, 1.0], [1e200, gap, 2.0]])
    read, _ = read_records(curves, np.array([0.0, 0.5, 1.0]))
    assert read[:, 0].tolist() == [-1e100, 1e100]
    own = [(np.array([0.0, 1.0]), row[[0, 2]]) for row in curves]
    read, _ = read_records(own, np.array([0.0, 0.5, 1.0]))
    assert read.tolist() == [[-1e100, -5e99, 1.0], [1e100, 5e99, 2.0]]


def test_bernstein_values_are_read_off_on_their_lattice() -> None:
    mechanism = Bernstein(order=4)
    points = np.linspace(0, 1, 41)
    mean = MeanRelease(
        epsilon=1.0, n=9, bound=1.0, grid=as_grid(points), mechanism=Bernstein(order=4)
    )
    rows = mechanism.rows(np.array([3 * points]), mean)
    np.testing.assert_allclose(rows, [[0.0, 0.75, 1.5, 2.25, 3.0]])


def place(n: int = 100) -> Any:
    return {"unit": "person", "n": n, "center": np.zeros(1), "axes": np.ones(1)}


RADII = 3 * ROOT * 2.0 ** (-np.arange(32) / 4)
"""For the bound 1.5: twice that and a √2 to spare, each a fourth of an octave below the last."""


def test_a_radius_is_chosen_from_public_ones() -> None:
    search = find_radius(PURE, place(), bound=1.5, certain=2.0)
    (look,), radius = course(search, [5])
    assert isinstance(look, RadiusChoice)
    assert look.cost == PURE
    assert look.target == 90  # all but 10/ε
    np.testing.assert_allclose(look.radii, RADII)
    assert radius == look.radii[5]
    # R^-p with p = 4; steeper than half of the evidence allows it is not.
    assert look.prior.tolist() == np.rint(1024 * 2.0 ** np.arange(32)).tolist()
    few = find_radius(Cost(epsilon=0.2), place(), bound=1.5, certain=2.0)
    odds = next(few).prior
    steepness = 0.5 * (0.5 * 100 * 0.2 / 2) / np.log(RADII[0] / RADII[-1])
    assert odds.tolist() == np.rint(1024 * 2 ** (steepness * np.arange(32) / 4)).tolist()


@pytest.mark.parametrize("tilt", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [1, 7, 150])
def test_some_radius_holds_every_curve_within_the_bound(tilt: float, size: int) -> None:
    """Whatever the shape of the region: the furthest pair of curves is 2τ/min a apart."""
    axes = np.arange(1, size + 1) ** -tilt
    radii = candidates(1.5, axes)
    assert radii[0] == pytest.approx(2 * ROOT * 1.5 / axes.min())
    np.testing.assert_allclose(radii[:-1] / radii[1:], 2**0.25)
    assert 1.5 * 2.0**-6.5 < radii[-1] <= 1.5 * 2.0**-6.25 * (1 + 1e-9)


@pytest.mark.parametrize("cost", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize("reach", [0.3, 1.0, 1e3])
def test_a_search_holds_most_curves_whatever_their_shape(cost: Cost, reach: float) -> None:
    """All energy in one coefficient, the smoothest or the roughest; far beyond the bound too."""
    rng, n, size = np.random.default_rng(0), 1000, 60
    axes = np.arange(1, size + 1) ** -0.5
    where = {"unit": "person", "n": n, "center": np.zeros(size), "axes": axes}
    for number in (0, size // 2, size - 1):
        rows = 0.01 * rng.normal(size=(n, size))
        rows[:, number] += reach * rng.choice([-1.0, 1.0], size=n)
        search = find_radius(cost, where, bound=1.0, certain=2.0)
        source = source_for(number)
        query = next(search)
        while True:
            answer = query.answer((rows,), source)
            try:
                query = search.send(answer)
            except StopIteration as end:
                radius = end.value
                break
        within = np.sqrt(((rows / axes) ** 2).sum(1)) <= radius
        assert within.mean() > 0.5 or radius == candidates(1.0, axes)[0]


@pytest.mark.parametrize("wanted", [0, 1, 12, 30, 31])
def test_a_radius_is_found_by_halving(wanted: int) -> None:
    """The smallest of 32 that holds most of 100, in five counts for a fifth each."""
    rising = RADII[::-1]
    search = find_radius(GAUSSIAN, place(), bound=1.5, certain=2.0)
    least = 100 - 2 * 5**0.5 / gaussian_mu(epsilon=1.0, delta=1e-6)
    counts, query = [], next(search)
    while True:
        counts.append(query)
        inside = least + (0.01 if query.radius >= rising[wanted] * (1 - 1e-9) else -0.01)
        try:
            query = search.send(Answer(values=np.array([inside]), n=100))
        except StopIteration as end:
            found = end.value
            break
    assert found == pytest.approx(rising[wanted])
    assert [count.cost.share for count in counts] == [Fraction(1, 5)] * 5


def test_schedules() -> None:
    """Shares and sizes: from n, ε and the grid alone."""
    pure = Cost(epsilon=0.5)
    expected = Schedule(first=0.2, radius=0.09, coarse=13, fine=32)
    assert Schedule.of(pure, n=2000, most=60) == expected
    assert Schedule.of(pure, n=2000, most=20).fine == 20
    both = Cost(epsilon=0.5, delta=1e-6)
    found = Schedule.of(both, n=2000, most=60)
    assert found == Schedule(first=0.2, radius=0.05, coarse=32, fine=32)
    # A quarter of the budget: a quarter of ε, half of μ.
    assert Schedule.of(pure.part(0.25), n=8000, most=60) == expected
    assert Schedule.of(both.part(0.25), n=4000, most=60) == found


@pytest.mark.parametrize(
    ("n", "shares"), [(900, [0.25, 0.15, 0.25, 0.35]), (1000, [0.2, 0.15, 0.65])]
)
def test_a_covariance_shares_its_budget(n: int, shares: list[float]) -> None:
    basis = spline_basis(GRID, size=12)
    release = CovarianceRelease(epsilon=1.0, n=n, bound=1.5, basis=basis)
    asked, result = course(release.questions(), [1e9, 0.0, 3])
    check, *rest = asked
    left = 1 - float(check.cost.share)
    assert [float(query.cost.share) for query in rest] == pytest.approx(
        [left * share for share in shares]
    )
    assert asked[-1].radius == pytest.approx(candidates(1.5, asked[-1].axes)[3])
    assert rest[0].radius == 1.5
    assert result.warnings == ()
    # Nobody is within the bound.
    _, result = course(release.questions(), [0.0, 0.0, 3])
    assert len(result.warnings) == 1


def test_a_score_is_asked_about_the_middle() -> None:
    (look,), score = course(ScoreRelease(epsilon=1.0, n=100).questions(), [0.2])
    assert isinstance(look, BallMean)
    assert (look.center.tolist(), look.radius, look.cost) == ([0.5], 0.5, PURE)
    assert score.accuracy == pytest.approx(0.7)


@pytest.mark.parametrize("name", FunctionMechanism.members())
def test_a_mechanism_states_and_charges_the_delta_that_it_uses(name: str) -> None:
    kind = FunctionMechanism.named(name)
    known: dict[str, Any] = {
        "n": 50,
        "bound": 1.0,
        "grid": as_grid(np.linspace(0, 1, 9)),
        "mechanism": kind.examples()[0],
    }
    used = 1e-6 if kind.takes_delta or kind.needs_delta else 0.0
    release = MeanRelease(epsilon=1.0, delta=1e-6, **known)
    assert (release.guarantee.delta, release.most) == (used, limit(epsilon=1.0, delta=used))
    if kind.needs_delta:
        with pytest.raises(InvalidParameter, match="delta must be above 0"):
            MeanRelease(epsilon=1.0, **known)
    else:
        assert MeanRelease(epsilon=1.0, **known).guarantee.delta == 0.0


def test_weights_of_a_prior_are_whole_for_any_number_of_functions() -> None:
    """Fast functions make many candidates: weights stay in int64, and prefer small radii."""
    for count in (2, 20, 168, 2000):
        axes = np.arange(1, count + 1) ** -0.5
        where: Any = {"unit": "person", "n": 10**6, "center": np.zeros(count), "axes": axes}
        for epsilon in (0.01, 10.0):
            search = find_radius(Cost(epsilon=epsilon), where, bound=1.0, certain=2.0)
            prior = next(search).prior
            assert prior.min() >= 1
            assert np.all(np.diff(prior) >= 0)
            assert prior[-1] > 2.0**20 * prior[0]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_clipping_falls_with_noise(delta: float) -> None:
    """Of ten times as many curves a mean leaves a tenth as many outside; second moments 1 %."""
    for some, ratio in ((False, 10.0), (True, 1.0)):
        shares = [
            left_outside(
                Cost(epsilon=10.0, delta=delta).part(0.1),
                {**place(), "n": n},
                bound=1.0,
                certain=2.0,
                some=some,
            )
            for n in (10**5, 10**6)
        ]
        assert shares[0] / shares[1] == pytest.approx(ratio)
