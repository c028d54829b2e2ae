"""Logistic regression where no maximum exists, and how it gets there."""

import numpy as np
import pytest

from dpfda.errors import InvalidParameter
from dpfda.local.mrma.learners.linear_learners import Logistic


def test_the_gradient_vanishes():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50, 40, 3)) * [1.0, 100.0, 0.01] + [0.0, 50.0, 1.0]
    labels = np.where(rng.random((50, 40)) < 0.5, 1.0, -1.0)
    models = Logistic().fit(features, labels)
    pull = labels / (1.0 + np.exp(labels * models.scores(features)))
    gradient = np.einsum("bn,bnd->bd", pull, features / [1.0, 100.0, 0.01])
    # Ridge of 1e-10 and a last step below 1e-5, squared: nothing above 1e-7 of 40 rows.
    assert np.max(np.abs(np.sum(pull, axis=1))) < 1e-6
    assert np.max(np.abs(gradient)) < 1e-4


@pytest.mark.parametrize("gap", [1e-3, 1.0, 1e3])
def test_separable_classes_end_on_the_separating_side(gap):
    features = np.array([[[-1.0], [0.0], [gap], [gap + 1.0]]])
    labels = np.array([[-1.0, -1.0, 1.0, 1.0]])
    models = Logistic().fit(features, labels)
    assert np.all(np.isfinite(models.coefficients))
    assert np.all(labels * models.scores(features) > 1.0)


def test_a_separating_feature_among_others():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(20, 30, 4))
    labels = np.sign(features[:, :, 0] + 0.3 * features[:, :, 1])
    models = Logistic().fit(features, labels)
    assert np.all(models.predict(features) == labels)
    assert np.all(np.isfinite(models.coefficients))


def test_quasi_separation_is_finite():
    # Every row with x = 1 is positive, rows with x = 0 are mixed: the slope has no maximum.
    features = np.array([[[0.0], [0.0], [0.0], [0.0], [1.0], [1.0]]])
    models = Logistic().fit(features, [[-1, 1, -1, 1, 1, 1]])
    assert np.isfinite(models.coefficients[0, 0])
    assert models.scores([[1.0]])[0, 0] > 5.0
    assert models.scores([[0.0]])[0, 0] == pytest.approx(0.0, abs=1e-5)


def test_repeated_features_share_the_coefficient():
    rng = np.random.default_rng(2)
    single = rng.normal(size=(5, 40, 1))
    labels = np.where(rng.random((5, 40)) < 1 / (1 + np.exp(-single[:, :, 0])), 1.0, -1.0)
    once = Logistic().fit(single, labels)
    twice = Logistic().fit(np.concatenate([single, single], axis=2), labels)
    assert np.allclose(twice.coefficients, once.coefficients / 2, atol=1e-5)


def test_results_do_not_depend_on_the_unit_of_a_feature():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(5, 40, 2))
    labels = np.where(rng.random((5, 40)) < 0.5, 1.0, -1.0)
    units = np.array([1e-7, 1e7])
    plain = Logistic().fit(features, labels)
    scaled = Logistic().fit(features * units, labels)
    assert np.allclose(scaled.coefficients * units, plain.coefficients, rtol=1e-6)


def test_many_chunks_and_blocks_give_the_same_as_one():
    rng = np.random.default_rng(4)
    features = rng.normal(size=(1500, 200, 10))
    labels = np.where(rng.random((1500, 200)) < 0.5, 1.0, -1.0)
    whole = Logistic().fit(features, labels)
    part = Logistic().fit(features[1400:], labels[1400:])
    assert np.allclose(whole.coefficients[1400:], part.coefficients, rtol=0, atol=1e-9)


def test_bad_parameters_are_refused():
    with pytest.raises(InvalidParameter, match="l2"):
        Logistic(l2=-1.0)
    with pytest.raises(InvalidParameter, match="tolerance"):
        Logistic(tolerance=0.0)
