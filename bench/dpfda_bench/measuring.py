"""What is measured again and again: seconds, and means with their standard errors."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

Key = TypeVar("Key")


def seconds(
    work: Callable[[], object],
    *,
    repeats: int = 1,
    of: Callable[[Sequence[float]], float] = statistics.median,
) -> float:
    """The median time of `work`, or its best with ``of=min``."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return of(taken)


def processor_seconds(process: int) -> tuple[float, float]:
    """Processor time of another process on Linux: of all its threads, and of its first thread."""
    first = Path(f"/proc/{process}/task/{process}/schedstat").read_text(encoding="ascii")
    clock = (~process << 3) | 2  # as glibc's clock_getcpuclockid makes it
    return time.clock_gettime(clock), int(first.split()[0]) / 1e9


def mean_and_error(values: Sequence[float], name: str = "error") -> dict[str, float]:
    """The mean of replications, called `name`, and its standard error.

    Examples:
        >>> mean_and_error([0.0, 2.0, 0.0, 2.0], "mean")
        {'mean': 1.0, 'standard_error': 0.5}
    """
    spread = float(np.std(values) / np.sqrt(len(values)))
    return {name: float(np.mean(values)), "standard_error": spread}


def gathered(found: Iterable[tuple[Key, float]]) -> dict[Key, list[float]]:
    """The values of each key, in the order in which they come.

    Examples:
        >>> gathered([("a", 1.0), ("b", 2.0), ("a", 3.0)])
        {'a': [1.0, 3.0], 'b': [2.0]}
    """
    values: dict[Key, list[float]] = {}
    for key, value in found:
        values.setdefault(key, []).append(value)
    return values
