"""Tables with named columns and categories, from public ranges to a vector in the box."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from dpfda import Ledger, Person
from dpfda.curves import CurveEncoder
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.protocol import Server, StudyPlan

RANGES = {"age": (20, 80), "sex": ["f", "m"]}
TABLE = CurveEncoder("identity", feature_ranges=RANGES)
ROWS = pd.DataFrame({"sex": ["m", "f", "?"], "other": 1, "age": [50, 95, 35]})
ENCODED = [[0, -1, 1], [1, 1, -1], [-0.5, -1, -1]]


def test_columns_by_name_categories_as_one_number_each() -> None:
    assert TABLE.encode(ROWS).tolist() == ENCODED
    assert TABLE.encode({"age": [50, 95, 35], "sex": ["m", "f", "?"]}).tolist() == ENCODED
    by_place = CurveEncoder("identity", feature_ranges=list(RANGES.values()))
    assert by_place.encode(ROWS[["age", "sex"]]).tolist() == ENCODED


def test_a_table_travels_as_json() -> None:
    again = CurveEncoder.from_dict(json.loads(json.dumps(TABLE.to_dict())))
    assert again == TABLE
    assert hash(again) == hash(TABLE)
    assert again.encode(ROWS).tolist() == ENCODED
    two = CurveEncoder("identity", feature_ranges={"smokes": {0, 1}})  # numbers may be categories
    assert CurveEncoder.from_dict(json.loads(json.dumps(two.to_dict()))).n_features == 2


def test_values_are_refused_by_a_curator_and_never_by_a_device() -> None:
    odd = pd.DataFrame({"age": [np.nan, "SECRET42", 50], "sex": [None, ["f"], "f"]})
    with pytest.raises(InvalidData) as refused:
        TABLE.encode(odd)
    assert "SECRET42" not in str(refused.value)
    assert TABLE.encode(odd, strict=False).tolist() == [[0, -1, -1], [0, -1, -1], [0, 1, -1]]
    for unusable in (None, 7.0, [[1.0]], {"age": [30]}, {}):
        encoded = TABLE.encode(unusable, strict=False)
        assert encoded.shape == (1, 3)
        assert np.all(np.abs(encoded) <= 1)


@pytest.mark.parametrize("bad", [ROWS[["age"]], ROWS.to_numpy()])
def test_columns_are_public_and_refused_for_everybody(bad: object) -> None:
    with pytest.raises(InvalidData, match=r"column|DataFrame"):
        TABLE.check_grid(bad)


@pytest.mark.parametrize(
    "change",
    [
        {"columns": [{"key": "age", "low": 1, "high": 0}]},
        {"columns": []},
        {"columns": [{"key": "age", "size": 3}]},
        {"named": True},
    ],
)
def test_a_forged_table_is_refused(change: dict[str, object]) -> None:
    data = TABLE.to_dict()
    data["table"] = (data["table"] | change) if "columns" in change else change
    with pytest.raises((InvalidParameter, InvalidData)):
        CurveEncoder.from_dict(data)


def test_a_person_holds_a_record() -> None:
    plan = StudyPlan(
        epsilon=1.0, n_people=2, encoder=TABLE, classes=("no", "yes"), design={"name": "moments"}
    )
    task = Server(plan).issue(1)
    for record in ({"age": 30, "sex": "f"}, {"age": None}, "nothing", ROWS[:1]):
        person = Person(plan, curve=record, label="yes", ledger=Ledger(1.0))
        assert person.answer(task).values.shape == (1, 3)


def test_ranges_say_how_many_columns_there_are() -> None:
    with pytest.raises(InvalidParameter, match="feature_ranges must be one pair for each of 3"):
        CurveEncoder("identity", n_basis=3, feature_ranges=[(0, 1)] * 2).fit([[0.0, 1.0]])
    with pytest.raises(InvalidParameter, match="feature_ranges"):
        CurveEncoder("bspline", feature_ranges=RANGES).fit([[0.0, 1.0]])


def test_a_missing_number_is_named_by_its_column() -> None:
    plain = PublicColumns.of([(0, 1), (0, 9)])
    with pytest.raises(InvalidData, match=r"X\['1'\] must be without missing"):
        plain.read(np.array([[0.5, np.nan]]))


def test_numbers_name_the_columns_of_an_array() -> None:
    table = PublicColumns.of({3: (0, 1), 1: ["u", "v"]})
    rows = np.array([["x", "u", 0, 0.5], ["y", "v", 0, 2.0]], dtype=object)
    wanted = [[0.5, 1.0, 0.0], [1.0, 0.0, 1.0]]
    assert table.read(rows).tolist() == wanted
    assert table.read(rows.tolist()).tolist() == wanted
    assert table.read(pd.DataFrame(rows, columns=list("abcd"))).tolist() == wanted
    assert PublicColumns.from_dict(table.to_dict()).read(rows).tolist() == wanted
    numbers = PublicColumns.of({2: (0, 1), 0: (0, 9)})
    assert numbers.read([[5.0, 7.0, 0.5]]).tolist() == [[0.5, 5.0]]
    with pytest.raises(InvalidData, match="3 columns or more"):
        numbers.read([[5.0, 7.0]])  # as many as there are ranges, but not those
    assert np.isnan(numbers.read([[5.0, 7.0]], strict=False)).all()
    with pytest.raises(InvalidData, match="3 columns or more"):
        PublicColumns.of({2: (0, 1), -1: (0, 9)}).read([[5.0, 7.0, 0.5]])


@pytest.mark.parametrize("ends", [(0.0, 1e-310), (-1e-316, 1e-316), (-1.7e308, 1.7e308)])
def test_ranges_whose_coefficients_are_no_numbers_are_refused(ends: tuple[float, float]) -> None:
    """Least squares released infinite coefficients for features in a range of 1e-310."""
    for ranges in (ends, [ends, (0.0, 1.0)], {"age": ends}):
        with pytest.raises(InvalidParameter, match=r"half of the range of .* from 1e-100 to 1e"):
            PublicColumns.of(ranges, width=2)
