"""Keys of `dpfda bench honesty`: from trials to the worst cell of each key.

A cell is what is public: kind, n, ε, δ. Shapes, and how the public range compares with the values,
are averaged over. Each figure is a confidence limit of its worst cell: an estimate is moved towards
its goal by z standard errors, with z such that among all cells of the key that meet the goal, one
is said to miss it with a probability of 5 % at most (Bonferroni).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import norm

from dpfda._validate import FloatArray
from dpfda_bench.benchmarks._honesty_trials import Trial
from dpfda_bench.random_curves import HOLDING

_WRONGLY = 0.05  # probability that any cell which meets its goal is said to miss it
_FAILED = 0.5  # of the public center's error: a release with more has failed
_WELL = 0.1  # of the public center's error: a release with less has succeeded
BANDS = 0.5  # share of runs with a band, from which coverage is counted
HELD = 0.9
"""Coverage of reference bands in a cell, and in a subgroup of it, from which widths are compared. A
subgroup has few runs: in a cell whose bands do not hold, some hold by chance."""
LARGEST_ERROR = 10.0
"""Times the mean error of the public center in a cell: errors above count as that much."""

Cell = tuple[str, int, float, float]
Subgroup = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An estimate in one cell, with its standard error.

    Attributes:
        cell: kind, n, ε and δ.
        estimate: mean, share or ratio.
        error: its standard error.
        runs: trials behind it.
        about: what else tells it from others: the best mechanism, a wrong range, a subgroup.
    """

    cell: Cell
    estimate: float
    error: float
    runs: int
    about: str = ""


@dataclass(frozen=True, kw_only=True)
class Key:
    """All findings of a key.

    Attributes:
        findings: one a cell.
        largest: whether the largest is the worst.
    """

    findings: Sequence[Finding]
    largest: bool = True

    def limit(self, one: Finding) -> float:
        """The estimate, moved towards the goal by what chance may do."""
        if self.largest:
            return max(one.estimate - self.allowance * one.error, 0.0)
        return min(one.estimate + self.allowance * one.error, 1.0)

    @cached_property
    def allowance(self) -> float:
        """Standard errors that are granted to chance: more for more cells."""
        return float(norm.isf(_WRONGLY / len(self.findings)))

    @property
    def worst(self) -> list[Finding]:
        """Worst first."""
        return sorted(
            self.findings, key=lambda one: (self.limit(one), one.estimate), reverse=self.largest
        )

    @property
    def figure(self) -> float:
        """The limit of the worst cell; not a number where there is none."""
        return self.limit(self.worst[0]) if self.findings else math.nan

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """The worst cell of each kind, worst first."""
        seen = set()
        for one in self.worst:
            kind, n, epsilon, delta = one.cell
            if kind in seen:
                continue
            seen.add(kind)
            yield {
                "key": name,
                "kind": kind,
                "n": n,
                "epsilon": epsilon,
                "delta": delta,
                "about": one.about,
                "estimate": one.estimate,
                "standard error": one.error,
                "limit": self.limit(one),
                "runs": one.runs,
            }


def keys(trials: Iterable[Trial], reference: Mapping[Cell, Widths]) -> dict[str, Key]:
    """Every key of the benchmark."""
    holding: dict[Cell, list[Trial]] = defaultdict(list)
    wrong: dict[tuple[Cell, str], list[Trial]] = defaultdict(list)
    for one in trials:
        cell = one.kind, one.n, one.epsilon, one.delta
        if one.slack in HOLDING:
            holding[cell].append(one)
        else:
            wrong[cell, one.slack].append(one)
    silent = [share(cell, [_silent(one) for one in runs]) for cell, runs in holding.items()]
    unsaid = [
        share(cell, [_silent(one) for one in runs], f"range {slack}")
        for (cell, slack), runs in wrong.items()
    ]
    return {
        "never_worse_than_public": Key(
            findings=[
                _ratio(cell, _capped(runs), [one.public for one in runs])
                for cell, runs in holding.items()
                if runs[0].default
            ]
        ),
        "never_worse_than_offered": Key(
            findings=[
                _over_best(cell, [one for one in runs if one.offered])
                for cell, runs in holding.items()
                if any(one.offered for one in runs)
            ]
        ),
        "delta_never_hurts": Key(findings=list(_with_delta(holding))),
        "coverage_least": Key(findings=list(_coverage(holding)), largest=False),
        "silent_failures": Key(findings=silent + unsaid),
        "false_alarms": Key(findings=list(_false_alarms(holding))),
        "called_too_small": Key(findings=list(_called_small(holding))),
        "width_ratio": Key(findings=list(_widths_over(holding, reference))),
    }


def subgroups(trials: Iterable[Trial]) -> dict[str, dict[str, Key]]:
    """Kind by kind, coverage and silent failures in each cell by shape and slack."""
    parts: dict[str, dict[tuple[Cell, Subgroup], list[Trial]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in trials:
        cell = one.kind, one.n, one.epsilon, one.delta
        parts[one.kind][cell, (one.shape, one.slack)].append(one)
    return {kind: dict(_of_subgroups(part)) for kind, part in parts.items()}


def _of_subgroups(
    parts: Mapping[tuple[Cell, Subgroup], list[Trial]],
) -> Iterator[tuple[str, Key]]:
    measures: dict[str, tuple[Callable[[Trial], bool | None], bool]] = {
        "coverage": (lambda one: one.holds if one.slack in HOLDING else None, False),
        "silent failures": (_silent, True),
    }
    for name, (measure, largest) in measures.items():
        found = []
        for (cell, subgroup), runs in parts.items():
            seen = [value for value in map(measure, runs) if value is not None]
            if seen:
                found.append(share(cell, seen, ", ".join(subgroup)))
        if found:
            yield name, Key(findings=found, largest=largest)


@dataclass(frozen=True, kw_only=True)
class Widths:
    """Widths of reference bands in a cell in which they hold, of its subgroups in which they do.

    Attributes:
        subgroups: shapes and slacks.
        log_width: mean logarithm of the bands' relative width over these.
        seeds: of the trials behind it, those below this number.
    """

    subgroups: frozenset[Subgroup]
    log_width: float
    seeds: int


def widths(trials: Iterable[Trial]) -> dict[Cell, Widths]:
    """What `width_ratio` compares with, from trials of the version that is the reference."""
    cells: dict[Cell, list[Trial]] = defaultdict(list)
    for one in trials:
        if one.slack in HOLDING and one.width:
            cells[one.kind, one.n, one.epsilon, one.delta].append(one)
    found = {}
    for cell, runs in cells.items():
        if np.mean([bool(one.holds) for one in runs]) < HELD:
            continue
        parts: dict[Subgroup, list[bool]] = defaultdict(list)
        for one in runs:
            parts[one.shape, one.slack].append(bool(one.holds))
        held = frozenset(part for part, seen in parts.items() if np.mean(seen) >= HELD)
        if held:
            logs = _log_widths(runs, held)
            seeds = 1 + max(one.seed for one in runs)
            found[cell] = Widths(subgroups=held, log_width=float(np.mean(logs)), seeds=seeds)
    return found


def _log_widths(runs: Iterable[Trial], held: frozenset[Subgroup]) -> FloatArray:
    kept = [one.width for one in runs if (one.shape, one.slack) in held]
    return np.log([max(width, 1e-12) for width in kept if width is not None])


def _widths_over(
    holding: Mapping[Cell, list[Trial]], reference: Mapping[Cell, Widths]
) -> Iterator[Finding]:
    """Geometric means over those of the reference: on the same seeds, where these were run."""
    for cell, runs in holding.items():
        if cell not in reference:
            continue
        before = reference[cell]
        own = [one for one in runs if one.seed < before.seeds]
        paired = 1 + max((one.seed for one in own), default=-1) == before.seeds
        logs = _log_widths(own if paired else runs, before.subgroups)
        if logs.size:
            ratio = float(np.exp(logs.mean() - before.log_width))
            chance = 0.0 if paired else ratio * float(logs.std() * np.sqrt(2 / logs.size))
            yield Finding(cell=cell, estimate=ratio, error=chance, runs=logs.size)


def _silent(one: Trial) -> bool:
    """Whether a release failed without a warning."""
    failed = one.error > _FAILED * one.public or one.holds is False
    return failed and not one.warned


def _false_alarms(holding: Mapping[Cell, list[Trial]]) -> Iterator[Finding]:
    """Share of the runs with a right range that end well and yet have a warning.

    Every warning counts, whatever it says. A run ends well (`_well`) if all of this holds:

    * the released curve, or its predictions, have less than a tenth of the squared error of the
      public center;
    * everything else that the release states has less than a tenth of the squared error of zero:
      the mean and the size of each group and the differences between groups, effects of covariates,
      slopes, coefficients, and predictions beside one number for everybody;
    * the band holds;
    * the band is narrower than what is possible without data (`Judged.vague`): a warning that the
      release says next to nothing is not false, although its center may be right by chance.

    Other runs, and runs with other ranges, are no alarms, so that a cell in which few runs end well
    says little: `about` states how many do.
    """
    for cell, runs in holding.items():
        right = [one for one in runs if one.slack == "right"]
        if right:
            well = [_well(one) for one in right]
            alarms = [fine and one.warned for one, fine in zip(right, well, strict=True)]
            warned = sum(alarms) / max(sum(well), 1)
            yield share(cell, alarms, f"{np.mean(well):.0%} end well, {warned:.0%} of these warned")


def _well(one: Trial) -> bool:
    """Whether all that was released is right, and says more than the public range does."""
    right = one.error < _WELL * one.public and one.holds is not False and not one.vague
    return right and all(error < _WELL for error in one.others)


def _called_small(holding: Mapping[Cell, list[Trial]]) -> Iterator[Finding]:
    """Ranges that are too wide, of which a warning says that they are too small."""
    for cell, runs in holding.items():
        wide = [one.called_small for one in runs if one.slack != "right"]
        if wide:
            yield share(cell, wide)


def _coverage(holding: Mapping[Cell, list[Trial]]) -> Iterator[Finding]:
    for cell, runs in holding.items():
        seen = [one.holds for one in runs if one.holds is not None]
        if len(seen) >= BANDS * len(runs):
            yield share(cell, seen)


def _with_delta(holding: Mapping[Cell, list[Trial]]) -> Iterator[Finding]:
    """Errors with a δ over those without."""
    for (kind, n, epsilon, delta), runs in holding.items():
        pure = holding.get((kind, n, epsilon, 0.0))
        if delta and pure:
            yield _ratio((kind, n, epsilon, delta), _capped(runs), _capped(pure))


def _over_best(cell: Cell, runs: Sequence[Trial]) -> Finding:
    """Errors over those of the mechanism that is best in this cell."""
    names = set.intersection(*(set(one.offered) for one in runs))
    best = min(names, key=lambda name: float(_capped(runs, name).mean()))
    return _ratio(cell, _capped(runs), _capped(runs, best), f"best: {best}")


def _capped(runs: Sequence[Trial], mechanism: str | None = None) -> FloatArray:
    """Errors, of the default or another mechanism, that no single run can dominate."""
    errors = [one.error if mechanism is None else one.offered[mechanism] for one in runs]
    return np.minimum(errors, LARGEST_ERROR * np.mean([one.public for one in runs]))


def _ratio(
    cell: Cell, errors: FloatArray, others: FloatArray | Sequence[float], about: str = ""
) -> Finding:
    """A ratio of means over the same problems, with its standard error (delta method)."""
    top, bottom = errors, np.asarray(others)
    ratio = float(top.mean() / max(float(bottom.mean()), 1e-300))
    spread = float(np.std(top - ratio * bottom) / math.sqrt(len(top)))
    error = spread / max(float(bottom.mean()), 1e-300)
    return Finding(cell=cell, estimate=ratio, error=error, runs=len(top), about=about)


def share(cell: Cell, seen: Sequence[bool], about: str = "") -> Finding:
    """A share of runs, with its standard error."""
    found = float(np.mean(seen))
    error = math.sqrt(found * (1 - found) / len(seen))
    return Finding(cell=cell, estimate=found, error=error, runs=len(seen), about=about)
