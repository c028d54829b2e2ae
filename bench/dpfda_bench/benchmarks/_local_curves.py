"""Curves that question studies are tried on: unbalanced classes, and hardly any signal at all."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpfda.datasets import Dataset, simulate_001
from dpfda.datasets.loaders import load_phoneme
from dpfda_bench.benchmarks._local_problem import Draw, Problem, at, split

_UNBALANCED = -3.0  # the intercept of 001 §6.1 that leaves 28 % of people in one class
_RANGE = {"value_range": (-6.0, 6.0)}


def simulations() -> list[Problem]:
    """001 §6.1 with 3000 people."""
    few = (0.5, 1.0, 2.0)
    unbalanced = partial(_simulation, _UNBALANCED)
    return [
        Problem(
            "simulation",
            partial(_simulation, 0.1),
            _RANGE,
            at(11.6, 10.9, 10.6, epsilons=(0.1, 0.5, 1.0)),
            tuned=True,
            calibrated=(1.0,),
        ),
        Problem(
            "simulation_loose",
            partial(_simulation, 0.1),
            {"value_range": (-30.0, 90.0)},
            at(14, 12, 10.8, epsilons=(0.5, 1.0, 5.0)),
            tuned=True,
        ),
        Problem("unbalanced", unbalanced, _RANGE, at(16, 12.5, 11.8, epsilons=few), tuned=True),
        Problem(
            "unbalanced_share_known",
            unbalanced,
            _RANGE | {"class_share": 0.28},
            at(12.7, 12, 11.3, epsilons=few),
            tuned=True,
        ),
    ]


def speech() -> list[Problem]:
    """Log-periodograms of "sh" and "iy": 1500 frames are asked, the others judge."""
    draw, values = partial(split, _sh_iy, 1500), {"value_range": (0, 25)}
    goals = at(5.7, 3.3, None, 0.5)
    loose = {"value_range": (-50, 200)}
    return [
        Problem("sh_iy_loose", draw, loose, at(9, 4.4, None, 0.4), tuned=True),
        Problem("sh_iy", draw, values, goals, tuned=True, calibrated=(1.0, 5.0)),
    ]


def _sh_iy() -> Dataset:
    return load_phoneme(classes=("sh", "iy"))


def _simulation(intercept: float, seed: int) -> Draw:
    train = simulate_001(3000, 2 * seed, intercept=intercept)
    test = simulate_001(20_000, 2 * seed + 1, intercept=intercept)
    numbers = [np.asarray(np.asarray(part.y) == 1, dtype=np.int64) for part in (train, test)]
    return train.X, numbers[0], test.X, numbers[1]
