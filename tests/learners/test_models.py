"""A batch of linear models: scores, reversal, normalisation, averages, files."""

import json

import numpy as np
import pytest

from dpfda.errors import InvalidData, InvalidParameter, UnknownName
from dpfda.learners import LinearModels, Models


def some_models(members=6, features=3, seed=0):
    rng = np.random.default_rng(seed)
    return LinearModels(
        intercept=rng.normal(size=members), coefficients=rng.normal(size=(members, features))
    )


def test_scores_of_shared_and_of_own_rows():
    models = some_models()
    rows = np.random.default_rng(1).normal(size=(6, 10, 3))
    shared = models.scores(rows[0])
    own = models.scores(rows)
    for b in range(6):
        assert np.allclose(shared[b], models.intercept[b] + rows[0] @ models.coefficients[b])
        assert np.allclose(own[b], models.intercept[b] + rows[b] @ models.coefficients[b])


def test_a_score_of_zero_is_class_plus_one():
    models = LinearModels(intercept=[0.0], coefficients=[[0.0]])
    assert models.predict([[5.0]]).tolist() == [[1.0]]


def test_reversal_turns_only_the_chosen():
    models = some_models()
    turned = models.reversed_where(np.array([True, False, True, False, False, False]))
    assert np.array_equal(turned.intercept[1], models.intercept[1])
    assert np.array_equal(turned.intercept[0], -models.intercept[0])
    assert np.array_equal(turned.coefficients[2], -models.coefficients[2])
    with pytest.raises(InvalidParameter, match="mask"):
        models.reversed_where([True])


def test_normalised_members_have_slopes_of_norm_one():
    models = LinearModels(
        intercept=[2.0, -3.0, 0.0, 1.0, 1.0],
        coefficients=[[3.0, 4.0], [0.0, 0.0], [0.0, 0.0], [1e200, 1e200], [1e-17, 0.0]],
    )
    scaled = models.normalised()
    norms = np.linalg.norm(scaled.coefficients, axis=1)
    assert norms[[0, 3]] == pytest.approx(1.0)
    assert scaled.intercept[0] == pytest.approx(0.4)
    # Constant members are scaled by their intercept: also where rounding left a slope of 1e-17.
    assert scaled.intercept.tolist()[1:3] == [-1.0, 0.0]
    assert scaled.intercept[4] == 1.0
    assert np.all(np.isfinite(scaled.coefficients))


def test_average_of_all_and_of_groups():
    models = some_models()
    weights = np.arange(6.0)
    whole = models.average(weights)
    assert len(whole) == 1
    assert np.allclose(whole.coefficients[0], weights @ models.coefficients / 15.0)
    groups = models.average(weights.reshape(2, 3))
    assert len(groups) == 2
    second = models.select([3, 4, 5]).average([3.0, 4.0, 5.0])
    assert np.allclose(groups.coefficients[1], second.coefficients[0])
    assert np.allclose(groups.intercept[1], second.intercept[0])


@pytest.mark.parametrize("weights", [[1.0], [[1.0] * 4], np.zeros(6), [-1.0, 1, 1, 1, 1, 1]])
def test_weights_that_make_no_average_are_refused(weights):
    with pytest.raises((InvalidData, InvalidParameter), match="weights"):
        some_models().average(weights)


def test_files_are_plain_and_only_known_names_are_read():
    models = some_models()
    text = json.dumps(models.to_dict())
    again = Models.from_dict(json.loads(text))
    assert isinstance(again, LinearModels)
    assert np.array_equal(again.coefficients, models.coefficients)
    assert np.array_equal(again.intercept, models.intercept)
    with pytest.raises(UnknownName):
        Models.from_dict({"name": "pickle"})
    with pytest.raises(InvalidParameter):
        Models.from_dict({"name": "linear", "intercept": [0.0], "code": "x"})


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InvalidData, match="coefficients"):
        LinearModels(intercept=[0.0, 1.0], coefficients=[[1.0]])
    with pytest.raises(InvalidData, match="features"):
        some_models().scores(np.zeros((4, 2)))
    with pytest.raises(InvalidData, match="features"):
        some_models().scores(np.zeros((5, 4, 3)))
