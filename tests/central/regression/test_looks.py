"""What regressions ask, number by number: exact sums of rows, and what is read from answers."""

import math

import numpy as np
import pytest
from scipy.special import expit

from dpfda.central.regression.alternatives import EigenvalueQuery, GradientQuery
from dpfda.central.regression.perturbation import MinimizerQuery, Risk
from dpfda.central.regression.problem import (
    Bounds,
    Problem,
    ball,
    clip_to_ball,
    segment,
    with_constant,
)
from dpfda.central.regression.queries import MomentQuery, OutsideCount
from dpfda.central.regression.two_stage_queries import (
    LocationQuery,
    NewtonQuery,
    radius_factor,
    shrink_to_mean,
)
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.noise import SimulationSource
from dpfda.noise.law import NoiseLaw, level
from dpfda.privacy.cost import Cost
from dpfda.protocol.query import Answer

ONE = 2**18
GAUSSIAN, PURE = Cost(epsilon=1.0, delta=1e-6), Cost(epsilon=1.0)
BOUNDS = Bounds(center=np.array([1.0, 2.0]), radius=4.0, target_center=10.0, target_radius=5.0)
ROWS = np.array([[2.0, 4.0], [1.0, 2.0], [1.0, -6.0]])  # ¼ and ½ of the radius, none, twice
TARGETS = np.array([12.5, 10.0, 40.0])
UNIT = np.array([[65535, 131071], [0, 0], [0, -(ONE - 1)]])  # cut towards zero, and inward


def answer(values, *, sigma, n):
    values = np.asarray(values, dtype=float)
    law = NoiseLaw(law="gaussian", scales=np.full(values.size, sigma))
    return Answer(values=values, n=n, law=law)


def test_rows_and_targets_on_the_grid():
    given = ROWS.copy()
    assert ball(ROWS, center=BOUNDS.center, radius=4.0).tolist() == UNIT.tolist()
    assert np.array_equal(ROWS, given)
    found = segment(np.array([12.5, 10.0, 40.0, -40.0, 7.5]), center=10.0, radius=5.0)
    assert found.tolist() == [ONE / 2, 0, ONE, -ONE, -ONE / 2]
    constant = math.floor(ONE / math.sqrt(2))
    first = [math.floor(65535 / math.sqrt(2)), math.floor(131071 / math.sqrt(2))]
    assert with_constant(UNIT[:2].astype(float)).tolist() == [[*first, constant], [0, 0, constant]]
    np.testing.assert_allclose(
        clip_to_ball(ROWS, center=BOUNDS.center, radius=2.0),
        [[2 / 5**0.5, 4 / 5**0.5], [0, 0], [0, -2]],
    )
    np.testing.assert_allclose(
        clip_to_ball(ROWS[:1], center=BOUNDS.center, radius=3.0), ROWS[:1] - BOUNDS.center
    )


@pytest.mark.parametrize("size", [0, (1 << 12) + 1])
def test_a_ball_has_features_and_not_too_many(size):
    with pytest.raises(InvalidParameter, match="center"):
        Bounds(center=np.zeros(size))
    assert Bounds(center=np.zeros(1 << 12)).dimension == 1 << 12
    with pytest.raises(InvalidParameter, match="radius"):
        Bounds(center=np.zeros(1), radius=-1.0)


def test_shapes_are_refused_and_numbers_are_not():
    look = MomentQuery(cost=GAUSSIAN, bounds=BOUNDS)
    for records in [
        (),
        (np.float64(1), np.float64(1)),
        (ROWS,),
        (ROWS[:, :1], TARGETS),
        (ROWS, TARGETS[:2]),
        (ROWS, TARGETS, TARGETS, TARGETS),
    ]:
        with pytest.raises(ProtocolError, match="rows of 2 numbers and a target"):
            look.fitting(records)
    room = (1 << 27) - 1
    most = np.broadcast_to(0.0, (room, 2)), np.broadcast_to(0.0, room)
    assert look.fitting(most) is most
    with pytest.raises(InvalidData, match="at most"):
        look.fitting((np.broadcast_to(0.0, (room + 1, 2)), np.broadcast_to(0.0, room + 1)))
    odd = np.array([[np.nan, np.inf], [1.0, 2.0]]), np.array([np.nan, 12.5])
    usual = np.array([[0.0, 1e300], [1.0, 2.0]]), np.array([0.0, 12.5])
    assert look.sums(odd).tolist() == look.sums(usual).tolist()


def test_long_data_are_added_up_in_blocks():
    wide = MomentQuery(cost=GAUSSIAN, bounds=Bounds(center=np.zeros(300)))
    rows, targets = np.zeros((515, 300)), np.ones(515)
    rows[:, 0] = 1.0
    assert wide.sums((rows, targets))[0] == 515 * ONE * (ONE - 1)


def test_exact_moments():
    plain = MomentQuery(cost=GAUSSIAN, bounds=BOUNDS, linear_weight=3.0, quadratic_weight=5.0)
    v = np.array([ONE / 2, 0, ONE])
    sums = [v @ UNIT[:, 0], v @ UNIT[:, 1], UNIT[:, 0] @ UNIT[:, 0], UNIT[:, 0] @ UNIT[:, 1],
            UNIT[:, 1] @ UNIT[:, 1]]  # fmt: skip
    assert plain.sums((ROWS, TARGETS)).tolist() == sums
    weights = np.array([3.0, 3.0, 5.0, 5.0 * 2**0.5, 5.0]) / ONE**2
    np.testing.assert_allclose(plain.statistic(np.array(sums)), sums * weights)
    absolute = MomentQuery(cost=PURE, bounds=BOUNDS, linear_weight=3.0, quadratic_weight=5.0)
    np.testing.assert_allclose(absolute.moments.weights * ONE**2, [3.0, 3.0, 5.0, 10.0, 5.0])
    constant = MomentQuery(cost=GAUSSIAN, bounds=BOUNDS, constant=True)
    x = with_constant(UNIT.astype(float))
    triangle = (x.T @ x)[np.triu_indices(3)]
    assert constant.sums((ROWS, TARGETS)).tolist() == [*(v @ x), *triangle]


@pytest.mark.parametrize("cost", [GAUSSIAN, PURE])
def test_moments_are_read_in_units_of_the_balls(cost):
    look = MomentQuery(cost=cost, bounds=BOUNDS, linear_weight=4.0, quadratic_weight=8.0)
    sums = np.array([0.25, -0.5, 0.5, 0.125, 0.75]) * 40  # of 40 people
    read = look.moments.read(answer(sums * look.moments.weights * ONE**2, sigma=20.0, n=40))
    assert read.linear.tolist() == [0.25, -0.5]
    np.testing.assert_allclose(read.quadratic, [[0.5, 0.125], [0.125, 0.75]])
    assert (read.linear_sigma, read.quadratic_sigma) == (0.5 / 4, 0.5 / 8)
    off = (0.5 / 8) ** 2 / (4 if cost.pure else 2)
    np.testing.assert_allclose(
        read.quadratic_variance, [[(0.5 / 8) ** 2, off], [off, (0.5 / 8) ** 2]]
    )


def test_targets_are_shortened_with_their_rows():
    far = Bounds(center=np.zeros(2), radius=1.0, target_radius=2.0)
    look = MomentQuery(cost=GAUSSIAN, bounds=far, weighted=True)
    rows, targets = np.array([[0.0, 4.0], [0.5, 0.0]]), np.array([2.0, -1.0])
    found = look.statistic(look.sums((rows, targets)))
    # (0, 1)·¼ of the first, whose row is a quarter as long; (½, 0)·(-½) of the second.
    np.testing.assert_allclose(found[:2], [-0.25, 0.25], atol=2e-5)


def test_the_smallest_eigenvalue_comes_first():
    look = EigenvalueQuery(cost=GAUSSIAN, bounds=Bounds(center=np.zeros(2)))
    rows = np.array([[0.6, 0.0], [0.0, 0.3]])
    found = look.statistic(look.sums((rows, np.array([1.0, -1.0]))))
    np.testing.assert_allclose(found, [0.09, 0.6, -0.3, 0.36, 0.0, 0.09], atol=2e-5)


LINE = {"theta": np.array([0.5, -2.0]), "offset": 0.3}


def test_exact_newton_sums():
    look = NewtonQuery(cost=GAUSSIAN, bounds=BOUNDS, **LINE)
    labels = np.array([0.4, 0.6, 1.0])
    likely = expit(UNIT / ONE @ LINE["theta"] + 0.3)
    residual = np.trunc((likely - [0, 1, 1]) * ONE)
    curvature = np.trunc(likely * (1 - likely) * ONE**2)
    sums = [*(residual @ UNIT), residual.sum(), curvature.sum()]
    assert look.sums((ROWS, labels)).tolist() == sums
    np.testing.assert_allclose(look.weights, [ONE**-2.0, ONE**-2.0, 1 / ONE, 2 * ONE**-2.0])
    for wrong in ({"theta": np.zeros(3)}, {"offset": math.nan}):
        with pytest.raises(InvalidParameter):
            NewtonQuery(cost=GAUSSIAN, bounds=BOUNDS, **(LINE | wrong))


def test_newton_answers_are_read_with_a_curvature_in_its_range():
    look = NewtonQuery(cost=GAUSSIAN, bounds=BOUNDS, **LINE)
    for given, curvature in ((0.2, 0.1), (-1.0, 0.02), (0.03, 0.02), (0.45, 0.225), (3.0, 0.25)):
        values = np.array([0.5, -0.25, 0.125, given]) * 40
        read = look.read(answer(values, sigma=20.0, n=40))
        assert (read.gradient.tolist(), read.balance) == ([0.5, -0.25], 0.125)
        assert (read.curvature, read.sigma) == (pytest.approx(curvature), 0.5)


@pytest.mark.parametrize("link", ["linear", "logistic"])
def test_exact_gradients(link):
    problem = Problem(link=link, bounds=BOUNDS)
    theta = np.array([3.0, -2.0, 0.5])
    look = GradientQuery(cost=GAUSSIAN, problem=problem, theta=theta)
    targets = np.array([12.5, 40.0, -40.0])
    x, v = with_constant(UNIT.astype(float)), np.array([ONE / 2, ONE, -ONE])
    line = x @ theta / ONE
    if link == "linear":
        residual = np.clip(line - v / ONE, -1, 1)
        assert residual.min() < -0.5
        assert residual.max() == 1.0
    else:
        residual = expit(line) - [1, 1, 0]
    assert look.sums((ROWS, targets)).tolist() == (np.trunc(residual * ONE) @ x).tolist()
    far = GradientQuery(cost=GAUSSIAN, problem=problem, theta=np.array([0.0, 0.0, -90.0]))
    assert np.abs(far.sums((ROWS[1:2], np.array([15.0])))).tolist() == [0, 0, ONE * x[1, 2]]


@pytest.mark.parametrize("link", ["linear", "logistic"])
@pytest.mark.parametrize("intercept", [True, False])
def test_minimizers_are_of_rows_in_the_unit_ball(link, intercept):
    problem = Problem(link=link, bounds=BOUNDS, fit_intercept=intercept)
    assert problem.size == 2 + intercept
    look = MinimizerQuery(cost=GAUSSIAN, problem=problem)
    ridge = look.ridge(3)
    theta = look.exact((ROWS, TARGETS), SimulationSource(0)) / ridge
    x = with_constant(UNIT.astype(float)) if intercept else UNIT
    risk = Risk(x=x / ONE, v=np.array([0.5, 0.0, 1.0]), link=link, ridge=ridge, tilt=0 * theta)
    assert np.linalg.norm(risk.derivatives(theta)[0]) <= 1e-6
    pure = MinimizerQuery(cost=PURE, problem=problem)
    assert pure.l1 == pytest.approx((2 + 2e-6) * problem.size**0.5)


# -- where are the rows? ---------------------------------------------------------------------------

N, SIGMA = 200, 20.0  # noise of 0.1 on each mean


def location(means, *, intercept=True, sigma=SIGMA):
    """Of (z, 1.6|z|², ½v, 0.8v²), with the public balls of BOUNDS."""
    problem = Problem(link="linear", bounds=BOUNDS, fit_intercept=intercept)
    look = LocationQuery(cost=GAUSSIAN, problem=problem)
    return look.read(answer(N * np.array(means), sigma=sigma, n=N))


def test_exact_location_sums():
    look = LocationQuery(cost=PURE, problem=Problem(link="linear", bounds=BOUNDS))
    v = np.array([ONE / 2, 0, ONE])
    expected = [UNIT[:, 0].sum(), UNIT[:, 1].sum(), (UNIT**2).sum(), v.sum(), v @ v]
    assert look.sums((ROWS, TARGETS)).tolist() == expected
    np.testing.assert_allclose(
        look.weights, np.array([1, 1, 1.6 / ONE, 0.5, 0.8 / ONE]) / ONE, rtol=1e-15
    )
    means = look.means(answer(N * np.array([0.1, 0.2, 0.3, 0.4, 0.5]), sigma=SIGMA, n=N))
    assert means[0].tolist() == pytest.approx([0.1, 0.2])
    assert means[1:] == pytest.approx((0.8, 0.2))


def test_center_and_spread_are_freed_of_noise():
    """Means z = (0.5, -0.1), |z|² = 0.6, v = -0.3, v² = 0.1; noise 0.1, on v 0.2."""
    found = location([0.5, -0.1, 0.96, -0.15, 0.08])
    kept = (0.09 - 0.01) / 0.09  # signal over signal and noise
    shift = np.array([0.2 + 0.3 * kept, 0.2 - 0.3 * kept])
    np.testing.assert_allclose(found.bounds.center, [1.0, 2.0] + 4 * shift)
    shared = np.array([0.5, -0.1]) @ shift - kept * 2 * 0.01
    spread = 0.6 - 2 * shared + shift @ shift
    assert found.spread == pytest.approx(spread * 16)
    assert found.bounds.radius == pytest.approx(0.7 * math.sqrt(spread) * 4)
    v, left = level(-0.3, 0.04)
    assert -0.3 < v < -0.1
    assert found.target_noise == pytest.approx(5 * math.sqrt(left))
    assert found.bounds.target_center == pytest.approx(10 + 5 * v)
    assert found.bounds.target_radius == pytest.approx(5 * 2.5 * math.sqrt(0.1 - v * v))
    # Targets further out than their range are not sought.
    found = location([0.5, -0.1, 0.96, -0.15, 0.4])
    assert found.bounds.target_radius == pytest.approx(5 * (1 - v))


def test_answers_beyond_what_rows_can_be_are_cut():
    far = location([0.0, 0.0, 9.0, 9.0, 9.0])
    assert far.spread == pytest.approx(16)  # |z|² is 1 at most, as are v and v²
    assert (far.bounds.target_center, far.bounds.target_radius) == (
        15.0, pytest.approx(5 * 2.5 * math.sqrt(0.003)))  # fmt: skip
    v, _ = level(0.672, 0.04)  # so that all of its range is near
    middle = location([0.0, 0.0, 9.0, 0.336, 9.0])
    assert middle.bounds.target_radius == pytest.approx(5 * (1 + v))
    low = location([0.0, 0.0, -9.0, -9.0, -9.0])
    assert low.spread == 0.0  # what was seen; the ball is not smaller than this:
    assert low.bounds.radius == pytest.approx(0.7 * 0.1 * 4)
    assert (low.bounds.target_center, low.bounds.target_radius) == (
        5.0, pytest.approx(5 * 2.5 * math.sqrt(0.003)))  # fmt: skip


@pytest.mark.parametrize("noise", [1.0, 10.0, 100.0])
def test_no_ball_is_larger_than_what_rows_can_fill(noise):
    """Noise far above everything: a ball of its size would say that slopes are next to nothing."""
    found = location([3 * noise, -noise, 0.0, 0.0, 0.0], sigma=noise * N)
    center = np.linalg.norm(found.bounds.center - [1.0, 2.0]) / 4
    assert found.bounds.radius <= 0.7 * (1 + center) * 4 * (1 + 1e-12)


def test_a_line_through_the_public_center_is_not_moved():
    found = location([0.5, -0.1, 9.0, 0.15, 9.0], intercept=False)
    assert found.bounds.center.tolist() == [1.0, 2.0]
    assert (found.spread, found.bounds.target_center) == (16.0, 10.0)
    assert found.bounds.target_radius == 5.0


@pytest.mark.parametrize(
    ("clarity", "factor"),
    [(4.0, 0.7), (400.0, 0.7), (3200.0, 1.4), (10_800.0, 2.1), (1e9, 2.5)],
)
def test_more_of_the_rows_is_kept_where_noise_is_small(clarity, factor):
    for dimension in (1, 5):
        sigma = math.sqrt(5.0) * 1000 / (clarity * math.sqrt(0.2 * dimension))
        found = radius_factor(1000, sigma, dimension)
        assert found == pytest.approx(factor)


def test_a_noisy_vector_is_shrunk_to_its_average():
    noisy = np.array([0.5, -0.1])
    found, kept = shrink_to_mean(noisy, 0.1)
    assert kept == pytest.approx(8 / 9)
    np.testing.assert_allclose(found, [0.2 + 0.3 * 8 / 9, 0.2 - 0.3 * 8 / 9])
    found, kept = shrink_to_mean(noisy, 0.5)  # less signal than noise
    assert (found.tolist(), kept) == (pytest.approx([0.2, 0.2]), 0.0)
    found, kept = shrink_to_mean(np.array([3.0, 1.0]), 0.5)
    expected = np.array([2.75, 1.25])
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected))


def test_marked_rows_are_counted() -> None:
    """Marks are for the count alone, and it needs them."""
    look = OutsideCount(cost=PURE, features=2)
    marks = np.array([True, False, True])
    records = look.fitting((ROWS, TARGETS, marks))
    assert look.sums(records).tolist() == [2]
    assert look.l1 == look.l2 == 1.0
    with pytest.raises(ProtocolError, match="flag for every row"):
        look.fitting((ROWS, TARGETS))
    moments = MomentQuery(cost=GAUSSIAN, bounds=BOUNDS)
    plain, marked = ((ROWS, TARGETS), (ROWS, TARGETS, marks))
    assert moments.sums(moments.fitting(plain)).tolist() == (
        moments.sums(moments.fitting(marked)).tolist()
    )
    for wrong in (marks[:2], marks[:, None]):
        with pytest.raises(ProtocolError, match="rows of 2 numbers"):
            moments.fitting((ROWS, TARGETS, wrong))
