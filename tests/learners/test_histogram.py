"""The histogram classifier: cells, sums, and the form a study uses."""

import json

import numpy as np
import pytest

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.learners import Models
from dpfda.learners.histogram import Histogram, HistogramModels


def brute_force(features, labels, weights, bins):
    """Cell sums by a loop over rows and axes."""
    sums = np.zeros((len(features), bins ** features.shape[2]))
    for b, rows in enumerate(features):
        for row, label, weight in zip(rows, labels[b], weights[b], strict=True):
            number = 0
            for axis, value in enumerate(row):
                place = int(np.floor((value + 1.0) / 2.0 * bins))
                number += min(max(place, 0), bins - 1) * bins**axis
            sums[b, number] += weight * label
    return sums


@pytest.mark.parametrize(("bins", "d"), [(1, 2), (4, 1), (3, 3), (4, 5)])
def test_cell_sums(bins, d):
    rng = np.random.default_rng(0)
    features = rng.uniform(-1.3, 1.3, (4, 60, d))
    labels = np.where(rng.random((4, 60)) < 0.5, 1.0, -1.0)
    weights = rng.integers(0, 3, (4, 60)).astype(float)
    models = Histogram(bins=bins).fit(features, labels, weights=weights)
    assert np.array_equal(models.cells, brute_force(features, labels, weights, bins))


def test_scores_are_the_sums_of_the_own_cell():
    rng = np.random.default_rng(1)
    features = rng.uniform(-1, 1, (3, 50, 2))
    labels = np.where(rng.random((3, 50)) < 0.5, 1.0, -1.0)
    models = Histogram().fit(features, labels)
    shared = models.scores(features[0])
    assert np.array_equal(shared[0], models.scores(features)[0])
    # Every row's own label is in its cell's sum: labels times sums add up to Σ sums².
    assert np.sum(labels * models.scores(features)) == np.sum(models.cells**2)


def test_both_ends_belong_to_a_cell():
    models = Histogram(bins=4).from_cell_sums([1.0, 2.0, 3.0, 4.0], n_features=1)
    rows = [[-1.0], [-0.5], [0.0], [0.999], [1.0], [-50.0], [50.0]]
    assert models.scores(rows).tolist() == [[1.0, 2.0, 3.0, 4.0, 4.0, 1.0, 4.0]]


def test_indicators_add_up_to_the_fit():
    rng = np.random.default_rng(2)
    features = rng.uniform(-1, 1, (40, 2))
    labels = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    learner = Histogram(bins=3)
    reports = learner.indicators(features, labels)
    assert reports.shape == (40, 9)
    assert np.all(np.sum(np.abs(reports), axis=1) == 1.0)
    collected = learner.from_cell_sums(reports.sum(axis=0), n_features=2)
    fitted = learner.fit(features[None], labels[None])
    assert np.array_equal(collected.cells, fitted.cells)
    assert np.array_equal(collected.predict(features), fitted.predict(features))


def test_empty_cells_are_class_plus_one():
    models = Histogram(bins=2).fit([[[-0.5]]], [[-1]])
    assert models.predict([[-0.5], [0.5]]).tolist() == [[-1.0, 1.0]]


def test_models_travel_combine_and_keep_their_shape():
    models = HistogramModels(cells=[[1.0, -3.0], [0.0, 0.0]], bins=2, dimension=1)
    again = Models.from_dict(json.loads(json.dumps(models.to_dict())))
    assert isinstance(again, HistogramModels)
    assert np.array_equal(again.cells, models.cells)
    assert models.normalised().cells.tolist() == [[1 / 3, -1.0], [0.0, 0.0]]
    assert models.reversed_where([True, False]).cells.tolist() == [[-1.0, 3.0], [0.0, 0.0]]
    assert models.select([1, 0, 0]).cells.shape == (3, 2)
    assert models.average([[1.0], [2.0]]).cells.tolist() == models.cells.tolist()


def test_too_many_cells_and_wrong_shapes_are_refused():
    with pytest.raises(InvalidParameter, match="bins"):
        Histogram(bins=10).n_cells(20)
    with pytest.raises(InvalidParameter, match="bins"):
        Histogram(bins=0)
    with pytest.raises(InvalidData, match="cells"):
        Histogram(bins=2).from_cell_sums([1.0, 2.0, 3.0], n_features=1)
    with pytest.raises(InvalidData, match="features"):
        Histogram().indicators([[0.0], [1.0]], [1])
