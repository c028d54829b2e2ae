"""The scikit-learn face: bounds, streams, guarantees, errors that show nothing private."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from dpfda import budget
from dpfda.curves import CurveEncoder
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter, ProtocolError
from dpfda.noise import SecureSource
from dpfda.privacy.ledger import Ledger
from dpfda.regression.estimators import PrivateLinearRegression, PrivateLogisticRegression
from dpfda.regression.fixed_point import BLOCK, ONE, ball, segment

few = pytest.mark.filterwarnings("ignore:too few rows")


def rows(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    return X, X @ [0.9, -0.5, 0.0] + 0.1


def test_rows_stay_in_the_unit_ball_and_sums_are_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 7)) * 10 ** rng.uniform(-3, 3, (4000, 1))
    z = ball(X, center=np.full(7, 0.3), radius=2.0)
    assert (z == np.trunc(z)).all()
    squared = [sum(int(v) ** 2 for v in row) for row in z]  # exact integers
    assert max(squared) <= int(ONE) ** 2
    exact = [[sum(int(a) * int(b) for a, b in zip(z[:, i], z[:, j], strict=True))
              for j in range(7)] for i in range(7)]  # fmt: skip
    assert (z.T @ z).astype(np.int64).tolist() == exact
    assert BLOCK * int(ONE) ** 2 <= 2**53
    assert np.abs(segment(X[:, 0], center=0.0, radius=1.0)).max() <= ONE


@few
def test_rows_outside_the_bounds_are_refused_without_showing_them():
    X, y = rows(50)
    X[7, 1] = 123.456
    with pytest.raises(InvalidData) as caught:
        PrivateLinearRegression(1.0, random_state=0).fit(X, y)
    assert "123" not in str(caught.value)
    assert "clip" in str(caught.value)
    y[3] = 77.5
    with pytest.raises(InvalidData) as caught:
        PrivateLinearRegression(1.0, random_state=0).fit(np.zeros((50, 3)), y)
    assert "77" not in str(caught.value)
    PrivateLinearRegression(1.0, clip=True, random_state=0).fit(X, y)


def test_clipping_is_what_bounds_one_row():
    # One enormous row changes the exact sums no more than any other.
    X, y = rows(2000)
    wild = X.copy()
    wild[0] = 1e12
    a = PrivateLinearRegression(1.0, clip=True, random_state=0).fit(X, y)
    b = PrivateLinearRegression(1.0, clip=True, random_state=0).fit(wild, y)
    assert np.abs(a.coef_ - b.coef_).max() < 0.2


@few
def test_labels_must_be_the_public_classes():
    X, _ = rows(20)
    labels = np.where(X[:, 0] > 0, "sick", "well")
    model = PrivateLogisticRegression(1.0, classes=("well", "sick"), random_state=0)
    assert set(model.fit(X, labels).predict(X)) <= {"sick", "well"}
    with pytest.raises(InvalidData) as caught:
        PrivateLogisticRegression(1.0, classes=(0, 1), random_state=0).fit(X, labels)
    assert "sick" not in str(caught.value)
    assert "classes=" in str(caught.value)


@few
def test_labels_of_the_data_are_found_by_simulations_only():
    # One person with another label would show in `classes_` with probability 1.
    X, _ = rows(20)
    labels = np.where(X[:, 0] > 0, "sick", "well")
    found = PrivateLogisticRegression(1.0, random_state=0).fit(X, labels)
    assert list(found.classes_) == ["sick", "well"]
    assert "the set of labels is public" in found.guarantee_.assumptions
    told = PrivateLogisticRegression(1.0, classes=("sick", "well"), random_state=0)
    assert told.fit(X, labels).guarantee_.assumptions == ("the number of records is public",)
    for secure in (None, SecureSource()):
        with pytest.raises(InvalidParameter, match="classes must be given"):
            PrivateLogisticRegression(1.0, random_state=secure).fit(X, labels)
    with pytest.raises(InvalidParameter, match="classes must be given"):
        PrivateLogisticRegression(1.0, random_state=0).partial_fit(X, labels)


def test_default_source_is_exact_and_unrepeatable():
    X, y = rows()
    with budget(epsilon=2.0, delta=1e-5):
        one, two = (PrivateLinearRegression(1.0).fit(X, y) for _ in range(2))
    assert one.guarantee_.sampler == "exact"
    assert not np.array_equal(one.coef_, two.coef_)
    seeded = [PrivateLinearRegression(1.0, random_state=4).fit(X, y) for _ in range(2)]
    assert seeded[0].guarantee_.sampler == "simulation"
    assert np.array_equal(seeded[0].coef_, seeded[1].coef_)


@pytest.mark.parametrize("method", ["moments", "gaussian_fm", "adassp", "fm", "noisy_gradient"])
def test_a_stream_of_chunks_equals_one_fit(method):
    X, y = rows(3000)
    whole = PrivateLinearRegression(1.0, method=method, random_state=4).fit(X, y)

    def chunks():
        for start in range(0, len(X), 700):
            yield X[start : start + 700], y[start : start + 700]

    streamed = PrivateLinearRegression(1.0, method=method, random_state=4).fit_stream(chunks)
    assert np.array_equal(whole.coef_, streamed.coef_)  # exact sums: equal to the last bit
    assert streamed.n_seen_ == 3000


def test_partial_fit_by_hand():
    X, y = rows(1000)
    model = PrivateLinearRegression(1.0, random_state=4)
    for stage in range(2):
        model.partial_fit(X[:600], y[:600]).partial_fit(X[600:], y[600:])
        assert model.next_stage() is (stage == 0)
    assert np.array_equal(model.coef_, PrivateLinearRegression(1.0, random_state=4).fit(X, y).coef_)
    with pytest.raises(InvalidData):
        model.next_stage()


def test_a_half_finished_fit_cannot_leave_the_process():
    X, y = rows(100)
    model = PrivateLinearRegression(1.0, random_state=4).partial_fit(X, y)
    with pytest.raises(TypeError, match="private sums"):
        pickle.dumps(model._passes)
    assert "0." not in repr(model._passes)
    model.next_stage()
    with pytest.raises(ProtocolError):
        model.next_stage()


def test_methods_that_need_all_rows_refuse_chunks():
    X, y = rows(100)
    model = PrivateLinearRegression(1.0, method="objective_perturbation", random_state=4)
    with pytest.raises(InvalidData, match="whole"):
        model.partial_fit(X, y)


def test_encoded_curves():
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 40)
    score = rng.uniform(-1, 1, (4000, 2))
    curves = score[:, :1] * np.sin(np.pi * t) + score[:, 1:] * t
    y = 0.5 * score[:, 0]
    encoder = CurveEncoder("bspline", n_basis=4, rescale="clip", scale=2.0)
    model = PrivateLinearRegression(
        1.0, encoder=encoder, feature_norm_bound=None, random_state=0
    ).fit(curves, y, grid_points=t)
    assert np.mean((model.predict(curves) - y) ** 2) < 0.3 * y.var()
    assert encoder.slope(model.coef_, t).shape == (40,)
    with pytest.raises(InvalidParameter):
        PrivateLinearRegression(1.0, feature_norm_bound=None, random_state=0).fit(score, y)


@few
def test_predictions_stay_inside_the_public_bounds():
    X, y = rows(200)
    model = PrivateLinearRegression(0.1, random_state=0, target_bound=0.8).fit(X, y)
    assert np.abs(model.predict(X * 1e6)).max() <= 0.8


def test_public_target_bound_helps_a_narrow_target():
    X, y = rows(20_000)
    narrow = 0.02 * y
    wide = PrivateLinearRegression(0.5, random_state=0).fit(X, narrow)
    told = PrivateLinearRegression(0.5, random_state=0, target_bound=0.02).fit(X, narrow)
    errors = [np.mean((m.predict(X) - narrow) ** 2) for m in (wide, told)]
    assert errors[1] < errors[0] / 3


def test_works_with_scikit_learn():
    X, y = rows(1000)
    model = PrivateLinearRegression(1.0, random_state=0)
    assert clone(model).get_params() == model.get_params()
    piped = make_pipeline(FunctionTransformer(np.tanh), model).fit(X, y)
    assert piped.predict(X).shape == (1000,)
    fitted = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    assert fitted.guarantee_.epsilon == 1.0


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"feature_norm_bound": -1.0}, "feature_norm_bound"),
        ({"target_bound": 0.0}, "target_bound"),
        ({"random_state": "x"}, "random_state"),
        ({"feature_center": [1.0, 2.0]}, "feature_center"),
    ],
)
def test_bad_parameters_are_named(parameters, name):
    X, y = rows(20)
    with pytest.raises(InvalidParameter, match=name):
        PrivateLinearRegression(**({"random_state": 0} | parameters)).fit(X, y)


def test_few_rows_warn():
    X, y = rows(20)
    with pytest.warns(UserWarning, match="too few rows"):
        model = PrivateLinearRegression(0.1, random_state=0).fit(X, y)
    assert model.fit_.warnings
    assert not PrivateLinearRegression(1.0, random_state=0).fit(*rows(5000)).fit_.warnings


def test_clipped_coefficients_state_no_error():
    # 4000 rows at ε = 0.5 are clipped at about 0.7 root-mean-square distances.
    X, y = rows(4000)
    model = PrivateLinearRegression(0.5, random_state=0).fit(X, y)
    assert model.fit_.clips
    assert model.coef_standard_error_ is None
    # All directions spread alike here, so the stated factor is close: Cauchy-Schwarz overstates it
    # by at most √(E|x|²)/E|x| = 1.04, and the quotient has a standard deviation of 2 % by noise.
    assert model.clipping_inflation_ > 1.3
    assert model.coef_[0] / model.clipping_inflation_ == pytest.approx(0.9, rel=0.04 + 4 * 0.02)


@pytest.mark.parametrize("n", [4000, 20_000])
def test_gaussian_fm_is_for_coefficients(n):
    X, y = rows(n)
    fits = [
        PrivateLinearRegression(1.0, method="gaussian_fm", random_state=seed).fit(X, y)
        for seed in range(20)
    ]
    assert not any(fit.fit_.clips for fit in fits)
    assert {fit.clipping_inflation_ for fit in fits} == {1.0}
    errors = np.array([(fit.coef_ - [0.9, -0.5, 0.0]) / fit.coef_standard_error_ for fit in fits])
    # The mean of 20 standard normals is within 4/√20 = 0.9 of 0.
    assert np.abs(errors.mean(axis=0)).max() < 0.9


def test_a_ball_that_covers_the_bounds_clips_nothing():
    # Rows that fill their public box, and many: the radius is 2.5 root-mean-square distances.
    rng = np.random.default_rng(0)
    X = rng.choice([-0.5, 0.5], (200_000, 2))
    bound = np.sqrt(0.5)
    model = PrivateLinearRegression(2.0, feature_norm_bound=bound, random_state=0)
    model.fit(X, X @ [0.9, -0.5])
    assert not model.fit_.clips
    assert model.clipping_inflation_ == 1.0
    assert (np.abs(model.coef_ - [0.9, -0.5]) < 5 * model.coef_standard_error_).all()


@pytest.mark.parametrize("estimator", [PrivateLinearRegression, PrivateLogisticRegression])
def test_a_column_of_targets_is_taken_with_a_warning(estimator):
    X, y = rows(2000)
    y = y if estimator is PrivateLinearRegression else (y > 0.1).astype(int)
    model = estimator(1.0, random_state=0)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        column = clone(model).fit(X, y[:, None])
    assert np.array_equal(column.coef_, clone(model).fit(X, y).coef_)
    with pytest.raises(InvalidData, match="one-dimensional"):
        clone(model).fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("epsilon", [50.0, 1000.0])
def test_objective_perturbation_names_the_largest_epsilon(epsilon):
    X, y = rows(100)
    model = PrivateLinearRegression(epsilon, method="objective_perturbation", random_state=0)
    with pytest.raises(InvalidParameter, match="epsilon must be below 21"):
        model.fit(X, y)
    with pytest.raises(InvalidParameter, match="delta must be above"):
        model.set_params(epsilon=1.0, delta=1e-15).fit(X, y)


def test_moments_beat_the_trivial_predictor_on_public_data(shared_data):
    from dpfda_bench.preparation import folds, prepare

    data = prepare("warfarin", shared_data)
    assert np.linalg.norm(data.X, axis=1).max() <= 1
    train, test = folds(len(data.X), seed=0)
    model = PrivateLinearRegression(0.5, target_center=0.5, target_bound=0.5, random_state=0)
    model.fit(data.X[train], data.y[train])
    error = np.mean((model.predict(data.X[test]) - data.y[test]) ** 2)
    assert error < 0.7 * data.y[test].var()


def test_scikit_learn_checks_where_its_data_model_applies():
    """All but checks of scikit-learn's own words and of inputs that are refused on purpose."""
    refused_on_purpose = {
        "check_complex_data",  # refused, in other words
        "check_dtype_object",  # text and objects are refused
        "check_estimators_empty_data_messages",  # refused, in other words
        "check_estimator_sparse_tag",  # sparse rows are refused
        "check_n_features_in_after_fitting",  # refused, in other words
        "check_fit2d_predict1d",  # refused, in other words
        "check_requires_y_none",  # refused, in other words
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks warn about what they skip
        results = check_estimator(
            PrivateLinearRegression(clip=True, random_state=0), on_fail=None, on_skip=None
        )
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    assert failed <= refused_on_purpose
    assert len(results) > 40


def chunked(X, y):
    return lambda: ((X[part], y[part]) for part in np.array_split(np.arange(len(X)), 3))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_ledger_pays_look_by_look_or_not_at_all(streamed):
    X, y = rows(2000)
    ledger = Ledger(1.0, limit_delta=1e-5)

    def fit(epsilon):
        model = PrivateLinearRegression(epsilon, ledger=ledger, random_state=0)
        return model.fit_stream(chunked(X, y)) if streamed else model.fit(X, y)

    with pytest.raises(BudgetExceeded):
        fit(1.1)
    assert ledger.entries == ()
    model = fit(1.0)
    assert len(ledger.entries) == model.stages_ == 2
    assert ledger.entries[0].assumptions == model.guarantee_.assumptions
    plain = PrivateLinearRegression(1.0, random_state=0).fit(X, y)
    assert np.array_equal(model.coef_, plain.coef_)
    with pytest.raises(BudgetExceeded):
        fit(0.1)
    assert len(ledger.entries) == 2


def test_bad_rows_are_refused_before_the_ledger_is_asked():
    X, y = rows(200)
    ledger = Ledger(1.0, limit_delta=1e-5)
    with pytest.raises(InvalidData):
        PrivateLinearRegression(1.0, ledger=ledger).fit(2 * X, 2 * y)
    with pytest.raises(InvalidParameter, match="classes"):
        PrivateLogisticRegression(1.0, ledger=ledger).fit(X, y > 0)
    assert ledger.entries == ()


@few
@pytest.mark.parametrize("estimator", [PrivateLinearRegression, PrivateLogisticRegression])
def test_no_error_quotes_a_private_value(estimator):
    X, y = rows(50)
    labels = y if estimator is PrivateLinearRegression else (y > 0.1).astype(int)
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
        with pytest.raises(InvalidData, match="finite"):
            PrivateLinearRegression(1.0, clip=True, random_state=0).fit(spoiled, y)
    spoiled[7] = 1e308  # finite: clipped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        PrivateLinearRegression(1.0, clip=True, random_state=0).fit(spoiled, y)
