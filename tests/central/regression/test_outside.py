"""Rows beyond their public ranges: counted, and otherwise as good as rows at the end of them."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpfda.estimators.central_base as curated
from dpfda import PrivateCurveClassifier, PrivateLinearRegression, PrivateLogisticRegression
from dpfda.central.regression.base import RegressionMechanism
from dpfda.central.regression.queries import OutsideCount
from dpfda.curves.ranges import PublicColumns
from dpfda.noise import SimulationSource
from dpfda.privacy.events import GaussianEvent
from dpfda.protocol.query import AdditiveQuery, Records

RNG = np.random.default_rng(5)
RANGES = [(20.1, 80.7), (-3.3, 0.1), (1e9, 1e9 + 1)]  # the last: far from 0 beside its width
LOW, HIGH = np.array(RANGES).T
INSIDE = RNG.uniform(LOW, HIGH, size=(64, 3))
BEYOND = RNG.uniform(size=INSIDE.shape) < 0.2
FAR = np.where(BEYOND, np.where(RNG.uniform(size=INSIDE.shape) < 0.5, -1e300, 1e300), INSIDE)
END = np.clip(FAR, LOW, HIGH)
AT_ENDS = RNG.uniform(-0.5, 0.5, size=64)
AT_ENDS[:9] = [-0.5, 0.5] * 4 + [0.5]
TARGETS = np.where(np.arange(64) < 9, np.copysign(1e300, AT_ENDS), AT_ENDS)

Seen = list[tuple[Any, Records]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Queries of fits, each with the records that were asked."""
    found: Seen = []
    asked = curated.curate

    def spy(conversation: Any, records: Records, **more: Any) -> Any:
        result, curator = asked(conversation, records, **more)
        found.extend((exchange.query, records) for exchange in curator.transcript)
        return result, curator

    monkeypatch.setattr(curated, "curate", spy)
    return found


def line(name: str, intercept: bool) -> Any:
    return PrivateLinearRegression(
        1.0, mechanism=name, feature_ranges=RANGES, target_range=(-0.5, 0.5), random_state=0,
        fit_intercept=intercept,
    )  # fmt: skip


def classes(name: str, intercept: bool) -> Any:
    return PrivateLogisticRegression(
        1.0, mechanism=name, feature_ranges=RANGES, classes=(0, 1), random_state=0,
        fit_intercept=intercept,
    )  # fmt: skip


def fitted(model: Any, rows: Any, targets: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, targets)


def labels(targets: Any) -> Any:
    return (targets > 0).astype(int)


CASES = [
    pytest.param(make, name, intercept, id=f"{make.__name__}-{name}-{intercept}")
    for name in sorted(RegressionMechanism.members())
    for make in (line, classes)
    for intercept in (True, False)
]


def given(make: Callable[..., Any], targets: Any) -> Any:
    return targets if make is line else labels(targets)


@pytest.mark.parametrize(("make", "name", "intercept"), CASES)
def test_rows_beyond_are_rows_at_the_end(
    seen: Seen, make: Callable[..., Any], name: str, intercept: bool
) -> None:
    """Bit by bit, in everything that is asked but the count."""
    far = fitted(make(name, intercept), FAR, given(make, TARGETS))
    there = len(seen)
    end = fitted(make(name, intercept), END, given(make, AT_ENDS))
    assert np.array_equal(far.coef_, end.coef_)
    for (query, records), (same, others) in zip(seen[:there], seen[there:], strict=True):
        assert type(query) is type(same)
        assert np.array_equal(records[0], others[0])
        assert np.array_equal(records[1], others[1])
        assert np.abs(records[0]).max() <= 1
        assert set(np.abs(records[1][:9])) == ({0.5} if make is line else {0.0, 1.0})
        if isinstance(query, OutsideCount):
            moved = BEYOND.any(axis=1) | ((np.arange(64) < 9) & (make is line))
            assert query.sums(query.fitting(records)).tolist() == [moved.sum()]
            assert query.sums(query.fitting(others)).tolist() == [0]
        else:
            answers = [
                one.exact(one.fitting(rows), SimulationSource(1))
                for one, rows in ((query, records), (same, others))
            ]
            assert np.array_equal(*answers)


@pytest.mark.parametrize(("make", "name", "intercept"), CASES)
def test_no_row_weighs_more_than_its_sensitivity(
    seen: Seen, make: Callable[..., Any], name: str, intercept: bool
) -> None:
    """Every pair of extreme rows, given to the queries without being read first."""
    fitted(make(name, intercept), END, given(make, AT_ENDS))
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    steps = [0.0, 0.5, 1.0, 1 + 1e-15, 1 + 1e-9, 1.5, 1e60]
    rows = np.concatenate([corners * step for step in steps] + [np.eye(3) * 2, -np.eye(3) * 2])
    ends = np.array([-1e60, -0.5 - 1e-9, -0.5, 0.0, 0.5, 0.5 + 1e-9, 1.0, 1e60])
    every = np.repeat(rows, len(ends), axis=0), np.tile(ends, len(rows))
    for query, _ in seen:
        if isinstance(query, OutsideCount) or not isinstance(query, AdditiveQuery):
            continue
        parts = [
            query.fitting((every[0][i : i + 1], every[1][i : i + 1])) for i in range(len(every[0]))
        ]
        alone = np.array([query.statistic(query.sums(one)) for one in parts])
        gaps = alone[:, None] - alone[None]
        gaussian = isinstance(query.event, GaussianEvent)
        size = np.sqrt((gaps**2).sum(axis=2)) if gaussian else np.abs(gaps).sum(axis=2)
        assert size.max() <= (query.l2 if gaussian else query.l1)


def test_several_classes(seen: Seen) -> None:
    """Whoever counts nobody reads the same rows."""
    three = np.arange(64) % 3
    for rows in (FAR, END):
        model = PrivateCurveClassifier(
            1.0, feature_ranges=RANGES, classes=(0, 1, 2), random_state=0
        )
        fitted(model, rows, three)
    half = len(seen) // 2
    for (_, records), (_, others) in zip(seen[:half], seen[half:], strict=True):
        assert len(records) == 1
        assert np.array_equal(records[0], others[0])
        assert np.abs(records[0][:, :3]).max() <= 1


@pytest.mark.parametrize("mixed", [False, True])
def test_marks_of_a_table(mixed: bool) -> None:
    """As numbers at once, and column by column."""
    ranges: dict[Any, Any] = {0: (0.1, 0.7), 1: (1e15, 1e15 + 1)}
    rows: Any = np.array([[0.1, 1e15], [0.7, 1e15 + 1], [0.1 - 1e-16, 1e15], [0.5, 1e15 - 0.125]])
    if mixed:
        ranges[2] = ["a", "b"]
        rows = [[*row, mark] for row, mark in zip(rows.tolist(), "abxa", strict=True)]
    table = PublicColumns.of(ranges)
    found, outside = table.read_and_mark(rows)
    assert outside.tolist() == [False, False, True, True]
    assert np.array_equal(found, table.read(rows))
    assert (found >= table.low).all()
    assert (found <= table.high).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_targets_at_an_end_are_inside(seen: Seen, intercept: bool) -> None:
    """However the middle of their range is rounded; a line through 0 reaches as far below 0."""
    model = line("moments", intercept)
    model.target_range = (0.1, 0.7)
    least = 0.1 if intercept else -0.7
    targets = np.array([least, 0.7, 0.7 + 1e-15, least - 1e-15] * 16)
    fitted(model, END, targets)
    query, records = seen[0]
    assert isinstance(query, OutsideCount)
    assert records[2].tolist() == [False, False, True, True] * 16
    assert records[1].tolist() == [least, 0.7, 0.7, least] * 16
