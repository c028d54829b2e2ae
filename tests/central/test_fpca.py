"""Principal components as a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import dpfda
from dpfda import PrivateFPCA, PrivateLogisticRegression
from dpfda.errors import DoubtfulResult, InvalidParameter

T = np.linspace(0, 2, 30)
SHAPES = np.stack([np.ones(30), np.sqrt(2) * np.cos(np.pi * T / 2)]) / np.sqrt(2)  # ∫ over [0, 2]
SCORES = np.random.default_rng(0).normal(size=(4000, 2)) * [1.5, 0.5]
CURVES = SCORES @ SHAPES + np.sin(T)
KNOWN: dict[str, Any] = {"value_range": (-6, 6), "random_state": 0}


@pytest.fixture(scope="module")
def fitted() -> PrivateFPCA:
    return PrivateFPCA(4.0, **KNOWN).fit(CURVES, grid_points=T)


def test_scores_are_those_of_the_curves(fitted: PrivateFPCA) -> None:
    assert fitted.n_components_ == 2
    scores = fitted.transform(CURVES, grid_points=T)
    for k, spread in enumerate((1.5, 0.5)):
        assert abs(np.corrcoef(scores[:, k], SCORES[:, k])[0, 1]) > 0.98
        assert scores[:, k].std() == pytest.approx(spread, rel=0.1)
        assert np.sqrt(fitted.explained_variance_[k]) == pytest.approx(spread, rel=0.3)
    assert np.abs(fitted.mean_ - np.sin(T)).max() < 0.3


def test_curves_come_back_from_their_scores(fitted: PrivateFPCA) -> None:
    again = fitted.inverse_transform(fitted.transform(CURVES[:100], grid_points=T))
    assert np.abs(again - CURVES[:100]).mean() < 0.2


def test_a_covariance_whose_components_are_unknown_is_no_signal() -> None:
    waves = np.cos(np.pi * np.arange(5)[:, None] * T / 2)
    waves /= np.sqrt((waves**2).mean(axis=1, keepdims=True) * 2)
    alike = np.random.default_rng(0).normal(size=(2000, 5)) @ waves  # any direction is as good
    with pytest.warns(DoubtfulResult, match="No component stands out"):
        found = PrivateFPCA(2.0, value_range=(-6, 6), random_state=0).fit(alike)
    assert found.n_clear_ == 0
    release = found.release_
    assert release.verdict.kind == release.to_dict()["verdict"]["kind"] == "noise"
    assert release.warnings == release.verdict.sentences  # said once
    saved = type(release).from_json(release.to_json())
    assert saved.verdict == release.verdict


def test_one_curve_and_other_curves(fitted: PrivateFPCA) -> None:
    one = fitted.transform(CURVES[:1], grid_points=T)
    assert one == pytest.approx(fitted.transform(CURVES[:2], grid_points=T)[:1])
    with pytest.raises(ValueError, match="X has 29 features, but PrivateFPCA is expecting 30"):
        fitted.transform(CURVES[:, :-1])
    assert list(fitted.get_feature_names_out()) == ["component 1", "component 2"]


@pytest.mark.filterwarnings("ignore:No component stands out")
def test_what_does_not_stand_out_of_the_noise_is_left_out() -> None:
    weak = SCORES[:500] * [1.0, 0.1] @ SHAPES
    found = [PrivateFPCA(0.5, value_range=(-6, 6), random_state=k).fit(weak) for k in range(20)]
    assert np.mean([one.n_components_ == 1 for one in found]) > 0.6
    flat = 0.001 * CURVES[:300]
    with pytest.warns(DoubtfulResult, match="noise .* a covariance of 0"):
        none = [PrivateFPCA(0.5, value_range=(-6, 6), random_state=k).fit(flat) for k in range(20)]
    assert {one.n_components_ for one in none} == {1}  # one at least
    assert np.mean([one.release_.verdict.doubted for one in none]) >= 0.9


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n", "epsilon"), [(30, 1.0), (4000, 0.01), (100, 1.0), (4000, 1.0)])
def test_a_component_that_stands_out_is_near_the_one_without_noise(n: int, epsilon: float) -> None:
    curves = CURVES[:n]
    weights = np.convolve(np.diff(T), [0.5, 0.5])
    root = np.sqrt(weights)
    truth = np.linalg.eigh(root[:, None] * np.cov(curves.T) * root)[1][:, -1] / root
    found = [
        PrivateFPCA(epsilon, value_range=(-6, 6), random_state=seed).fit(curves, grid_points=T)
        for seed in range(20)
    ]
    clear = [abs(one.components_[0] * weights @ truth) for one in found if one.n_clear_]
    if n * epsilon < 100:  # noise turns the component anywhere
        assert not clear
        assert all(one.release_.warnings for one in found)
        assert "No component stands out of the noise" in found[0].in_words()
    assert all(cosine > 0.6 for cosine in clear)
    if n * epsilon > 1000:
        assert len(clear) >= 18


def test_how_many_may_be_said() -> None:
    three = PrivateFPCA(4.0, n_components=3, **KNOWN).fit(CURVES, grid_points=T)
    assert three.components_.shape == (3, 30)
    assert three.explained_variance_.shape == (3,)
    with pytest.raises(InvalidParameter, match="n_components must be"):
        PrivateFPCA(4.0, n_components=99, **KNOWN).fit(CURVES, grid_points=T)


def test_budgets_of_a_pipeline_add_up() -> None:
    y = (SCORES[:, 0] > 0).astype(int)
    with dpfda.budget(2.0) as ledger:
        path = make_pipeline(
            PrivateFPCA(1.0, value_range=(-6, 6), n_components=2),
            PrivateLogisticRegression(1.5, feature_norm_bound=6.0, classes=(0, 1)),
        ).fit(CURVES, y)
        assert path.score(CURVES, y) > 0.85
        left = PrivateFPCA(1.0, value_range=(-6, 6))
        with pytest.raises(dpfda.errors.BudgetExceeded):
            left.fit(CURVES)
    assert len(ledger.entries) > 3
