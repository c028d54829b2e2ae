"""What all estimators share: refusals, ranges, what is missing before a fit."""

from __future__ import annotations

import pickle
import warnings
from inspect import getattr_static
from typing import Any

import numpy as np
import pandas as pd
import pytest
from skfda import FDataIrregular
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dpfda import (
    LocalCurveClassifier,
    LocalGradientBoostingClassifier,
    MomentClassifier,
    PrivateCurveClassifier,
    PrivateFPCA,
    PrivateKernelMachine,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
)
from dpfda._validate import unquoted
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.base import PrivateEstimator
from dpfda.estimators.surroundings import note_fits
from dpfda.protocol.estimate import non_private_classifier


class Nothing(PrivateEstimator):
    """Fits nothing, through the same guards."""

    def fit(self, X, y=None):
        self._require_raw_rows()
        self.done_ = True
        return self


class Scores(Nothing):
    """Hands on what it got."""

    def transform(self, X):
        return X

    def predict(self, X):
        return np.zeros(len(X))


def test_what_a_fit_brings_is_missing_before_it_in_scikit_learns_words():
    with pytest.raises(NotFittedError, match="done_ comes with fit"):
        _ = Nothing().done_
    assert not hasattr(Nothing(), "done_")
    with pytest.raises(AttributeError, match="no attribute 'dnoe'"):
        _ = Nothing().dnoe
    fitted = PrivateMean(epsilon=1, value_range=(-1, 1), random_state=0).fit(np.zeros((20, 5)))
    with pytest.raises(AttributeError, match="no attribute 'releases_'") as raised:
        _ = fitted.releases_
    assert not isinstance(raised.value, NotFittedError)


def test_a_step_that_learned_from_private_rows_is_refused():
    X = np.ones((3, 2))
    with pytest.raises(InvalidParameter, match="StandardScaler learns from the private rows"):
        make_pipeline(StandardScaler(), Nothing()).fit(X)
    with pytest.warns(UserWarning, match="give public ranges instead"):
        make_pipeline(StandardScaler(), Nothing(random_state=0)).fit(X)


def test_steps_around_a_pipeline_inside_a_pipeline_count_as_well() -> None:
    X, y = np.ones((4, 2)), np.array([0, 1, 0, 1])
    with pytest.raises(InvalidParameter, match="StandardScaler learns from the private rows"):
        make_pipeline(StandardScaler(), make_pipeline(Nothing())).fit(X)
    with pytest.warns(UserWarning, match="LogisticRegression learns from the output of Scores"):
        make_pipeline(make_pipeline(Scores()), LogisticRegression()).fit(X, y)


@pytest.mark.parametrize(
    "inner",
    [
        FeatureUnion([("scores", Scores())]),
        GridSearchCV(
            Scores(), {"epsilon": [1.0]}, cv=2, scoring=lambda *_: 0.0, error_score="raise"
        ),
        MultiOutputRegressor(Scores()),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_steps_around_what_fits_copies_of_an_estimator_count_as_well(inner: Any) -> None:
    X, y = np.ones((4, 2)), np.ones((4, 2))
    with pytest.raises(InvalidParameter, match="StandardScaler learns from the private rows"):
        make_pipeline(StandardScaler(), inner).fit(X, y)
    make_pipeline(FunctionTransformer(), inner).fit(X, y)


@pytest.mark.parametrize("copied", [True, False], ids=["copies", "originals"])
def test_steps_around_an_estimator_that_another_process_fits_count_as_well(copied: bool) -> None:
    X = np.linspace(-1, 1, 60).reshape(20, 3)
    if copied:
        model = PrivateLinearRegression(1.0, feature_ranges=(-1, 1), target_range=(-1, 1))
        inner: Any = VotingRegressor([("one", model)], n_jobs=2)
    else:  # unions fit what they hold
        model = PrivateFPCA(1.0, value_range=(-1, 1))
        inner = FeatureUnion([("one", model)], n_jobs=2)
    with pytest.raises(InvalidParameter, match="StandardScaler learns from the private rows"):
        make_pipeline(StandardScaler(), inner).fit(X, X[:, 0])


def test_surroundings_are_not_taken_along_into_a_later_fit() -> None:
    """What a fit returns may be fitted again, alone."""

    class Elsewhere(Scores):
        def fit(self, X: Any, y: Any = None) -> Any:
            self.before_ = pickle.loads(pickle.dumps(Nothing()))
            self.again_ = clone(self.before_)
            self.fitted_ = pickle.loads(pickle.dumps(Nothing(random_state=0).fit(X)))
            return self

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {"inside": Nothing()} if deep else {}

    X = np.ones((3, 2))
    with pytest.warns(UserWarning, match="StandardScaler learns from the private rows"):
        pipe = make_pipeline(StandardScaler(), Elsewhere()).fit(X)
    for model in (pipe[-1].before_, pipe[-1].again_):
        with pytest.raises(InvalidParameter, match="StandardScaler learns"):
            model.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pipe[-1].fitted_.fit(X).done_
        assert pickle.loads(pickle.dumps(Nothing())).fit(X).done_


def test_steps_of_pipelines_with_a_fit_of_their_own_count_as_well() -> None:
    """As pipelines have that resample rows."""

    class Own(Pipeline):
        def fit(self, X: Any, y: Any = None) -> Any:
            for step in self[:-1]:
                X = step.fit_transform(X, y)
            self[-1].fit(X, y)
            return self

    steps = [("scaler", StandardScaler()), ("model", Nothing())]
    with pytest.raises(InvalidParameter, match="StandardScaler learns from the private rows"):
        Own(steps).fit(np.ones((3, 2)))


def test_classes_that_are_derived_before_they_are_noted_count_as_well() -> None:
    """As those of a package that was imported before this one."""

    class Base(BaseEstimator):
        def fit(self) -> Any:
            return self

    class Derived(Base):
        def fit(self) -> Any:
            return self

    plain = getattr_static(Derived, "fit")
    note_fits(Base, "fit")
    assert getattr_static(Derived, "fit") is not plain
    model = Derived()
    assert model.fit() is model


def test_what_learned_from_private_targets_is_refused() -> None:
    X, y = np.ones((3, 2)), np.arange(3.0)
    with pytest.raises(InvalidParameter, match="StandardScaler learns from the private rows"):
        TransformedTargetRegressor(Scores(), transformer=StandardScaler()).fit(X, y)
    public = TransformedTargetRegressor(Scores(), func=np.log1p, inverse_func=np.expm1)
    assert public.fit(X, y).regressor_.done_


def test_a_fit_that_failed_is_not_taken_for_one_that_goes_on() -> None:
    class Fails(Nothing):
        def fit(self, X, y=None):
            raise ArithmeticError

    model = Fails()
    with pytest.raises(ArithmeticError):
        make_pipeline(FunctionTransformer(), model).fit(np.ones((3, 2)))
    pipe = make_pipeline(StandardScaler(), Nothing(random_state=0))
    with pytest.raises(ArithmeticError):
        make_pipeline(pipe[0], model).fit(np.ones((3, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pipe[-1].fit(np.ones((3, 2))).done_


@pytest.mark.parametrize("cached", [False, True])
def test_a_step_that_learns_from_scores_is_named(cached, tmp_path):
    """Scores are as private as rows: a model of them is as private as its own noise makes it."""
    X, y = np.ones((4, 2)), np.array([0, 1, 0, 1])
    memory = str(tmp_path) if cached else None
    with pytest.warns(UserWarning, match="LogisticRegression learns from the output of Scores"):
        make_pipeline(Scores(), LogisticRegression(), memory=memory).fit(X, y)
    harmless = make_pipeline(Scores(), FunctionTransformer(np.tanh), Nothing(), memory=memory)
    assert harmless.fit(X, y)[-1].done_
    with pytest.raises(InvalidParameter, match="StandardScaler learns from the private rows"):
        make_pipeline(StandardScaler(), Scores(), Nothing(), memory=memory).fit(X, y)


def test_a_step_that_learns_nothing_is_welcome():
    assert make_pipeline(FunctionTransformer(np.log1p), Nothing()).fit(np.ones((3, 2)))[-1].done_


def test_an_estimator_inside_a_fitted_pipeline_may_be_fitted_alone():
    pipe = make_pipeline(StandardScaler(), Nothing(random_state=0))
    assert pipe[-1].fit(np.ones((3, 2))).done_


def test_columns_are_read_by_name_categories_one_by_one():
    table = PublicColumns.of({"age": (20, 80), "sex": ["f", "m"]})
    rows = pd.DataFrame({"sex": ["m", "?", "f"], "extra": 1, "age": [90, 50, 1]})
    assert table.read(rows).tolist() == [[80, 0, 1], [50, 0, 0], [20, 1, 0]]
    with pytest.raises(InvalidData, match="with the column 'age'"):
        table.read(rows[["sex"]])
    with pytest.raises(InvalidData, match="a DataFrame"):
        table.read(rows.to_numpy())


def test_a_column_of_text_without_categories_is_refused_without_its_values():
    with pytest.raises(InvalidData) as refused:
        PublicColumns.of({"age": (0, 1)}).read(pd.DataFrame({"age": ["SECRET42"]}))
    assert "SECRET42" not in str(refused.value)
    assert "'age'" in str(refused.value)


@pytest.mark.parametrize("ranges", [None, "ab", {"a": "b"}, {"a": (1, 0)}, [(0, 1), 3], {"a": []}])
def test_ranges_that_say_nothing_are_refused(ranges):
    with pytest.raises(InvalidParameter, match="feature_ranges"):
        PublicColumns.of(ranges)


def test_one_pair_stands_for_every_column():
    table = PublicColumns.of((0, 10), width=3)
    assert table.center.tolist() == [5, 5, 5]
    assert table.half.tolist() == [5, 5, 5]
    assert table.read([[-1, 5, 11]]).tolist() == [[0, 5, 10]]


def test_the_comparison_does_not_suffer_from_a_wide_public_range():
    rng = np.random.default_rng(0)
    X = 1e-3 * rng.normal(size=(400, 5))
    y = X[:, 0] > 3e-4  # nearly always guessed wrong by default regularization at this scale
    assert non_private_classifier(X, y).score(X, y) > 0.95


def test_the_comparison_stands_beside_one_class_and_rare_ones():
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert non_private_classifier(X, np.ones(50)) is None
    rare = np.r_[1, np.zeros(49)]
    assert set(non_private_classifier(X, rare).predict(X)) <= {0.0, 1.0}


@pytest.mark.filterwarnings("ignore:too few people")
def test_a_study_that_learned_nothing_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 20)), np.arange(300) % 2
    study = LocalCurveClassifier(epsilon=0.1, value_range=(-4, 4), random_state=0).fit(X, y)
    assert "No better than guessing" in str(study.evaluate(X, y))


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateMean(1.0, value_range=(0, 4), random_state=0),
        LocalCurveClassifier(1.0, value_range=(0, 4), random_state=0),
        PrivateCurveClassifier(1.0, value_range=(0, 4), random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_points_of_their_own_never_say_what_the_domain_is(estimator):
    """An FDataIrregular derives its domain from private points."""
    curves = FDataIrregular([0, 2], np.array([[0.2], [0.5], [0.1], [0.7]]), np.ones((4, 1)))
    with pytest.raises(InvalidParameter, match="domain_range"):
        estimator.fit(curves, [0, 1])


def test_a_message_that_nobody_knows_is_not_passed_on():
    with pytest.raises(InvalidData) as refused, unquoted("X"):
        raise ValueError("cannot handle value SECRET42")
    assert str(refused.value) == "X must be an array of real numbers"


def test_something_that_is_no_ledger_is_named():
    with pytest.raises(InvalidParameter, match="ledger must be None or a ledger"):
        PrivateMean(1.0, value_range=(0, 1), ledger=3).fit(np.ones((5, 4)))


def test_a_curator_reads_lists_of_curves_with_lists_of_grids():
    t = np.linspace(0, 1, 9)
    grids, curves = [t, t[:5], t[2:]], [np.ones(9), np.ones(5), np.ones(7)]
    model = PrivateMean(1.0, value_range=(0, 2), domain_range=(0, 1), random_state=0)
    listed = model.fit(curves, grid_points=grids).mean_
    paired = model.fit(list(zip(grids, curves, strict=True))).mean_
    np.testing.assert_array_equal(listed, paired)


@pytest.mark.parametrize("value_range", [(), 2, (1, 2, 3), (3, 1)])
@pytest.mark.parametrize(
    "kind", [LocalCurveClassifier, PrivateCurveClassifier, PrivateMean], ids=lambda k: k.__name__
)
def test_a_range_that_is_none_is_named(kind, value_range):
    with pytest.raises(InvalidParameter, match="value_range must be a pair"):
        kind(4.0, value_range=value_range, random_state=0).fit(np.eye(60), np.arange(60) % 2)


def test_points_of_curves_are_not_ignored_beside_a_table():
    X, y = np.random.default_rng(0).uniform(size=(200, 3)), np.arange(200) % 2
    model = PrivateLogisticRegression(4.0, feature_ranges=(0, 1), random_state=0)
    with pytest.raises(InvalidParameter, match=r"grid_points must be None.*are for curves"):
        model.fit(X, y, grid_points=[0, 1, 2])
    with pytest.raises(InvalidParameter, match="grid_points must be None"):
        model.fit(X, y).predict(X, grid_points=[0, 1, 2])
    machine = PrivateKernelMachine(4.0, feature_ranges=(0, 1), loss="logistic", random_state=0)
    with pytest.raises(InvalidParameter, match="grid_points must be None"):
        machine.fit(X[:, 0], y).predict_proba(X[:, 0], grid_points=[0])


TABLE = np.random.default_rng(5).uniform(-1, 1, (400, 3))
SIGNS = (TABLE[:, 0] + TABLE[:, 2] > 0).astype(int)


@pytest.mark.filterwarnings("ignore:too few people")
@pytest.mark.parametrize(
    ("kind", "y"),
    [
        (LocalCurveClassifier, SIGNS),
        (MomentClassifier, SIGNS),
        (LocalGradientBoostingClassifier, SIGNS),
        (PrivateLogisticRegression, SIGNS),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_mapping_picks_columns_by_number(kind: Any, y: Any) -> None:
    picked = kind(4.0, feature_ranges={0: (-1, 1), 2: (-1, 1)}, random_state=0).fit(TABLE, y)
    alone = kind(4.0, feature_ranges=(-1, 1), random_state=0).fit(TABLE[:, [0, 2]], y)
    np.testing.assert_allclose(
        picked.decision_function(TABLE), alone.decision_function(TABLE[:, [0, 2]])
    )
    assert picked.n_features_in_ == 3
