"""dpfda beside diffprivlib, OpenDP and scikit-learn, at the same ε and δ, on public data.

Four tables and four sets of curves; errors on rows that were left out, the lines that a user
writes, and seconds. diffprivlib needs an older scikit-learn: ``DPFDA_DIFFPRIVLIB`` names the Python
of an environment where both are installed.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpfda._validate import AnyArray, FloatArray
from dpfda.datasets.loaders import (
    load_activity,
    load_adelaide_demand,
    load_italy_power_demand,
    load_phoneme,
)
from dpfda.errors import DpfdaError
from dpfda.report.contents import Outcome
from dpfda_bench import rival_methods
from dpfda_bench.goals import Goal, at_most
from dpfda_bench.prepared_data import folds, prepare

GOALS: dict[str, Goal] = {"behind_best": at_most(1.05)}

PYTHON = "DPFDA_DIFFPRIVLIB"
ABSENT = (
    "diffprivlib is missing: install diffprivlib 0.6.6 and scikit-learn 1.5 into an environment "
    f"of their own, and set {PYTHON} to its Python."
)
DELTAS = {"pure ε": 0.0, "δ = 1e-6": 1e-6}
EPSILONS = 0.5, 2.0
_SEEDS = 3

METHODS = {
    "classes": {
        "dpfda": "dpfda_classes",
        "diffprivlib": "diffprivlib_classes",
        "diffprivlib, naive Bayes": "diffprivlib_bayes",
        "OpenDP": "opendp_classes",
        "scikit-learn, no privacy": "sklearn_classes",
    },
    "numbers": {
        "dpfda": "dpfda_numbers",
        "diffprivlib": "diffprivlib_numbers",
        "OpenDP": "opendp_numbers",
        "scikit-learn, no privacy": "sklearn_numbers",
    },
    "curves": {
        "dpfda": "dpfda_curve_classes",
        "diffprivlib": "diffprivlib_classes",
        "diffprivlib, naive Bayes": "diffprivlib_bayes",
        "OpenDP": "opendp_curve_classes",
        "scikit-learn, no privacy": "sklearn_classes",
    },
    "mean": {"dpfda": "dpfda_mean", "diffprivlib": "diffprivlib_mean", "OpenDP": "opendp_mean"},
}
"""Functions of `rival_methods`, by kind of task and library."""


@dataclass(frozen=True, eq=False)
class Task:
    """A data set and what is asked of it.

    Attributes:
        name: for readers.
        kind: a key of `METHODS`.
        X: rows.
        y: targets; zeros for a mean.
        low, high: the public range of all values.
    """

    name: str
    kind: str
    X: FloatArray
    y: AnyArray
    low: float
    high: float

    def error(self, found: AnyArray, test: AnyArray) -> float:
        """Share of wrong classes, or root mean squared error (of a mean: of its points)."""
        if self.kind == "mean":
            return float(np.sqrt(np.mean((found - self.X.mean(axis=0)) ** 2)))
        if self.kind == "numbers":
            return float(np.sqrt(np.mean((found - self.y[test]) ** 2)))
        return float(np.mean(found != self.y[test]))

    def train(self, seed: int) -> AnyArray:
        """Rows that a fit sees; all of them for a mean."""
        size = len(self.X)
        return np.arange(size) if self.kind == "mean" else np.sort(folds(size, seed=seed)[0])


def tasks() -> Iterator[Task]:
    """The four tables and the four sets of curves, with ranges that are round numbers."""
    for name in ("adult", "phishing", "warfarin", "nhanes_hdl"):
        found = prepare(name)
        kind, reach = _KINDS[found.link], 1 / np.sqrt(found.X.shape[1])
        yield Task(name, kind, found.X, np.asarray(found.y, dtype=float), -reach, reach)
    for name, load, kind, low, high in _CURVES:
        data = load()
        y = np.zeros(len(data.X)) if kind == "mean" else np.unique(data.y, return_inverse=True)[1]
        yield Task(name, kind, np.asarray(data.X, dtype=float), y, low, high)


_KINDS = {"logistic": "classes", "linear": "numbers"}
_CURVES: tuple[tuple[str, Callable[[], Any], str, float, float], ...] = (
    ("activity of adults", load_activity, "mean", 0.0, 1000.0),
    ("demand of days", load_adelaide_demand, "mean", 0.0, 4000.0),
    ("phonemes", load_phoneme, "curves", -10.0, 30.0),
    ("power of days", load_italy_power_demand, "curves", -4.0, 4.0),
)


def run(quick: bool = False) -> Outcome:
    """Errors, lines and seconds of every library for every task, ε and kind of guarantee."""
    seeds = range(2 if quick else _SEEDS)
    python, notes = _diffprivlib()
    chosen = [task for task in tasks() if not quick or len(task.X) < 4000]
    rows = [row for task in chosen for row in _rows(task, seeds, python)]
    figures = {"behind_best": _behind(rows)}
    return Outcome(rows=rows, figures=figures, notes=notes)


def _diffprivlib() -> tuple[str | None, list[str]]:
    """The Python that has diffprivlib, or what to do."""
    python = os.environ.get(PYTHON, sys.executable)
    asked = [python, "-c", "import diffprivlib.models"]
    try:
        known = subprocess.run(asked, capture_output=True, check=False).returncode == 0
    except OSError:
        known = False
    return (python, []) if known else (None, [ABSENT])


def _rows(task: Task, seeds: range, python: str | None) -> Iterator[dict[str, Any]]:
    jobs: list[dict[str, Any]] = [
        {"library": library, "name": name, "epsilon": epsilon, "delta": delta, "seed": seed,
         "low": task.low, "high": task.high}
        for library, name in METHODS[task.kind].items()
        if python is not None or not name.startswith("diffprivlib")
        for epsilon, delta in _guarantees(name)
        for seed in seeds
    ]  # fmt: skip
    found: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for job, (values, seconds) in zip(jobs, _found(task, jobs, python), strict=True):
        test = np.setdiff1d(np.arange(len(task.X)), task.train(job["seed"]))
        key = job["library"], job["name"], job["epsilon"], job["delta"]
        found.setdefault(key, []).append((task.error(values, test), seconds))
    words = {delta: word for word, delta in DELTAS.items()}
    for (library, name, epsilon, delta), measured in found.items():
        errors, seconds = np.transpose(measured)
        yield {
            "data": task.name,
            "rows": len(task.X),
            "asked": task.kind,
            "library": library,
            "epsilon": epsilon,
            "guarantee": words[delta],
            "error": float(errors.mean()),
            "standard_error": float(errors.std(ddof=1) / np.sqrt(len(errors))),
            "lines": lines(name),
            "seconds": float(np.median(seconds)),
        }


def _guarantees(name: str) -> list[tuple[float, float]]:
    """ε and δ that a function is run with: diffprivlib has no δ, and scikit-learn no privacy."""
    if name.startswith("sklearn"):
        return [(math.inf, 0.0)]
    deltas = [0.0] if name.startswith("diffprivlib") else list(DELTAS.values())
    return [(epsilon, delta) for epsilon in EPSILONS for delta in deltas]


def _found(
    task: Task, jobs: list[dict[str, Any]], python: str | None
) -> Iterator[tuple[AnyArray, float]]:
    """What every job found and its seconds, in order."""
    away = [job for job in jobs if job["name"].startswith("diffprivlib")]
    answers = iter(_elsewhere(task, away, python) if away and python else ())
    for job in jobs:
        if job["name"].startswith("diffprivlib"):
            yield next(answers)
            continue
        train = task.train(job["seed"])
        others = task.X[np.setdiff1d(np.arange(len(task.X)), train)]
        rows = rival_methods.Rows(task.X[train], task.y[train], others, task.low, task.high)
        yield rival_methods.fitted(job["name"], rows, job["epsilon"], job["delta"], job["seed"])


def _elsewhere(task: Task, jobs: list[dict[str, Any]], python: str) -> list[tuple[AnyArray, float]]:
    """The same by another Python."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data: dict[str, Any] = {f"train{job['seed']}": task.train(job["seed"]) for job in jobs}
        np.savez(folder / "data.npz", **data, X=task.X, y=task.y)
        (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
        # Without this process' modules: they belong to another Python.
        own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        asked = [python, str(rival_methods.__file__), name]
        done = subprocess.run(asked, env=own, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DpfdaError(f"diffprivlib failed: {done.stderr.strip().splitlines()[-1]}")
        seconds = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
        with np.load(folder / "found.npz") as found:
            values = [found[str(number)] for number in range(len(jobs))]
        return list(zip(values, seconds, strict=True))


def lines(name: str) -> int:
    """Lines of a function of `rival_methods` and of those of the file that it calls.

    The line with ``def``, docstrings and empty lines do not count.

    Examples:
        >>> lines("diffprivlib_bayes")
        3
    """
    text = inspect.getsource(rival_methods)
    known = {one.name: one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)}

    def counted(function: ast.FunctionDef) -> int:
        body = function.body[1:]  # without the docstring
        called = {one.id for part in body for one in ast.walk(part) if isinstance(one, ast.Name)}
        last = body[-1].end_lineno
        own = [line for line in text.splitlines()[body[0].lineno - 1 : last] if line.strip()]
        return len(own) + sum(counted(known[other]) for other in sorted(called & set(known)))

    return counted(known[name])


def rivals_of(row: dict[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of other libraries with the same data and ε; pure ε is also a guarantee with a δ."""
    enough = {row["guarantee"], "pure ε"}
    return [
        other
        for other in rows
        if (other["data"], other["epsilon"]) == (row["data"], row["epsilon"])
        and other["guarantee"] in enough
        and other["library"] != "dpfda"
    ]


def _behind(rows: list[dict[str, Any]]) -> float:
    """The largest ratio of this package's error to the best one of other libraries."""
    own = [row for row in rows if row["library"] == "dpfda"]
    best = [min(one["error"] for one in rivals_of(row, rows)) for row in own]
    return float(max(row["error"] / least for row, least in zip(own, best, strict=True)))
