"""Steps of a pipeline that are fitted to made-up public rows, and never to a record."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor, VotingRegressor
from sklearn.linear_model import RANSACRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

import dpfda
from dpfda import PrivateLinearRegression, PrivateLogisticRegression, PublicTransformer
from dpfda.errors import InvalidData, InvalidParameter

RANGES = {"dose": (1.0, 100.0), "age": (20.0, 80.0), "sex": ["f", "m"]}
ENCODER = OneHotEncoder(handle_unknown="ignore")
BINS = KBinsDiscretizer(3, strategy="uniform", encode="onehot")


def columns(bins: Any = BINS, sex: Any = ENCODER) -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("log", FunctionTransformer(np.log, feature_names_out="one-to-one"), ["dose"]),
            ("bins", bins, ["age"]),
            ("sex", sex, ["sex"]),
        ],
        sparse_threshold=1.0,
    )


def people(n: int = 4000) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "who": [f"p{k}" for k in range(n)],
            "dose": np.exp(rng.uniform(0, np.log(100), n)),
            "age": rng.uniform(20, 80, n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    return X, np.log(X["dose"]) + 2 * (X["sex"] == "m") + rng.normal(0, 0.2, n)


def test_a_fit_does_not_depend_on_any_record() -> None:
    X, _ = people(50)
    others = X.assign(dose=-1e9, age=1e9, sex="SECRET")
    one, other = (PublicTransformer(columns(), RANGES).fit(rows) for rows in (X, others))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    assert one.transformer_["bins"].bin_edges_[0].tolist() == [20, 40, 60, 80]
    assert one.ranges_out() == PublicTransformer(columns(), RANGES).ranges_out()
    # A record outside of all ranges comes out inside of those that are stated.
    low, high = np.array(one.ranges_out()).T
    out = one.transform(others)
    assert np.all((low <= out) & (out <= high))
    assert not np.any(out[:, -2:])  # an unlisted category is none of those listed


def test_a_record_never_reaches_the_step_while_it_is_fitted() -> None:
    seen = []

    class Watching(FunctionTransformer):
        def fit(self, X: Any, y: Any = None) -> Any:
            seen.append(np.asarray(X))
            return super().fit(X, y)

    X = np.full((20, 2), 0.123456)
    model = PrivateLinearRegression(1.0, feature_ranges=(0, 1), target_range=(0, 1), random_state=0)
    make_pipeline(PublicTransformer(Watching(), (0, 1)), model).fit(X, X[:, 0])
    assert seen
    assert not any(np.any(rows == 0.123456) for rows in seen)


def test_a_private_regression_behind_public_steps() -> None:
    X, y = people()
    place = KBinsDiscretizer(3, strategy="uniform", encode="ordinal")
    sex = OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False)
    step = PublicTransformer(columns(place, sex), RANGES)
    model = PrivateLinearRegression(
        5.0, feature_ranges=step.ranges_out(), target_range=(-1, 8), mechanism="gaussian_fm"
    )
    step.set_output(transform="pandas")
    pipe = make_pipeline(step, model)
    with dpfda.budget(5.0, 1e-5):
        pipe.fit(X, y)
    assert pipe[-1].guarantee_.sampler == "exact"
    assert pipe.score(X, y) > 0.9
    assert pipe[-1].model_.recipe.names[0] == "log__dose"
    assert clone(pipe).get_params()["publictransformer"].feature_ranges == RANGES


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (StandardScaler(), "use MinMaxScaler, which scales by the public range"),
        (PCA(1), "use PrivateFPCA"),
        (make_pipeline(MinMaxScaler(), StandardScaler()), "use MinMaxScaler"),
        (OneHotEncoder(), "handle_unknown='ignore'"),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=2), "which count people"),
        (KBinsDiscretizer(3, strategy="quantile"), "numpy.digitize"),
        (ENCODER, "columns whose categories feature_ranges list"),
        (FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), "by itself"),
        (FunctionTransformer(np.sort, kw_args={"axis": 0}), "by itself"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_steps_that_need_records_are_refused_with_what_to_use(step: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match="transformer must be") as refused:
        PublicTransformer(step, [(0, 1), (0, 2)]).fit(np.zeros((3, 2)))
    assert why in str(refused.value)


def test_a_bare_step_is_refused_with_the_way_to_write_it() -> None:
    X, y = people(100)
    model = PrivateLinearRegression(1.0, feature_ranges=(0, 1), target_range=(0, 1))
    way = r"write PublicTransformer\(ColumnTransformer\(\.\.\.\), feature_ranges\)"
    with pytest.raises(InvalidParameter, match=way):
        make_pipeline(columns(), model).fit(X, y)


def test_no_private_value_is_in_an_error() -> None:
    def fussy(rows: Any) -> Any:
        if np.any(rows == 0.25):
            raise ValueError("cannot take 0.25")
        return rows

    step = PublicTransformer(FunctionTransformer(fussy), [(0, 1)]).fit(np.zeros((2, 1)))
    with pytest.raises(InvalidData) as refused:
        step.transform([[0.25]])
    assert "0.25" not in str(refused.value)
    assert refused.value.__suppress_context__
    with pytest.raises(InvalidData) as refused:
        step.transform([["SECRET"]])
    assert "SECRET" not in str(refused.value)


def test_threads_leave_warnings_as_they_were() -> None:
    """Each thread restored what it had found, which was another one's rule to be silent."""
    told: list[str] = []
    step = PublicTransformer(
        OneHotEncoder(handle_unknown="ignore", drop="first"), {"sex": ("f", "m")}
    )
    rows = pd.DataFrame({"sex": ["f", "m"] * 50 + ["unlisted"]})
    step.fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *rest, **more: told.append(str(message))
        before = list(warnings.filters)
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: step.transform(rows), range(200)))
        assert warnings.filters == before
    assert told == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_step_may_contain_such_steps(jobs: int) -> None:
    """The outer one held a lock that the inner one waited for."""
    inner = PublicTransformer(FunctionTransformer(np.log1p), [(0, 5)])
    union = FeatureUnion([("one", inner), ("other", clone(inner))], n_jobs=jobs)
    with parallel_config(backend="threading"):
        outer = PublicTransformer(union, [(0, 5)]).fit(np.ones((4, 1)))
        made = outer.transform([[1.0], [2.0]])
    np.testing.assert_allclose(made, np.log1p([[1, 1], [2, 2]]))


@pytest.mark.parametrize("cell", [None, np.nan, 3.5, "SECRET", [1]])
@pytest.mark.parametrize("known", [["f", "m"], [1, 2, 7]])
def test_any_cell_that_is_no_public_category_is_none(cell: Any, known: list[Any]) -> None:
    rows = pd.DataFrame({"c": pd.Series([known[0], cell, known[-1]], dtype=object)})
    made = PublicTransformer(ENCODER, {"c": known}).fit_transform(rows)
    assert made.sum(axis=1).tolist() == [1, 0, 1]


def test_an_estimator_that_fits_ours_and_learns_more_is_named() -> None:
    X, _ = people(400)
    model = PrivateLogisticRegression(
        2.0, feature_ranges={"age": (20, 80)}, classes=("f", "m"), random_state=0
    )
    with pytest.warns(UserWarning, match="CalibratedClassifierCV learns its calibration"):
        CalibratedClassifierCV(model, cv=2).fit(X[["age"]], X["sex"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=dpfda.errors.DoubtfulResult)
        model.fit(X[["age"]], X["sex"])


WEIGHTED: dict[str, Any] = {"mechanism": "gaussian_fm", "weight_bound": 9.0}


def rows_and_targets() -> tuple[Any, Any]:
    X = np.random.default_rng(0).uniform(size=(3000, 2))
    return X, X.mean(axis=1)


def linear(**more: Any) -> PrivateLinearRegression:
    return PrivateLinearRegression(2.0, feature_ranges=(0, 1), target_range=(0, 1), **more)


def warnings_of(model: Any, X: Any, y: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_ensemble_that_repeats_or_weighs_rows_is_refused(jobs: int) -> None:
    X, y = rows_and_targets()
    bagging = BaggingRegressor(linear(**WEIGHTED), n_estimators=2, n_jobs=jobs)
    boosting = AdaBoostRegressor(linear(), n_estimators=2)
    consensus = RANSACRegressor(linear(), min_samples=1000, max_trials=2)
    for model, reason in (
        (consensus, "RANSACRegressor keeps rows by their errors in fits of others and seeds"),
        (bagging, "BaggingRegressor draws rows several times and seeds the noise"),
        (boosting, "AdaBoostRegressor computes weights of rows from errors on all rows and"),
    ):
        with dpfda.budget(9.0, 1e-4) as ledger, pytest.raises(InvalidParameter, match=reason):
            model.fit(X, y)
        assert not ledger.entries  # refused before it spends
        if jobs == 1:  # warnings of other processes do not come back
            model.set_params(estimator__random_state=0)  # a simulation protects nobody
            assert any(reason in text for text in warnings_of(model, X, y))


def test_copies_that_an_ensemble_fits_are_separate_releases() -> None:
    X, y = rows_and_targets()
    model = linear(**WEIGHTED, random_state=0)
    said = "fits several copies. Each fit of PrivateLinearRegression is a separate release"
    for around in (
        BaggingRegressor(model, n_estimators=2, bootstrap=False, max_samples=0.5),
        VotingRegressor([("a", linear(random_state=0)), ("b", linear(random_state=0))]),
    ):
        assert any(said in text for text in warnings_of(around, X, y))


def test_more_than_two_classes_are_one_release() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=6000)
    X = 5 * np.eye(3)[y] + rng.normal(size=(6000, 3)) + 3
    known: dict[str, Any] = {"feature_ranges": (0, 12), "classes": (0, 1, 2)}
    with dpfda.budget(1.0, 1e-5) as ledger:
        model = PrivateLogisticRegression(1.0, **known).fit(X, y)
        assert ledger.spent.epsilon <= 1.0
    assert len(ledger.releases) == 1
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X).shape == (6000, 3)
    with pytest.raises(InvalidParameter, match="mechanism must be left at its default"):
        PrivateLogisticRegression(1.0, mechanism="adassp", **known).fit(X, y)


def filled(rows: Any) -> Any:
    """What people write where `SimpleImputer("mean")` is refused."""
    return np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)


def without_gaps(rows: Any) -> Any:
    return rows[~np.isnan(rows).any(axis=1)]


def commonest(rows: Any) -> Any:
    known = rows.iloc[:, 0].isin(["f", "m"])
    most = rows.iloc[:, 0][known].mode()
    return rows.mask(~known.to_numpy()[:, None], most.iloc[0] if len(most) else "f")


def partly_filled(rows: Any) -> Any:
    if np.isnan(rows[:, 0]).any():
        raise ValueError("no gaps here")
    return filled(rows)


@pytest.mark.parametrize("function", [filled, without_gaps, partly_filled])
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_missing_cells_do_not_mix_rows(function: Any) -> None:
    """A gap filled from other rows would carry them past the guarantee; one removed, a count."""
    X = np.array([[np.nan, 0.5], [0.2, 0.1], [0.4, 0.3]])
    step = PublicTransformer(FunctionTransformer(function), [(0, 1), (0, 1)])
    with pytest.raises(InvalidParameter, match="turns each row into one row"):
        step.fit(X)
    by_itself = FunctionTransformer(lambda rows: np.where(np.isnan(rows), 0.5, rows))
    found = PublicTransformer(by_itself, [(0, 1), (0, 1)]).fit_transform(X)
    assert found[0].tolist() == [0.5, 0.5]


def test_unlisted_categories_do_not_mix_rows() -> None:
    X, _ = people(50)
    step = PublicTransformer(FunctionTransformer(commonest), {"sex": ["f", "m"]})
    with pytest.raises(InvalidParameter, match="turns each row into one row"):
        step.fit(X)


def test_rows_that_disappear_are_not_counted() -> None:
    few = FunctionTransformer(lambda rows: rows[: max(len(rows) - (len(rows) > 480), 1)])
    step = PublicTransformer(few, [(0, 1)]).fit(np.zeros((2, 1)))
    with pytest.raises(InvalidData, match="one row each") as refused:
        step.transform(np.zeros((500, 1)))
    assert not any(mark in str(refused.value) for mark in "0123456789")
