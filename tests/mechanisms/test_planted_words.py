"""Draws from words that were chosen: which word gives which report, to the last one.

A draw that is right on average may still use one word too many on one side; here the borders
themselves are asked for.
"""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from planted import Words

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import AdditiveLaplace, Gaussian, Laplace
from dpfda.mechanisms.base import BoxMechanism
from dpfda.mechanisms.composed import Joined, Repeated
from dpfda.mechanisms.ellipsoid_laplace import EllipsoidLaplace, best_blocks, l1_noise, l2_noise
from dpfda.mechanisms.exponential import Exponential
from dpfda.mechanisms.piecewise import HALF_WIDTH, Duchi, DuchiScalar, PiecewiseScalar
from dpfda.mechanisms.randomized_response import (
    CategoricalResponse,
    QuestionResponse,
    RandomizedResponse,
    best_questions,
    information,
)
from dpfda.noise import SimulationSource
from dpfda.privacy.cost import Cost
from dpfda.privacy.events import LaplaceEvent, PureEvent, RandomizedResponseEvent

UNIT = 1 << 30  # of the integer odds of every response


def floor_of_odds(epsilon: float, unit: int = UNIT) -> int:
    with mpmath.workprec(300):
        return int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon)) * unit))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 15.0, 22.0])
def test_categories_change_at_the_odds(epsilon: float) -> None:
    keep = floor_of_odds(epsilon)
    words = [0, keep - 1, keep, keep + UNIT - 1, keep + UNIT, keep + 2 * UNIT - 1]
    response = CategoricalResponse(epsilon=epsilon, categories=3)
    assert response.randomize(np.ones(6), Words(*words)).tolist() == [1, 1, 2, 2, 0, 0]
    assert response.keep_probability == keep / (keep + 2 * UNIT)


@pytest.mark.parametrize("epsilon", [0.5, 15.0, 22.0, 100.0])
def test_a_bit_changes_at_the_odds(epsilon: float) -> None:
    keep = floor_of_odds(min(epsilon, 22.0))
    response = RandomizedResponse(epsilon=epsilon)
    words = [0, keep - 1, keep, keep + UNIT - 1]
    assert response.randomize(np.ones(4), Words(*words)).tolist() == [1, 1, -1, -1]
    assert response.keep_probability == keep / (keep + UNIT)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_questions_are_as_many_as_tell_most(epsilon: float) -> None:
    told = {}
    for k in range(1, 13):
        alpha = (math.exp(epsilon) - 1) / (math.exp(epsilon) + 2**k - 1)
        told[k] = k * alpha**2
        assert information(epsilon, questions=k) == pytest.approx(told[k], rel=1e-12)
    assert best_questions(epsilon, most=12) == max(told, key=told.__getitem__)
    with pytest.raises(InvalidParameter, match="epsilon"):
        best_questions(-epsilon, most=12)


def test_categories_have_a_most() -> None:
    assert CategoricalResponse(epsilon=1.0, categories=1 << 20).categories == 1 << 20
    with pytest.raises(InvalidParameter, match="categories"):
        CategoricalResponse(epsilon=1.0, categories=(1 << 20) + 1)


@pytest.mark.parametrize("epsilon", [23.0, 100.0, 1e6])
def test_odds_stop_where_words_end(epsilon: float) -> None:
    """Beyond e^22 nothing is gained, and the odds would not fit into a word."""
    top = floor_of_odds(22.0)
    response = CategoricalResponse(epsilon=epsilon, categories=2)
    assert response.keep_probability == top / (top + UNIT)
    assert DuchiScalar(epsilon).bound == (top + UNIT) / (top - UNIT)
    assert Duchi(epsilon=epsilon).bound == pytest.approx(DuchiScalar(epsilon).bound, rel=1e-15)
    for mechanism in (response, Duchi(epsilon=epsilon)):
        values = np.ones(3) if mechanism is response else np.ones((3, 1))
        assert np.isfinite(mechanism.randomize(values, SimulationSource(0))).all()


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_scalar_corner_changes_at_the_odds(epsilon: float) -> None:
    high = floor_of_odds(epsilon)
    scalar = DuchiScalar(epsilon)
    middle, ends = np.zeros(4, dtype=np.int64), [HALF_WIDTH - 1, HALF_WIDTH] * 2
    kept = [0, high - 1, high, high + UNIT - 1]
    signs = np.sign(scalar.draw(middle, Words(*ends, *kept)))
    assert signs.tolist() == [1, -1, -1, 1]
    assert np.abs(scalar.draw(middle, Words(*ends, *kept))).tolist() == [scalar.bound] * 4


SWEEP = [*np.geomspace(1e-3, 30, 60).tolist(), 22.0, 100.0, 1000.0]


@pytest.mark.parametrize("epsilon", SWEEP)
def test_weights_use_the_words_and_round_odds_down(epsilon: float) -> None:
    """Totals fit into a word with room to spare, and are no coarser than they must be."""
    scalar = PiecewiseScalar(epsilon)
    high, low = scalar.weights
    assert high == floor_of_odds(min(epsilon, 22.0), low)
    assert scalar._total == scalar.window * high + 2 * HALF_WIDTH * low
    assert scalar._total * (1 + 1e-6) >= 1 << 61
    assert scalar._total <= 1 << 62
    for questions in (1, 5, 30):
        response = QuestionResponse(epsilon=epsilon, questions=questions)
        low, extra = response._weights
        truth = floor_of_odds(min(epsilon, 22.0), low)
        assert extra + low == truth
        assert response._total == truth + (2**questions - 1) * low
        assert (response._total + low) * (1 + 1e-6) >= 1 << 60
        assert response._total + low <= 1 << 61


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
@pytest.mark.parametrize("position", [-HALF_WIDTH, 0, 77, HALF_WIDTH])
def test_the_window_is_where_it_should_be(epsilon: float, position: int) -> None:
    scalar = PiecewiseScalar(epsilon)
    w, (high, low) = scalar.window, scalar.weights
    first, top = position - w // 2, HALF_WIDTH + w // 2
    likely = w * high
    coins = [0, high - 1, high, likely - 1, likely, scalar._total - 1]
    edge = first + top  # how many reports lie below the window
    bottom, end = (-top, top - 1) if 0 < edge < 2 * HALF_WIDTH else (None, None)
    units = np.array([first, first, first + 1, first + w - 1])
    reports = scalar.draw(np.full(len(coins), position), Words(*coins)) / scalar.unit - 0.5
    np.testing.assert_allclose(reports[:4], units, atol=1e-6)
    if bottom is not None:
        np.testing.assert_allclose(reports[4:], [bottom, end], atol=1e-6)
        # The last report below the window and the first above it.
        coins = [likely + edge * low - 1, likely + edge * low]
        beside = scalar.draw(np.full(2, position), Words(*coins)) / scalar.unit - 0.5
        np.testing.assert_allclose(beside, [first - 1, first + w], atol=1e-6)


def test_the_choice_changes_at_the_exact_threshold() -> None:
    mechanism = Exponential(epsilon=1.5, prior=(2, 3))
    with mpmath.workprec(200):
        share = 2 / (2 + 3 * mpmath.exp(mpmath.mpf("0.75") * -4))
        word = int(mpmath.floor(share * 2**64))
    scores = np.tile([3, 7], (2, 1))
    assert mechanism.randomize(scores, Words(word - 1, word + 1)).tolist() == [0.0, 1.0]


def test_every_row_gets_its_own_choice() -> None:
    mechanism = Exponential(epsilon=1.0, prior=(1, 1))
    far = 10**9  # the worse candidate weighs e^{-10^9/2}
    scores = np.array([[far, 0], [0, far], [far, 0], [3 * far, 2 * far]])
    assert mechanism.randomize(scores, SimulationSource(0)).tolist() == [1, 0, 1, 1]


def test_a_prior_is_kept_as_it_was_checked() -> None:
    given = [1, np.int64(2)]
    mechanism = Exponential(epsilon=1.0, prior=given)  # type: ignore[arg-type]
    given[0] = 100
    assert mechanism.prior == (1, 2)
    assert hash(mechanism) == hash(Exponential(epsilon=1.0, prior=(1, 2)))


def test_reach_is_measured_along_the_axes() -> None:
    difference = np.array([1.0, -2.0])
    one = AdditiveLaplace(epsilon=1.0, sensitivity=1.0, axes=(2.0, 0.5))
    two = EllipsoidLaplace(epsilon=1.0, sensitivity=1.0, axes=(2.0, 0.5))
    assert one.reach(difference) == 0.5 + 4
    assert two.reach(difference) == pytest.approx(math.sqrt(0.25 + 16))


@pytest.mark.parametrize("kind", [AdditiveLaplace, EllipsoidLaplace])
def test_noise_that_could_not_pay_for_rounding_is_refused(kind: type) -> None:
    with pytest.raises(InvalidParameter, match="rounding"):
        _ = kind(epsilon=1e-6, sensitivity=1.0, axes=(1.0,) * 1000).scales


def test_blocks_pay_for_rounding_exactly() -> None:
    """S² Σ 1/s_b² = (ε - r Σ √|b| / steps)², as the shares' squares add up to 1."""
    noise = EllipsoidLaplace(epsilon=0.7, sensitivity=3.0, axes=(1.0,) * 5 + (0.01,) * 4)
    sizes = [stop - start for start, stop in noise.blocks]
    assert len(sizes) > 1
    left = 3.0 * math.sqrt((1 / noise.block_scales**2).sum())
    charged = 2 * sum(math.sqrt(size) for size in sizes) / (1 << 20)
    assert 0.7 - left == pytest.approx(charged, rel=1e-9)


def test_blocks_are_never_longer_than_what_is_cheap_to_draw() -> None:
    assert max(stop - start for start, stop in best_blocks((1.0,) * 40)) == 12


@pytest.mark.parametrize("size", [1, 9, 100])
def test_gaussian_noise_pays_for_rounding_exactly(size: int) -> None:
    """σ μ = S + r √J σ/2^24, and next to nothing for what the lattice itself may tell."""
    noise = Gaussian(mu=0.5, sensitivity=3.0, axes=(2.0,) * size)
    charged = 2 * math.sqrt(size) / (1 << 24)
    paid = 0.5 - 3.0 * 2.0 / noise.scales[0]
    assert charged < paid < charged * (1 + 1e-4)


def test_only_one_number_is_priced_as_laplace_noise() -> None:
    assert Laplace(epsilon=0.5).event == LaplaceEvent(ratio=0.5)
    assert Laplace(epsilon=0.5, dimension=2).event == PureEvent(epsilon=0.5)


@pytest.mark.parametrize("dimension", [1, 3, 50])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 7.0])
def test_a_scale_has_a_million_lattice_steps(epsilon: float, dimension: int) -> None:
    noise = Laplace(epsilon=epsilon, dimension=dimension)
    assert 1 << 20 <= 2 * dimension / epsilon / noise.step < 1 << 21


@pytest.mark.parametrize(
    "parts", [(), (Laplace(epsilon=1.0), 3), (RandomizedResponse(epsilon=1e308),) * 2]
)
def test_only_randomizers_are_joined(parts: tuple[Mechanism, ...]) -> None:
    with pytest.raises(InvalidParameter):
        Joined(parts=parts)


@pytest.mark.parametrize(
    "wrong",
    [
        {"part": 3}, {"part": CategoricalResponse(epsilon=1.0)}, {"times": 0},
        {"times": (1 << 16) + 1},
    ],
)  # fmt: skip
def test_only_vectors_are_repeated(wrong: dict[str, object]) -> None:
    right = {"part": Laplace(epsilon=1.0, dimension=2), "times": 3}
    assert Repeated(**right).epsilon == 3.0  # type: ignore[arg-type]
    assert Repeated(**(right | {"times": 1 << 16})).times == 1 << 16  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Repeated(**(right | wrong))  # type: ignore[arg-type]


def test_a_budget_decides_the_noise() -> None:
    pure, both = Cost(epsilon=1.0), Cost(epsilon=1.0, delta=1e-6)
    assert isinstance(l2_noise(pure, sensitivity=1.0, axes=np.ones(2)), EllipsoidLaplace)
    assert isinstance(l2_noise(both, sensitivity=1.0, axes=np.ones(2)), Gaussian)
    assert isinstance(l1_noise(pure, sensitivity=1.0, axes=np.ones(2)), AdditiveLaplace)


TAKES_EPSILON = [
    example
    for kind in Mechanism.members().values()
    for example in kind.examples()
    if kind.__dataclass_fields__["epsilon"].init
]


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 9e-7, math.nan, math.inf])
@pytest.mark.parametrize("example", TAKES_EPSILON, ids=lambda example: example.name)
def test_every_mechanism_refuses_an_epsilon_that_is_none(
    example: Mechanism, epsilon: float
) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        replace(example, epsilon=epsilon)


BOXES = [kind for kind in Mechanism.members().values() if issubclass(kind, BoxMechanism)]


@pytest.mark.parametrize("dimension", [0, -1, 1.5, True])
def test_boxes_have_a_whole_dimension(dimension: object) -> None:
    assert BOXES
    for kind in BOXES:
        with pytest.raises(InvalidParameter, match="dimension"):
            kind(epsilon=1.0, dimension=dimension)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", BOXES)
def test_what_lies_outside_of_the_box_is_refused_or_moved_to_its_face(
    kind: type[BoxMechanism], epsilon: float
) -> None:
    mechanism = kind(epsilon=epsilon, dimension=3)
    inside, outside = [[1.0, -1.0, 0.25]] * 50, [[1.5, -np.pi, 0.25]] * 50
    with pytest.raises(InvalidData, match="inside"):
        mechanism.randomize(outside, SimulationSource(0))
    moved = mechanism.randomize(outside, SimulationSource(0), clip=True)
    np.testing.assert_array_equal(moved, mechanism.randomize(inside, SimulationSource(0)))


def test_all_answers_are_told_or_none() -> None:
    """The last word of the truth, and the first one with which every answer is thrown anew."""
    response = QuestionResponse(epsilon=2.0, questions=3)
    extra, threes = response._weights[1], [[1.0, 1.0, -1.0]] * 2
    assert response.event == RandomizedResponseEvent(epsilon=2.0, categories=8)
    signs = 0b10110000  # of the first octet: the leading three bits belong to the first row
    reports = response.randomize(threes, Words(extra - 1, extra, signs))
    assert reports.tolist() == [[1, 1, -1], [1, -1, -1]]
    for wrong in ([[1.0, 1.0]], [[1.0] * 4], [1.0] * 3):
        with pytest.raises(InvalidData, match="3 columns"):
            response.randomize(wrong, SimulationSource(0))


@pytest.mark.parametrize("questions", [0, 31, 1.5, True])
def test_questions_are_counted(questions: object) -> None:
    assert QuestionResponse(epsilon=1.0, questions=30).questions == 30
    with pytest.raises(InvalidParameter, match="questions"):
        QuestionResponse(epsilon=1.0, questions=questions)  # type: ignore[arg-type]


def test_mechanisms_of_mechanisms_are_read_from_json() -> None:
    label, curve = RandomizedResponse(epsilon=0.5), Laplace(epsilon=1.0, dimension=2)
    joined = Joined(parts=[curve.to_dict(), label.to_dict()])  # type: ignore[arg-type]
    assert joined.parts == (curve, label)
    assert joined == Joined(parts=(curve, label))
    repeated = Repeated(part=curve.to_dict(), times=3)  # type: ignore[arg-type]
    assert repeated.part == curve
    assert repeated.randomize(np.zeros((4, 6)), SimulationSource(0)).shape == (4, 6)
    for columns in (3, 5, 12):
        with pytest.raises(InvalidData, match="6 columns"):
            repeated.randomize(np.zeros((4, columns)), SimulationSource(0))
