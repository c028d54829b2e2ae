"""A private score: right on average, as noisy as it says, one number a person."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import Ledger, private_score
from dpfda.central.queries import BallMean
from dpfda.central.score import ScoreRelease
from dpfda.errors import BudgetExceeded, InvalidData

N = 400
LABELS = np.array(["a", "b", "b", "b"] * (N // 4))
ROWS = np.zeros((N, 2))


class Says:
    """A public model that predicts what it was told."""

    def __init__(self, predictions: Any) -> None:
        self.predictions = predictions

    def predict(self, rows: Any) -> Any:
        return self.predictions


def scored(**more: Any) -> Any:
    return private_score(Says(np.full(N, "b")), ROWS, LABELS, **{"epsilon": 1.0} | more)


def test_gaussian_noise_is_not_used_where_it_is_larger() -> None:
    """√2/(nε) is less than σ = 1/(nμ), μ = 0.26805 being exactly (1, 1e-5) (Balle & Wang 2018)."""
    gaussian = next(ScoreRelease(epsilon=1.0, delta=1e-5, n=N).questions())
    assert isinstance(gaussian, BallMean)
    assert gaussian.mechanism.law.variance[0] ** 0.5 == pytest.approx(1 / (N * 0.268052), rel=1e-3)
    found = scored(delta=1e-5, random_state=0)
    assert found.guarantee.delta == 0
    assert found.noise == scored(delta=0, random_state=0).noise
    assert scored(delta=0.2, random_state=0).guarantee.delta == 0.2


def test_right_on_average_and_as_noisy_as_it_says() -> None:
    noise = np.sqrt(2) / N  # √2/(nε)
    scores = [scored(random_state=seed) for seed in range(800)]
    values = np.array([float(score) for score in scores])
    assert scores[0].noise == pytest.approx(noise, rel=1e-3)
    assert values.mean() == pytest.approx(0.75, abs=4 * noise / np.sqrt(800))
    assert values.std() == pytest.approx(noise, rel=0.15)  # 5 standard errors of a Laplace std
    low, high = scores[0].interval
    sampling = 1.96 * np.sqrt(noise**2 + scores[0].accuracy * (1 - scores[0].accuracy) / N)
    assert (high - low) / 2 == pytest.approx(sampling, rel=1e-3)


def test_rows_of_a_person_are_averaged() -> None:
    groups = np.arange(N) // 4  # one of four rows of each person is wrong
    score = scored(groups=groups, epsilon=1e4, random_state=0)
    assert score.n == N // 4
    assert score.accuracy == pytest.approx(0.75, abs=1e-3)
    assert score.noise == pytest.approx(np.sqrt(2) / (N // 4 * 1e4), rel=1e-3)


def test_it_is_paid_for_and_says_its_promise() -> None:
    ledger = Ledger(1.0)
    score = scored(ledger=ledger, unit="scan")
    assert ledger.spent.epsilon == 1.0
    assert "ε = 1, central, unit = scan, sampler = exact" in str(score)
    with pytest.raises(BudgetExceeded):
        scored(ledger=ledger)


def test_wrong_shapes_are_refused_without_a_value() -> None:
    with pytest.raises(InvalidData, match="one label for each prediction"):
        private_score(Says(np.zeros(3)), ROWS, LABELS, epsilon=1.0)
    with pytest.raises(InvalidData, match="groups"):
        scored(groups=[1, 2])


def test_an_impossible_share_is_cut() -> None:
    values = [scored(epsilon=0.001, random_state=seed).accuracy for seed in range(50)]
    assert min(values) == 0.0
    assert max(values) == 1.0


@pytest.mark.parametrize("rare", ["HIV", None, float("nan"), np.ones(2), 0.5])
def test_one_label_changes_one_person(rare: Any) -> None:
    """A word among numbers would make words of all of them, none of which is predicted."""
    labels: list[Any] = [1] * N
    labels[3] = rare
    score = private_score(Says(np.ones(N, int)), ROWS, labels, epsilon=1.0, random_state=0)
    assert score.accuracy > 0.95


def test_curves_come_with_their_points() -> None:
    class Needs(Says):
        def predict(self, rows: Any, *, grid_points: Any = None) -> Any:
            assert grid_points is not None
            return self.predictions

    found = private_score(
        Needs(LABELS), ROWS, LABELS, epsilon=1.0, grid_points=[0.0, 1.0], random_state=0
    )
    assert found.accuracy > 0.9
