"""Benchmarks and reproductions on one HTML page each: nothing of anybody was released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpfda._version import __version__
from dpfda.report import Contents, Report, Table
from dpfda.report.contents import Outcome
from dpfda.report.terminal import machine

PAPERS = {
    "000": "Functional Classification under Local Differential Privacy with Model Reversal and "
    "Model Average",
    "001": "Classification Under Local Differential Privacy with Model Reversal and Model "
    "Averaging, JMLR 27(5), 2026",
    "002": "Approximating Functions with Approximate Privacy for Applications in Signal "
    "Estimation and Learning, Entropy 25, 825, 2023",
    "003": "Pure Differential Privacy for Functional Summaries via a Laplace-like Process",
    "004": "Privacy-Preserving Boosting in the Local Setting",
}
"""Whose tables and figures are reproduced."""
_LOOK = "Smaller sizes, or fewer replications, than those of {}: a look, not a result."
_PUBLIC = "No budget was spent: data are public or made up. What each version would promise:"


def benchmark_report(
    name: str, what: str, outcome: Outcome, goals: Table, missed: tuple[str, ...], *, quick: bool
) -> Report:
    """Figures beside their goals, and where they were measured.

    Args:
        name: of the benchmark.
        what: it measures, in a sentence.
        outcome: what came out.
        goals: every figure beside its goal.
        missed: goals that were not met, in sentences.
        quick: whether it was a look.
    """
    how = "with smaller sizes (--quick)" if quick else "in full"
    doubts = (_LOOK.format("the benchmark"),) * quick + missed
    return Report.measured(
        _contents(outcome, goals, what, doubts=doubts),
        title=f"Benchmark: {name}",
        method=f"We ran the benchmark {name} of dpfda {__version__} (dpfda bench {name}) {how}. "
        f"{what} Speed is stated as a ratio measured in one run wherever there is something to "
        "compare with.",
        machine=machine(),
    )


def reproduction_report(
    name: str,
    title: str,
    outcome: Outcome,
    goals: Table,
    missed: tuple[str, ...],
    *,
    quick: bool,
    verdict: str,
    guarantees: Mapping[str, str],
) -> Report:
    """A published table or figure beside what comes out here.

    Args:
        name: of the reproduction; it begins with the number of the paper.
        title: what is reproduced.
        outcome: what came out.
        goals: every figure beside its goal.
        missed: goals that were not met, in sentences.
        quick: whether it was a look.
        verdict: whether it agrees, and why.
        guarantees: what each version promises.
    """
    doubts = (_LOOK.format("the reproduction"),) * quick + missed
    how = "with few replications (--quick)" if quick else "in full"
    promised = (f"{version}: {promise}" for version, promise in guarantees.items())
    return Report.measured(
        _contents(outcome, goals, title, doubts=doubts, verdict=(verdict,)),
        title=title,
        method=f"We recomputed “{title}” with dpfda {__version__} (dpfda reproduce {name}) {how}, "
        f"beside the numbers that the paper prints. {verdict}",
        sources=tuple(PAPERS[paper] for paper in (name[:3],) if paper in PAPERS),
        machine=machine(),
        promised=(_PUBLIC, *promised),
    )


def _contents(outcome: Outcome, goals: Table, caption: str, **words: Any) -> Contents:
    own = replace(outcome, figures={}).contents(caption=caption)
    tables = (replace(goals, title="Figures beside their goals"), *own.tables)
    return replace(own, tables=tables, **words)
