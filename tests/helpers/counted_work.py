"""Cells that say in a file that they were computed: ``python counted_work.py STORE LOG JOBS``."""

from __future__ import annotations

import sys
import time
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from dpfda.planning.sweep import Sweep

NAMES = list(product("ab", (0.5, 1.0), range(8)))


def draw(log: str, method: str, epsilon: float, number: int) -> tuple[str, float]:
    """A number of its own, by the cell's name, after a while."""
    time.sleep(0.03)
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{method} {epsilon} {number}\n")
    generator = np.random.default_rng([ord(method), round(1000 * epsilon), number])
    return method, float(generator.normal() / epsilon)


if __name__ == "__main__":
    import counted_work  # by its name, as processes that work for it know it

    store, log, jobs = sys.argv[1:]
    sweep = Sweep(jobs=int(jobs), store=Path(store))
    print(sweep.run(partial(counted_work.draw, log), NAMES))
