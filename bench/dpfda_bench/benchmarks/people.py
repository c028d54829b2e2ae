"""A million simulated people, end to end, and what they cost in memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from dpfda import plan_study
from dpfda._validate import FloatArray, IntArray
from dpfda.datasets import simulate_001
from dpfda.noise import SecureSource
from dpfda.protocol.person import encode_people
from dpfda.simulate import ask_everybody
from dpfda.study.outcome import Outcome
from dpfda_bench.goals import at_most

GOALS = {"million_people_seconds": at_most(60), "memory_ratio": at_most(1.2)}

_FEW, _MANY = 10_000, 1_000_000


def run(quick: bool = False) -> Outcome:
    """Time and peak memory of whole studies, each in a process of its own."""
    many = _MANY // 10 if quick else _MANY
    seconds, memory = _measure(many)
    _, little = _measure(_FEW)
    notes = ["Every person draws a curve, encodes it, and answers through exact noise (ε = 0.5)."]
    if quick:
        notes.append(f"Quick: {many} people, seconds scaled up to a million.")
    return Outcome(
        figures={
            "million_people_seconds": seconds * _MANY / many,
            "memory_ratio": memory / little,
            "people_per_second": many / seconds,
        },
        notes=notes,
    )


def _measure(n_people: int) -> tuple[float, float]:
    """Seconds and peak memory of a study with `n_people`."""
    command = [sys.executable, "-m", "dpfda_bench.benchmarks.people", str(n_people)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, memory = output.split()
    return float(seconds), float(memory)


def _study(n_people: int) -> None:
    plan = plan_study(n_people, 0.5, value_range=(-6, 6), classes=(-1, 1))

    def people(start: int, stop: int) -> tuple[FloatArray, IntArray]:
        """People come into being when they are asked, and are forgotten afterwards."""
        crowd = simulate_001(stop - start, start)
        return encode_people(plan, crowd.X, crowd.y, grid_points=crowd.grid_points)

    ask_everybody(plan, people, source=SecureSource())


if __name__ == "__main__":
    began = time.perf_counter()
    _study(int(sys.argv[1]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(time.perf_counter() - began, peak)  # noqa: T201
