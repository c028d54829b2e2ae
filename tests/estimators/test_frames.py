"""Frames of other libraries in `fit`, and refusals that say what to do about a table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpfda import Ledger, PrivateLinearRegression, PrivateMean
from dpfda.errors import BudgetExceeded, InvalidData

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": RNG.uniform(20, 80, 60), "sex": RNG.choice(["f", "m"], 60)})
Y = pd.Series(RNG.uniform(0, 10, 60))


def model(ranges: Any = None) -> PrivateLinearRegression:
    ranges = ranges or {"age": (20, 80), "sex": ("f", "m")}
    return PrivateLinearRegression(1.0, feature_ranges=ranges, target_range=(0, 10), random_state=0)


def frames() -> dict[str, Any]:
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    table = arrow.table({name: TABLE[name].tolist() for name in TABLE})
    return {
        "arrow": table,
        "lazy": polars.from_arrow(table).lazy(),
        "relation": duckdb.connect().from_arrow(table),
        "another index": TABLE.set_index(pd.Index(RNG.permutation(60) + 7)),
    }


@pytest.mark.parametrize("kind", ["arrow", "lazy", "relation", "another index"])
def test_every_frame_gives_the_same_bits(kind: str) -> None:
    expected = model().fit(TABLE, Y)
    given = frames()[kind]
    fitted = model().fit(given, Y)
    assert np.array_equal(fitted.coef_, expected.coef_)
    assert np.array_equal(fitted.predict(given), expected.predict(TABLE))


@pytest.mark.parametrize("kind", ["arrow", "lazy"])
def test_curves_come_in_such_frames_too(kind: str) -> None:
    arrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    curves = {str(t): RNG.uniform(0, 1, 30) for t in (0.0, 0.25, 1.0)}
    mean = PrivateMean(1.0, value_range=(0, 1), random_state=0)
    expected = mean.fit(pd.DataFrame(curves)).mean_
    table = arrow.table(curves)
    given = table if kind == "arrow" else polars.from_arrow(table).lazy()
    assert np.array_equal(mean.fit(given).mean_, expected)


@pytest.mark.parametrize(
    ("given", "ranges", "said"),
    [
        (TABLE.assign(age=TABLE.age.where(TABLE.age > 25)), None, "leave such rows out"),
        (TABLE.assign(age=pd.date_range("2020", periods=60)), None, "numbers, not of dates"),
        (pd.concat([TABLE, TABLE[["age"]]], axis=1), None, "have different names, got age"),
        (TABLE[["sex"]], None, "the column 'age'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_what_to_do(
    given: Any, ranges: Any, said: str
) -> None:
    with pytest.raises(InvalidData, match=said):
        model(ranges).fit(given, Y)


@pytest.mark.parametrize(("kinds", "told"), [(("F", "M"), True), (("f", "m"), False)])
def test_categories_that_are_spelled_differently_are_noticed(kinds: Any, told: bool) -> None:
    table = pd.DataFrame({"sex": RNG.choice(["f", "m"], 3000), "age": RNG.uniform(20, 80, 3000)})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model({"sex": kinds, "age": (20, 80)}).fit(table, RNG.uniform(0, 10, 3000))
    assert any("spelled differently" in str(one.message) for one in said) == told


def test_missing_targets_are_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidData, match=r"y must be without missing values.*public number"):
        model().fit(TABLE, Y.where(Y > 1))


def test_an_exhausted_budget_says_what_is_left_to_do() -> None:
    ledger = Ledger(1.5)
    curves = RNG.uniform(0, 1, (50, 6))
    mean = PrivateMean(1.0, delta=0, value_range=(0, 1), ledger=ledger)
    mean.fit(curves)
    with pytest.raises(BudgetExceeded, match=r"ε = 0\.5 is left\. Choose a smaller ε"):
        mean.fit(curves)
    mean.set_params(epsilon=0.5).fit(curves)


@pytest.mark.parametrize("kind", ["lazy", "relation", "dask"])
def test_no_cell_is_in_an_error_of_an_engine(kind: str) -> None:
    """An engine that computes when it is read quotes the cell that it cannot convert."""
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    dask = pytest.importorskip("dask.dataframe")
    cells = pd.DataFrame({"age": ["41", "SECRETX"] * 30})
    given = {
        "lazy": lambda: polars.from_pandas(cells).lazy().cast({"age": polars.Float64}),
        "relation": lambda: duckdb.connect().from_df(cells).project("age::DOUBLE AS age"),
        "dask": lambda: dask.from_pandas(cells, npartitions=2),
    }[kind]()
    private = model({"age": (20, 80)}) if kind != "dask" else PrivateMean(1.0, value_range=(0, 99))
    with pytest.raises(InvalidData) as refused:
        private.fit(given, None if kind == "dask" else Y)
    assert "SECRETX" not in str(refused.value)
    assert refused.value.__suppress_context__
