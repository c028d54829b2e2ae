"""An encoder is a step of a scikit-learn pipeline that learns nothing."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from dpfda import LocalCurveClassifier, MRMAClassifier
from dpfda.curves import CurveEncoder, RowEncoder
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidData, InvalidParameter, UnknownName
from dpfda.protocol.plan import StudyPlan

DATA, TEST = simulate_001(2000, 0), simulate_001(1000, 1)
ENCODER = CurveEncoder("cosine", n_basis=4, rescale="clip", scale=3.0)


@pytest.mark.filterwarnings("ignore")  # the checks say what they skip
@pytest.mark.parametrize("encoder", [CurveEncoder(), ENCODER, CurveEncoder(feature_ranges=(0, 1))])
def test_scikit_learns_checks(encoder: CurveEncoder) -> None:
    found = check_estimator(encoder)
    assert sum(one["status"] == "passed" for one in found) > 40


def test_what_cannot_work_is_refused_when_it_is_used() -> None:
    wrong = CurveEncoder("haar")
    assert repr(wrong) == "CurveEncoder(basis='haar')"
    for use in (wrong.fit, wrong.transform, wrong.encode):
        with pytest.raises(UnknownName, match="unknown basis 'haar'"):
            use(DATA.X)
    facts = {"epsilon": 1.0, "n_people": 9, "classes": (0, 1), "design": {"name": "moments"}}
    with pytest.raises(UnknownName, match="unknown basis 'haar'"):
        StudyPlan(encoder=wrong, **facts)
    assert wrong.set_params(basis="cosine").transform(DATA.X).shape == (2000, 4)


def test_columns_are_those_of_the_fit() -> None:
    fitted = clone(ENCODER).fit(DATA.X)
    assert fitted.n_features_in_ == DATA.X.shape[1]
    with pytest.raises(InvalidData, match="X has 50 features"):
        fitted.transform(DATA.X[:, :50])
    assert fitted.encode(DATA.X[:, :50]).shape == (2000, 4)  # a grid of its own
    pairs = [(DATA.grid_points, x) for x in DATA.X[:3]]
    np.testing.assert_allclose(fitted.transform(pairs), fitted.transform(DATA.X[:3]))


def test_no_value_is_quoted() -> None:
    with pytest.raises(InvalidData) as refused:
        clone(ENCODER).fit_transform([["SECRET42", 1.0]])
    assert "SECRET42" not in str(refused.value)


def test_before_an_estimator_of_scikit_learn() -> None:
    pipe = make_pipeline(ENCODER, LogisticRegression())
    assert pipe.fit(DATA.X, DATA.y).score(TEST.X, TEST.y) > 0.87
    search = GridSearchCV(pipe, {"curveencoder__n_basis": [1, 3]}, cv=3).fit(DATA.X, DATA.y)
    assert search.best_estimator_[0].n_features == search.best_params_["curveencoder__n_basis"]
    assert ENCODER.n_features == 4  # a search copies what it changes


@pytest.mark.parametrize("kind", [LocalCurveClassifier, MRMAClassifier])
def test_before_a_private_estimator_with_real_noise(kind: type) -> None:
    """Nothing was learned from private rows, so the guarantee holds for the whole pipeline."""
    private = kind(8.0, feature_ranges=(-1, 1), classes=(-1, 1))
    pipe = make_pipeline(ENCODER, private).fit(DATA.X, DATA.y)
    assert pipe.score(TEST.X, TEST.y) > 0.75
    assert pipe[-1].guarantee_.sampler == "exact"


def test_it_says_that_it_learns_nothing() -> None:
    assert not get_tags(ENCODER).requires_fit
    assert ENCODER.fit(DATA.X) is ENCODER
    assert np.array_equal(ENCODER.fit_transform(DATA.X, DATA.y), ENCODER.encode(DATA.X))


def test_columns_have_names() -> None:
    assert ENCODER.get_feature_names_out().tolist() == [f"cosine{k}" for k in range(4)]
    table = CurveEncoder("identity", feature_ranges={"age": (0, 100), "sex": ["f", "m"]})
    assert table.get_feature_names_out().tolist() == ["age", "sex=f", "sex=m"]
    rows = pd.DataFrame({"sex": ["m"], "age": [25]}, index=["ann"])
    framed = clone(table).set_output(transform="pandas").transform(rows)
    assert framed.loc["ann"].tolist() == [-0.5, -1.0, 1.0]
    assert list(framed.columns) == ["age", "sex=f", "sex=m"]
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(ENCODER.transform(DATA.X[:2]), pd.DataFrame)
    assert isinstance(ENCODER.transform(DATA.X[:2]), np.ndarray)
    with pytest.raises(InvalidParameter, match="transform"):
        clone(table).set_output(transform="excel")


def test_parameters_are_read_copied_and_set() -> None:
    given = {"basis": "cosine", "n_basis": 4, "rescale": "clip", "scale": 3.0}
    assert given.items() <= ENCODER.get_params().items()
    copied = clone(ENCODER)
    assert copied == ENCODER
    assert copied is not ENCODER
    assert copied.set_params(n_basis=2).n_features == 2
    assert ENCODER.n_features == 4
    assert clone(RowEncoder(3)).n_features == 3
    assert pickle.loads(pickle.dumps(ENCODER)) == ENCODER


def test_a_plan_keeps_an_encoder_of_its_own() -> None:
    mine = clone(ENCODER)
    facts = {"epsilon": 1.0, "n_people": 9, "classes": (0, 1), "design": {"name": "moments"}}
    plan = StudyPlan(encoder=mine, **facts)
    before = plan.hash
    mine.set_params(n_basis=2)
    assert plan.encoder.n_features == 4
    assert StudyPlan.from_dict(plan.to_dict()).hash == before


def test_nothing_else_can_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ENCODER.basis = None  # type: ignore[misc]
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
        ENCODER.scale = 2.0  # type: ignore[attr-defined]


GRIDS = [DATA.grid_points[: 60 + k % 40] for k in range(300)]
LISTED = [x[: len(t)] for x, t in zip(DATA.X, GRIDS, strict=False)]
LABELS = DATA.y[:300]


def test_lists_with_a_grid_for_each_are_read_by_every_method() -> None:
    wanted = ENCODER.encode(LISTED, GRIDS)
    step = clone(ENCODER)
    np.testing.assert_array_equal(step.fit_transform(LISTED, grid_points=GRIDS), wanted)
    np.testing.assert_array_equal(
        step.fit(LISTED, grid_points=GRIDS).transform(LISTED, grid_points=GRIDS), wanted
    )
    with pytest.raises(InvalidData, match="grid_points must be one grid, or one for each curve"):
        step.transform(LISTED, grid_points=GRIDS[:7])
    on_a_grid = DATA.grid_points**2
    np.testing.assert_array_equal(
        step.fit(DATA.X).transform(DATA.X[:, ::2], grid_points=on_a_grid[::2]),
        ENCODER.encode(DATA.X[:, ::2], on_a_grid[::2]),
    )


def test_pipelines_take_lists_with_a_grid_for_each() -> None:
    rows = ENCODER.encode(LISTED, GRIDS)
    wanted = LogisticRegression().fit(rows, LABELS).predict(rows)
    plain = make_pipeline(clone(ENCODER), LogisticRegression())
    plain.fit(LISTED, LABELS, curveencoder__grid_points=GRIDS)
    np.testing.assert_array_equal(plain.predict(list(zip(GRIDS, LISTED, strict=True))), wanted)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(clone(ENCODER), LogisticRegression())
        routed.fit(LISTED, LABELS, grid_points=GRIDS)
        np.testing.assert_array_equal(routed.predict(LISTED, grid_points=GRIDS), wanted)
