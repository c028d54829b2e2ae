"""Sensitivities in closed form, and how methods share their budget: to the digit."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from courses import course
from scipy.stats import norm

from dpfda.central.regression.base import Regression, RegressionMechanism
from dpfda.central.regression.perturbation import Risk, TiltedQuery, tilt_sigma, tilted
from dpfda.central.regression.problem import (
    Bounds,
    Problem,
    best_weight,
    eigenvalue_l2,
    joint_l1,
    joint_l2,
    location_l1,
)
from dpfda.central.regression.queries import MomentQuery
from dpfda.central.regression.two_stage_queries import LocationQuery, NewtonQuery
from dpfda.errors import InvalidParameter
from dpfda.noise import SimulationSource, discrete_gaussian
from dpfda.privacy.calibration import gaussian_mu
from dpfda.privacy.cost import Cost
from dpfda.privacy.events import PureEvent
from dpfda.privacy.price import Price

PAIRS = [(1.0, 1.0), (2.0, 1.0), (0.5, 0.125), (1.0, 3.0), (1.0, 0.71), (3.0, 0.1)]
COSINE = np.linspace(-1, 1, 400_001)


@pytest.mark.parametrize(("linear", "quadratic"), PAIRS)
def test_moments_move_as_far_as_the_worst_angle_says(linear, quadratic):
    first, second = np.sqrt(2 + 2 * COSINE), np.sqrt(2 - 2 * COSINE**2)
    squared = linear**2 * first**2 + quadratic**2 * second**2
    assert joint_l2(linear, quadratic) ** 2 == pytest.approx(squared.max(), rel=1e-9)
    with_eigenvalue = squared + 1 - COSINE**2
    assert eigenvalue_l2(linear, quadratic) ** 2 == pytest.approx(with_eigenvalue.max(), rel=1e-9)
    for dimension in (1, 2, 7):
        absolute = linear * dimension**0.5 * first + quadratic * dimension * second
        found = joint_l1(linear, quadratic, dimension=dimension)
        assert found == pytest.approx(absolute.max(), rel=1e-9)
        assert found >= absolute.max() * (1 - 1e-15)


@pytest.mark.parametrize("dimension", [1, 2, 5, 10, 11, 16])
def test_locations_move_as_far_as_the_worst_lengths_say(dimension):
    length, root = np.linspace(0, 1, 200_001), dimension**0.5
    moved = root * (1 + length) + 1.6 * (1 - length**2)
    assert location_l1(dimension) == pytest.approx(moved.max(), rel=1e-9)
    problem = Problem(link="linear", bounds=Bounds(center=np.zeros(dimension)))
    look = LocationQuery(cost=Cost(epsilon=1.0), problem=problem)
    assert look.l1 == location_l1(dimension) + location_l1(1) / 2
    assert look.l2 == math.sqrt(5)


@pytest.mark.parametrize(("linear", "quadratic"), [(2.0, 1.0), (0.5, 0.125), (1.0, 7.0)])
@pytest.mark.parametrize("dimension", [1, 4, 60])
def test_the_best_weight_is_where_noise_stops_falling(linear, quadratic, dimension):
    def noise(weight):
        entries = dimension * (dimension + 1) / 2
        return (dimension + entries / weight**2) * joint_l2(linear, quadratic * weight) ** 2

    best = best_weight(linear, quadratic, dimension=dimension)
    near = [noise(best * factor) for factor in (0.999, 1.0, 1.001)]
    # Flat at the minimum: what is left of the two sides differs by a third power.
    assert near[1] < min(near[0], near[2])
    assert near[0] - near[1] == pytest.approx(near[2] - near[1], rel=0.02)


# -- shares ----------------------------------------------------------------------------------------

BALL = Bounds(center=np.zeros(2))


def asked(method="moments", *, link="linear", delta=1e-6, replies=(), n=100, **other):
    settings = {key: other.pop(key) for key in ("newton_steps", "newton_share") if key in other}
    problem = Problem(link=link, bounds=BALL, **other)
    regression = Regression(
        epsilon=1.0,
        delta=delta,
        problem=problem,
        mechanism=RegressionMechanism.from_dict({"name": method, **settings}),
    )
    return course(regression.questions(), replies, n=n)


def shares(looks):
    return [(type(look), look.cost.share) for look in looks]


def test_two_stages_share_the_budget():
    fifth, quarter = Fraction(1, 5), Fraction(1, 4)
    looks, _ = asked()
    assert shares(looks) == [(LocationQuery, fifth), (MomentQuery, 1 - fifth)]
    looks, _ = asked(delta=0.0)
    assert shares(looks) == [(LocationQuery, quarter), (MomentQuery, 1 - quarter)]
    looks, _ = asked(link="logistic", newton_steps=3, newton_share=0.3)
    assert shares(looks) == [
        (LocationQuery, fifth),
        (MomentQuery, Fraction(1, 2)),
        *[(NewtonQuery, Fraction(1, 10))] * 3,
    ]
    looks, _ = asked(link="logistic", n=10)
    assert shares(looks) == [(LocationQuery, fifth), (MomentQuery, 1 - fifth)]
    looks, _ = asked(link="logistic", n=10**6)
    assert shares(looks)[1:] == [(MomentQuery, Fraction(11, 20)), (NewtonQuery, quarter)]


@pytest.mark.parametrize("settings", [{}, {"share": 0.2}])
def test_steps_leave_something_for_the_moments(settings):
    moments = RegressionMechanism.named("moments")
    assert moments(newton_share=0.79, **settings).newton_share == 0.79
    with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
        moments(newton_share=0.8, **settings)


def test_very_few_rows_are_asked_once():
    # nμ/√2 is below 10 for n = 50, μ = 0.24.
    assert 50 * gaussian_mu(epsilon=1.0, delta=1e-6) / 2**0.5 < 10
    (look,), _ = asked(link="logistic", rows=50, n=50)
    assert shares([look]) == [(MomentQuery, 1)]
    assert look.constant
    assert len(asked(link="logistic", rows=100)[0]) == 2
    assert len(asked(link="logistic", n=50)[0]) == 2  # nobody said so beforehand
    assert len(asked(link="logistic", rows=2, n=2, delta=0.0)[0]) == 2


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_of_few_rows_the_mean_target_is_asked_for_first(delta):
    few, many = (asked(rows=rows, n=rows, delta=delta)[0] for rows in (50, 10**7))
    usual = Fraction(1, 5) if delta else Fraction(1, 4)
    assert few[0].cost.share > usual
    assert few[0].target_weight > 1
    assert [one.cost.share for one in many] == [usual, 1 - usual]
    assert many[0].target_weight == 0.5
    for looks in (few, many):
        assert sum(one.cost.share for one in looks) == 1


def test_pure_noise_is_used_where_it_is_smaller():
    """Of few rows at a small δ; sites that add up noise, and whoever says no, keep Gaussian."""
    line = Problem(link="linear", bounds=BALL, rows=20)
    known = {"epsilon": 1.0, "delta": 1e-6, "mechanism": RegressionMechanism.named("moments")()}
    few = Regression(problem=line, either=True, **known)
    assert few.pure
    assert few.event == PureEvent(epsilon=1.0)
    assert not few.among_sites().pure
    assert not Regression(problem=line, **known).pure
    many = Regression(problem=replace(line, rows=10**6), either=True, **known)
    assert not many.pure
    classes = replace(line, link="logistic")
    assert Regression(problem=classes, either=True, **known).pure
    steps = RegressionMechanism.from_dict({"name": "moments", "newton_steps": 1})
    given = known | {"mechanism": steps}  # whose questions have Gaussian noise only
    assert not Regression(problem=classes, either=True, **given).pure


@pytest.mark.parametrize("features", [3, 20, 100])
def test_slopes_are_not_given_up_for_a_tie(features):
    """1600 rows of 100 features were asked for their mean alone, expected to be 2 % better."""
    costs = [Cost(epsilon=0.5), Cost(epsilon=0.5, delta=1e-5)]
    method, taken = RegressionMechanism.named("moments")(), set()
    for rows in np.geomspace(20, 20_000, 60).astype(int).tolist():
        problem = Problem(link="linear", bounds=Bounds(center=np.zeros(features)), rows=rows)
        asked = Regression(epsilon=0.5, delta=1e-5, problem=problem, mechanism=method)
        chosen, usual = method.plan(asked, costs), method.plan(asked, costs[1:])
        taken.add(chosen.cost.pure)
        assert chosen == usual or 1.1 * chosen.error < usual.error
    assert False in taken


def test_adassp_turns_a_line_through_classes_into_log_odds():
    replies = [[40.0, 10.0, 5.0, 50.0, 0.0, 50.0]]
    line, odds = (
        asked("adassp", link=link, fit_intercept=False, replies=replies)[1]
        for link in ("linear", "logistic")
    )
    np.testing.assert_allclose(odds.slope, 2 * line.slope)


@pytest.mark.parametrize("method", ["output_perturbation", "objective_perturbation"])
def test_minimizers_come_back_from_their_scale(method):
    (look,), fitted = asked(method, fit_intercept=False, replies=[[3.0, -1.5]])
    assert look.cost == Cost(epsilon=1.0, delta=1e-6)
    ridge = look.mechanism.ridge if method.startswith("objective") else look.ridge(100)
    np.testing.assert_allclose(fitted.slope, np.array([3.0, -1.5]) / ridge)


def test_limits_are_exact_decimals():
    problem = Problem(link="linear", bounds=BALL)
    given = {"epsilon": 0.7, "problem": problem}
    tilt, moments = (
        RegressionMechanism.named("objective_perturbation")(),
        RegressionMechanism.named("moments")(),
    )
    whole = Price(epsilon=Fraction(7, 10), delta=Fraction(1, 10**5))
    assert Regression(**given, delta=1e-5, mechanism=tilt).most == whole
    pure = Regression(**given, mechanism=moments).most
    assert (pure.epsilon, pure.delta, pure.precision) == (Fraction(7, 10), 0, 0)
    gaussian = Regression(**given, delta=1e-5, mechanism=moments).most
    assert (gaussian.epsilon, gaussian.delta) == (0, 0)
    assert gaussian.precision > 0


# -- a random tilt ---------------------------------------------------------------------------------

LATTICE = 2.0**-50
SMALL = {"size": 100, "curvature": 0.25, "ridge_share": 0.3}


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-12), (2.0, 1e-5), (0.5, 1e-3)])
def test_the_tilt_that_a_budget_pays_for(epsilon, delta):
    cost = Cost(epsilon=epsilon, delta=delta)
    found = tilted(cost, **SMALL)
    left = 0.98 * delta - 100 * LATTICE * (1 + math.exp(epsilon))
    q = norm.isf(left / 4)
    sigma = found.tilt_sigma
    assert (2 * q * sigma + 2) / sigma**2 == pytest.approx(0.7 * 0.98 * epsilon, rel=1e-9)
    assert math.log1p(0.25 / found.ridge) == pytest.approx(0.3 * 0.98 * epsilon, rel=1e-9)
    assert found.sensitivity == pytest.approx(2e-6 + 10 * sigma / 2**24, rel=1e-12)
    assert found.mu == gaussian_mu(epsilon=0.02 * epsilon, delta=0.02 * delta)
    assert found.delta == 0.02 * delta
    assert found.axes == (1.0,) * 100
    steps = discrete_gaussian(100, sigma=2**24, source=SimulationSource(3))
    np.testing.assert_allclose(found.tilt(SimulationSource(3)), steps * (sigma / 2**24))


def test_what_a_tilt_cannot_be_bought_with():
    least = 2 * 100 * LATTICE / 0.98  # 1.8e-13
    with pytest.raises(InvalidParameter, match=r"^delta must be above 1.8e-13 "):
        tilted(Cost(epsilon=1e-3, delta=0.999 * least), **SMALL)
    with pytest.raises(InvalidParameter, match=r"^delta must be"):
        tilted(Cost(epsilon=1e-3, delta=0.6 * least), **SMALL)
    assert tilted(Cost(epsilon=1e-3, delta=1.01 * least), **SMALL).ridge > 0
    most = math.log(0.98e-12 / (100 * LATTICE) - 1)
    assert tilted(Cost(epsilon=0.9999 * most, delta=1e-12), **SMALL).ridge > 0
    with pytest.raises(InvalidParameter, match=r"^epsilon must be below 2.31 "):
        tilted(Cost(epsilon=1.0001 * most, delta=1e-12), **SMALL)
    for cost in (Cost(epsilon=1.0), Cost(epsilon=1.0, delta=1e-3).part(0.5)):
        with pytest.raises(InvalidParameter, match=r"^cost must be a whole budget"):
            tilted(cost, **SMALL)


@pytest.mark.parametrize("epsilon", [0.3, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 0.1])
def test_the_smallest_sigma_that_is_enough(epsilon, delta):
    sigma, q = tilt_sigma(epsilon, delta), norm.isf(delta / 4)
    assert sigma > 0
    assert (2 * q * sigma + 2) / sigma**2 == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("link", ["linear", "logistic"])
def test_the_tilted_objective_is_minimized(link):
    problem = Problem(link=link, bounds=BALL, fit_intercept=False)
    look = TiltedQuery(cost=Cost(epsilon=1.0, delta=1e-3), problem=problem)
    rows, targets = np.array([[0.5, -0.25], [0.1, 0.7]]), np.array([0.5, -1.0])
    theta = look.exact((rows, targets), SimulationSource(1)) / look.mechanism.ridge
    inside, noise = np.trunc(rows * (1 - 2**-40) * 2**18) / 2**18, look.mechanism
    tilt = noise.tilt(SimulationSource(1))
    risk = Risk(x=inside, v=targets, link=link, ridge=noise.ridge, tilt=tilt)
    assert np.linalg.norm(risk.derivatives(theta)[0]) <= 1e-6
