"""The functional mechanism and its relaxation as published: contracts, fits and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda.central.regression.base import Regression
from dpfda.central.regression.problem import Bounds, Problem
from dpfda.checks.conversations import check_conversation
from dpfda.checks.magnitudes import check_magnitudes
from dpfda.checks.queries import check_query
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda_bench.published_fm import (
    EqualQuery,
    FunctionalMechanism,
    FunctionalQuery,
    RelaxedFM,
    published_l1,
)

QUERIES = [*FunctionalQuery.examples(), *EqualQuery.examples()]
METHODS = [(FunctionalMechanism(), 0.0), (RelaxedFM(), 1e-5)]


def line(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    return X, X @ [0.9, -0.5, 0.0] + 0.1 + rng.uniform(-0.1, 0.1, n)


def linear(**given: Any) -> PrivateLinearRegression:
    known: dict[str, Any] = {"feature_norm_bound": 1.0, "target_range": (-1, 1), "random_state": 1}
    return PrivateLinearRegression(**known | given)


@pytest.mark.parametrize("query", QUERIES, ids=lambda one: f"{one.name}-{one.link}")
def test_queries_keep_their_contract(query: Any) -> None:
    check_query(query)
    check_magnitudes(query)


@pytest.mark.parametrize(("method", "delta"), METHODS, ids=["fm", "relaxed_fm"])
def test_conversations_keep_their_contract(method: Any, delta: float) -> None:
    problem = Problem(link="linear", bounds=Bounds(center=np.zeros(2)))
    asked = Regression(epsilon=1.0, delta=delta, problem=problem, mechanism=method)
    check_conversation((asked, 4))


def test_bounds_of_the_paper() -> None:
    # 002, Table A1 and its form for |x|₂ ≤ 1 (docs/methods/functional-mechanism.md)
    assert published_l1("linear", 9) == pytest.approx(2 * (1 + 3) ** 2)
    assert published_l1("logistic", 16) == pytest.approx(4 + 4)


@pytest.mark.parametrize(("method", "delta"), METHODS, ids=["fm", "relaxed_fm"])
def test_intervals_hold_the_coefficients(method: Any, delta: float) -> None:
    X, y = line(20_000)
    truth = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y)[0][:-1]
    held = []
    for seed in range(40):
        model = linear(epsilon=4.0, delta=delta, mechanism=method, random_state=seed).fit(X, y)
        low, high = model.model_.interval(0.95)
        held.append((low <= truth) & (truth <= high))
    assert model.guarantee_.delta == delta
    assert np.mean((model.predict(X) - y) ** 2) < 0.05  # a constant: 0.09
    # Binomial: three standard errors of 40 runs at 0.95 are 3·√(0.95·0.05/40) = 0.103.
    assert np.mean(held, axis=0).min() >= 0.95 - 0.103
