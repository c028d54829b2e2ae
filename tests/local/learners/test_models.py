"""A batch of linear models: scores and classes."""

import numpy as np
import pytest

from dpfda.errors import InvalidData
from dpfda.local.mrma.learners import LinearModels


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


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InvalidData, match="coefficients"):
        LinearModels(intercept=[0.0, 1.0], coefficients=[[1.0]])
    with pytest.raises(InvalidData, match="features"):
        some_models().scores(np.zeros((4, 2)))
    with pytest.raises(InvalidData, match="features"):
        some_models().scores(np.zeros((5, 4, 3)))
