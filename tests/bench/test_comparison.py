"""The comparison with other libraries: equal guarantees, lines of code, words for absence."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpfda_bench import rival_methods
from dpfda_bench.benchmarks import comparison
from dpfda_bench.benchmarks.comparison import Task

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(0)


def task(kind: str) -> Task:
    X = RNG.uniform(-1, 1, (2000, 5))
    y = np.clip(X[:, 0] / 2 + 0.5, 0, 1) if kind == "numbers" else (X[:, 0] > 0).astype(float)
    return Task("made up", kind, X, y, -1.0, 1.0)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["classes", "numbers", "curves", "mean"])
def test_every_library_is_asked_at_equal_epsilon_and_delta(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    asked: list[tuple[str, float, float]] = []
    real = rival_methods.fitted

    def noted(name: str, rows: Any, epsilon: float, delta: float, seed: int) -> Any:
        asked.append((name, epsilon, delta))
        return real(name, rows, epsilon, delta, seed)

    monkeypatch.setattr(rival_methods, "fitted", noted)
    monkeypatch.setattr(comparison, "EPSILONS", (8.0,))
    rows = list(comparison._rows(task(kind), range(2), None))
    private = {name for name in comparison.METHODS[kind].values() if name[:3] in {"dpf", "ope"}}
    for name in private:
        assert {part[1:] for part in asked if part[0] == name} == {(8.0, 0.0), (8.0, 1e-6)}
    assert all(row["error"] < 0.3 for row in rows if row["library"] != "diffprivlib")
    assert {row["library"] for row in rows} == {
        library for library, name in comparison.METHODS[kind].items() if "diffpriv" not in name
    }


def test_an_absent_library_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(comparison.PYTHON, str(ROOT / "no-such-python"))
    python, notes = comparison._diffprivlib()
    assert python is None
    assert comparison.PYTHON in notes[0]
    assert "install diffprivlib" in notes[0]


def test_jobs_of_another_python_give_what_they_give_here(tmp_path: Path) -> None:
    one = task("numbers")
    jobs: list[dict[str, Any]] = [
        {"name": "sklearn_numbers", "epsilon": 1.0, "delta": 0.0, "seed": seed, "low": -1.0,
         "high": 1.0} for seed in (0, 1)
    ]  # fmt: skip
    away = comparison._elsewhere(one, jobs, sys.executable)
    for job, (values, _) in zip(jobs, away, strict=True):
        train = one.train(job["seed"])
        others = one.X[np.setdiff1d(np.arange(2000), train)]
        rows = rival_methods.Rows(one.X[train], one.y[train], others, -1.0, 1.0)
        np.testing.assert_array_equal(values, rival_methods.sklearn_numbers(rows, 1.0, 0.0, 0))


def test_lines_count_what_a_user_writes() -> None:
    assert comparison.lines("dpfda_mean") == 3
    assert comparison.lines("opendp_mean") > comparison.lines("opendp_sum") > 5


def test_noise_of_the_sums_is_that_of_their_sensitivity() -> None:
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    noisy, deviation = rival_methods.opendp_sum(np.zeros(4000), 3.0, 1.0, 1.5, 0.0)
    assert deviation == pytest.approx(math.sqrt(2) * 2.0)
    assert noisy.std() == pytest.approx(deviation, rel=0.15)  # 6 deviations of 4000 draws
    _, deviation = rival_methods.opendp_sum(np.zeros(2), 3.0, 1.0, 1.0, 1e-6)
    assert 4.2 < deviation < 5.0  # the analytic Gaussian mechanism has 4.2


def test_the_page_counts_where_others_are_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    tool = importlib.import_module("comparison")
    shape = {"data": "d", "rows": 9, "asked": "mean", "standard_error": 0.1, "lines": 3}
    shape |= {"seconds": 1.0, "epsilon": 0.5}
    rows = [
        shape | {"library": "dpfda", "guarantee": "pure ε", "error": 3.0},
        shape | {"library": "dpfda", "guarantee": "δ = 1e-6", "error": 1.0},
        shape | {"library": "diffprivlib", "guarantee": "pure ε", "error": 2.0},
    ]
    text = tool.page({"rows": rows, "machine": {"cpus": 2}})
    assert "in 1 of 2 cells" in text
    assert "d at ε = 0.5, pure (diffprivlib)" in text
    assert text.count("2 ± 0.1") == 2  # pure ε counts for both
    assert comparison._behind(rows) == pytest.approx(1.5)
