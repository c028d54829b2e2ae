"""Studies of random curves, tables, classes and numbers: what is lost of what could be learnt.

Regret of a study: (error - limit)/(guessing - limit), where the limit is the error of a logistic
regression without privacy on the same features of 20 000 people, and guessing names the larger
class; of numbers the same with mean squared errors, a linear regression and the mean. All figures
but `regret_tables`, `regret_classes` and `regret_numbers` are of two classes of curves. Problems 0
to 999 are for choosing, 1000 to 1999 are looked at once.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import dpfda.local.study
from dpfda._validate import FloatArray
from dpfda.local.recipe import plan_study
from dpfda.noise import SimulationSource
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda.simulate import people_from, simulate
from dpfda_bench.benchmarks._random_vectors import regrets as vector_regrets
from dpfda_bench.benchmarks._random_vectors import rows_of
from dpfda_bench.goals import Goal, at_least, at_most
from dpfda_bench.random_problems import curve_classes

CELLS = ((1000, 1.0), (3000, 0.5), (3000, 1.0), (3000, 2.0), (10_000, 1.0), (3000, 5.0))
"""People and ε."""
_FIRST = {"choose": 0, "confirm": 1000}
_PROBLEMS, _FEW = 160, 4
_PUBLIC, _OTHERS = 20_000, 4000
_WORST, _BEST = 1.5, -0.2  # where regrets are cut: near the limit a ratio says little
_BINS = 5  # of probabilities, from one half to one

GOALS: dict[str, Goal] = {
    "regret_all": at_most(0.5),
    "regret_1000_1": at_most(0.7),
    "regret_3000_0.5": at_most(0.7),
    "regret_3000_1": at_most(0.58),
    "regret_3000_2": at_most(0.45),
    "regret_10000_1": at_most(0.42),
    "regret_3000_5": at_most(0.2),
    "regret_balanced": at_most(0.31),
    "regret_unbalanced": at_most(0.63),
    "no_signal_excess": at_most(1.0),
    "interval_coverage": at_least(0.9),
    "interval_coverage_most": at_most(0.98),
    "calibration": at_most(0.05),
    "false_better": at_most(0.05),
    "false_no_better": at_most(0.05),
    "regret_tables": at_most(0.47),
    "regret_classes": at_most(0.4),
    "regret_numbers": at_most(0.54),
    "lines": at_most(2000),
}


def run(quick: bool = False, *, sweep: Sweep = ALONE, seeds: str = "choose") -> Outcome:
    """Every problem in every cell.

    Args:
        quick: four problems.
        sweep: where studies run.
        seeds: ``choose``, or ``confirm`` for problems that nothing was chosen on.
    """
    first, number = _FIRST[seeds], _FEW if quick else _PROBLEMS
    found = sweep.run(partial(studies, signal=True), product(range(first, first + number)))
    nothing = sweep.run(partial(studies, signal=False), product(range(first, first + number // 4)))
    regrets = np.array([[one["regret"] for one in rows] for rows in found])
    balanced = np.array([rows[0]["share"] == 0.5 for rows in found])
    rows = [_row(CELLS[k], [rows[k] for rows in found]) for k in range(len(CELLS))]
    figures = {"regret_all": float(regrets.mean())}
    figures |= {f"regret_{n}_{e:g}": float(regrets[:, k].mean()) for k, (n, e) in enumerate(CELLS)}
    for name, which in (("balanced", balanced), ("unbalanced", ~balanced)):
        if which.any():
            figures[f"regret_{name}"] = float(regrets[which].mean())
    every = [one for rows in found for one in rows]
    worse = [one for one in every if one["error"] > one["guessing"] - 0.005]
    better = [one for one in every if one["error"] < one["guessing"] - 0.05]
    excess = np.array([[one["error"] - one["guessing"] for one in rows] for rows in nothing])
    coverage = float(np.mean([one["covered"] for one in every]))
    figures |= {
        "no_signal_excess": 100 * float(excess.mean(axis=0).max()),
        "interval_coverage": coverage,
        "interval_coverage_most": coverage,
        "calibration": float(np.mean([one["calibration"] for one in every])),
        "false_better": _share(worse, "signal"),
        "false_no_better": _share(better, "guessing"),
        "cannot_tell": _share(every, "unclear"),
        "lines": float(_lines()),
    }
    for kind in ("tables", "classes", "numbers"):
        seen = sweep.run(partial(vector_regrets, kind), product(range(first, first + number)))
        more = rows_of(kind, seen)
        rows += more
        figures[f"regret_{kind}"] = float(np.mean([row["regret"] for row in more]))
    spread = float(regrets.mean(axis=1).std() / np.sqrt(len(regrets)))
    notes = [
        f"Problems {first} to {first + number - 1}; regret_all ± {spread:.3f}.",
        "Intervals hold half the distance of the classes in widths, feature by feature.",
    ]
    return Outcome(rows=rows, figures=figures, notes=notes)


def studies(seed: int, *, signal: bool) -> list[dict[str, Any]]:
    """One problem in every cell; without a signal, its labels are drawn anew."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    problem, rng = curve_classes(seed), np.random.default_rng(seed + 2 * 10**6)

    def drawn(n: int) -> tuple[FloatArray, Any]:
        curves, labels = problem.draw(n, rng)
        return curves, labels if signal else rng.permutation(labels)

    (others, truth), (public, known) = drawn(_OTHERS), drawn(_PUBLIC)
    guessing = float(min(truth.mean(), 1 - truth.mean()))
    found = []
    limit: float | None = None
    for n, epsilon in CELLS:
        curves, labels = drawn(n)
        plan = plan_study(n, epsilon, classes=(0, 1), value_range=problem.value_range, seed=seed)
        study = simulate(plan, people_from(plan, curves, labels), source=SimulationSource(seed))
        encoder = plan.encoder
        features = encoder.encode(public)
        if limit is None:
            best = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=500))
            best.fit(features, known)
            limit = float(np.mean(best.predict(encoder.encode(others)) != truth))
        chances = study.model.chances(encoder.encode(others))[:, 1]
        error = float(np.mean((chances >= 0.5) != truth))
        regret = (error - limit) / max(guessing - limit, 0.01)
        findings = study.findings
        found.append(
            {
                "share": problem.share,
                "error": error,
                "guessing": guessing,
                "limit": limit,
                "regret": float(np.clip(regret, _BEST, _WORST)),
                "covered": _covered(findings.features[0], features, known),
                "calibration": _calibration(chances, truth),
                "verdict": findings.verdict.kind,
            }
        )
    return found


def _covered(estimates: Any, features: FloatArray, labels: Any) -> float:
    """Share of features whose difference lies in its interval."""
    ones, others = features[labels == 1], features[labels == 0]
    width = np.sqrt((ones.var(axis=0) + others.var(axis=0)) / 2)
    apart = (ones.mean(axis=0) - others.mean(axis=0)) / 2 / width
    held = [
        one.interval()[0] <= d <= one.interval()[1] for one, d in zip(estimates, apart, strict=True)
    ]
    return float(np.mean(held))


def _calibration(chances: FloatArray, truth: Any) -> float:
    """Expected calibration error of the more likely label."""
    sure, right = np.maximum(chances, 1 - chances), (chances >= 0.5) == truth
    bins = np.minimum((sure - 0.5) * 2 * _BINS, _BINS - 1).astype(int)
    errors = [
        abs(float(sure[bins == k].mean() - right[bins == k].mean())) * float(np.mean(bins == k))
        for k in np.unique(bins)
    ]
    return float(sum(errors))


def _share(some: list[dict[str, Any]], kind: str) -> float:
    """How often a verdict was of this kind."""
    return float(np.mean([one["verdict"] == kind for one in some])) if some else 0.0


def _row(cell: tuple[int, float], some: list[dict[str, Any]]) -> dict[str, Any]:
    people, epsilon = cell
    means = {
        name: float(np.mean([one[name] for one in some]))
        for name in ("regret", "error", "guessing", "limit")
    }
    return {"people": people, "epsilon": epsilon, **means, "cannot_tell": _share(some, "unclear")}


def _lines() -> int:
    """Of the package that decides what a study does."""
    home = Path(dpfda.local.study.__file__).parent
    return sum(len(path.read_text().splitlines()) for path in home.glob("*.py"))
