"""Points are told by their cell alone, targets by their clipped value: shapes, places, widths."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dpfda.central import cell_queries
from dpfda.central.cell_queries import CellCounts, NearestMean, cell_sensitivity
from dpfda.central.kernel_machine import KernelMachine
from dpfda.errors import InvalidParameter
from dpfda.privacy.cost import Cost

COST = Cost(epsilon=1.0)


def counts(**other: object) -> CellCounts:
    box = {"low": np.array([0.0, -2.0]), "high": np.array([1.0, 2.0]), "along": 4}
    return CellCounts(cost=COST, n=6, **(box | other))  # type: ignore[arg-type]


def nearest(**other: object) -> NearestMean:
    given: dict[str, object] = {
        "low": np.array([-1.0]),
        "high": np.array([3.0]),
        "along": 5,
        "features": np.arange(10.0).reshape(5, 2) ** 2,
        "axes": np.array([1.0, 0.5]),
    }
    return NearestMean(cost=COST, n=6, **(given | other))  # type: ignore[arg-type]


def test_equal_cells_and_nearest_points() -> None:
    points = np.array([[0.0, -2.0], [0.99, 1.99], [1.0, 2.0], [0.26, 0.1], [7.0, -9.0]])
    assert counts().cells.places(points).tolist() == [0, 15, 15, 6, 12]
    line = np.array([[-1.0], [-0.51], [-0.49], [1.4], [2.51], [9.0]])
    assert nearest().cells.places(line).tolist() == [0, 0, 1, 2, 4, 4]


def test_points_outside_of_the_box_are_one_count() -> None:
    """In the box, ends included, each point is in its cell; outside, in no cell."""
    points = np.array([[0.0, -2.0], [1.0, 2.0], [1.1, 0.0], [0.5, -2.1], [-9.0, 9.0], [0.26, 0.1]])
    summed = counts().summed
    totals = np.asarray(summed.block((points,)))
    assert totals.sum() == len(points)
    assert {place: totals[place] for place in np.flatnonzero(totals)} == {0: 1, 6: 1, 15: 1, 16: 3}
    moved = points.copy()
    moved[0] = 5.0
    assert np.abs(np.asarray(summed.block((moved,))) - totals).sum() == 2


@pytest.mark.parametrize(
    "wrong",
    [{"low": np.array([0.0, 2.0])}, {"along": 129}, {"along": 1}],
    ids=["empty box", "too many cells", "one cell"],
)
def test_boxes_that_are_none_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        counts(**wrong)
    assert counts(along=128).cells.size == 1 << 14


@pytest.mark.parametrize("features", [np.zeros((5, 2)), np.eye(4, 2), np.eye(6, 2)])
def test_features_fit_the_cells_and_differ(features: np.ndarray) -> None:
    with pytest.raises(InvalidParameter, match="features"):
        nearest(features=features)


@pytest.mark.parametrize("gaussian", [False, True])
def test_the_widest_pair_is_found_in_parts_too(
    monkeypatch: pytest.MonkeyPatch, *, gaussian: bool
) -> None:
    rng = np.random.default_rng(0)
    features, axes = rng.normal(size=(17, 3)), np.array([1.0, 0.3, 2.0])
    gaps = [np.abs(one - two) / axes for one, two in combinations(features, 2)]
    expected = max(math.sqrt((gap**2).sum()) if gaussian else gap.sum() for gap in gaps)
    for work in (1 << 24, 51 * 4, 1):
        monkeypatch.setattr(cell_queries, "_MOST_WORK", work)
        assert cell_sensitivity(features, axes, gaussian=gaussian) == pytest.approx(expected)


def test_sums_are_rounded_inside_the_sensitivity() -> None:
    look = nearest()
    assert look.widest / 6 < look.mechanism.sensitivity < look.widest / 6 * (1 + 2e-12)


@pytest.mark.parametrize("query", KernelMachine.examples(), ids=lambda query: query.loss)
def test_targets_count_up_to_their_bound_alone(query: KernelMachine) -> None:
    points = np.stack([query.low, query.high])
    bound = query.target_bound
    for far in (10.0, 1e6):
        given = query.block((points, np.array([far, -far]) * bound))
        assert np.array_equal(given, query.block((points, np.array([bound, -bound]))))


@pytest.mark.parametrize("query", KernelMachine.examples(), ids=lambda query: query.loss)
def test_a_penalty_that_is_none_is_refused(query: KernelMachine) -> None:
    with pytest.raises(InvalidParameter, match="psi"):
        replace(query, psi=1e-12 * query.space.kappa**2)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("pair", [(0, 1), (0, 599), (3, 400), (598, 599)])
def test_the_two_cells_that_differ_most_may_be_in_any_blocks(
    pair: tuple[int, int], gaussian: bool
) -> None:
    """600 cells of 40 features are compared in more than a hundred blocks."""
    features = np.random.default_rng(0).uniform(-1, 1, (600, 40))
    features[pair[0]], features[pair[1]] = 2.0, -2.0
    truth = 4 * np.sqrt(40) if gaussian else 160.0
    assert cell_sensitivity(features, np.ones(40), gaussian=gaussian) == pytest.approx(truth)
