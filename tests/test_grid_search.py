"""Private estimators under real cross-validation: what it costs, and what stops it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

import dpfda
from dpfda.errors import BudgetExceeded, PrivacyWarning
from dpfda.privacy.ledger_file import FileLedger

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.3, 0.3, size=(120, 4))
Y = X @ np.array([1.0, -1.0, 0.5, 0.0])
pytestmark = pytest.mark.filterwarnings("ignore:too few rows")
GRID = {"fit_intercept": [True, False]}


def search(model: Any, **more: Any) -> GridSearchCV:
    return GridSearchCV(model, GRID, cv=3, **more).fit(X, Y)


def model(**more: Any) -> Any:
    return dpfda.PrivateLinearRegression(0.1, feature_norm_bound=1.0, target_range=(-1, 1), **more)


def test_a_grid_search_warns_and_shows_what_it_cost() -> None:
    with pytest.warns(PrivacyWarning, match="2 releases"):
        search(model())
    spent = dpfda.spent()
    assert len(spent.releases) == 7  # two settings, three folds, and once for all
    assert spent.totals["person"].epsilon > 0.1


def test_the_fit_that_goes_over_the_limit_raises() -> None:
    ledger = dpfda.Ledger(0.2, limit_delta=1e-5)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        search(model(ledger=ledger), error_score="raise")
    assert 0 < ledger.spent.epsilon <= 0.2


def test_the_fit_that_goes_over_the_limit_scores_nothing() -> None:
    ledger = dpfda.Ledger(0.2, limit_delta=1e-5)
    with pytest.warns(FitFailedWarning, match="BudgetExceeded"):
        scores = cross_val_score(model(ledger=ledger), X, Y, cv=6)
    fits = int(np.isfinite(scores).sum())
    assert 0 < fits < 6
    assert np.isfinite(scores[:fits]).all()  # those that the budget paid for came first


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_budget_holds_inside_whatever_the_jobs(jobs: int) -> None:
    with dpfda.budget(0.2, 1e-5) as ledger:
        with pytest.warns(FitFailedWarning):
            scores = cross_val_score(model(), X, Y, cv=6, n_jobs=jobs)
        fits = int(np.isfinite(scores).sum())
    assert len(dpfda.spent().releases) == fits
    assert 0 < fits < 6
    assert ledger.spent.epsilon <= 0.2


def test_a_ledger_on_disk_holds_across_processes(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path / "budget", limit_epsilon=0.2, limit_delta=1e-5)
    with pytest.warns(FitFailedWarning, match="BudgetExceeded"), parallel_config(backend="loky"):
        scores = cross_val_score(model(ledger=ledger), X, Y, cv=6, n_jobs=2)
    assert ledger.entries  # spent by workers, seen here
    assert ledger.spent.epsilon <= 0.2
    assert 0 < np.isfinite(scores).sum() < 6
    assert not dpfda.spent().releases  # which this process's tally cannot see


def _fit_in_a_worker() -> str:
    with pytest.warns(PrivacyWarning) as caught:
        model().fit(X, Y)
    return str(caught[0].message)


def test_a_worker_without_a_ledger_says_that_nobody_sees_it() -> None:
    from joblib import Parallel, delayed

    (text,) = Parallel(n_jobs=2, backend="loky")([delayed(_fit_in_a_worker)()])
    assert "FileLedger" in text


def test_ledgers_in_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="FileLedger"):
        pickle.dumps(model(ledger=dpfda.Ledger(1.0)))
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(FileLedger("budget", limit_epsilon=1.0))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(sent).path == tmp_path / "budget"
