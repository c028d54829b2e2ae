"""Studies of random curves, tables, classes and numbers: regret, coverage and verdicts.

The regret of a study is (error - limit)/(guessing - limit). The limit is the error of a logistic
regression without privacy on the same features of 20 000 people, and guessing names the larger
class. For numbers, errors are mean squared errors, and the references are a linear regression and
the mean. All figures but `regret_tables`, `regret_classes` and `regret_numbers` are of two classes
of curves. Problems 0 to 999 are for choosing, problems 1000 to 1999 for confirming once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import dpfda.local.study
from dpfda._validate import FloatArray
from dpfda.local.recipe import JUDGES, plan_study
from dpfda.local.study.beliefs import Beliefs, believing, current
from dpfda.noise import SimulationSource
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.protocol.person import Crowd
from dpfda.protocol.query import Answer, Query
from dpfda.protocol.tasks.questions import StumpTask
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
    "interval_coverage_evaluated": at_least(0.9),
    "false_better_evaluated": at_most(0.05),
    "false_no_better_evaluated": at_most(0.05),
    "liars_points": at_most(2.0),
    "range_price": at_most(0.02),
    "consistent_curves": at_most(0.5),
    "consistent_tables": at_most(0.5),
    "regret_tables": at_most(0.47),
    "regret_classes": at_most(0.4),
    "regret_numbers": at_most(0.54),
    "lines": at_most(2000),
}


_LIARS, _LYING_CELL = 0.05, (3000, 1.0)
_LARGE_CELL = (200_000, 2.0)
_RIGHT_RANGE = Beliefs(slacks=Beliefs().slacks[:1], slack_odds=(1.0,))
"""Of a study that knows that its public range just fits."""


def run(quick: bool = False, *, sweep: Sweep = ALONE, seeds: str = "choose") -> Outcome:
    """Every problem in every cell, without and with evaluation at the end.

    Args:
        quick: four problems.
        sweep: where studies run.
        seeds: ``choose``, or ``confirm`` for problems that nothing was chosen on.
    """
    first, number = _FIRST[seeds], _FEW if quick else _PROBLEMS
    problems = list(product(range(first, first + number)))

    def several(some: list[tuple[int]] = problems, **how: Any) -> list[list[dict[str, Any]]]:
        return sweep.run(partial(studies, **how), some)

    plain, evaluated = several(), several(evaluation_share=JUDGES)
    nothing = sweep.run(partial(studies, signal=False), problems[: max(number // 4, 1)])
    regrets = np.array([[one["regret"] for one in rows] for rows in plain])
    balanced = np.array([rows[0]["share"] == 0.5 for rows in plain])
    table = [
        _row(cell, [rows[k] for rows in found]) | {"evaluation": share}
        for share, found in ((0.0, plain), (JUDGES, evaluated))
        for k, cell in enumerate(CELLS)
    ]
    figures = {"regret_all": float(regrets.mean())}
    figures |= {f"regret_{n}_{e:g}": float(regrets[:, k].mean()) for k, (n, e) in enumerate(CELLS)}
    for name, which in (("balanced", balanced), ("unbalanced", ~balanced)):
        if which.any():
            figures[f"regret_{name}"] = float(regrets[which].mean())
    excess = np.array([[one["error"] - one["guessing"] for one in rows] for rows in nothing])
    figures["no_signal_excess"] = 100 * float(excess.mean(axis=0).max())
    figures |= _calibrated([one for rows in plain for one in rows])
    with_evaluation = _calibrated([one for rows in evaluated for one in rows])
    figures |= {f"{name}_evaluated": value for name, value in with_evaluation.items()}
    cell = [_LYING_CELL]
    lied = several(cells=cell, liars=_LIARS)
    figures["liars_points"] = 100 * _difference(lied, plain, "error")
    known = several(cells=cell, right_range=True, beliefs=_RIGHT_RANGE)
    figures["range_price"] = _difference(several(cells=cell, right_range=True), known, "regret")
    large = problems[: max(number // 4, 1)]
    curves = several(large, cells=[_LARGE_CELL])
    tables = sweep.run(partial(vector_regrets, "tables", cells=[_LARGE_CELL]), large)
    for name, found in (("curves", curves), ("tables", tables)):
        above = [one["error"] - one["limit"] for rows in found for one in rows]
        figures[f"consistent_{name}"] = 100 * float(np.mean(above))
    for kind in ("tables", "classes", "numbers"):
        more = rows_of(kind, sweep.run(partial(vector_regrets, kind), problems))
        table += more
        figures[f"regret_{kind}"] = float(np.mean([row["regret"] for row in more]))
    figures["lines"] = float(_lines())
    spread = float(regrets.mean(axis=1).std() / np.sqrt(len(regrets)))
    notes = [
        f"Problems {first} to {first + number - 1}; regret_all ± {spread:.3f}.",
        "Intervals are of half the distance of the classes in standard deviations, by feature.",
        f"liars_points: rise of the error at {_LYING_CELL} if {_LIARS:.0%} always give the "
        "opposite of the true answer.",
        "range_price: regret where ranges fit, less that of studies that know it.",
        f"consistent_*: points above the error without privacy at {_LARGE_CELL}.",
    ]
    return Outcome(rows=table, figures=figures, notes=notes)


def _calibrated(every: list[dict[str, Any]]) -> dict[str, float]:
    """Coverage of intervals, calibration of probabilities, and false verdicts."""
    worse = [one for one in every if one["error"] > one["guessing"] - 0.005]
    better = [one for one in every if one["error"] < one["guessing"] - 0.05]
    coverage = float(np.mean([one["covered"] for one in every]))
    return {
        "interval_coverage": coverage,
        "interval_coverage_most": coverage,
        "calibration": float(np.mean([one["calibration"] for one in every])),
        "false_better": _share(worse, "signal"),
        "false_no_better": _share(better, "guessing"),
        "cannot_tell": _share(every, "unclear"),
    }


def _difference(
    some: list[list[dict[str, Any]]], others: list[list[dict[str, Any]]], name: str
) -> float:
    """Mean difference in the cell of liars."""

    def values(found: list[list[dict[str, Any]]]) -> FloatArray:
        every = [one for rows in found for one in rows]
        return np.array([one[name] for one in every if one["cell"] == _LYING_CELL])

    return float((values(some) - values(others)).mean())


class _Contrary(Crowd):
    """A crowd of whom some always give the opposite of the true answer."""

    share: float = _LIARS

    def _answers(self, query: Query, records: Any, number: int) -> Answer:
        answer = super()._answers(query, records, number)
        if isinstance(query, StumpTask):
            lie = np.random.default_rng([self.plan.seed, number]).random(query.people) < self.share
            answer.values[lie] = -query.exact(records, self.source)[lie]
        return answer


def studies(
    seed: int,
    *,
    signal: bool = True,
    cells: Sequence[tuple[int, float]] = CELLS,
    evaluation_share: float = 0.0,
    right_range: bool = False,
    liars: float = 0.0,
    beliefs: Beliefs | None = None,
) -> list[dict[str, Any]]:
    """One problem in every cell.

    Args:
        seed: of the problem.
        signal: whether labels belong to the curves; otherwise they are shuffled.
        cells: numbers of people and ε.
        evaluation_share: of the participants.
        right_range: whether the public range just fits.
        liars: share of participants who give the opposite of each true answer.
        beliefs: of the studies; by default those of this context.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    problem, rng = curve_classes(seed), np.random.default_rng(seed + 2 * 10**6)
    if right_range:
        problem = replace(problem, slack=1.1)
    facts: dict[str, Any] = {
        "classes": (0, 1),
        "value_range": problem.value_range,
        "seed": seed,
        "evaluation_share": evaluation_share,
    }

    def drawn(n: int, rng: np.random.Generator) -> tuple[FloatArray, Any]:
        curves, labels = problem.draw(n, rng)
        return curves, labels if signal else rng.permutation(labels)

    (others, truth), (public, known) = drawn(_OTHERS, rng), drawn(_PUBLIC, rng)
    guessing = float(min(truth.mean(), 1 - truth.mean()))
    encoder = plan_study(_PUBLIC, 1.0, **facts).encoder
    features, unseen = encoder.encode(public), encoder.encode(others)
    best = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=500))
    limit = float(np.mean(best.fit(features, known).predict(unseen) != truth))
    rows = []
    for n, epsilon in cells:
        curves, labels = drawn(n, np.random.default_rng([seed, n, int(10 * epsilon)]))
        with believing(beliefs or current()):
            plan = plan_study(n, epsilon, **facts)
            source, people = SimulationSource(seed), people_from(plan, curves, labels)
            crowd = _Contrary(plan, people, source=source) if liars else people
            study = simulate(plan, crowd, source=source)
        chances = study.model.chances(unseen)[:, 1]
        error = float(np.mean((chances >= 0.5) != truth))
        regret = (error - limit) / max(guessing - limit, 0.01)
        findings = study.findings
        rows.append(
            {
                "cell": (n, epsilon),
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
    return rows


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
        for name in ("regret", "error", "guessing", "limit", "covered", "calibration")
    }
    verdicts = {f"says_{kind}": _share(some, kind) for kind in ("signal", "guessing", "unclear")}
    return {"people": people, "epsilon": epsilon} | means | verdicts


def _lines() -> int:
    """Of the package that decides what a study does."""
    home = Path(dpfda.local.study.__file__).parent
    return sum(len(path.read_text().splitlines()) for path in home.glob("*.py"))
