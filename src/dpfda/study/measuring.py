"""What is measured again and again: seconds, and means with their standard errors."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np


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


def mean_and_error(values: Sequence[float], name: str = "error") -> dict[str, float]:
    """The mean of replications, called `name`, and its standard error.

    Example:
        >>> mean_and_error([0.0, 2.0, 0.0, 2.0], "mean")
        {'mean': 1.0, 'standard_error': 0.5}
    """
    spread = float(np.std(values) / np.sqrt(len(values)))
    return {name: float(np.mean(values)), "standard_error": spread}
