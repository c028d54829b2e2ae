"""Where a falling curve of simulated errors meets the error that is wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import isotonic_regression

from dpfda._validate import FloatArray

_RESAMPLES = 200


def falling(errors: FloatArray) -> FloatArray:
    """The nearest curve that never rises: more people, or a larger ε, cannot hurt.

    Examples:
        >>> falling(np.array([0.5, 0.3, 0.4, 0.1])).round(2).tolist()
        [0.5, 0.35, 0.35, 0.1]
    """
    return np.asarray(isotonic_regression(errors, increasing=False).x)


def crossing(levels: Sequence[float], errors: FloatArray, wanted: float) -> float:
    """The level at which the mean error comes down to `wanted`; infinite if it does not.

    Args:
        levels: people or ε, rising.
        errors: of the same studies at every level, (levels, studies).
        wanted: the error to reach.
    """
    curve = falling(errors.mean(axis=1))
    if curve[-1] > wanted:
        return float("inf")
    place = int(np.argmax(curve <= wanted))
    if place == 0:
        return float(levels[0])
    above, below = curve[place - 1], curve[place]
    share = (above - wanted) / (above - below)
    low, high = np.log(levels[place - 1]), np.log(levels[place])
    return float(np.exp(low + share * (high - low)))


def crossing_interval(
    levels: Sequence[float], errors: FloatArray, wanted: float, *, level: float = 0.9
) -> tuple[float, float]:
    """Where the crossing lies when other studies had been simulated: studies drawn again."""
    rng = np.random.default_rng(0)
    studies = errors.shape[1]
    found = [
        crossing(levels, errors[:, rng.integers(0, studies, studies)], wanted)
        for _ in range(_RESAMPLES)
    ]
    tail = (1 - level) / 2
    low, high = np.quantile(found, [tail, 1 - tail], method="nearest")
    return float(low), float(high)
