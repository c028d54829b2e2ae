"""How much worse than guessing studies are where features say nothing of the label.

An excess is a study's error less that of always naming the more frequent class, in points; its mean
is over studies and over shares of the smaller class from 10 to 50 %. The share is public, or nobody
knows it before people are asked. With signal, how many studies say by mistake that they found none:
that they are no better than guessing, not that they cannot tell.

The words were chosen at ε = 1; rows at ε = 2 were looked at once, afterwards, and have figures of
their own.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.local.recipe import plan_study
from dpfda.mechanisms.randomized_response import effective_answers
from dpfda.noise import SimulationSource
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda.simulate import simulate
from dpfda_bench.goals import Goal, at_least, at_most

GOALS: dict[str, Goal] = {
    "no_signal_excess_most": at_most(1.5),
    "no_signal_excess_share_known_most": at_most(1.5),
    "no_signal_excess_table_most": at_most(1.5),
    "said_without_signal_least": at_least(0.9),
    "said_by_mistake_most": at_most(0.05),
}
GOALS |= {f"{name}_untouched": goal for name, goal in GOALS.items()}
_EPSILONS = {1.0: (30, 60, 90, 120, 500), 2.0: (60, 500)}  # effective people
_TUNED = 1.0
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
_REPLICATIONS, _FEW = 100, 2
_OTHERS = 2000
_FEATURES = 12
_CLEAR = 3.0  # distance of the classes, in standard deviations, where there is a signal
_BETTER = 5.0  # points below guessing
_FLATLY = 2  # a study says that it is no better than guessing; 1: that it cannot tell; 0: better


class Population(NamedTuple):
    """Who is asked: curves by their coefficients, or rows of a table.

    Attributes:
        kind: "curve" or "table".
        share: of one class; which one it is differs from study to study.
        signal: distance of the classes, in standard deviations.
    """

    kind: str
    share: float
    signal: float = 0.0

    def draw(self, people: int, *, seed: int, who: int) -> tuple[FloatArray, IntArray]:
        """Encoded features in [-1, 1] and labels; those of a seed have the same centers."""
        waves = np.maximum(np.arange(_FEATURES), 1) if self.kind == "curve" else 1.0
        spread = 0.2 / waves * np.ones(_FEATURES)
        same = np.random.default_rng([1, seed])
        apart = same.normal(size=_FEATURES) / waves
        apart *= self.signal / np.linalg.norm(apart)
        center = 0.3 * same.normal(size=_FEATURES)
        rng = np.random.default_rng([2, seed, who])
        y = (rng.random(people) < self.share_of_one(seed)).astype(np.int64)
        z = center + rng.normal(size=(people, _FEATURES)) + np.outer(y - 0.5, apart)
        return np.clip(spread * z, -1, 1), y

    def share_of_one(self, seed: int) -> float:
        """The share of class 1."""
        return self.share if seed % 2 else 1 - self.share


class Setting(NamedTuple):
    """A row of the table: what people have, whether their share is public, how many they are."""

    epsilon: float
    kind: str
    signal: float
    known: bool
    effective: float


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Excess in points by share, its mean, and how often studies say that they found nothing."""
    replications = _FEW if quick else _REPLICATIONS
    rows = [
        _row(Setting(epsilon, *setting), sweep, replications)
        for epsilon, people in _EPSILONS.items()
        for setting in product(("curve", "table"), (0.0, _CLEAR), (False, True), people)
    ]
    notes = [
        "Excess over the more frequent class in points, by the share of the smaller one.",
        "said: how many studies say that they are no better than guessing, or that they cannot "
        "tell; flatly: that they are not. mistaken, doubted: how many of all say flatly, or that "
        f"they cannot tell, and are better by {_BETTER:g} points.",
    ]
    fresh = _figures([row for row in rows if not row["tuned"]])
    figures = _figures([row for row in rows if row["tuned"]])
    figures |= {f"{name}_untouched": value for name, value in fresh.items()}
    return Outcome(rows=rows, figures=figures, notes=notes)


def _row(setting: Setting, sweep: Sweep, replications: int) -> dict[str, Any]:
    epsilon, kind, signal, known, effective = setting
    row: dict[str, Any] = {"epsilon": epsilon, "kind": kind, "signal": signal}
    row |= {"share": "public" if known else "asked", "effective": effective}
    found = {}
    for share in _SHARES:
        one = partial(study, Population(kind, share, signal), epsilon, effective, known)
        found[share] = np.array(sweep.run(one, product(range(replications))))
        row[f"{share:.0%}"] = float(found[share][:, 0].mean())
    excess, said = np.concatenate(list(found.values())).T
    better = excess < -_BETTER
    row |= {"mean": float(excess.mean()), "said": float(np.mean(said > 0))}
    row |= {"flatly": float(np.mean(said == _FLATLY)), "tuned": epsilon == _TUNED}
    row["mistaken"] = float(np.mean((said == _FLATLY) & better))
    return row | {"doubted": float(np.mean((said > 0) & better)) - row["mistaken"]}


def _figures(rows: list[dict[str, Any]]) -> dict[str, float]:
    def most(column: str, **wanted: Any) -> float:
        hit = [row for row in rows if all(row[name] == told for name, told in wanted.items())]
        return float(max(row[column] for row in hit))

    nothing = [row["said"] for row in rows if not row["signal"]]
    return {
        "no_signal_excess_most": most("mean", kind="curve", signal=0.0, share="asked"),
        "no_signal_excess_share_known_most": most("mean", kind="curve", signal=0.0, share="public"),
        "no_signal_excess_table_most": most("mean", kind="table", signal=0.0),
        "said_without_signal_least": min(nothing),
        "said_by_mistake_most": most("mistaken", signal=_CLEAR),
        "doubted_by_mistake_most": most("doubted", signal=_CLEAR),
    }


def study(
    of: Population, epsilon: float, effective: float, known: bool, seed: int
) -> tuple[float, int]:
    """The excess of one study in points, and how surely it says that it found nothing."""
    people = math.ceil(effective / effective_answers(1, epsilon))
    told: dict[str, Any] = {"class_share": of.share_of_one(seed)} if known else {}
    ranges: dict[str, Any] = {
        "curve": {"value_range": (-1, 1)},
        "table": {"feature_ranges": [(-1, 1)] * _FEATURES},
    }
    plan = plan_study(people, epsilon, classes=(0, 1), seed=seed, **ranges[of.kind], **told)
    z, y = of.draw(people, seed=seed, who=0)
    server = simulate(plan, lambda a, b: (z[a:b], y[a:b]), source=SimulationSource(seed))
    others, truth = of.draw(_OTHERS, seed=seed, who=1)
    wrong = np.mean(server.model.decide(others) != truth)
    rarer = np.mean(truth == (of.share_of_one(seed) < 0.5))
    verdict = server.findings.verdict
    said = _FLATLY * (verdict.kind == "guessing") or int(verdict.doubted)
    return 100 * float(wrong - rarer), said
