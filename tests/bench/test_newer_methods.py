"""Newer methods of the literature: right without noise, and no better than the default with it."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda_bench.benchmarks import regression_utility as bench
from dpfda_bench.newer_methods import rivals


@pytest.mark.parametrize("method", rivals("linear"))
def test_with_a_huge_budget_they_predict_like_a_fit_without_privacy(method: str) -> None:
    split = bench.Split(bench.random_problem(bench.FAMILIES[1], 0), seed=0)
    predict = rivals("linear")[method](
        split.X, split.y, epsilon=500.0, delta=1e-5, rng=np.random.default_rng(0)
    )
    # DP-EBM takes 300 steps of 1 % and has 32 steps a column: a twentieth is left of the variance.
    assert split.score(predict(split.unseen)) < 1.1 * split.non_private() + 0.05 * split.trivial()


@pytest.mark.parametrize("method", rivals("logistic"))
def test_labels_are_told_apart(method: str) -> None:
    data = bench.random_problem(bench.FAMILIES[1], 1)
    labels = (data.y > np.median(data.y)).astype(float)
    fit = rivals("logistic")[method]
    predict = fit(data.X, labels, epsilon=500.0, delta=1e-5, rng=np.random.default_rng(0))
    found = predict(data.X)
    if method == "DP-EBM":  # the other fits a line to 0 and 1
        assert ((found >= 0) & (found <= 1)).all()
    assert np.mean((found > 0.5) == labels) > 0.75


@pytest.mark.parametrize(("family", "count"), [(bench.FAMILIES[0], 2), (bench.FAMILIES[1], 5)])
def test_the_default_is_not_worse_on_random_problems(family: str, count: int) -> None:
    problems = [bench.random_problem(family, seed) for seed in range(count)]
    for data in problems:
        assert np.linalg.norm(data.X, axis=1).max() <= 1 + 1e-12
        assert 0 <= data.y.min() <= data.y.max() <= 1
    # A few of the twenty problems of the benchmark, where every excess lies 2.4 or more standard
    # errors below 0 (docs/project/literature.md).
    for row in bench.beside_newer(family, problems):
        assert row["excess"] <= 2 * row["± excess"], row
