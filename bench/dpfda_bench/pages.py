"""Benchmarks and reproductions on one HTML page each."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

from dpfda._version import __version__
from dpfda.report import Report
from dpfda.study.outcome import Outcome
from dpfda.study.results import machine
from dpfda_bench.effort import Effort
from dpfda_bench.goals import goals_table, missed

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
_LOOK = "Smaller sizes than those of the benchmark: a look, not a measurement."
_PUBLIC = (
    "No budget was spent: data are public or made up. What each version would promise to people:"
)
_FEW = "Few replications: a look, not a result."


def benchmark_report(name: str, module: ModuleType, outcome: Outcome, *, quick: bool) -> Report:
    """Figures beside their goals, and where they were measured."""
    what = _first_line(module)
    how = "with smaller sizes (--quick)" if quick else "in full"
    return Report.measured(
        _judged(outcome, module.GOALS, caption=what, doubts=(_LOOK,) * quick),
        title=f"Benchmark: {name}",
        method=f"We ran the benchmark {name} of dpfda {__version__} (dpfda bench {name}) {how}. "
        f"{what} Speed is stated as a ratio measured in one run wherever there is something to "
        "compare with.",
        machine=machine(),
    )


def reproduction_report(name: str, module: ModuleType, outcome: Outcome, effort: Effort) -> Report:
    """A published table or figure beside what comes out here, and whether they agree."""
    goals, found = getattr(module, "GOALS", {}), module.verdict(outcome)
    times = "" if effort.replications is None else f", {effort.replications} replications"
    how = "with few replications (--quick)" if effort.quick else "in full"
    told = f"{found.word}: {found.why}"
    shown = _judged(outcome, goals, caption=module.TITLE, doubts=(_FEW,) * effort.quick)
    promised = (f"{version}: {promise}" for version, promise in module.GUARANTEES.items())
    return Report.measured(
        replace(shown, verdict=(told, *shown.verdict)),
        title=module.TITLE,
        method=f"We recomputed “{module.TITLE}” with dpfda {__version__} (dpfda reproduce {name}) "
        f"{how}{times}, beside the numbers that the paper prints. {told}",
        sources=tuple(PAPERS[part] for part in (name[:3],) if part in PAPERS),
        machine=machine(),
        promised=(_PUBLIC, *promised),
    )


def _judged(outcome: Outcome, goals: Any, *, caption: str, doubts: tuple[str, ...]) -> Any:
    own = replace(outcome, figures={}).contents(caption=caption)
    tables = own.tables
    if outcome.figures:
        tables = (goals_table(outcome, goals, title="Figures beside their goals"), *tables)
    told = ("Every goal is met.",) if goals and not missed(outcome, goals) else ()
    doubts = (*doubts, *missed(outcome, goals))
    return replace(own, tables=tables, doubts=doubts, verdict=told)


def _first_line(module: ModuleType) -> str:
    return (module.__doc__ or "").partition("\n")[0]
