"""Regressions keep the one face: scikit-learn, ledgers, units, persons, no value quoted."""

import warnings

import numpy as np
import pytest
from regression_rows import chunked, few, linear, logistic, rows
from scikit_checks import WITHOUT_A_BOUND
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from dpfda import budget
from dpfda.central.regression.model import RegressionModel
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter
from dpfda.estimators.private_curve_classifier import PrivateCurveClassifier
from dpfda.estimators.private_curve_regression import PrivateCurveRegression
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.estimators.private_logistic_regression import PrivateLogisticRegression
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.public_randomness import one_row_each

RANGES = {"feature_ranges": (-5, 5), "random_state": 0}
TARGETS = {"target_range": (-100, 100)}


@pytest.mark.parametrize(
    "model",
    [
        PrivateLinearRegression(**RANGES, **TARGETS),
        PrivateLogisticRegression(**RANGES),
        PrivateLinearRegression(feature_norm_bound=5.0, random_state=0, **TARGETS),
        PrivateCurveRegression(value_range=(-5, 5), random_state=0, **TARGETS),
    ],
    ids=str,
)
def test_scikit_learn_checks(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks warn about what they skip
        # More than two classes need the number of rows, which partial_fit does not know.
        names = (
            "check_fit_score_takes_y",
            "check_n_features_in_after_fitting",
            "check_estimators_partial_fit_n_features",
        )
        expected = dict.fromkeys(names, "three classes through partial_fit")
        known = expected if isinstance(model, PrivateLogisticRegression) else {}
        if hasattr(model, "weight_bound"):
            known = known | WITHOUT_A_BOUND
        check_estimator(model, on_skip=None, expected_failed_checks=known)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_ledger_pays_look_by_look_or_not_at_all(streamed):
    X, y = rows(2000)
    ledger = Ledger(1.0, limit_delta=1e-6)

    def fit(epsilon):
        model = linear(epsilon, ledger=ledger, random_state=0)
        return model.fit_stream(chunked(X, y)) if streamed else model.fit(X, y)

    with pytest.raises(BudgetExceeded):
        fit(1.1)
    assert ledger.entries == ()
    model = fit(1.0)
    assert len(ledger.entries) == model.stages_ == 2
    assert ledger.entries[0].assumptions == model.guarantee_.assumptions
    plain = linear(1.0, random_state=0).fit(X, y)
    assert np.array_equal(model.coef_, plain.coef_)
    with pytest.raises(BudgetExceeded):
        fit(0.1)
    assert len(ledger.entries) == 2


def test_bad_rows_are_refused_before_the_ledger_is_asked():
    X, y = rows(200)
    ledger = Ledger(1.0, limit_delta=1e-6)
    with pytest.raises(InvalidData):
        linear(1.0, ledger=ledger).fit(X, y[1:])
    with pytest.raises(InvalidParameter, match="classes"):
        logistic(1.0, ledger=ledger).fit(X, y > 0)
    assert ledger.entries == ()


@few
@pytest.mark.parametrize("estimator", [linear, logistic])
def test_no_error_quotes_a_private_value(estimator):
    X, y = rows(50)
    labels = y if estimator is linear else (y > 0.1).astype(int)
    model = estimator(1.0, random_state=0).fit(X, labels)
    secret, cells = np.array(["SECRET42"] * 50), X.astype(object)
    cells[3, 1] = "SECRET42"
    mixed = np.array([*labels[:-1], "SECRET42"], dtype=object)
    calls = [
        lambda: model.predict(cells),
        lambda: clone(model).fit(cells, labels),
        lambda: clone(model).fit(X, mixed),
        lambda: clone(model).fit(X, secret),
        lambda: model.score(cells, labels),
        lambda: model.score(X, secret),
        lambda: model.score(X, mixed),
        lambda: model.score(X, secret[:, None].repeat(2, axis=1)),
    ]
    for call in calls:
        try:
            call()
        except Exception as error:
            chain = [
                error,
                error.__cause__,
                None if error.__suppress_context__ else error.__context__,
            ]
            assert not any("SECRET" in str(one) for one in chain)


def test_hostile_numbers_of_a_curator_are_refused_before_anything_is_spent():
    X, y = rows(50)
    for value in (np.nan, np.inf, -np.inf):
        spoiled = X.copy()
        spoiled[7] = value
        with pytest.raises(InvalidData, match=r"Input X contains (NaN|infinity)"):
            linear(1.0, random_state=0).fit(spoiled, y)
    spoiled[7] = 1e308  # finite: clipped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        linear(1.0, random_state=0).fit(spoiled, y)


def test_coefficients_are_told_in_the_units_of_the_table():
    rng = np.random.default_rng(0)
    patients = np.column_stack([rng.uniform(20, 90, 40_000), rng.uniform(0, 2, 40_000)])
    dose = 30 - 0.25 * patients[:, 0] + 7 * patients[:, 1]
    model = PrivateLinearRegression(
        1.0,
        mechanism="gaussian_fm",
        feature_ranges=[(20, 90), (0, 2)],
        target_range=(0, 50),
        random_state=0,
    ).fit(patients, dose)
    low, high = model.model_.interval(0.9999)
    assert ((low < [-0.25, 7]) & (high > [-0.25, 7])).all()
    assert (high - low)[1] > 20 * (high - low)[0]
    # The line, written in years and alleles, is what is predicted.
    line = patients @ model.coef_ + model.intercept_
    assert model.predict(patients) == pytest.approx(np.clip(line, 0, 50))
    # The ranges of the other scale give the same noise, hence the same line.
    scaled = (patients - [55, 1]) / [35, 1]
    same = PrivateLinearRegression(
        1.0, mechanism="gaussian_fm", feature_ranges=(-1, 1), target_range=(0, 50), random_state=0
    ).fit(scaled, dose)
    assert model.coef_ == pytest.approx(same.coef_ / [35, 1], abs=1e-4)


def test_without_an_intercept_a_line_goes_through_zero():
    X, _ = rows(20_000)
    X = X + 1.5
    y = X @ [2.0, 1.0, 0.0]
    model = PrivateLinearRegression(
        2.0, feature_ranges=(1, 2), target_range=(3, 6), fit_intercept=False, random_state=0
    ).fit(X, y)
    assert model.intercept_ == 0
    assert np.abs(model.predict(X) - y).mean() < 0.3


def test_tables_with_names_and_categories():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 20_000)
    age = rng.uniform(20, 80, 20_000)
    table = pandas.DataFrame({"sex": sex, "age": age, "free text": "SECRET"})
    y = 0.1 * age + 2 * (sex == "m")
    model = PrivateLinearRegression(
        2.0,
        mechanism="gaussian_fm",
        feature_ranges={"age": (20, 80), "sex": ["f", "m"]},
        target_range=(0, 12),
        random_state=0,
    ).fit(table, y)
    assert model.model_.features == ("age", "sex=m")  # the first category is the reference
    assert model.coef_[0] == pytest.approx(0.1, abs=0.02)
    assert model.coef_[1] == pytest.approx(2, abs=0.5)
    shuffled = table[["free text", "age", "sex"]]
    again = RegressionModel.from_json(model.model_.to_json())
    assert np.array_equal(again.predict(shuffled), model.predict(table))
    with pytest.raises(InvalidData, match="the column 'age'") as caught:
        clone(model).fit(table.drop(columns="age"), y)
    assert "SECRET" not in str(caught.value)


def test_a_person_with_many_rows_counts_once():
    X, y = rows(3000)
    persons = np.arange(3000) // 3
    model = linear(1.0, random_state=3).fit(X, y, groups=persons)
    assert model.n_seen_ == 1000
    kept = one_row_each(persons, seed=3, rows=3000)
    assert np.array_equal(model.coef_, linear(1.0, random_state=3).fit(X[kept], y[kept]).coef_)
    with pytest.raises(InvalidParameter, match="groups"):
        linear(1.0, random_state=3).fit(X, y, groups=persons[1:])


def test_curves_need_their_range_only():
    rng = np.random.default_rng(0)
    t = np.linspace(0, 24, 40)
    size = rng.uniform(-1, 1, (4000, 1))
    curves = 100 + 30 * size * np.sin(np.pi * t / 24)
    labels = np.where(size[:, 0] > 0, "yes", "no")
    model = PrivateCurveClassifier(
        1.0, value_range=(50, 150), classes=("no", "yes"), random_state=0
    ).fit(curves, labels, grid_points=t)
    assert model.model_.encoder.basis.domain_range == (0, 24)
    assert model.score(curves, labels) > 0.95
    every_other = model.predict_proba(curves[:9, ::2], grid_points=t[::2])
    assert every_other == pytest.approx(model.predict_proba(curves[:9]), abs=0.05)
    pairs = [(t, curve) for curve in curves]
    with pytest.raises(InvalidParameter, match="domain_range must be given"):
        clone(model).fit(pairs, labels)
    own = clone(model).set_params(domain_range=(0, 24)).fit(pairs, labels)
    assert own.coef_ == pytest.approx(model.coef_, abs=1e-4)
    spoiled = curves.copy()
    spoiled[0] = np.inf
    with budget(epsilon=1.0, delta=1e-5):  # nobody's values stop a fit with real noise
        clone(model).set_params(random_state=None).fit(spoiled, labels, grid_points=t)


LEARNED = r"StandardScaler learn(s|ed) from the private rows"


def test_a_scaler_fitted_on_private_rows_is_refused_or_warned_about():
    X, y = rows(500)
    with pytest.raises(InvalidParameter, match=LEARNED):
        make_pipeline(StandardScaler(), linear(1.0)).fit(X, y)
    with pytest.warns(UserWarning, match=LEARNED):
        make_pipeline(StandardScaler(), linear(1.0, random_state=0)).fit(X, y)


def about_rows_of(size, ledger):
    model = linear(0.5, ledger=ledger, random_state=0)
    return model.set_params(feature_norm_bound=size, target_range=(-size, size))


@pytest.mark.filterwarnings("ignore")  # all rows are alike
@pytest.mark.parametrize("size", [1e-98, 1e98])
def test_a_ball_inside_the_smallest_and_the_largest_public_ball_can_be_asked_about(size):
    """The one that the first answer shows is smaller than the public one, or a little larger."""
    ledger = Ledger(1.0, limit_delta=1e-6)
    for far in (0.0, size):
        model = about_rows_of(size, ledger).fit(np.full((3000, 2), far), np.full(3000, far))
        assert np.isfinite(model.predict(np.zeros((1, 2)))).all()


@pytest.mark.parametrize("size", [1e-100, 9e-99, 1.1e98, 1e100])
def test_public_ranges_without_room_are_refused_before_the_first_question(size):
    ledger = Ledger(1.0, limit_delta=1e-6)
    with pytest.raises(InvalidParameter, match=r"radius must be from 1e-98 to 1e\+98"):
        about_rows_of(size, ledger).fit(np.zeros((3000, 2)), np.zeros(3000))
    assert not ledger.entries


def test_centers_that_are_too_far_away_are_refused_before_the_first_question():
    X, y = rows(2000)
    model = linear(1.0, feature_center=1e100, ledger=(ledger := Ledger(1.0, limit_delta=1e-6)))
    with pytest.raises(InvalidParameter, match=r"center must be at most 1e\+99 from 0"):
        model.fit(X, y)
    assert not ledger.entries
