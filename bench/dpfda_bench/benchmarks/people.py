"""A million simulated people, end to end: seconds, memory, and what a reply costs one of them."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpfda import plan_study
from dpfda._validate import FloatArray, IntArray
from dpfda.datasets import simulate_001
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.noise import SecureSource
from dpfda.protocol.person import encode_people
from dpfda.report.contents import Outcome
from dpfda.simulate import ask_everybody
from dpfda_bench.device import costs
from dpfda_bench.goals import at_most

GOALS = {
    "curves_seconds": at_most(60),
    "d7_seconds": at_most(10),
    "d16_k26_seconds": at_most(60),
    "reports_666_seconds": at_most(60),
    "memory_ratio": at_most(1.2),
    "client_ms_most": at_most(5),
    "client_bytes_most": at_most(2000),
}

_FEW, _MANY = 100_000, 1_000_000
_AT_ONCE = 1 << 12


def run(quick: bool = False) -> Outcome:
    """Time and peak memory of whole studies, each in a process of its own; then devices."""
    many, few = (_MANY // 20, _FEW // 20) if quick else (_MANY, _FEW)
    figures, memory = {}, {}
    for kind in _KINDS:
        seconds, memory[kind] = _measure(kind, many)
        figures[f"{kind}_seconds"] = seconds * _MANY / many
    figures["memory_ratio"] = max(memory[kind] / _measure(kind, few)[1] for kind in _KINDS)
    rows = costs(devices=1 if quick else 3)
    figures["client_ms_most"] = max(row["milliseconds"] for row in rows)
    figures["client_bytes_most"] = max(row["bytes"] for row in rows)
    notes = [
        "Processor seconds of a million people: they come into being, encode what they hold and "
        "answer through exact noise; the server learns. Curves with questions (ε = 0.5), tables "
        "of 7 columns (ε = 1) and of 16 columns with 26 classes (ε = 5) with linear studies, and "
        "a million reports of vectors with 666 entries (ε = 5) alone.",
        "The milliseconds of a device are processor time of its first reply, from the bytes of the "
        "task to those of the reply: the most over phases, for tables of 36 columns.",
    ]
    if quick:
        notes.append(f"Quick: {many} people, seconds scaled up to a million.")
    return Outcome(rows=rows, figures=figures, notes=notes)


def _measure(kind: str, n_people: int) -> tuple[float, float]:
    """Processor seconds and peak memory of a study with `n_people`."""
    command = [sys.executable, "-m", "dpfda_bench.benchmarks.people", kind, str(n_people)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, memory = output.split()
    return float(seconds), float(memory)


def _curves(n_people: int) -> None:
    plan = plan_study(n_people, 0.5, value_range=(-6, 6), classes=(-1, 1))

    def people(start: int, stop: int) -> tuple[FloatArray, IntArray]:
        """People come into being when they are asked, and are forgotten afterwards."""
        crowd = simulate_001(stop - start, start)
        assert crowd.y is not None
        return encode_people(plan, crowd.X, crowd.y, grid_points=crowd.grid_points)

    ask_everybody(plan, people, source=SecureSource())


def _table(columns: int, classes: int, epsilon: float, n_people: int) -> None:
    facts: dict[str, Any] = {"feature_ranges": [(-6.0, 6.0)] * columns}
    plan = plan_study(n_people, epsilon, classes=tuple(range(classes)), **facts)
    centers = np.random.default_rng(1).normal(size=(classes, columns))

    def people(start: int, stop: int) -> tuple[FloatArray, IntArray]:
        generator = np.random.default_rng(start)
        labels = generator.integers(0, classes, stop - start)
        rows = centers[labels] + generator.normal(size=(stop - start, columns))
        return encode_people(plan, rows, labels)

    ask_everybody(plan, people, source=SecureSource())


def _reports(n_people: int) -> None:
    mechanism = CapIndex.best(epsilon=5.0, dimension=666)
    source, total = SecureSource(), np.zeros(666)
    for start in range(0, n_people, _AT_ONCE):
        generator = np.random.default_rng(start)
        vectors = generator.normal(size=(min(_AT_ONCE, n_people - start), 666))
        total += mechanism.totals(mechanism.randomize(vectors, source, clip=True))


_KINDS: dict[str, Callable[[int], None]] = {
    "curves": _curves,
    "d7": partial(_table, 7, 2, 1.0),
    "d16_k26": partial(_table, 16, 26, 5.0),
    "reports_666": _reports,
}

if __name__ == "__main__":
    began = time.process_time()
    _KINDS[sys.argv[1]](int(sys.argv[2]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(time.process_time() - began, peak)  # noqa: T201
