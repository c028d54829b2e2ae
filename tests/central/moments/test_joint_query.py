"""The joint look: how far a person moves it, what it sums, and who gets which share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpfda.central.ball_search import candidates
from dpfda.central.functions import as_grid, spline_basis
from dpfda.central.moments.discriminant import Discriminant
from dpfda.central.moments.moment_query import WEIGHTS, JointMoments
from dpfda.central.moments.moments_release import FOR_BANDS, FOR_MOMENTS, FOR_TESTS, MomentsRelease
from dpfda.central.queries import BallMean
from dpfda.checks.conversations import Rehearsal
from dpfda.errors import InvalidParameter
from dpfda.estimators.private_group_comparison import PrivateGroupComparison
from dpfda.estimators.private_moments import PrivateMoments
from dpfda.noise import SimulationSource
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import converse
from dpfda.protocol.query import Answer

N, BASIS = 8, spline_basis(as_grid(np.linspace(0, 1, 12)), size=12)
AXES = np.arange(1, 4) ** -0.5


def look(**given: Any) -> JointMoments:
    asked: dict[str, Any] = {
        "cost": Cost(epsilon=1.0, delta=1e-5),
        "n": N,
        "center": np.array([0.5, 0.0, -0.25]),
        "axes": AXES,
        "radius": 2.0,
        "groups": 1,
        "second": 2,
        "separate": False,
        "emphasis": "means",
    }
    return JointMoments(**(asked | given))


def people(groups: int = 1, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(N, 3))
    return rows if groups == 1 else np.column_stack([rows, np.arange(N) % groups])


def unit(rows: np.ndarray) -> np.ndarray:
    """Residuals of the look above, by hand."""
    u = (rows[:, :3] - [0.5, 0.0, -0.25]) / AXES / 2.0
    return u / np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1.0)


def exact(asked: JointMoments, rows: np.ndarray) -> np.ndarray:
    return asked.exact((rows,), SimulationSource(0)) / asked.noise_axes


@pytest.mark.parametrize(
    ("emphasis", "squared"), [("means", 4.0), ("covariances", 4.5), ("differences", 4.0)]
)
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_a_person_moves_it_as_far_as_the_proof_says(
    emphasis: str, squared: float, groups: int
) -> None:
    assert look(emphasis=emphasis, groups=groups).mechanism.sensitivity == np.sqrt(squared) / N


def test_second_moments_and_sizes_ride_on_a_mean_for_nothing() -> None:
    place = {"unit": "person", "n": N, "center": np.zeros(3), "axes": AXES}
    alone = BallMean(cost=Cost(epsilon=1.0, delta=1e-5), **place, radius=1.0)
    assert look(groups=3, separate=True).mechanism.sensitivity == (alone.mechanism.sensitivity)


def test_what_is_summed_with_one_group() -> None:
    rows = people()
    rows[0] *= 30  # clipped
    u = unit(rows)
    assert np.linalg.norm(u[0]) == pytest.approx(1.0)
    w = WEIGHTS["means"].second
    found = exact(look(), rows)
    assert found[:3] == pytest.approx(u.mean(axis=0), abs=1e-9)
    squares, cross = w * (u[:, :2] ** 2).mean(axis=0), w * np.sqrt(2) * (u[:, 0] * u[:, 1]).mean()
    assert found[3:6] == pytest.approx([squares[0], cross, squares[1]], abs=1e-9)
    assert found[6] == pytest.approx(w * (u[:, 2] ** 2).mean(), abs=1e-9)
    assert len(found) == look().size == 7


@pytest.mark.parametrize("separate", [False, True])
def test_what_is_summed_with_groups(separate: bool) -> None:
    rows, asked = people(groups=2), look(groups=2, separate=separate)
    u, weights = unit(rows), WEIGHTS["means"]
    found = exact(asked, rows)
    table = found[:8].reshape(2, 4)
    for group in (0, 1):
        own = u[group::2]
        assert table[group, :3] == pytest.approx(own.sum(axis=0) / N, abs=1e-9)
        assert table[group, 3] == pytest.approx(weights.size(2) * len(own) / N, abs=1e-9)
    rest = weights.second * u[:, 2] ** 2
    wanted = [rest[0::2].sum(), rest[1::2].sum()] if separate else [rest.sum()]
    assert found[8:].reshape(-1, 4)[:, -1] == pytest.approx(np.array(wanted) / N, abs=1e-9)


@pytest.mark.parametrize("groups", [2, 3])
def test_differences_of_groups_are_mixed_from_their_sums(groups: int) -> None:
    rows = people(groups=groups)
    plain, mixed = (
        look(groups=groups, separate=True, emphasis=one) for one in ("means", "differences")
    )
    here, there = (exact(one, rows)[: 4 * groups].reshape(groups, 4) for one in (plain, mixed))
    sums, found = here[:, :3], there[:, :3]
    mean = sums.mean(axis=0)
    own, common = np.sqrt((groups - 0.5) / (groups - 1)), np.sqrt(0.5)
    assert found == pytest.approx(own * (sums - mean) + common * mean, abs=1e-9)
    assert found.sum(axis=0) == pytest.approx(common * sums.sum(axis=0), abs=1e-9)
    weights = WEIGHTS["differences"]
    product = abs(0.5 - own**2) / groups
    assert weights.size(groups) ** 2 == pytest.approx(1 - product - 0.35)
    assert WEIGHTS["means"].size(groups) ** 2 == pytest.approx(0.5)
    assert WEIGHTS["covariances"].size(groups) ** 2 == pytest.approx(0.25)
    table = np.random.default_rng(1).normal(size=(5, mixed.size))
    assert mixed.mixed(mixed.mixed(table), back=True) == pytest.approx(table)
    assert np.array_equal(mixed.mixed(table)[:, 4 * groups :], table[:, 4 * groups :])


def test_a_group_that_is_none_is_one_of_them() -> None:
    asked = look(groups=2)
    rows = people(groups=2)
    for odd, meant in ((-7.0, 0.0), (0.4, 0.0), (0.6, 1.0), (99.0, 1.0)):
        rows[0, 3] = odd
        got = exact(asked, rows)
        rows[0, 3] = meant
        assert got == pytest.approx(exact(asked, rows), abs=0)


def test_more_products_than_coefficients_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="second must be 3 at most, got 4"):
        look(second=4)
    assert look(second=3).size == 3 + 6 + 1


@pytest.mark.parametrize(("emphasis", "share"), [("means", 0.81), ("covariances", 0.36)])
def test_pure_noise_is_shared_between_the_parts(emphasis: str, share: float) -> None:
    asked = look(cost=Cost(epsilon=1.0), emphasis=emphasis, groups=2, separate=True)
    first = asked.shapes[0][0] * asked.shapes[0][1]
    scales = asked.mechanism.law.scales / asked.noise_axes  # S/(ε e_b), block by block
    starts = [start for start, _ in asked.mechanism.law.blocks]
    squares = (asked.mechanism.sensitivity / scales[starts]) ** 2
    assert squares.sum() == pytest.approx(1.0, rel=1e-3)
    means = sum(e for start, e in zip(starts, squares, strict=True) if start < first)
    assert means == pytest.approx(share, abs=0.06)  # a block may reach over the border


CLIPPING = {
    "moments": (FOR_MOMENTS, 0.2, 0.05, 1.25, 0.5),
    "tests": (FOR_TESTS, 0.1, 0.05, 1.0, 0.35),
    "bands": (FOR_BANDS, 0.15, 0.1, 1.5, 0.75),
}


@pytest.mark.parametrize("name", CLIPPING)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_what_is_asked_for_which_share(delta: float, name: str) -> None:
    clipping, first, search, widened, tilt = CLIPPING[name]
    # Pure: too few curves to search for a range that seems loose, as nobody is within a radius.
    n = 2000 if delta else 999
    asked = MomentsRelease(epsilon=1.0, delta=delta, n=n, bound=1.0, basis=BASIS, clipping=clipping)
    holder = Rehearsal(asked, n)
    moments = converse(asked, lambda query, number: holder.answer(query, number=number))
    queries: list[Any] = [exchange.query for exchange in holder.transcript]
    check, *rest = [float(query.cost.share) for query in queries]
    assert 0.01 <= check <= 0.05
    shares = [0.2, 0.15, 0.65]  # the search is as long as that of a mean, so that it is safe
    if delta:
        shares = [first, *[search / 6] * 6, 1 - first - search]
    assert rest == pytest.approx([(1 - check) * share for share in shares])
    joint = queries[-1]
    assert joint.to_dict() == moments.query.to_dict()
    # 45 coefficients would be worth it, 12 there are; 9 have products, 7 of fewer curves.
    assert (len(joint.center), joint.second) == (12, 9 if delta else 7)
    assert joint.axes == pytest.approx(np.arange(1, 13) ** -tilt)
    assert widened_by(holder.transcript) == pytest.approx(widened)
    assert replace(asked, n=100).sizes == ((10, 4) if delta else (8, 4))
    assert replace(asked, emphasis="covariances").sizes == (12, 12)
    long = spline_basis(as_grid(np.linspace(0, 1, 30)), size=30)
    assert replace(asked, emphasis="covariances", basis=long).sizes == (16, 16)


def widened_by(transcript: Any) -> float:
    """What the radius that was found was multiplied with; nobody lies within any radius here."""
    search, joint = transcript[-2:]
    steps = int(search.answer.values[0]) if search.query.name == "radius_choice" else 0
    return float(joint.query.radius / candidates(1.0, joint.query.axes)[steps])


def test_each_estimator_asks_in_its_way() -> None:
    rows = np.random.default_rng(0).normal(size=(600, 20))
    plain = PrivateMoments(1.0, value_range=(-4, 4), random_state=0).fit(rows).moments_.query
    assert plain.emphasis == "means"
    assert plain.axes == pytest.approx(FOR_MOMENTS.axes(len(plain.axes)))
    assert np.isclose(plain.radius, 1.25 * candidates(4.0, plain.axes)).any()
    told = PrivateMoments(1.0, value_range=(-4, 4), emphasis="covariances", random_state=0)
    look = told.fit(rows).moments_.query
    assert (look.emphasis, look.second, len(look.axes)) == ("covariances", 16, 16)
    assert np.isclose(look.radius, 0.7 * candidates(4.0, look.axes)).any()
    with pytest.raises(InvalidParameter, match="emphasis must be"):
        PrivateMoments(1.0, value_range=(-4, 4), emphasis="all").fit(rows)  # type: ignore[arg-type]
    compared = PrivateGroupComparison(1.0, value_range=(-4, 4), random_state=0)
    asked = compared.fit(rows, np.arange(600) % 2).moments_.query
    assert asked.emphasis == "differences"
    assert asked.axes == pytest.approx(FOR_TESTS.axes(len(asked.axes)))
    assert np.isclose(asked.radius, candidates(4.0, asked.axes)).any()
    discriminant = Discriminant(
        epsilon=1.0, delta=1e-5, n=2000, bound=1.0, groups=("a", "b", "c"), features=4
    )
    holder = Rehearsal(discriminant, 2000)
    converse(discriminant, lambda query, number: holder.answer(query, number=number))
    joint: Any = holder.transcript[-1].query
    assert widened_by(holder.transcript) == pytest.approx(0.5)
    assert joint.axes == pytest.approx(np.ones(4))


@pytest.mark.parametrize("n", [600, 4000, 10**6])
def test_a_search_leaves_outside_what_its_noise_could_hide(n: int) -> None:
    budget = Cost(epsilon=1.0, delta=1e-5)
    asked = MomentsRelease(epsilon=1.0, delta=1e-5, n=n, bound=1.0, basis=BASIS)
    check: Any = next(asked.questions())
    search = budget.rest(check.cost).part(0.05)
    wanted = np.clip(3 * np.sqrt(6) / (search.mu * n), 0.02, 0.5)
    # A count at the wanted share counts as enough, one below it does not.
    for share, enough in ((1 - wanted + 1e-6, True), (1 - wanted - 1e-6, False)):
        questions = asked.questions()
        check = next(questions)
        query: Any = questions.send(Answer(values=np.array([n]), n=n, law=check.mechanism.law))
        zeros = np.zeros(query.size)
        first: Any = questions.send(Answer(values=zeros, n=n, law=query.mechanism.law))
        second: Any = questions.send(
            Answer(values=np.array([share * n]), n=n, law=first.mechanism.law)
        )
        assert (second.radius < first.radius) is enough


def test_a_center_holds_what_stands_clearly_out_of_the_noise() -> None:
    asked = MomentsRelease(epsilon=1.0, delta=1e-5, n=4000, bound=1.0, basis=BASIS)
    for deviations, kept in ((1.3, 0.0), (10.0, 0.98)):
        questions = asked.questions()
        check: Any = next(questions)
        all_inside = Answer(values=np.array([4000.0]), n=4000, law=check.mechanism.law)
        query: Any = questions.send(all_inside)
        values = np.zeros(query.size)
        values[3] = deviations * np.sqrt(query.mechanism.law.variance[3])
        search: Any = questions.send(Answer(values=values, n=4000, law=query.mechanism.law))
        assert search.center[3] == pytest.approx(kept * values[3], abs=0.1 * values[3])
        assert np.all(np.delete(search.center, 3) == 0)
