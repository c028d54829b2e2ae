"""Weights of rows: what is estimated, and that a weight is as private as its row."""

import warnings

import numpy as np
import pytest
from regression_rows import linear, logistic, rows

from dpfda.central.regression.model import RegressionModel
from dpfda.central.regression.problem import Bounds
from dpfda.central.regression.queries import WeightedMomentQuery
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.estimators.private_logistic_regression import PrivateLogisticRegression
from dpfda.privacy.cost import Cost

RANGES = {"feature_ranges": (20, 60), "mechanism": "gaussian_fm"}


def surveyed(n=20_000):
    """People of one kind are asked eight times as often as others, whose slope differs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(20, 60, (n, 2))
    often = X[:, 0] > 45
    weights = np.where(often, 1.0, 8.0) * rng.uniform(0.5, 1, n)
    y = X @ [0.8, -0.4] + 10 + often * (X[:, 1] - 40) / 2 + rng.normal(size=n)
    return X, y, weights


def least_squares(X, y, weights):
    root = np.sqrt(weights)
    rows = np.column_stack([X, np.ones(len(X))]) * root[:, None]
    return np.linalg.lstsq(rows, y * root, rcond=None)[0]


def test_the_weighted_line_is_estimated_and_its_intervals_hold():
    X, y, weights = surveyed()
    truth, plain = least_squares(X, y, weights), least_squares(X, y, np.ones(len(X)))
    assert abs(truth[1] - plain[1]) > 0.1
    held = []
    for seed in range(20):
        model = PrivateLinearRegression(
            2.0, **RANGES, target_range=(-20, 70), weight_bound=8.0, random_state=seed
        ).fit(X, y, sample_weight=weights)
        low, high = model.model_.interval()
        held.append((low <= truth[:2]) & (truth[:2] <= high))
        assert abs(model.coef_[1] - truth[1]) < 0.05 < abs(model.coef_[1] - plain[1])
        assert np.all(high - low < 0.2)
    assert np.mean(held) >= 0.85  # of 95 %: 40 trials, of which 6 may miss with probability 0.004
    again = RegressionModel.from_json(model.model_.to_json())
    assert again.weight_bound == 8.0
    assert "the weighted least-squares coefficients" in again.notes[0]
    assert "weight bound 8" in again.method_paragraph()


def test_classes_are_weighted():
    X, _, weights = surveyed()
    often = X[:, 0] > 45
    labels = (np.where(often, 1, -1) * (X[:, 1] - 40) > 0).astype(int)
    known = {"classes": (0, 1), "random_state": 0, **RANGES}
    plain = PrivateLogisticRegression(4.0, **known).fit(X, labels)
    model = PrivateLogisticRegression(4.0, **known, weight_bound=8.0).fit(X, labels, weights)
    assert model.coef_[1] < plain.coef_[1] - 0.02  # those who are asked less often: the other way
    truth = least_squares(X, 2.0 * labels - 1, weights)
    # 002's quadratic for log(1 + e^z) makes log-odds of twice the line of labels ±1.
    np.testing.assert_allclose(model.coef_, 2 * truth[:2], atol=0.01)


def test_equal_weights_at_the_bound_are_no_weights():
    X, y, _ = surveyed(3000)
    known = {**RANGES, "target_range": (-20, 70), "random_state": 1}
    plain = PrivateLinearRegression(50.0, **known).fit(X, y)
    equal = PrivateLinearRegression(50.0, **known, weight_bound=3.0).fit(
        X, y, sample_weight=np.full(len(X), 3.0)
    )
    np.testing.assert_allclose(equal.coef_, plain.coef_, atol=0.02)
    beyond = PrivateLinearRegression(50.0, **known, weight_bound=3.0).fit(
        X, y, sample_weight=np.full(len(X), 1e9)
    )
    assert np.array_equal(beyond.coef_, equal.coef_)  # moved to the bound


def test_no_weight_makes_a_row_count_more_than_once():
    bounds = Bounds(center=np.zeros(1))
    cost = Cost(epsilon=1.0, delta=0.05)
    query = WeightedMomentQuery(cost=cost, bounds=bounds, weight_bound=2.0)
    x, y = np.array([[1.0]] * 4), np.ones(4)

    def total(*weights):
        return query.statistic(query.sums(query.fitting((x, y, np.array(weights)))))

    none = total(0, 0, 0, 0)
    assert np.array_equal(none, np.zeros_like(none))
    one = total(2.0, 0, 0, 0)
    for weight in (2.1, 1e300, np.inf):
        assert np.array_equal(total(weight, 0, 0, 0), one)
    for weight in (-1.0, -np.inf, np.nan):
        assert np.array_equal(total(weight, 0, 0, 0), none)
    np.testing.assert_allclose(total(1.0, 0, 0, 0), one / 2, atol=1e-4)


def test_a_hidden_mean_weight_is_told():
    X, y, _ = surveyed(400)
    with pytest.warns(UserWarning, match="noise hides the mean of the weights"):
        PrivateLinearRegression(
            0.5, **RANGES, target_range=(-20, 70), weight_bound=1e6, random_state=0
        ).fit(X, y, sample_weight=np.ones(400))


def test_persons_keep_the_weight_of_their_row():
    X, y, weights = surveyed(4000)
    persons = np.repeat(np.arange(2000), 2)
    model = PrivateLinearRegression(
        2.0, **RANGES, target_range=(-20, 70), weight_bound=8.0, random_state=0
    ).fit(X, y, sample_weight=weights, groups=persons)
    assert model.n_seen_ == 2000


def test_refusals():
    X, y = rows(300)
    weights = np.ones(300)
    functional = {"mechanism": "gaussian_fm", "random_state": 0}
    with pytest.raises(InvalidParameter, match="weight_bound must be given with sample_weight"):
        linear(1.0, **functional).fit(X, y, sample_weight=weights)
    with pytest.raises(InvalidParameter, match="sample_weight must be given with weight_bound"):
        linear(1.0, **functional, weight_bound=2.0).fit(X, y)
    with pytest.raises(InvalidParameter, match="sample_weight must be given with weight_bound"):
        linear(1.0, **functional, weight_bound=2.0).fit_stream(lambda: iter([(X, y)]))
    with pytest.raises(InvalidParameter, match="mechanism must be 'gaussian_fm' with sample"):
        linear(1.0, random_state=0, weight_bound=2.0).fit(X, y, sample_weight=weights)
    with pytest.raises(InvalidParameter, match="fit_intercept must be True with sample_weight"):
        linear(1.0, **functional, weight_bound=2.0, fit_intercept=False).fit(X, y, weights)
    with pytest.raises(InvalidParameter, match="left out for more than two classes"):
        logistic(1.0, random_state=0, weight_bound=2.0, classes=(0, 1, 2)).fit(
            X, np.arange(300) % 3, weights
        )
    with pytest.raises(InvalidData, match="sample_weight must be one number for each of 300"):
        linear(1.0, **functional, weight_bound=2.0).fit(X, y, weights[:299])
    for value in (np.nan, "7654x"):
        bad = weights.astype(object)
        bad[7] = value
        with pytest.raises(InvalidData) as refused:
            linear(1.0, **functional, weight_bound=2.0).fit(X, y, bad)
        assert "7654x" not in str(refused.value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        linear(1.0, **functional).fit(X, y)
