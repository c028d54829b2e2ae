"""Whether releases are as good as they say: errors, bands and warnings on random problems.

Random problems (`dpfda_bench.random_curves`) hide the shape of the curves, their place in the
public range and how much of it they fill. What is public (kind of release, n, ε, δ) makes a cell.
Keys are confidence limits of the worst cell (`_honesty_judge`).
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

from dpfda.errors import InvalidParameter
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks import _honesty_real as real
from dpfda_bench.benchmarks._honesty_judge import (
    LARGEST_ERROR,
    Finding,
    Key,
    keys,
    subgroups,
    widths,
)
from dpfda_bench.benchmarks._honesty_reference import read_reference, write_reference
from dpfda_bench.benchmarks._honesty_task import LEVEL
from dpfda_bench.benchmarks._honesty_trials import CYCLE, KINDS, Trial, trials
from dpfda_bench.goals import Goal, at_least, at_most

GOALS: dict[str, Goal] = {
    "never_worse_than_public": at_most(1.05),
    "never_worse_than_offered": at_most(1.05),
    "delta_never_hurts": at_most(1.05),
    "coverage_least": at_least(0.92),
    "silent_failures": at_most(0.05),
    "false_alarms": at_most(0.05),
    "width_ratio": at_most(1.3),
    "coverage_real": at_least(0.92),
    "crashes": at_most(0),
}
RESUMES = True
"""An interrupted run, which may take hours, continues where it was."""
Seeds = Literal["choose", "confirm"]
_FIRST_SEED: dict[Seeds, int] = {"choose": 0, "confirm": 1000}

_EPSILONS: dict[int, tuple[float, ...]] = {
    10: (0.1, 1.0, 10.0),
    40: (0.01, 1.0, 10.0),
    200: (0.1, 1.0, 10.0),
    1000: (0.01, 0.1, 1.0),
    3000: (0.1, 1.0, 10.0),
}
"""By the number of people: n·ε from 0.4 to 30 000, large ε of few people and small ε of many."""
_QUICK_EPSILONS = {40: (0.1, 1.0), 500: (0.1, 1.0)}
_DELTAS = (0.0, 1e-6)
_SEEDS, _QUICK_SEEDS = 1000, 30  # every shape in every range that holds the values, twice at least
_WRONG_SEEDS, _QUICK_WRONG_SEEDS = 100, 10
_QUICK_REAL = 10  # samples of each real set
_REFERENCE_SEEDS = 150  # of the widths that are compared with: 10 a shape and range
_CRASHES = 5  # that are shown
_BLOCK = 10  # seeds of one cell of the grid


def run(
    quick: bool = False,
    *,
    sweep: Sweep = ALONE,
    seeds: Seeds = "choose",
    runs: int | None = None,
    write_reference_to: Path | None = None,
) -> Outcome:
    """Every kind of release, n, ε and δ.

    Args:
        quick: fewer sizes, ε and seeds: a look, not a measurement.
        sweep: how the grid is computed.
        seeds: ``choose``, 0 to 999, for work on methods, or ``confirm``, 1000 to 1999, which are
            looked at once.
        runs: problems of each cell where the range holds the values, 1000 at most; a tenth of them
            where it does not. Fewer take less time, and limits allow more for chance.
        write_reference_to: a file for the widths of bands that `width_ratio` compares with;
            nothing else is measured then.
    """
    if seeds not in _FIRST_SEED:
        raise InvalidParameter("--seeds", "'choose' or 'confirm'", seeds)
    if runs is not None and not CYCLE <= runs <= _SEEDS:
        rule = f"{CYCLE} (each shape and range once) to {_SEEDS}"
        raise InvalidParameter("--runs", rule, runs)
    many = runs or (_QUICK_SEEDS if quick else _SEEDS)
    wrong = max(_QUICK_WRONG_SEEDS, many * _WRONG_SEEDS // _SEEDS)
    if write_reference_to is not None:
        found = _trials(quick=quick, sweep=sweep, first=0, many=_REFERENCE_SEEDS)
        cells = widths(found)
        write_reference(write_reference_to, cells)
        return Outcome(notes=[f"{len(cells)} cells written to {write_reference_to}."])
    found = _trials(
        quick=quick,
        sweep=sweep,
        first=_FIRST_SEED[seeds],
        many=many,
        wrong=wrong,
    )
    crashed = [one for one in found if one.crash]
    found = [one for one in found if not one.crash]
    judged = keys(found, read_reference())
    figures = {name: key.figure for name, key in judged.items() if key.findings}
    rows = [row for name, key in judged.items() for row in key.rows(name)]
    for parts in subgroups(found).values():
        for name, key in parts.items():
            rows += key.rows(f"{name} by subgroup")
    real_rows, missing = real.rows(runs=runs or (_QUICK_REAL if quick else _SEEDS), sweep=sweep)
    if real_rows:
        bands = Key(findings=real_rows, largest=False)
        figures["coverage_real"] = bands.figure
        rows += bands.rows("coverage_real")
    figures["crashes"] = float(len(crashed))
    told = [f"Crash: {one}" for one in crashed[:_CRASHES]]
    return Outcome(rows=rows, figures=figures, notes=[*_notes(judged, found), *missing, *told])


def _trials(*, quick: bool, sweep: Sweep, first: int, many: int, wrong: int = 0) -> list[Trial]:
    """Trials of `many` seeds, and of `wrong` seeds with wrong ranges; without these, bands alone.

    The largest samples come first, so that processes end together.
    """
    sizes = sorted((_QUICK_EPSILONS if quick else _EPSILONS).items(), reverse=True)
    blocks = [
        ((kind, n), (start, min(start + _BLOCK, first + total)), is_wrong, epsilons)
        for n, epsilons in sizes
        for kind in KINDS
        for is_wrong, total in ((False, many), (True, wrong))
        for start in range(first, first + total, _BLOCK)
    ]
    parts = sweep.run(partial(_block, bool(wrong)), blocks)
    return [Trial(*one) for part in parts for one in part]  # from a store they come as tuples


def _block(
    compare: bool,
    cell: tuple[str, int],
    seeds: tuple[int, int],
    wrong: bool,
    epsilons: tuple[float, ...],
) -> list[Trial]:
    prices = list(product(epsilons, _DELTAS))
    return trials(*cell, range(*seeds), prices, wrong=wrong, compare=compare)


def _estimates(judged: dict[str, Key]) -> dict[str, Finding]:
    """The worst estimate of each key, without an allowance for chance."""
    return {
        name: (max if key.largest else min)(key.findings, key=lambda one: one.estimate)
        for name, key in judged.items()
        if key.findings
    }


def _notes(judged: dict[str, Key], found: list[Trial]) -> list[str]:
    runs = max((one.runs for one in judged["never_worse_than_public"].findings), default=0)
    fewer = f" (of {_SEEDS} in a full run)" if runs < _SEEDS else ""
    alone = [
        f"{name} {one.estimate:.3g} ± {one.error:.2g}" for name, one in _estimates(judged).items()
    ]
    counts = ", ".join(f"{name} {len(key.findings)}" for name, key in judged.items())
    return [
        f"{len(found)} releases, {runs} a cell{fewer}. A cell is a kind of release, n, ε and δ; "
        "shapes of curves, their place in the public range and the share of it that they fill are "
        "averaged over.",
        "Each figure is a limit of the worst cell: the estimate moved towards its goal by z "
        "standard errors, with z such that among all cells of a key that meet the goal one is said "
        f"to miss it with probability 5 % at most. Cells: {counts}.",
        f"The worst estimates, which by chance lie beyond the truth: {', '.join(alone)}.",
        "Errors are squared and relative to the square of the public half range; the public center "
        "is what is known without data. Ratios are of mean errors in a cell, where errors above "
        f"{LARGEST_ERROR:g} times the mean error of the public center count as that much: the mean "
        "of what is larger would be one of few runs.",
        f"coverage: whole curves in bands at {LEVEL:.0%}. Bands of means hold the mean of the "
        "sample, with inference and of groups that of the population; of function-on-scalar "
        "regression least squares on the sample, all coefficients together; of curve regression "
        "the population's slope; of a density the same histogram without noise. Coefficients: "
        "all of least squares on the sample within z standard errors.",
        "silent_failures: error above half of the public center's, or a band that misses, without "
        "a warning; ranges 3 times too small, or shifted, are cells of their own. false_alarms: "
        "share of the runs with a right range that have a warning, whatever it says, though all "
        "is well: the error is below a tenth of the public center's, those of each group's mean "
        "and size, of differences between groups, effects, slopes and coefficients are below a "
        "tenth of those of zero, that of predictions from features below a tenth of one number for "
        "everybody, and the band holds and is narrower than what is possible without data.",
        "called_too_small: share of runs with a range 3 or 10 times too wide of which a warning "
        "says that it is too small. by subgroup: the worst shape and range of each kind.",
        "width_ratio: geometric mean of widths over those of the reference version, in the cells "
        "in which its bands hold, and there in the shapes and ranges in which they do. Densities "
        "are compared where the reference has as many cells: elsewhere its bands miss the finer "
        "histogram that is released now.",
    ]
