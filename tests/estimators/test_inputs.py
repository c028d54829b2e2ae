"""What the local classifiers read: public ranges, channels, own grids, tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpfda import (
    LocalCurveClassifier,
    LocalGradientBoostingClassifier,
    MomentClassifier,
    MRMAClassifier,
    MultiServerMRMA,
    OnlineMRMA,
    Person,
    PrivateCurveClassifier,
    PrivateFunctionOnScalar,
    PrivateMean,
    SimulationSource,
)
from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import Server
from dpfda.protocol.linear_scores import chances

DATA, NOISE = simulate_001(1500, 0), simulate_001(1500, 9)
T = DATA.grid_points
BOTH = np.stack([NOISE.X, DATA.X], axis=2)  # the second channel tells the label
SMALL = {"n_classifiers": 20, "member_size": 30}
CURVES: list[Any] = [
    LocalCurveClassifier(8.0, value_range=(-6, 6), random_state=0),
    MomentClassifier(8.0, value_range=(-3, 3), random_state=0),
    MRMAClassifier(8.0, value_range=(-3, 3), random_state=0, **SMALL),
    MultiServerMRMA(8.0, value_range=(-3, 3), random_state=0, **SMALL),
    OnlineMRMA(8.0, value_range=(-3, 3), random_state=0, n_classifiers=20),
]
BOOSTING = LocalGradientBoostingClassifier(8.0, feature_ranges=(-3, 3), n_rounds=3, random_state=0)
curves = pytest.mark.parametrize("classifier", CURVES, ids=lambda one: type(one).__name__)
every = pytest.mark.parametrize(
    "classifier", [*CURVES, BOOSTING], ids=lambda one: type(one).__name__
)


@curves
def test_ranges_are_enough(classifier: Any) -> None:
    fitted = clone(classifier).fit(DATA.X, DATA.y, grid_points=T)
    assert fitted.score(DATA.X, DATA.y) > 0.75
    days = (
        clone(classifier).set_params(domain_range=(0, 365)).fit(DATA.X, DATA.y, grid_points=365 * T)
    )
    assert fitted.model_.encoder.basis.domain_range == (0, 1)
    assert days.model_.encoder.basis.domain_range == (0, 365)
    assert np.mean(days.predict(DATA.X) == fitted.predict(DATA.X)) > 0.9


EVERY_CURVE = [
    *CURVES,
    PrivateCurveClassifier(8.0, value_range=(-6, 6), random_state=0),
    PrivateMean(8.0, value_range=(-6, 6), random_state=0),
]


@pytest.mark.parametrize("estimator", EVERY_CURVE, ids=lambda one: type(one).__name__)
def test_one_rule_says_what_the_domain_is(estimator: Any) -> None:
    """Points that all share are public, so they say it; points of single curves never do."""

    def domain(*data: Any, **known: Any) -> tuple[float, float]:
        fitted = clone(estimator).set_params(**known.pop("given", {})).fit(*data, **known)
        if hasattr(fitted, "mean_"):
            grid = fitted.release_.grid_points
            return float(grid[0]), float(grid[-1])
        return tuple(fitted.model_.encoder.basis.domain_range)

    hours = 24 * T
    assert domain(DATA.X, DATA.y) == (0, 1)
    assert domain(DATA.X, DATA.y, grid_points=hours) == (0, 24)
    pairs = [(hours, x) for x in DATA.X]
    assert domain(pairs, DATA.y, given={"domain_range": (0, 24)}) == (0, 24)
    with pytest.raises(InvalidParameter, match="domain_range must be given where"):
        domain(pairs, DATA.y)
    if not hasattr(estimator, "mean_"):
        with pytest.raises((InvalidData, InvalidParameter), match="domain"):
            domain(DATA.X, DATA.y, grid_points=hours, given={"domain_range": (0, 1)})


@curves
def test_scikit_fda_brings_its_domain(classifier: Any) -> None:
    skfda = pytest.importorskip("skfda", reason="scikit-fda is not installed")
    grid = skfda.FDataGrid(DATA.X, 365 * T)
    fitted = clone(classifier).fit(grid, DATA.y)
    assert fitted.model_.encoder.basis.domain_range == (0, 365)
    assert fitted.score(grid, DATA.y) > 0.75


@curves
def test_curves_of_two_channels(classifier: Any) -> None:
    fitted = clone(classifier).fit(BOTH, DATA.y, grid_points=T)
    encoder = fitted.model_.encoder
    assert encoder.channels == 2
    assert fitted.score(BOTH, DATA.y) > 0.7
    pairs = [(T, x) for x in BOTH]
    assert np.array_equal(fitted.predict(pairs[:40]), fitted.predict(BOTH[:40]))
    from_pairs = clone(classifier).set_params(domain_range=(0, 1)).fit(pairs, DATA.y)
    assert np.mean(from_pairs.predict(BOTH) == fitted.predict(BOTH)) > 0.9
    with pytest.raises(InvalidData, match="channels"):
        fitted.predict(DATA.X)


def test_channels_have_ranges_of_their_own() -> None:
    scaled = BOTH * [100.0, 1.0]
    classifier = LocalCurveClassifier(
        8.0, value_range=[(-600, 600), (-6, 6)], classes=(-1, 1), random_state=0
    )
    same = clone(classifier).set_params(value_range=(-6, 6)).fit(BOTH, DATA.y)
    assert np.array_equal(classifier.fit(scaled, DATA.y).predict(scaled), same.predict(BOTH))
    with pytest.raises(InvalidParameter, match="value_range must be one pair, or 2"):
        clone(classifier).set_params(value_range=[(-6, 6)] * 3).fit(BOTH, DATA.y)


def test_people_with_two_channels_take_part() -> None:
    plan = LocalCurveClassifier(1.0, value_range=(-6, 6), random_state=0).fit(BOTH, DATA.y).plan_
    task = Server(plan).issue(1)
    for curve in (BOTH[0], (T, BOTH[0]), DATA.X[0], "nothing"):
        person = Person(plan, curve=curve, label=1.0, ledger=Ledger(1.0))
        assert person.answer(task).values.shape == (1, task.width)


@curves
def test_lists_of_arrays_with_a_list_of_grids(classifier: Any) -> None:
    lengths = 60 + np.arange(1500) % 30
    ragged, grids = [x[:n] for x, n in zip(DATA.X, lengths, strict=True)], [T[:n] for n in lengths]
    pairs = list(zip(grids, ragged, strict=True))
    for X, points in ((ragged, grids), (pairs, None)):
        with pytest.raises(InvalidParameter, match="domain_range must be given"):
            clone(classifier).fit(X, DATA.y, grid_points=points)
    known = clone(classifier).set_params(domain_range=(0, 1))
    listed = clone(known).fit(ragged, DATA.y, grid_points=grids)
    paired = clone(known).fit(pairs, DATA.y)
    assert np.array_equal(listed.model_.coefficients, paired.model_.coefficients)
    assert np.array_equal(listed.predict(ragged, grid_points=grids), paired.predict(pairs))
    people = np.arange(1500) // 2
    grouped = clone(known).fit(ragged, DATA.y, grid_points=grids, groups=people)
    assert grouped.guarantee_.epsilon == 8.0


@every
def test_tables_by_name(classifier: Any) -> None:
    rng = np.random.default_rng(0)
    age, sex = rng.uniform(20, 80, 1500), rng.choice(["f", "m"], 1500)
    frame = pd.DataFrame({"name": "x", "sex": sex, "age": age})
    y = np.where((age > 50) == (sex == "m"), age > 60, age > 40).astype(int)
    ranges = {"age": (20, 80), "sex": ["f", "m"]}
    ranged = {"feature_ranges": ranges} | ({} if classifier is BOOSTING else {"value_range": None})
    fitted = clone(classifier).set_params(**ranged).fit(frame, y)
    assert fitted.score(frame, y) > 0.75
    with pytest.raises(InvalidData, match="'age'"):
        clone(fitted).fit(frame[["sex"]], y)
    spoiled = frame.astype(object)
    spoiled.loc[3, "age"], spoiled.loc[4, "sex"] = "SECRET42", None
    with pytest.raises(InvalidData) as refused:  # a simulation says so, without the value
        clone(fitted).fit(spoiled, y)
    assert "SECRET42" not in str(refused.value)
    real = clone(fitted).set_params(random_state=None, classes=(0, 1), ledger=Ledger(8.0))
    assert real.fit(spoiled, y).guarantee_.sampler == "exact"  # nobody's record stops a study


@curves
def test_a_public_fact_is_said_once(classifier: Any) -> None:
    with pytest.raises(InvalidParameter, match="value_range must be left out where feature_ranges"):
        clone(classifier).set_params(feature_ranges=(-1, 1)).fit(DATA.X, DATA.y)
    if "encoder" in classifier.get_params():
        with pytest.raises(
            InvalidParameter, match="value_range must be left out where encoder is given"
        ):
            clone(classifier).set_params(encoder=CurveEncoder()).fit(DATA.X, DATA.y)


@every
def test_probabilities_follow_the_scores(classifier: Any) -> None:
    X = DATA.X[:, ::20]
    fitted = clone(classifier).fit(X, DATA.y)
    found = fitted.predict_proba(X)
    assert found.shape == (1500, 2)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    odds, scores = np.log(found[:, 1] / found[:, 0]), fitted.decision_function(X)
    assert np.array_equal(odds >= 0, scores >= 0)
    if not isinstance(classifier, LocalCurveClassifier):  # which knows how unsure it is
        np.testing.assert_allclose(odds, scores, atol=1e-6)


@pytest.mark.parametrize("classifier", [CURVES[0], CURVES[1], BOOSTING], ids=str)
def test_probabilities_of_three_classes(classifier: Any) -> None:
    X, y = DATA.X[:, ::20], np.arange(1500) % 3
    fitted = clone(classifier).fit(X, y)
    found = fitted.predict_proba(X)
    if not isinstance(classifier, LocalCurveClassifier):
        np.testing.assert_allclose(found, chances(fitted.decision_function(X)))
    assert np.array_equal(fitted.classes_[found.argmax(axis=1)], fitted.predict(X))


@every
def test_a_step_that_learned_from_private_rows_is_refused(classifier: Any) -> None:
    X = DATA.X[:, ::20]
    real = clone(classifier).set_params(random_state=None, classes=(-1, 1))
    with pytest.raises(InvalidParameter, match="StandardScaler learns from the private rows"):
        make_pipeline(StandardScaler(), real).fit(X, DATA.y)


@every
@pytest.mark.parametrize(
    "seed", [np.random.SeedSequence(3), SimulationSource(3)], ids=["seq", "source"]
)
def test_seeds_of_every_kind(classifier: Any, seed: Any) -> None:
    X = DATA.X[:300, ::20]
    fitted = clone(classifier).set_params(random_state=seed).fit(X, DATA.y[:300])
    assert fitted.guarantee_.sampler == "simulation"


@every
def test_epsilon_comes_first_and_alone(classifier: Any) -> None:
    kind = type(classifier)
    assert kind(0.5).epsilon == 0.5
    with pytest.raises(TypeError):
        kind(0.5, None)
    with pytest.raises(TypeError):
        clone(classifier).fit(DATA.X, DATA.y, T)


@pytest.mark.parametrize(
    ("names", "grid"),
    [
        (["0", "0.5", "2"], [0, 0.5, 2]),
        ([0.0, 0.5, 2.0], [0, 0.5, 2]),
        (["a", "b", "c"], [0, 0.5, 1]),
        (["0", "2", "1"], [0, 0.5, 1]),  # not in order
        (None, [0, 0.5, 1]),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_numbers_as_names_of_columns_are_the_grid(names, grid):
    frame = pd.DataFrame(np.ones((50, 3)), columns=names)
    mean = PrivateMean(1.0, value_range=(0, 2), random_state=0).fit(frame)
    assert mean.release_.grid_points.tolist() == grid
    given = PrivateMean(1.0, value_range=(0, 2), random_state=0).fit(frame, grid_points=[3, 4, 5])
    assert given.release_.grid_points.tolist() == [3, 4, 5]
    y, ages = np.arange(50) % 2, np.full((50, 1), 0.5)
    known = {"value_range": (0, 2), "random_state": 0}
    two = PrivateCurveClassifier(1.0, **known).fit(frame, y)
    assert two.model_.encoder.basis.domain_range == (grid[0], grid[-1])
    again = two.predict(np.ones((50, 3)), grid_points=grid)
    np.testing.assert_array_equal(two.predict(frame), again)
    local = LocalCurveClassifier(1.0, **known).fit(frame, y)
    assert local.plan_.encoder.basis.domain_range == (grid[0], grid[-1])
    scalar = PrivateFunctionOnScalar(1.0, feature_ranges=(0, 1), **known).fit(ages, frame)
    assert scalar.release_.grid_points.tolist() == grid
