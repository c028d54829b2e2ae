"""Numbers at the ends of their ranges: no lattice of zeros, no lost square, no sum that wraps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from site_studies import half

from dpfda import PrivateDensity
from dpfda.central.cell_queries import NearestMean, cell_sensitivity
from dpfda.central.queries import BallMean
from dpfda.checks import load_all
from dpfda.checks.magnitudes import real_fields
from dpfda.errors import DpfdaError, InvalidParameter, ProtocolError
from dpfda.mechanisms.additive import AdditiveLaplace, Gaussian
from dpfda.mechanisms.ellipsoid_laplace import EllipsoidLaplace
from dpfda.noise import SimulationSource
from dpfda.privacy.cost import Cost
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import compose
from dpfda.protocol.holder import Curator, Stream
from dpfda.protocol.query import AdditiveQuery, Query
from dpfda.protocol.secure_sum import Identity, Member, Terms
from dpfda.protocol.site import Site

load_all()
BOX: dict[str, Any] = {"low": np.zeros(1), "high": np.ones(1), "along": 2}
GAUSSIAN = Cost(epsilon=0.1, delta=1e-6)


@pytest.mark.parametrize("size", [5e-324, 1e-316, 1e-300, 1e-200, 1e-140])
def test_features_too_small_for_a_lattice_are_refused(size: float) -> None:
    """The sign of a zero on a lattice of step 0 told whether anybody is in a cell."""
    features = np.array([[0.0] * 200, [size] * 200])
    with pytest.raises(InvalidParameter, match="features must be 2 rows of which two differ"):
        NearestMean(cost=Cost(epsilon=0.001), n=10**6, **BOX, features=features, axes=np.ones(200))


def test_small_features_get_the_noise_of_large_ones() -> None:
    """The same question in other units has the same answer in these units, bit by bit."""
    features = np.array([[0.0, 1.0], [1.0, 0.25]])
    points = np.array([[0.0], [1.0], [1.0]])
    answers = []
    for k in (0, -250, 150):
        look = NearestMean(
            cost=GAUSSIAN, n=3, **BOX, features=np.ldexp(features, k), axes=np.ones(2)
        )
        answer = look.answer((points,), SimulationSource(1))
        answers.append(np.ldexp(answer.values, -k).tolist())
    assert answers[0] == answers[1] == answers[2]


def test_squares_of_gaps_are_not_lost() -> None:
    """The stated sensitivity was 370 times too small: squares of 1e-162 are 1e-324."""
    size = 300_000
    features, axes = np.array([[0.0] * size, [1e-112] * size]), np.full(size, 1e50)
    found = cell_sensitivity(features, axes, gaussian=True)
    assert found == pytest.approx(1e-162 * math.sqrt(size), rel=1e-9, abs=0)
    with pytest.raises(InvalidParameter, match="features"):
        NearestMean(cost=GAUSSIAN, n=1000, **BOX, features=features, axes=axes)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("k", [-1000, -500, -100, 100, 500])
def test_widths_of_cells_scale_exactly(k: int, *, gaussian: bool) -> None:
    features, axes = np.random.default_rng(0).normal(size=(9, 4)), np.array([1.0, 0.3, 2.0, 7.0])
    plain = cell_sensitivity(features, axes, gaussian=gaussian)
    scaled = cell_sensitivity(np.ldexp(features, k), axes, gaussian=gaussian)
    assert scaled == math.ldexp(plain, k)


@pytest.mark.parametrize("kind", [AdditiveLaplace, EllipsoidLaplace, Gaussian])
@pytest.mark.parametrize(
    ("sensitivity", "axes"),
    [
        (5e-324, (1.0,)), (2e-320, (1.0,)), (1e-290, (1.0,)), (1e-151, (1.0,)), (1e141, (1.0,)),
        (1.7e308, (1.0,)), (1.0, (1.0, 1e-151)), (1.0, (1e200,)), (1e-100, (1e-100,)),
        (1e100, (1e100,)), (1e-310, (1e170,)), (1e-100, (1.0, 1e-130)), (1e100, (1.0, 1e70)),
    ],
)  # fmt: skip
def test_noise_off_the_range_of_floats_is_refused(
    kind: Any, sensitivity: float, axes: tuple[float, ...]
) -> None:
    budget = {"mu": 1.0} if kind is Gaussian else {"epsilon": 1.0}
    with pytest.raises(InvalidParameter, match="choose other units of the data"):
        kind(sensitivity=sensitivity, axes=axes, **budget)


def site(rows: np.ndarray, query: Query) -> Site:
    keys = {name: Identity() for name in ("north", "south", "east")}
    terms = Terms(
        study="s",
        coordinator=Identity().public,
        roster=tuple((name, key.public) for name, key in keys.items()),
    )
    member = Member("north", keys["north"], terms)
    ledger = Ledger(1.0, limit_delta=1e-4)
    return Site((rows,), member=member, most=compose([query.event]), ledger=ledger)


def ball(n: int, cost: Cost = GAUSSIAN) -> BallMean:
    return BallMean(cost=cost, n=n, center=np.zeros(1), axes=np.ones(1), radius=1.0)


def test_a_site_refuses_a_question_about_fewer_records_than_it_has() -> None:
    """Two were announced to a site of 2^23: its sum wrapped, and one record moved it by 2^23."""
    for value in (1.0, 0.5, np.nan, 1e308):
        rows = np.broadcast_to(1.0, (1 << 23, 1)).copy()
        rows[0] = value
        holder = site(rows, ball(2))
        with pytest.raises(ProtocolError, match="ball_mean announces 2 records"):
            holder.answer(ball(2), number=0)
        assert holder._ledger.entries == ()  # type: ignore[union-attr]
        assert not holder.member.account.stages
    few = site(np.ones((20, 1)), ball(60))
    assert few.answer(ball(60), number=0).n == 20  # a part of all
    assert site(np.ones((60, 1)), ball(60)).answer(ball(60), number=0).n == 60


ADDITIVE = [
    (query, f"{name} {number}")
    for name, member in Query.members().items()
    for number, query in enumerate(member.examples())
    if isinstance(query, AdditiveQuery)
]


@pytest.mark.parametrize("query", [q for q, _ in ADDITIVE], ids=[name for _, name in ADDITIVE])
def test_more_records_than_sums_have_room_for_are_refused_before_spending(
    query: AdditiveQuery,
) -> None:
    room = (1 << 63) // query.largest
    for n in (room, room + 1, 1 << 63):
        with pytest.raises(DpfdaError):
            query.count(n)
        with pytest.raises(DpfdaError):
            query.count(n, part=True)
    ledger = Ledger(20.0, limit_delta=0.5)
    stream = Stream(most=compose([query.event]), unit=query.unit, ledger=ledger,
                    accepts=query.assumptions, source=SimulationSource(0))  # fmt: skip
    stream.open(query)
    stream.add(query.trial(np.random.default_rng(0)))
    stream._n = room  # as many chunks
    with pytest.raises(DpfdaError):
        stream.answer(query, number=0)
    assert ledger.entries == ()


def test_a_look_about_any_number_of_records_has_room_for_so_many_only() -> None:
    look = half()  # announces no number; a record adds up to 2^20
    look.count(1 << 28)
    faint = replace(look, cost=Cost(epsilon=1e-5, delta=1e-6))
    faint.count((1 << 43) - 1)
    for part in (False, True):
        with pytest.raises(ProtocolError, match="takes at most 8796093022207 records"):
            faint.count(1 << 43, part=part)
        with pytest.raises(ProtocolError, match=r"too fine .* choose a smaller epsilon"):
            look.count((1 << 43) - 1, part=part)


def test_noise_too_fine_for_so_many_records_is_refused() -> None:
    """Counts were cut off at 2^51 steps without a word: densities with ε = 1e8 were flat."""
    points, ledger = np.random.default_rng(0).beta(2, 5, size=(3000, 1)), Ledger(1e9)
    known: dict[str, Any] = {"feature_ranges": (0, 1), "random_state": 0}
    right = PrivateDensity(1e4, **known).fit(points)
    assert 2 < right.release_.values().max() < 3  # 2.46
    with pytest.raises(ProtocolError, match=r"cell_counts is too fine .* a smaller epsilon"):
        PrivateDensity(1e8, ledger=ledger, **known).fit(points)
    assert ledger.entries == ()


def test_targets_at_their_bound_do_not_wrap() -> None:
    """2^27 targets at the bound were accepted; the sum of their squares is 2^63."""
    looks = [query for query, name in ADDITIVE if name.startswith("regression_location")]
    for look in looks:
        far = np.full((1, look.columns[0]), 1e9), np.full(1, 1e9)
        most = int(np.abs(look.sums(far)).max())
        assert most == look.largest == 1 << 36
        with pytest.raises(DpfdaError):
            look.count(1 << 27)
        look.count((1 << 27) - 1)


def test_what_is_refused_is_refused_alike_for_all_data() -> None:
    look = ball(3, Cost(epsilon=1e300))  # noise below the range of floats
    words = set()
    for value in (0.0, 1.0, np.nan, 1e308):
        ledger = Ledger(1.0)
        holder = Curator((np.full((3, 1), value),), most=compose([]), ledger=ledger)
        with pytest.raises(InvalidParameter) as refusal:
            holder.answer(look, number=0)
        words.add(str(refusal.value))
        assert ledger.entries == ()
    assert len(words) == 1


def test_every_real_number_of_a_query_is_reached() -> None:
    names = {path[-1] for query, _ in ADDITIVE for path, _ in real_fields(query)}
    assert {"features", "axes", "radius", "bound", "psi", "theta", "linear_weight"} <= names
    assert {"length", "target_radius"} <= names  # of parts
