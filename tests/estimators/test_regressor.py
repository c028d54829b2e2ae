"""`LocalCurveRegressor`, and the documents and commands that its model goes through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import dpfda
from dpfda import Ledger, LocalCurveRegressor
from dpfda.cli._group import dpfda as command
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter
from dpfda.protocol.model import CurveRegression

T = np.linspace(0, 1, 25)
PUBLIC: dict[str, Any] = {"value_range": (-6, 6), "target_range": (-15, 25)}


def people(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Curves whose level and slope explain three quarters of a number; all ranges are off."""
    rng = np.random.default_rng(seed)
    level, slope = rng.normal(1.0, 1.0, n), rng.normal(0.5, 1.0, n)
    X = level[:, None] + slope[:, None] * (T - 0.5)
    return X, 8 + 3 * level + 0.8 * slope + 1.8 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted() -> LocalCurveRegressor:
    regressor = LocalCurveRegressor(2.0, **PUBLIC, evaluation_share=0.2, random_state=0)
    return regressor.fit(*people(6000))


def test_it_learns_although_no_range_is_centered(fitted: LocalCurveRegressor) -> None:
    assert fitted.score(*people(5000, 1)) > 0.6
    assert fitted.guarantee_.epsilon == 2.0
    assert fitted.guarantee_.model == "local"


def test_the_error_that_people_state_covers_the_truth(fitted: LocalCurveRegressor) -> None:
    X, y = people(20_000, 2)
    error = fitted.error_estimate_
    assert error is not None
    low, high = error.interval(0.9999)
    assert low < np.sqrt(np.mean((fitted.predict(X) - y) ** 2)) < high


def test_it_stands_beside_the_mean_and_no_privacy(fitted: LocalCurveRegressor) -> None:
    result = fitted.evaluate(*people(5000, 3))
    errors = {name: error.value for name, error in result.errors.items()}  # type: ignore[union-attr]
    assert errors["non-private"] < errors["private"] < errors["mean"]
    assert str(result).startswith("Better than the mean")
    rows = {row["quantity"]: row for row in result.table()}
    assert rows["error, private"]["low"] < errors["private"] < rows["error, private"]["high"]


def test_predictions_keep_to_the_public_range(fitted: LocalCurveRegressor) -> None:
    far = fitted.predict(np.array([[1e9] * 25, [-1e9] * 25]))
    assert np.all((far >= -15) & (far <= 25))
    assert fitted.slope().shape == (1, 101)


def test_the_same_seed_gives_the_same_model_and_another_does_not() -> None:
    X, y = people(800)
    regressor = LocalCurveRegressor(2.0, **PUBLIC, random_state=3)
    documents = [clone(regressor).fit(X, y).model_.to_json() for _ in range(2)]
    assert documents[0] == documents[1]
    assert clone(regressor).set_params(random_state=4).fit(X, y).model_.to_json() != documents[0]


def test_everybody_is_charged_before_anybody_is_asked() -> None:
    X, y = people(800)
    ledger = Ledger(3.0)
    regressor = LocalCurveRegressor(2.0, **PUBLIC, ledger=ledger)
    with dpfda.budget(epsilon=10.0):
        regressor.fit(X, y)
    assert ledger.remaining.epsilon == 1.0
    with pytest.raises(BudgetExceeded):
        regressor.fit(X, y)
    assert ledger.remaining.epsilon == 1.0
    assert regressor.guarantee_.sampler == "exact"


def test_people_with_several_rows_report_one() -> None:
    X, y = people(2000)
    regressor = LocalCurveRegressor(2.0, **PUBLIC, random_state=0)
    regressor.fit(X, y, groups=np.arange(2000) // 2)
    assert regressor.plan_.n_people == 1000


def test_few_people_say_no_more_than_the_mean() -> None:
    X, y = people(60)
    regressor = LocalCurveRegressor(1.0, **PUBLIC, random_state=0).fit(X, y)
    assert regressor.server_.findings.verdict.kind == "unclear"
    predicted = regressor.predict(X)
    assert np.ptp(predicted) < 0.2 * np.ptp(y)


def test_a_range_of_the_target_must_be_stated() -> None:
    X, y = people(60)
    with pytest.raises(InvalidParameter, match="target_range must be given"):
        LocalCurveRegressor(1.0, value_range=(-6, 6), random_state=0).fit(X, y)
    with pytest.raises(InvalidParameter, match="value_range must be given"):
        LocalCurveRegressor(1.0, target_range=(0, 1)).fit(X, y)
    with pytest.raises(NotFittedError):
        LocalCurveRegressor(1.0, **PUBLIC).predict(X)


def test_with_real_noise_no_number_is_refused_and_none_is_shown() -> None:
    X, _ = people(60)
    odd = ["SECRET", None, float("nan"), *[3] * 57]
    regressor = LocalCurveRegressor(1.0, **PUBLIC).fit(X, odd)
    assert np.all(np.isfinite(regressor.predict(X)))
    with pytest.raises(InvalidData, match="60 numbers, one for each row"):
        regressor.fit(X, odd[1:])
    with pytest.raises(ValueError, match="y") as told:
        clone(regressor).set_params(random_state=0).fit(X, odd)
    assert "SECRET" not in str(told.value)


def test_a_table_with_named_columns_and_categories() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.uniform(20, 80, 4000), "sex": rng.choice(["f", "m"], 4000)})
    y = 0.5 * rows["age"] + 10 * (rows["sex"] == "m") + rng.normal(size=4000)
    ranges = {"age": (20, 80), "sex": ["f", "m"]}
    regressor = LocalCurveRegressor(
        3.0, feature_ranges=ranges, target_range=(0, 100), random_state=0
    )
    assert regressor.fit(rows, y).score(rows, y) > 0.6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ranges", [{"value_range": (-9, 9)}, {"feature_ranges": (-9, 9)}])
def test_scikit_learn_finds_nothing_to_object_to(ranges: dict[str, Any]) -> None:
    regressor = LocalCurveRegressor(3.0, **ranges, target_range=(-100, 100), random_state=0)
    check_estimator(regressor, on_skip=None)


def test_the_saved_model_is_read_shown_and_predicts(
    fitted: LocalCurveRegressor, tmp_path: Path
) -> None:
    path, file = tmp_path / "model.json", tmp_path / "people.csv"
    fitted.model_.save(path)
    X, y = people(30, 5)
    loaded = dpfda.load(path)
    assert isinstance(loaded, CurveRegression)
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    columns = {f"x{place}": X[:, place] for place in range(25)}
    pd.DataFrame(columns | {"number": y}).to_csv(file, index=False)
    shown = CliRunner().invoke(command, ["show", str(path)], catch_exceptions=False).stdout
    assert "curve regression" in shown
    assert "target: -15 to 25" in shown
    assert "slope β(t)" in shown
    told = CliRunner().invoke(
        command, ["predict", str(path), str(file), "--label", "number"], catch_exceptions=False
    )
    printed = [float(line) for line in told.stdout.splitlines()[1:]]
    assert np.allclose(printed, fitted.predict(X))
    assert "root mean squared error: " in told.stderr
