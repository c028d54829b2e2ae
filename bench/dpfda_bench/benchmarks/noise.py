"""How fast exact noise is: against OpenDP, for one report, and at import."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from dpfda.errors import MissingExtra
from dpfda.mechanisms.additive import Laplace
from dpfda.noise import SecureSource, discrete_laplace
from dpfda.report.contents import Outcome
from dpfda_bench.goals import at_least, at_most
from dpfda_bench.measuring import seconds

GOALS = {
    "ratio_vs_opendp": at_least(20),
    "report_ms": at_most(0.2),
    "import_ms": at_most(500),
}

_SCALE = 1 << 20
"""Lattice steps a noise scale: what `Laplace` uses."""


def run(quick: bool = False) -> Outcome:
    """Measure on this machine, all in one run."""
    draws = 20_000 if quick else 1_000_000
    source = SecureSource()
    ours = draws / seconds(lambda: discrete_laplace(draws, scale=_SCALE, source=source), repeats=5)
    integers = draws / seconds(_opendp_laplace(draws, kind=int, scale=_SCALE), repeats=1)
    floats = draws / 10 / seconds(_opendp_laplace(draws // 10, kind=float, scale=1), repeats=1)
    figures = {
        "ratio_vs_opendp": ours / integers,
        "report_ms": _report_ms(200 if quick else 2000),
        "import_ms": _import_ms("import dpfda", 1 if quick else 5),
        "ratio_vs_opendp_floats": ours / floats,
        "core_import_ms": _import_ms("from dpfda import Guarantee, Mechanism", 1 if quick else 5),
        "draws_per_second": ours,
    }
    note = f"{draws:,} draws. OpenDP is measured in its faster form, on integers at the same scale."
    return Outcome(figures=figures, notes=[note])


def _opendp_laplace(draws: int, *, kind: type, scale: float) -> Callable[[], object]:
    """OpenDP's Laplace measurement on a vector, with its own exact sampler."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtra("opendp", "dev") from None
    dp.enable_features("contrib")
    atoms = dp.atom_domain(T=kind, nan=False) if kind is float else dp.atom_domain(T=kind)
    domain, metric = dp.vector_domain(atoms), dp.l1_distance(T=kind)
    measurement = dp.m.make_laplace(domain, metric, scale=float(scale))
    zeros = [kind(0)] * draws
    return lambda: measurement(zeros)


def _report_ms(repeats: int) -> float:
    """One person's report of four numbers, validation included; median over many."""
    mechanism, source = Laplace(epsilon=1.0, dimension=4), SecureSource()
    values = np.array([[0.1, -0.2, 0.3, 1.0]])
    mechanism.randomize(values, source)  # the tables of a scale are built once
    return 1e3 * seconds(lambda: mechanism.randomize(values, source), repeats=repeats)


def _import_ms(statement: str, repeats: int) -> float:
    """An import in a fresh interpreter, by its own clock."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    taken = [
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
        for _ in range(repeats)
    ]
    return 1e3 * statistics.median(taken)
