"""A task of the benchmark of local studies: people, public facts, and the errors to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dpfda._validate import IntArray
from dpfda.datasets import Dataset

Draw = tuple[Any, IntArray, Any, IntArray]
"""People who are asked, their label numbers, other people, theirs."""

_EPSILONS = (0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True)
class Problem:
    """A way to draw people, what is publicly known of them, and the errors to reach.

    Attributes:
        name: of the figures, ``<name>_eps<ε>``.
        draw: people for a seed.
        facts: what `plan_study` is told.
        goals: error in % by ε; every ε that is listed is measured.
        n_classes: how many labels.
        tuned: whether constants of a design were chosen on it.
        calibrated: ε at which probabilities are judged too.
    """

    name: str
    draw: Callable[[int], Draw]
    facts: Mapping[str, Any]
    goals: Mapping[float, float]
    n_classes: int = 2
    tuned: bool = False
    calibrated: tuple[float, ...] = ()


def at(*bounds: float | None, epsilons: tuple[float, ...] = _EPSILONS) -> dict[float, float]:
    """Bounds by ε; None where an ε is not measured."""
    pairs = zip(epsilons, bounds, strict=True)
    return {epsilon: bound for epsilon, bound in pairs if bound is not None}


def split(load: Callable[[], Dataset], share: float, seed: int) -> Draw:
    """A random split into people who are asked, as a share or a number, and others."""
    X, y = _numbered(load)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [int(share * len(y)) if share < 1 else int(share)])
    return X[train], y[train], X[test], y[test]


@cache
def _numbered(load: Callable[[], Dataset]) -> tuple[Any, IntArray]:
    data = load()
    return data.X, np.unique(np.asarray(data.y), return_inverse=True)[1]
