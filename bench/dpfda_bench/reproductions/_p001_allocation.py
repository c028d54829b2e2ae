"""001 Tables A.2 and A.3 with Figures A.3 to A.5: how many people report, judge, make a member."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpfda.datasets.simulated import scores_001
from dpfda.local.mrma.designs import MRMADesign
from dpfda.noise import SimulationSource
from dpfda.report.contents import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.lines import named_lines
from dpfda_bench.reproductions import _p001 as common
from dpfda_bench.reproductions._p001_batch import REFERENCES, STEPS, Crowd, errors_of
from dpfda_bench.verdict import Verdict, agrees_if

CASES = {
    1: (3000, 500, 100, 25),
    2: (5500, 500, 100, 50),
    3: (5500, 500, 50, 50),
    4: (3000, 500, 100, 50),
    5: (3000, 500, 50, 50),
    6: (5000, 2500, 250, 50),
    7: (7500, 5000, 500, 50),
    8: (7500, 2500, 250, 50),
}
"""N, N0, n0 and B of Tables A.2 (1 to 5) and A.3 (5 to 8); N1 = N - N0, n1 = N1/B."""
ORDERS = ((2, 1), (3, 2), (5, 4), (2, 4), (3, 5), (1, 4))
"""(better, worse), as the text says."""
RULES_NOTE = "Columns without a rule are as published (C2, C3); learners are read as in Figure 2."
_TEST, _DIMENSION, _CHUNK = 500, 4, 20

Means = dict[tuple[int, str, float, str, str], float]
"""Errors in % by case, learner, ε, rule and method."""


def measured(
    cases: tuple[int, ...],
    learners: tuple[str, ...],
    *,
    cutoff: float,
    effort: Effort,
    studies: int,
) -> Means:
    """Mean errors over replications."""
    names = [
        (case, learners, cutoff, start, min(_CHUNK, studies - start))
        for case in cases
        for start in range(0, studies, _CHUNK)
    ]
    found = common.collected(effort, chunk, names)
    return {key: 100 * float(errors.mean()) for key, errors in found.items()}


def chunk(
    case: int, learners: tuple[str, ...], cutoff: float, start: int, studies: int
) -> dict[Any, Any]:
    """Errors in some replications of a case, at every budget."""
    n, reporting, size, members = CASES[case]
    source = SimulationSource(np.random.SeedSequence((6, case, start)))
    scores, labels = scores_001((studies, n), source.generator)
    test, truth = scores_001((studies, _TEST), source.generator)
    code, kinds = common.encoding(_DIMENSION), ("encoded", "coefficients", "integrals")
    people, tested = ({kind: common.seen(s, code, kind) for kind in kinds} for s in (scores, test))
    crowd = Crowd(people, labels, tested, truth, code)
    design = MRMADesign(
        n_classifiers=members,
        member_size=size,
        training_share=reporting / n,
        boundary_spread=None,
    )
    found: dict[Any, Any] = {}
    for epsilon in common.EPSILONS:
        options: dict[str, Any] = {"learners": learners, "cutoff": cutoff, "pooled": False}
        errors = errors_of(crowd, design, epsilon=epsilon, source=source, **options)
        found |= {
            (case, name, epsilon, rule, method): value for (name, rule, method), value in errors
        }
    return found


def rows_of(means: Means) -> list[dict[str, Any]]:
    """A row for each case, learner and budget: the steps as published, MRMA under all rules."""
    published, *others = common.RULES
    rows = []
    for case, name, epsilon in dict.fromkeys(key[:3] for key in means):
        place = (case, name, epsilon)
        rows.append(
            {"case": spoken(case), "learner": name, "epsilon": epsilon}
            | {step: means[*place, published, step] for step in STEPS}
            | {f"MRMA {rule}": means[*place, rule, "MRMA"] for rule in others}
            | {method: means[*place, published, method] for method in REFERENCES}
        )
    return rows


def spoken(case: int) -> str:
    """A line of Table A.2 or A.3.

    Examples:
        >>> spoken(8)
        '8: 7500 = 2500 + 5000, n0 250, n1 100, B 50'
    """
    n, reporting, size, members = CASES[case]
    rest = n - reporting
    return f"{case}: {n} = {reporting} + {rest}, n0 {size}, n1 {rest // members}, B {members}"


def mean_of(rows: list[dict[str, Any]], case: int, method: str, budgets: Any = None) -> float:
    """The mean of a column over learners and budgets (all of them unless told)."""
    label = spoken(case)
    return float(
        np.mean(
            [
                row[method]
                for row in rows
                if row["case"] == label and (budgets is None or row["epsilon"] in budgets)
            ]
        )
    )


def five(effort: Effort = FULL) -> Outcome:
    """Table A.2, Figures A.3 and A.4; 150 replications by default."""
    studies, cases = effort.repeats(150, quick=3), (1, 2, 3, 4, 5)
    means = measured(cases, common.LEARNERS, cutoff=0.6, effort=effort, studies=studies)
    rows = rows_of(means)
    figures = {
        f"points_{better}_before_{worse}_{method}": mean_of(rows, worse, method)
        - mean_of(rows, better, method)
        for method in ("MA", "MRMA")
        for better, worse in ORDERS
    }
    panels = {
        f"{name}, {method}": [
            {"epsilon": epsilon}
            | {f"case {c}": means[c, name, epsilon, "as published", method] for c in cases}
            for epsilon in common.EPSILONS
        ]
        for method in ("MA", "MRMA")
        for name in common.LEARNERS
    }
    note = (
        "001 and 000 print the allocations and no numbers; both say: 2 slightly better than 1, 3 "
        "than 2, 5 than 4, 2 distinctly than 4, 3 markedly than 5, 1 than 4. `points_2_before_1` "
        "and so on: mean over learners and budgets, as published. The captions of A.3 and A.4 are "
        "right; the sentence before them has them the other way round."
    )
    return Outcome(
        rows=rows,
        figures=figures,
        notes=[f"{studies} replications, cutoff 0.6.", note, RULES_NOTE],
        plot=partial(named_lines, panels, [f"case {c}" for c in cases], y="error, %"),
    )


def five_verdict(outcome: Outcome) -> Verdict:
    """The orders of the text."""
    gains = outcome.figures
    held = [key for key, gain in gains.items() if gain > 0]
    worst = min(gains, key=lambda key: gains[key])
    return agrees_if(
        len(held) == len(gains),
        f"No numbers are printed. {len(held)} of the {len(gains)} orders in the text hold in the "
        f"mean over learners and budgets; the weakest is {worst[7:].replace('_', ' ')}, "
        f"{gains[worst]:+.2f} points.",
    )


def four(effort: Effort = FULL) -> Outcome:
    """Table A.3 and Figure A.5; 200 replications by default."""
    studies, cases = effort.repeats(200, quick=3), (5, 6, 7, 8)
    means = measured(cases, ("CG",), cutoff=0.8, effort=effort, studies=studies)
    rows = rows_of(means)
    mean, small, large = partial(mean_of, rows), (0.1, 0.5, 1.0), (5.0, 10.0)
    later = common.EPSILONS[1:]  # at 0.1 both are coin flips
    figures = {
        "weak_gain_large_epsilon_points": mean(5, "Weak", large) - mean(7, "Weak", large),
        "weak_gain_small_epsilon_points": mean(5, "Weak", small) - mean(7, "Weak", small),
        "least_mrma_gain_points": min(mean(c, "Weak") - mean(c, "MRMA") for c in cases),
        "case_8_over_7_points": mean(7, "MRMA", later) - mean(8, "MRMA", later),
    }
    panels = {
        row["case"]: [other for other in rows if other["case"] == row["case"]] for row in rows
    }
    note = (
        "001 and 000 print the allocations and no numbers; both say: more people a member (5, 6, "
        "7) improve Weak at large ε and hardly at small ε; MRMA improves every case; 8, which has "
        "more judges, beats 7."
    )
    names = (*STEPS, "MRMA corrected", "MRMA default")
    return Outcome(
        rows=rows,
        figures=figures,
        notes=[f"{studies} replications, cutoff 0.8, not named here.", note, RULES_NOTE],
        plot=partial(named_lines, panels, names, y="error of CG, %"),
    )


def four_verdict(outcome: Outcome) -> Verdict:
    """The text's four sentences."""
    large, small, gain, better = outcome.figures.values()
    return agrees_if(
        large > max(1.0, small) and gain > 1.0 and better > 0,
        f"No numbers are printed. Ten times as many people a member gain Weak {large:.1f} points "
        f"at ε ≥ 5 and {small:.1f} at ε ≤ 1; MRMA gains at least {gain:.1f} in every case; case 8 "
        f"beats 7 by {better:+.2f} at ε ≥ 0.5.",
    )


_SHARED: dict[str, Any] = {"NEEDS": (), "GUARANTEES": common.GUARANTEES, "CLAIMED": common.CLAIMED}
ENTRIES = {
    "001-figure-a3": SimpleNamespace(
        TITLE="Error for five allocations of people, % (001 Table A.2, Figures A.3 and A.4)",
        COVERS=("001-table-a2", "001-figure-a4", "000-table-2", "000-figure-5", "000-figure-6"),
        SECONDS=70,
        READING=str(common.READINGS["001-figure-a3"]),
        run=five,
        verdict=five_verdict,
        **_SHARED,
    ),
    "001-figure-a5": SimpleNamespace(
        TITLE="Error of CG, more people a member or more judges, % (001 Table A.3, Figure A.5)",
        COVERS=("001-table-a3", "000-table-3", "000-figure-7"),
        SECONDS=40,
        READING=str(common.READINGS["001-figure-a5"]),
        run=four,
        verdict=four_verdict,
        **_SHARED,
    ),
}
