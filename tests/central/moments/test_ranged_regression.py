"""Regressions and classes of curves whose range nobody knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import Ledger, PrivateCurveClassifier, PrivateCurveRegression, load
from dpfda.central.channels import ChannelQuery
from dpfda.central.regression.base import Fitted, RangedRegression, in_features
from dpfda.central.regression.model import RegressionModel
from dpfda.central.regression.released import Released
from dpfda.checks.conversations import Rehearsal
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter
from dpfda.protocol.conversation import converse

T = np.linspace(0, 1, 30)
SHAPES = np.stack([np.ones(30), np.cos(np.pi * T), np.sin(2 * np.pi * T)])


def people(n: int, *, level: float = 0.0, size: float = 1.0, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 3)) * [1.0, 0.7, 0.4]
    y = scores @ [1.0, -0.5, 0.3] + 0.3 * rng.normal(size=n)
    return level + size * scores @ SHAPES, y


@pytest.mark.parametrize(("level", "size"), [(0.0, 1.0), (40.0, 1.0), (1e5, 300.0), (0.0, 1e-4)])
def test_a_line_is_found_wherever_curves_are(level: float, size: float) -> None:
    X, y = people(4000, level=level, size=size)
    model = PrivateCurveRegression(1.0, target_range=(-6, 6), random_state=0).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.4 * y.var()
    again = RegressionModel.from_json(model.model_.to_json())
    assert np.allclose(again.predict(X), model.predict(X))
    assert model.slope().middle.shape == (101,)


def test_bands_have_the_units_of_the_curves() -> None:
    wide, near = (
        PrivateCurveRegression(2.0, target_range=(-6, 6), random_state=0, **known)
        .fit(*people(6000))
        .slope()
        for known in ({}, {"value_range": (-4, 4)})
    )
    assert 0.4 < np.median((wide.high - wide.low) / (near.high - near.low)) < 2.5


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_told_apart(classes: int) -> None:
    X, y = people(6000, level=70.0, size=5.0)
    label = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    known: dict[str, Any] = {"classes": range(classes), "random_state": 0}
    model = PrivateCurveClassifier(1.0, **known).fit(X, label)
    right = PrivateCurveClassifier(1.0, value_range=(50, 90), **known).fit(X, label)
    assert model.score(X, label) > right.score(X, label) - 0.05
    assert model.stages_ > right.stages_ + 5


@pytest.mark.parametrize("classes", [2, 3])
def test_chunks_give_the_same_bits(classes: int) -> None:
    X, y = people(1500, level=7.0)
    label = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    known: dict[str, Any] = {"classes": range(classes), "random_state": 0}
    whole = PrivateCurveClassifier(1.0, **known).fit(X, label)
    chunked = PrivateCurveClassifier(1.0, **known)
    chunked.fit_stream(lambda: iter([(X[:600], label[:600]), (X[600:], label[600:])]))
    assert np.array_equal(whole.model_.fit.slope, chunked.model_.fit.slope)
    with pytest.raises(InvalidData, match="X must be given at once or through fit_stream"):
        PrivateCurveClassifier(1.0, **known).partial_fit(X, label)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_ledger_pays_for_the_search_too(delta: float) -> None:
    ledger = Ledger(1.0, limit_delta=delta)
    X, y = people(1500)
    model = PrivateCurveRegression(1.0, delta=delta, target_range=(-6, 6), ledger=ledger)
    model.fit(X, y)
    assert len(ledger.entries) == model.stages_ > 10
    assert ledger.spent.epsilon == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        model.fit(X, y)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_shares_of_the_budget_add_up_to_it(delta: float) -> None:
    for asked in RangedRegression.examples(n=3000, epsilon=1.0, delta=delta):
        holder = Rehearsal(asked, 3000)
        converse(asked, lambda query, number, holder=holder: holder.answer(query, number=number))
        queries: list[Any] = [one.query for one in holder.transcript]
        shares = [getattr(query, "query", query).cost.share for query in queries]
        assert sum(shares) == 1
        assert isinstance(queries[0], ChannelQuery)


def test_too_few_or_too_many_channels_are_refused() -> None:
    X, y = people(400)
    for delta, least in ((1e-5, 500), (0.0, 1000)):
        with pytest.raises(InvalidParameter, match=f"below {least}: too few curves"):
            PrivateCurveRegression(1.0, delta=delta, target_range=(-6, 6)).fit(X, y)
    with pytest.raises(InvalidParameter, match=r"below 500: too few curves"):
        PrivateCurveClassifier(1.0, classes=(0, 1, 2)).fit(X, np.arange(400) % 3)
    with pytest.raises(InvalidParameter, match="one pair for each channel"):
        PrivateCurveRegression(9.0, target_range=(-6, 6)).fit(np.stack([X, X], axis=2), y)
    with pytest.raises(InvalidParameter, match="mechanism must be 'moments' where value_range"):
        PrivateCurveRegression(9.0, target_range=(-6, 6), mechanism="gaussian_fm").fit(X, y)


def test_a_fit_in_features_predicts_the_same() -> None:
    fitted = Fitted(
        slope=np.array([2.0, -1.0]), offset=0.5, center=np.array([3.0, 4.0]), radius=2.0,
        released=Released(
            matrix=np.eye(2), vector=np.ones(2), matrix_variance=np.zeros((2, 2)), rows=9,
            vector_sigma=0.1, constant=False, combinations=3 * np.eye(2),
        ),
    )  # fmt: skip
    rows = np.array([[3.5, 4.0], [9.0, -7.0]])
    scaled = in_features(fitted)
    assert np.allclose(scaled.predict(rows / 2.0**31), fitted.predict(rows))
    assert fitted.released is not None
    assert scaled.released is not None
    assert np.allclose(scaled.released.slopes(9), 2.0**31 * fitted.released.slopes(9))


def test_a_saved_model_says_that_the_range_was_found(tmp_path: Any) -> None:
    X, y = people(2000)
    model = PrivateCurveRegression(1.0, target_range=(-6, 6), random_state=0).fit(X, y).model_
    model.save(tmp_path / "m.json")
    assert "value range found privately" in load(tmp_path / "m.json").method_paragraph()
