"""What a kind of release must say of itself to be judged by `dpfda bench honesty`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda_bench.random_curves import Shape, Slack

LEVEL = 0.95
"""Of bands, for whole curves."""


class Judged(NamedTuple):
    """What a fitted estimator released, beside the truth.

    Attributes:
        error: of predictions, or of a curve.
        holds: whether the band holds what it should.
        width: of the band.
        warnings: that came with it.
        others: errors of what else was released (sizes, effects, slopes), over those of zero.
        vague: whether the band is as wide as what is possible without data: the public range; of
            slopes, from minus to plus what moves the target through its range while the feature, or
            the curve, goes through its own. Densities have no such limit.
    """

    error: float
    holds: bool | None = None
    width: float | None = None
    warnings: tuple[str, ...] = ()
    others: tuple[float, ...] = ()
    vague: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """A problem as a kind of release sees it.

    Attributes:
        release: a fitted default for (ε, δ), judged; None where it is not offered.
        offered: errors of other mechanisms for (ε, δ), by name.
        public: error of what is known without any data.
        default: whether the release is what the package does if nobody chooses a mechanism.
    """

    release: Callable[[float, float], Judged | None]
    public: float
    offered: Callable[[float, float], dict[str, float]] = lambda epsilon, delta: {}
    default: bool = True


Kind = Callable[[int, Shape, Slack, int], Task]
"""Makes a task of a seed, a shape, a slack and a number of people."""


def lost(found: FloatArray, truth: FloatArray) -> float:
    """Squared error over that of 0."""
    return float(np.sum((found - truth) ** 2) / max(float(np.sum(truth**2)), 1e-300))


def held(truth: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    """Whether a band holds the whole curve, but for rounding."""
    room = 1e-9 * float(np.max(np.abs(high - low)))
    return bool(np.all((low <= truth + room) & (truth <= high + room)))
