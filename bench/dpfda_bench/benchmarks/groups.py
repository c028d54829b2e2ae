"""How often `PrivateGroupComparison` finds groups to differ that do not, and that do."""

from __future__ import annotations

import math
import warnings
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.central.functions import as_grid, spline_basis
from dpfda.central.moments.inference import chance
from dpfda.estimators.private_group_comparison import PrivateGroupComparison
from dpfda.noise.law import NoiseLaw
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks._curve_families import RANGE, T, curves
from dpfda_bench.goals import Goal, at_least, at_most

_LEVEL, _REPLICATIONS, _FEW = 0.05, 300, 40
_PATHS = 2000


def _most(replications: int) -> float:
    """A level of .05, two standard errors given away."""
    return _LEVEL + 2 * math.sqrt(_LEVEL * (1 - _LEVEL) / replications)


GOALS: dict[str, Goal] = {
    "type_one_most": at_most(_most(_REPLICATIONS)),
    "power_share_1000_eps1": at_least(0.9),
    "small_group_cost": at_most(0.05),
}


class Case(NamedTuple):
    """Groups of curves.

    Attributes:
        sizes: of the groups.
        family: of the curves.
        factor: how much wider the first group scatters.
        effect: what is added to the curves of the second.
    """

    sizes: tuple[int, ...] = (1000, 1000)
    family: str = "gaussian"
    factor: float = 1.0
    effect: FloatArray = np.zeros(T.size)


EQUAL = {
    "200 a group": Case((200, 200)),
    "1000 a group": Case(),
    "3000 a group": Case((3000, 3000)),
    "300 against 3000": Case((300, 3000)),
    "300 against 3000, the few twice as wide": Case((300, 3000), factor=2.0),
    "300 against 3000, the many twice as wide": Case((3000, 300), factor=2.0),
    "exponential": Case(family="exponential"),
    "exponential, 300 against 3000": Case((300, 3000), family="exponential"),
    "lognormal": Case(family="lognormal"),
    "t(3)": Case(family="t3"),
    "exponential, one group twice as wide": Case(family="exponential", factor=2.0),
    "three of 1000, two small": Case((1000, 1000, 1000, 90, 60)),
}
_BUMP = 0.3 * np.exp(-((T - 0.5) ** 2) / (2 * 0.1**2))
DIFFERENT = {
    "shift": Case(effect=np.full(T.size, 0.16)),
    "bump": Case(effect=_BUMP),
}
SMALL = {
    "bump, three of 1000": Case((1000, 1000, 1000), effect=0.5 * _BUMP),
    "bump, three of 1000, one small": Case((1000, 1000, 1000, 90), effect=0.5 * _BUMP),
}
_EPSILONS = (0.5, 1.0, 2.0)


def run(quick: bool = False, *, sweep: Sweep = ALONE) -> Outcome:
    """Groups that are alike and groups that are not, at several ε."""
    replications = _FEW if quick else _REPLICATIONS
    rows: list[dict[str, Any]] = []
    for name, case in (EQUAL | DIFFERENT | SMALL).items():
        for epsilon in _EPSILONS[1:2] if quick else _EPSILONS:
            one = partial(pvalues, case, epsilon)
            found = np.array(sweep.run(one, product(range(replications))))
            private, plain = (found <= _LEVEL).mean(axis=0)
            row = {"groups": name, "epsilon": epsilon, "found": private, "non-private": plain}
            rows.append(row)
    alike = [row["found"] for row in rows if row["groups"] in EQUAL]
    shares = [
        row["found"] / row["non-private"]
        for row in rows
        if row["groups"] in DIFFERENT and row["epsilon"] == 1.0
    ]
    alone, joined = (
        np.array([row["found"] for row in rows if row["groups"] == name]) for name in SMALL
    )
    figures = {
        "type_one_most": max(alike),
        "power_share_1000_eps1": min(shares),
        "small_group_cost": float((alone - joined).mean()),
    }
    notes = [
        f"Shares of {replications} replications with p ≤ {_LEVEL}; of groups that are alike "
        f"{_most(replications):.3f} would be two standard errors too many.",
        "small_group_cost: power that a small group, which differs from nobody, takes from three "
        "large ones; the mean over ε.",
        "non-private: the same statistic from the sample's own means and covariances.",
        f"Public range {RANGE}, δ = 1e-5. The clipping region, and what clipping may move skewed "
        "groups apart by, were chosen on normal, exponential and lognormal curves like these at "
        "ε = 1. t(3) at ε = 2 was looked at once, to see that covariances need no floor.",
    ]
    return Outcome(rows=rows, figures=figures, notes=notes)


def pvalues(case: Case, epsilon: float, seed: int) -> tuple[float, float]:
    """With privacy, and without."""
    rows, group = _people(case, seed)
    known: dict[str, Any] = {"value_range": RANGE, "groups": (*range(len(case.sizes)),)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few people at a small ε, which is the point
        found = PrivateGroupComparison(epsilon, **known, random_state=seed).fit(rows, group)
    return found.pvalue_, _non_private(rows, group, found.moments_.query.second)


def _people(case: Case, seed: int) -> tuple[FloatArray, IntArray]:
    parts = [
        curves(case.family, size, seed + number * 10**6, factor=case.factor if not number else 1.0)
        for number, size in enumerate(case.sizes)
    ]
    parts[1] += case.effect
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), case.sizes)


def _non_private(rows: FloatArray, group: IntArray, few: int) -> float:
    found = spline_basis(as_grid(T), size=T.size).project(rows)[:, :few]
    parts = [found[group == number] for number in np.unique(group)]
    generator = np.random.default_rng(0)
    laws = [NoiseLaw.normal(np.cov(part.T) / len(part)) for part in parts]
    null = np.stack([law.draw(_PATHS, generator) for law in laws], axis=1)
    return chance(null, np.stack([part.mean(axis=0) for part in parts]))
