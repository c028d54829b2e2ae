"""Regressions on curves: points of their own, several channels, and what they say of slopes."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pytest
from sklearn.base import clone

from dpfda import (
    CurveEncoder,
    PrivateCovariance,
    PrivateCurveClassifier,
    PrivateCurveRegression,
    PrivateFunctionOnScalar,
)
from dpfda.central.regression.model import RegressionModel
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidData, InvalidParameter

matplotlib.use("Agg")

DATA, NOISE = simulate_001(2000, 0), simulate_001(2000, 9)
T = DATA.grid_points
BOTH = np.stack([NOISE.X, DATA.X], axis=2)  # the second channel tells the label
MODELS: list[Any] = [
    PrivateCurveClassifier(8.0, value_range=(-6, 6), random_state=0),
    PrivateCurveRegression(8.0, value_range=(-6, 6), target_range=(-1, 1), random_state=0),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)


def agreement(first: Any, second: Any) -> float:
    return float(np.mean(np.sign(first) == np.sign(second)))


@models
@pytest.mark.filterwarnings("ignore:nearly all curves reach")  # extrapolated to the whole domain
def test_lists_of_arrays_with_a_list_of_grids(model: Any) -> None:
    lengths = 60 + np.arange(2000) % 30
    ragged, grids = [x[:n] for x, n in zip(DATA.X, lengths, strict=True)], [T[:n] for n in lengths]
    pairs = list(zip(grids, ragged, strict=True))
    for X, points in ((ragged, grids), (pairs, None)):
        with pytest.raises(InvalidParameter, match="domain_range must be given"):
            clone(model).fit(X, DATA.y, grid_points=points)
    known = clone(model).set_params(domain_range=(0, 1))
    listed = clone(known).fit(ragged, DATA.y, grid_points=grids)
    paired = clone(known).fit(pairs, DATA.y)
    assert np.array_equal(listed.coef_, paired.coef_)
    assert np.array_equal(listed.predict(ragged, grid_points=grids), paired.predict(pairs))
    assert listed.score(ragged, DATA.y, grid_points=grids) == paired.score(pairs, DATA.y)
    chunks = lambda: [((ragged[:1000]), DATA.y[:1000]), (ragged[1000:], DATA.y[1000:])]  # noqa: E731
    with pytest.raises(InvalidData, match="one grid, or one for each curve"):
        clone(known).fit_stream(chunks, grid_points=grids)  # pairs say it chunk by chunk


@models
def test_curves_of_two_channels(model: Any) -> None:
    fitted = clone(model).fit(BOTH, DATA.y, grid_points=T)
    assert fitted.model_.encoder.channels == 2
    assert agreement(fitted.predict(BOTH), DATA.y) > 0.8
    mixed = np.stack([BOTH[::-1, :, 0], BOTH[:, :, 1]], axis=2)  # the first tells nothing
    assert agreement(fitted.predict(mixed), fitted.predict(BOTH)) > 0.85
    assert fitted.model_.slope().shape == (2, 101)
    assert len(fitted.model_.plot().lines) >= 2
    again = RegressionModel.from_json(fitted.model_.to_json())
    np.testing.assert_array_equal(again.predict(BOTH), fitted.predict(BOTH))
    pairs = [(T, x) for x in BOTH[:40]]
    found, wanted = (
        fitted.model_.decision_function(pairs),
        fitted.model_.decision_function(BOTH[:40]),
    )
    np.testing.assert_allclose(found, wanted)
    with pytest.raises(InvalidData, match="channels"):
        fitted.predict(DATA.X)


def test_channels_have_ranges_of_their_own() -> None:
    scaled = BOTH * [100.0, 1.0]
    same = clone(MODELS[0]).fit(BOTH, DATA.y)
    own = clone(MODELS[0]).set_params(value_range=[(-600, 600), (-6, 6)]).fit(scaled, DATA.y)
    assert np.array_equal(own.predict(scaled), same.predict(BOTH))
    with pytest.raises(InvalidParameter, match="value_range must be one pair, or 2"):
        clone(MODELS[0]).set_params(value_range=[(-6, 6)] * 3).fit(BOTH, DATA.y)


def test_an_encoder_of_one_channel_reads_each() -> None:
    encoder = CurveEncoder("cosine", n_basis=4, rescale="clip", scale=6.0)
    model = PrivateCurveClassifier(8.0, encoder=encoder, random_state=0)
    assert model.fit(BOTH, DATA.y).model_.encoder.channels == 2
    assert model.score(BOTH, DATA.y) > 0.8


@pytest.mark.parametrize(
    "fit",
    [
        lambda curves: PrivateCovariance(8.0, value_range=(-6, 6), random_state=0).fit(curves),
        lambda curves: PrivateFunctionOnScalar(
            8.0, feature_ranges=(-1, 1), value_range=(-6, 6), random_state=0
        ).fit(DATA.y[:, None], curves),
    ],
)
def test_other_releases_are_of_one_channel_and_say_so(fit: Any) -> None:
    with pytest.raises(InvalidData, match="of one channel"):
        fit(BOTH)
