"""How far the recipe's choice of a design is from the better of both, on two classes of `local`.

Studies of yes-or-no answers and of vectors are simulated on the same people with the same seeds. A
regret is the mean error of the design that `plan_study` chooses less that of the better one, in
points.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda.datasets.catalogue import DataFileMissing
from dpfda.local.recipe import plan_study
from dpfda.noise import SimulationSource
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.protocol.plan import Design, StudyPlan
from dpfda.report.contents import Outcome
from dpfda.simulate import people_from, simulate
from dpfda_bench.benchmarks._local_problem import Problem
from dpfda_bench.benchmarks._local_problems import problems
from dpfda_bench.goals import Goal, at_most

GOALS: dict[str, Goal] = {"mean_regret": at_most(1.0)}
_REPLICATIONS, _FEW = 10, 2
_DESIGNS = ("answers", "vectors")


def run(quick: bool = False, *, only: tuple[str, ...] = (), sweep: Sweep = ALONE) -> Outcome:
    """Mean errors in % of both designs; `only` some tasks where named."""
    rows: list[dict[str, Any]] = []
    notes = ["Errors in %. Better of both by mean error, which flatters it by its own noise."]
    replications = _FEW if quick else _REPLICATIONS
    for problem in problems():
        if problem.n_classes != 2 or (only and problem.name not in only):
            continue
        try:
            rows += [_row(problem, epsilon, sweep, replications) for epsilon in problem.goals]
        except DataFileMissing as missing:
            notes.append(f"{problem.name} left out: {missing}")
    regrets = [row["regret"] for row in rows]
    figures = {"mean_regret": float(np.mean(regrets)), "worst_regret": float(np.max(regrets))}
    return Outcome(rows=rows, figures=figures if rows else {}, notes=notes)


def _row(problem: Problem, epsilon: float, sweep: Sweep, replications: int) -> dict[str, Any]:
    found = sweep.run(partial(errors, problem, epsilon), product(range(replications)))
    chosen = found[0][0]
    names = list(found[0][1])
    both = {name: np.array([one[name] for _, one in found]) for name in names}
    means = {name: float(values.mean()) for name, values in both.items()}
    apart = both[names[1]] - both[names[0]]
    return {
        "task": problem.name,
        "epsilon": epsilon,
        "chosen": chosen,
        **means,
        "regret": means[chosen] - min(means.values()),
        "standard_error": float(np.std(apart) / np.sqrt(len(apart))),
        "tuned": problem.tuned,
    }


def errors(problem: Problem, epsilon: float, seed: int) -> tuple[str, dict[str, float]]:
    """The design that the recipe chooses, and the errors of both in % on people not asked."""
    X, y, others, truth = problem.draw(seed)
    plan = plan_study(len(y), epsilon, classes=(0, 1), seed=seed, **problem.facts)
    features = plan.encoder.encode(others)
    found = {}
    for name in _DESIGNS:
        own = with_design(plan, name)
        model = simulate(own, people_from(own, X, y), source=SimulationSource(seed)).model
        found[name] = 100 * float(np.mean(model.decide(features) != truth))
    return str(plan.design["name"]), found


def with_design(plan: StudyPlan, name: str) -> StudyPlan:
    """The same study with the other design, told the same facts."""
    if plan.design["name"] == name:
        return plan
    kind = Design.named(name)
    told = {fact: value for fact, value in plan.design.items() if fact != "name"}
    return replace(plan, design=kind(**told).settled(plan.encoder).to_dict())  # type: ignore[attr-defined]
