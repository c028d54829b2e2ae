"""The weighted mean of curves: what is estimated, and that a weight is as private as its curve."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpfda import PrivateMean, load
from dpfda.central.mean import MeanRelease
from dpfda.central.weighted_mean import OF_CURVES, MeanWeight, WeightedMean
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.privacy.cost import Cost
from dpfda.privacy.guarantee import WEIGHTS_ARE_INDIVIDUAL
from dpfda.privacy.ledger import Ledger

T = np.linspace(0, 1, 20)


def surveyed(n: int = 8000) -> tuple[Any, Any]:
    """People of one kind are asked eight times as often as others, whose curves differ."""
    rng = np.random.default_rng(0)
    often = rng.random(n) < 0.7
    weights = np.where(often, 1.0, 8.0) * rng.uniform(0.5, 1, n)
    curves = np.sin(3 * T) + 0.2 * rng.normal(size=(n, 1)) + np.where(often, 0.4, -0.4)[:, None] * T
    return curves, weights


def mean(epsilon: float = 1.0, **more: Any) -> PrivateMean:
    return PrivateMean(epsilon, **({"value_range": (-2, 2), "weight_bound": 8.0} | more))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_weighted_mean_is_estimated_and_its_band_holds(delta: float, tmp_path: Path) -> None:
    curves, weights = surveyed()
    truth = weights @ curves / weights.sum()
    held = []
    for seed in range(20):
        fit = mean(delta=delta, random_state=seed).fit(curves, sample_weight=weights, grid_points=T)
        assert np.abs(fit.mean_ - truth).max() < 0.1 < np.abs(fit.mean_ - curves.mean(axis=0)).max()
        low, high = fit.release_.interval(simultaneous=True)
        assert np.all(high - low < 0.3)
        held.append(np.all((low <= truth) & (truth <= high)))
    assert np.mean(held) >= 0.8  # of 95 %: less happens with probability 0.0003
    assert abs(fit.release_.parameters["mean_weight"] / weights.mean() - 1) < 0.05
    assert "weight bound 8" in fit.release_.method_paragraph()
    fit.release_.save(tmp_path / "mean.json")
    np.testing.assert_allclose(
        load(tmp_path / "mean.json").interval()[0], fit.release_.interval()[0]
    )


def test_equal_weights_give_the_plain_mean() -> None:
    curves, _ = surveyed(2000)
    known: dict[str, Any] = {"epsilon": 50.0, "random_state": 0}
    equal = mean(**known).fit(curves, sample_weight=np.full(2000, 8.0)).mean_
    np.testing.assert_allclose(equal, curves.mean(axis=0), atol=0.01)
    beyond = mean(**known).fit(curves, sample_weight=np.full(2000, 1e9)).mean_
    assert np.array_equal(beyond, equal)  # moved to the bound


def test_weights_have_a_share_of_the_same_budget() -> None:
    curves, weights = surveyed(2000)
    ledger = Ledger(1.0, limit_delta=1e-6)
    fit = mean(ledger=ledger, random_state=0).fit(curves, sample_weight=weights)
    assert fit.guarantee_.epsilon == 1.0
    assert 0.99 < ledger.spent.epsilon <= 1.0
    assert "mean_weight" in ledger.entries[0].label
    assert WEIGHTS_ARE_INDIVIDUAL in fit.guarantee_.assumptions


def test_several_curves_of_a_person_are_averaged_with_their_weights() -> None:
    curves, weights = surveyed(4000)
    persons = np.repeat(np.arange(2000), 2)
    fit = mean(20.0, random_state=0).fit(curves, sample_weight=weights, groups=persons)
    assert fit.release_.parameters["n"] == 2000
    np.testing.assert_allclose(fit.mean_, weights @ curves / weights.sum(), atol=0.02)


def test_a_mean_weight_is_moved_by_one_over_n_at_most() -> None:
    query = MeanWeight(cost=Cost(epsilon=1.0), n=4)
    rows = np.zeros((4, 1))

    def exact(*weights: float) -> float:
        return float(query.statistic(query.sums(query.fitting((rows, np.array(weights)))))[0])

    assert exact(1, 1, 1, 0.5) == 0.875
    for weight in (1.5, 1e300, np.inf):
        assert exact(weight, 0, 0, 0) == 0.25
    for weight in (-1.0, -np.inf, np.nan):
        assert exact(weight, 0, 0, 0) == 0.0


def test_a_curve_far_out_counts_as_one_at_the_bound() -> None:
    curves, _ = surveyed(2000)
    curves[:1000] = 1e6
    light = np.where(np.arange(2000) < 1000, 0.08, 8.0)  # so that a product would look harmless
    fit = mean(50.0, random_state=0).fit(curves, sample_weight=light)
    assert np.abs(fit.mean_ - curves[1000:].mean(axis=0)).max() < 0.1


def test_a_hidden_mean_weight_is_told() -> None:
    curves, _ = surveyed(500)
    with pytest.warns(UserWarning, match="noise hides the mean of the weights"):
        mean(weight_bound=1e5, random_state=0).fit(curves, sample_weight=np.ones(500))


def test_the_parts_must_fit_together() -> None:
    known: dict[str, Any] = {"epsilon": 1.0, "delta": 0.05, "n": 50}
    one = MeanRelease.examples(**known)[0]
    with pytest.raises(InvalidParameter, match="share must be 9/10 of the budget"):
        WeightedMean(**known, mean=one, weight_bound=1.0)
    (first, *_) = WeightedMean.examples(**known)
    assert first.mean.share == OF_CURVES
    with pytest.raises(InvalidParameter, match="about the same records"):
        WeightedMean(epsilon=2.0, delta=0.05, n=50, mean=first.mean, weight_bound=1.0)


def test_refusals() -> None:
    curves, weights = surveyed(300)
    seeded: dict[str, Any] = {"random_state": 0}
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"weight_bound": None}, "weight_bound must be given with sample_weight"),
        ({"value_range": None}, "value_range must be given with sample_weight"),
        ({"inference": True}, "inference must be False with sample_weight"),
        ({"design": "sparse"}, "design must be 'dense' with sample_weight"),
        ({"weight_bound": -1.0}, "weight_bound must be a finite number above 0"),
    )
    for parameters, rule in cases:
        with pytest.raises(InvalidParameter, match=rule):
            mean(**(seeded | parameters)).fit(curves, sample_weight=weights)
    with pytest.raises(InvalidParameter, match="curves must be of one channel with sample_weight"):
        mean(**seeded).fit(np.stack([curves] * 2, axis=2), sample_weight=weights)
    for call in (
        lambda: mean(**seeded).fit(curves),
        lambda: mean(**seeded).fit_stream(lambda: iter([curves])),
    ):
        with pytest.raises(InvalidParameter, match="sample_weight must be given with weight_bound"):
            call()
    for bad in (weights[:9], np.full(300, np.nan), np.full(300, "7654x")):
        with pytest.raises(InvalidData, match="sample_weight must be") as refused:
            mean(**seeded).fit(curves, sample_weight=bad)
        assert "7654x" not in str(refused.value)
