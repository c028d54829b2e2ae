"""How much sooner a sweep ends on two cores, and how soon one that is finished is there again."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpfda.planning.sweep import Sweep
from dpfda.report.contents import Outcome
from dpfda_bench.goals import at_least, at_most
from dpfda_bench.reproductions import _p001 as common
from dpfda_bench.reproductions import p001_figure_2

GOALS = {"two_core_speedup": at_least(1.7), "resumed_share": at_most(0.05)}
_CELLS, _FEW, _STUDIES = 24, 4, 10


def run(quick: bool = False) -> Outcome:
    """Cells of 001 Figure 2, ten replications each, on one core, on two, and out of the store."""
    names = [
        (_STUDIES * cell, _STUDIES, common.EPSILONS, common.RULES)
        for cell in range(_FEW if quick else _CELLS)
    ]
    p001_figure_2._chunk(*names[0])  # tables are built once
    with tempfile.TemporaryDirectory(prefix="dpfda-sweep-") as folder:
        store = Path(folder, "cells.jsonl")
        one, first = _timed(Sweep(), names)
        two, second = _timed(Sweep(jobs=2, store=store), names)
        again, third = _timed(Sweep(jobs=2, store=store), names)
        size = store.stat().st_size
    for cell, others in zip(first, zip(second, third, strict=True), strict=True):
        for key, errors in cell.items():
            for other in others:  # to the last bit
                np.testing.assert_array_equal(errors, other[key])
    figures = {"two_core_speedup": one / two, "resumed_share": again / two}
    rows = [{"cells": len(names), "one core, s": one, "two cores, s": two, "resumed, s": again}]
    note = f"Two cores: processes are started and {size / 1e6:.1f} MB kept within their time."
    return Outcome(rows=rows, figures=figures, notes=[note])


def _timed(sweep: Sweep, names: list[Any]) -> tuple[float, list[Any]]:
    began = time.perf_counter()
    found = sweep.run(p001_figure_2._chunk, names)
    return time.perf_counter() - began, found
