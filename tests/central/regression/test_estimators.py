"""The scikit-learn face: bounds, streams, guarantees, errors that show nothing private."""

import pickle

import numpy as np
import pytest
from regression_rows import chunked, few, linear, logistic, rows
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpfda import budget
from dpfda.central.regression.problem import BLOCK, ONE, ball, segment
from dpfda.central.regression.two_stage import TwoStageMoments
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.estimators.private_curve_regression import PrivateCurveRegression
from dpfda.noise import SecureSource


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
def test_rows_and_targets_outside_are_moved_to_the_end_of_their_range():
    X, y = rows(50)
    ranges = {"feature_norm_bound": None, "feature_ranges": (-0.5, 0.5), "random_state": 0}
    X[7, 1], y[3] = 0.5, 1.0
    ends = linear(1.0, **ranges).fit(X, y)
    X[7, 1], y[3] = 123.456, 77.5
    far = linear(1.0, **ranges).fit(X, y)
    assert np.array_equal(far.coef_, ends.coef_)
    assert np.array_equal(far.predict(X), ends.predict(np.clip(X, -0.5, 0.5)))


def test_clipping_is_what_bounds_one_row():
    # One enormous row changes the exact sums no more than any other.
    X, y = rows(2000)
    wild = X.copy()
    wild[0] = 1e12
    a = linear(1.0, random_state=0).fit(X, y)
    b = linear(1.0, random_state=0).fit(wild, y)
    assert np.abs(a.coef_ - b.coef_).max() < 0.2


@few
def test_labels_must_be_the_public_classes():
    X, _ = rows(20)
    labels = np.where(X[:, 0] > 0, "sick", "well")
    model = logistic(1.0, classes=("well", "sick"), random_state=0).fit(X, labels)
    assert list(model.classes_) == ["sick", "well"]  # sorted, as everywhere
    assert set(model.predict(X)) <= {"sick", "well"}
    with pytest.raises(InvalidData, match="among the given classes") as caught:
        logistic(1.0, classes=("a", "b"), random_state=0).fit(X, labels)
    assert "sick" not in str(caught.value)


@few
def test_with_real_noise_an_unknown_label_counts_as_the_first_class():
    X, y = rows(2000)
    labels = np.where(y > 0.1, "b", "a").astype(object)
    model = logistic(200.0, classes=("a", "b"))
    labels[:3] = ["SECRET", None, float("nan")]
    with budget(epsilon=200.0, delta=1e-5):
        model.fit(X, labels)
    known = np.where(np.isin(labels, ["a", "b"]), labels, "a")
    assert np.array_equal(model._targets(labels), known == "b")
    assert model.score(X, known) > 0.9


@few
def test_labels_of_the_data_are_found_by_simulations_only():
    # One person with another label would show in `classes_` with probability 1.
    X, _ = rows(20)
    labels = np.where(X[:, 0] > 0, "sick", "well")
    found = logistic(1.0, random_state=0).fit(X, labels)
    assert list(found.classes_) == ["sick", "well"]
    assert "the set of labels is public" in found.guarantee_.assumptions
    told = logistic(1.0, classes=("sick", "well"), random_state=0)
    assert told.fit(X, labels).guarantee_.assumptions == ("the number of records is public",)
    for secure in (None, SecureSource()):
        for door in ("fit", "partial_fit"):
            with pytest.raises(InvalidParameter, match="classes must be given"):
                getattr(logistic(1.0, random_state=secure), door)(X, labels)
    with pytest.raises(InvalidData, match="one class only"):
        logistic(1.0, random_state=0).partial_fit(X, labels == "other")


def test_default_source_is_exact_and_unrepeatable():
    X, y = rows()
    with budget(epsilon=2.0, delta=1e-5):
        one, two = (linear(1.0).fit(X, y) for _ in range(2))
    assert one.guarantee_.sampler == "exact"
    assert not np.array_equal(one.coef_, two.coef_)
    seeded = [linear(1.0, random_state=4).fit(X, y) for _ in range(2)]
    assert seeded[0].guarantee_.sampler == "simulation"
    assert np.array_equal(seeded[0].coef_, seeded[1].coef_)


@pytest.mark.parametrize("mechanism", ["moments", "gaussian_fm", "adassp", "noisy_gradient"])
def test_a_stream_of_chunks_equals_one_fit(mechanism):
    X, y = rows(3000)
    whole = linear(1.0, mechanism=mechanism, random_state=4).fit(X, y)

    def chunks():
        for start in range(0, len(X), 700):
            yield X[start : start + 700], y[start : start + 700]

    streamed = linear(1.0, mechanism=mechanism, random_state=4).fit_stream(chunks)
    assert np.array_equal(whole.coef_, streamed.coef_)  # exact sums: equal to the last bit
    assert streamed.n_seen_ == 3000


def test_partial_fit_by_hand():
    X, y = rows(1000)
    # Without a share the number of rows would say it, which chunks by hand do not tell beforehand.
    given = {"random_state": 4, "mechanism": TwoStageMoments(share=0.2)}
    model = linear(1.0, **given)
    for stage in range(2):
        model.partial_fit(X[:600], y[:600]).partial_fit(X[600:], y[600:])
        assert model.next_stage() is (stage == 0)
    assert np.array_equal(model.coef_, linear(1.0, **given).fit(X, y).coef_)
    with pytest.raises(InvalidData):
        model.next_stage()


def test_chunks_of_an_unfinished_fit_are_forgotten_by_the_next():
    X, y = rows(1000)
    model = linear(1.0, random_state=4).partial_fit(X, y)
    whole = model.fit(X[:, :2], y).coef_
    with pytest.raises(InvalidData, match="given through partial_fit"):
        model.next_stage()
    again = model.partial_fit(X, y).fit_stream(chunked(X[:, :2], y))
    assert np.array_equal(again.coef_, whole)


def test_a_half_finished_fit_cannot_leave_the_process():
    X, y = rows(100)
    model = linear(1.0, random_state=4).partial_fit(X, y)
    with pytest.raises(TypeError, match="private sums"):
        pickle.dumps(model._passes)
    assert "0." not in repr(model._passes)
    model.next_stage()
    with pytest.raises(ProtocolError):
        model.next_stage()


def test_methods_that_need_all_rows_refuse_chunks():
    X, y = rows(100)
    model = linear(1.0, mechanism="objective_perturbation", random_state=4)
    with pytest.raises(InvalidData, match="whole"):
        model.partial_fit(X, y)


def test_encoded_curves():
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 40)
    score = rng.uniform(-1, 1, (4000, 2))
    curves = score[:, :1] * np.sin(np.pi * t) + score[:, 1:] * t
    y = 0.5 * score[:, 0]
    encoder = CurveEncoder("bspline", n_basis=4, rescale="clip", scale=2.0)
    model = PrivateCurveRegression(1.0, encoder=encoder, target_range=(-1, 1), random_state=0)
    model.fit(curves, y, grid_points=t)
    assert np.mean((model.predict(curves) - y) ** 2) < 0.3 * y.var()
    assert encoder.slope(model.coef_, t).shape == (40,)


def test_predictions_stay_inside_the_public_range():
    X, y = rows(5000)
    model = linear(10.0, random_state=0, target_range=(0.0, 0.2)).fit(X, y)
    far = model.predict(X * 1e6)
    assert (far.min(), far.max()) == (0.0, 0.2)


def test_public_target_range_helps_a_narrow_target():
    X, y = rows(20_000)
    narrow = 0.02 * y
    wide = linear(0.5, random_state=0).fit(X, narrow)
    told = linear(0.5, random_state=0, target_range=(-0.02, 0.02)).fit(X, narrow)
    errors = [np.mean((m.predict(X) - narrow) ** 2) for m in (wide, told)]
    assert errors[1] < errors[0] / 3


def test_works_with_scikit_learn():
    X, y = rows(1000)
    model = linear(1.0, random_state=0)
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
        ({"target_range": (1, 1)}, "target_range"),
        ({"target_range": None}, "target_range"),
        ({"feature_norm_bound": None}, "feature_ranges must be given"),
        ({"feature_ranges": (0, 1)}, "one of them"),
        ({"feature_norm_bound": None, "feature_ranges": [(0, 1)] * 2}, "3 columns"),
        (
            {"feature_norm_bound": None, "feature_ranges": (0, 1), "feature_center": 0},
            "feature_center",
        ),
        ({"random_state": "x"}, "random_state"),
        ({"feature_center": [1.0, 2.0]}, "feature_center"),
    ],
)
def test_bad_parameters_are_named(parameters, name):
    X, y = rows(20)
    with pytest.raises(InvalidParameter, match=name):
        linear(**({"random_state": 0} | parameters)).fit(X, y)


def test_few_rows_warn():
    X, y = rows(20)
    with pytest.warns(UserWarning, match="too few rows"):
        model = linear(0.1, random_state=0).fit(X, y)
    assert model.fit_.warnings
    assert not linear(1.0, random_state=0).fit(*rows(5000)).fit_.warnings


def test_clipped_coefficients_state_no_error():
    # 4000 rows at ε = 0.5 are clipped at about 0.7 root-mean-square distances.
    X, y = rows(4000)
    model = linear(0.5, random_state=0).fit(X, y)
    assert model.fit_.clips
    assert model.coef_[0] > 1.2 * 0.9
    assert not model.model_.has_interval
    with pytest.raises(InvalidParameter, match="'gaussian_fm', with link='linear', for intervals"):
        model.model_.interval()


@pytest.mark.parametrize("n", [4000, 20_000])
def test_gaussian_fm_is_for_coefficients(n):
    X, y = rows(n)
    fits = [linear(1.0, mechanism="gaussian_fm", random_state=seed).fit(X, y) for seed in range(20)]
    assert not any(fit.fit_.clips for fit in fits)
    ends = [fit.model_.interval(of="sample") for fit in fits]
    held = [(low <= [0.9, -0.5, 0.0]) & (high >= [0.9, -0.5, 0.0]) for low, high in ends]
    assert np.mean(held) >= 0.86  # of 60; 0.95 less three standard errors


def test_a_ball_that_covers_the_bounds_clips_nothing():
    # Rows that fill their public box, and many: the radius is 2.5 root-mean-square distances.
    rng = np.random.default_rng(0)
    X = rng.choice([-0.5, 0.5], (200_000, 2))
    bound = np.sqrt(0.5)
    model = linear(2.0, feature_norm_bound=bound, random_state=0)
    model.fit(X, X @ [0.9, -0.5])
    assert not model.fit_.clips
    low, high = model.model_.interval(0.9999)
    assert ((low < [0.9, -0.5]) & (high > [0.9, -0.5])).all()


@pytest.mark.parametrize("estimator", [linear, logistic])
def test_a_column_of_targets_is_taken_with_a_warning(estimator):
    X, y = rows(2000)
    y = y if estimator is linear else (y > 0.1).astype(int)
    model = estimator(1.0, random_state=0)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        column = clone(model).fit(X, y[:, None])
    assert np.array_equal(column.coef_, clone(model).fit(X, y).coef_)
    with pytest.raises(ValueError, match="1d array"):
        clone(model).fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("epsilon", [50.0, 1000.0])
def test_objective_perturbation_names_the_largest_epsilon(epsilon):
    X, y = rows(100)
    model = linear(epsilon, mechanism="objective_perturbation", random_state=0)
    with pytest.raises(InvalidParameter, match=r"epsilon must be below 19\.4"):
        model.fit(X, y)
    with pytest.raises(InvalidParameter, match="delta must be above"):
        model.set_params(epsilon=1.0, delta=1e-15).fit(X, y)


def test_moments_beat_the_trivial_predictor_on_public_data(shared_data):
    from dpfda_bench.prepared_data import folds, prepare

    data = prepare("warfarin", shared_data)
    assert np.linalg.norm(data.X, axis=1).max() <= 1
    train, test = folds(len(data.X), seed=0)
    model = linear(0.5, target_range=(0, 1), random_state=0)
    model.fit(data.X[train], data.y[train])
    error = np.mean((model.predict(data.X[test]) - data.y[test]) ** 2)
    assert error < 0.7 * data.y[test].var()
