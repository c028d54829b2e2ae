"""The convergence conditions of 004 §IV: what each rule compares, its noise, and the report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import LocalAdaBoostClassifier, LocalGradientBoostingClassifier
from dpfda.local.boosting.ensemble import Ensemble
from dpfda.local.boosting.request import OwnerRows
from dpfda.local.boosting.samme_study import ClassifierRequest, _mean_share
from dpfda.local.boosting.shares import SampleRequest, StatisticRequest
from dpfda.noise import SimulationSource

COMMON: dict[str, Any] = {
    "epsilon": 2.0, "people": 1, "dimension": 2, "n_classes": 2, "n_rows": 3,
    "ensemble": Ensemble.empty([(-1.0, 1.0)] * 2, classes=2),
}  # fmt: skip
REQUESTS = {
    "sample": SampleRequest(**COMMON),
    "statistic": StatisticRequest(**COMMON, thresholds=[[0.0], [0.0]]),  # type: ignore[arg-type]
    "classifier": ClassifierRequest(**COMMON),
}


def test_what_is_compared() -> None:
    # Centroids (.5, 0) and (-.5, 0) of weights ½; a number of the mean has the variance .01.
    gap, noise = REQUESTS["sample"].evidence(np.array([-0.25, 0, 0.5, 0.25, 0, 0.5]), 0.01)
    assert noise == pytest.approx(np.sqrt(2 * 0.01 / 0.25))
    assert gap == pytest.approx(np.sqrt(1 - 2 * noise**2))
    # Two features at one threshold: φ = .3 + .4 and .1 + .1.
    gap, noise = REQUESTS["statistic"].evidence(np.array([-0.3, 0.1, 0.4, -0.1]), 0.01)
    assert (gap, noise) == (pytest.approx(0.5), pytest.approx(0.2))
    gap, noise = REQUESTS["classifier"].evidence(np.array([0.6, 0.0, 0.8]), 0.01)
    assert noise == pytest.approx(np.sqrt(0.03))
    assert gap == pytest.approx(np.sqrt(1 - 0.03))
    assert REQUESTS["classifier"].evidence(np.zeros(3), 0.01)[0] == 0


@pytest.mark.parametrize("name", REQUESTS)
def test_the_variance_is_that_of_the_mean(name: str) -> None:
    """Owners whose weights are all 0 send noise about 0: 200 means of 20 replies."""
    asked, owners, times = REQUESTS[name], 20, 200
    absent = OwnerRows(
        np.zeros((owners * times, 3, 2)),
        np.zeros((owners * times, 3), dtype=np.int64),
        np.zeros((owners * times, 3), dtype=bool),
    )
    many = type(asked)(**COMMON | {"people": owners * times} | (
        {"thresholds": asked.thresholds} if isinstance(asked, StatisticRequest) else {}
    ))  # fmt: skip
    replies = many.answer(absent, SimulationSource(0)).values.reshape(times, owners, -1)
    found = [_mean_share(asked, part) for part in replies]
    means = np.array([one["mean"] for one in found])
    # Five standard errors of a variance; reports of d numbers have heavier tails than normal ones.
    error = 5 * np.sqrt(3 / means.size)
    assert abs(means.var() / float(found[0]["variance"]) - 1) < error
    assert float(_mean_share(asked, replies[0][:0])["variance"]) == 0


@pytest.mark.parametrize("rule", ["sample", "statistic", "classifier"])
def test_the_report_says_where_the_condition_held(rule: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    held = {}
    for epsilon in (0.1, 20.0):
        made = LocalAdaBoostClassifier(
            epsilon, rule=rule, n_rounds=3, feature_ranges=[(-1, 1)] * 2, random_state=0
        )
        own = {"reference": X[:300], "reference_labels": y[:300]}
        made.fit(X, y, groups=np.repeat(np.arange(2000), 3), **own)
        rows = made.history_
        held[epsilon] = np.mean([row["compared"] > row["noise"] for row in rows[:1]])
        text = made.report().html()
        count = sum(row["compared"] > row["noise"] for row in rows)
        assert f"This held in {count} of {len(rows)} rounds" in text
    assert held == {0.1: 0, 20.0: 1}  # of the first round, whose weights are equal


def test_gradients_have_no_such_condition() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (900, 2))
    made = LocalGradientBoostingClassifier(2.0, feature_ranges=[(-1, 1)] * 2, random_state=0)
    made.fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    assert "004 §IV" not in made.report().html()
