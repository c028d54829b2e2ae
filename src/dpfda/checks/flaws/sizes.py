"""Flaws that show at the ends of the range of floats and integers."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from dpfda.central.looks import MeanLook, units
from dpfda.checks import magnitudes
from dpfda.checks.planted import asked, plant
from dpfda.protocol.query import Look


def _any_size() -> list[Any]:
    """Noise of any size, also of none."""
    return [
        patch("dpfda.mechanisms.additive._in_range", lambda name, value: None),
        patch("dpfda.central.cell_looks._LEAST_WIDTH", 0.0),
    ]


def _plain_squares(features: Any, axes: Any, *, gaussian: bool = False) -> float:
    gaps = np.abs(features[:, None] - features[None]) / axes
    sizes = np.sqrt((gaps**2).sum(axis=2)) if gaussian else gaps.sum(axis=2)
    return float(sizes.max())


plant(
    "lattice_of_any_size",
    "features near the smallest float give a lattice on which noise has lost its digits",
    _any_size,
    asked(magnitudes.check_extremes, "nearest_mean"),
)
plant(
    "squares_underflow",
    "distances between features are squared without being scaled first",
    lambda: [*_any_size(), patch("dpfda.central.cell_looks.cell_sensitivity", _plain_squares)],
    asked(magnitudes.check_powers, "nearest_mean"),
)
plant(
    "units_too_fine",
    "records are summed in so small units that the sum of many wraps around",
    lambda: [patch("dpfda.central.looks.units", lambda n: 1 << 40)],
    asked(magnitudes.check_room, "ball_mean"),
)
plant(
    "records_count_more",
    "a record adds twice as much to a sum as is said",
    lambda: [patch.object(MeanLook, "largest", property(lambda it: units(it.n) // 2))],
    asked(magnitudes.check_room, "ball_mean"),
)
plant(
    "any_number_of_records",
    "a holder does not compare how many records it has with how many were announced",
    lambda: [patch.object(Look, "count", lambda it, n, *, part=False: None)],
    asked(magnitudes.check_room, "ball_mean"),
)
