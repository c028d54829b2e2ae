"""Rows as whole numbers, so that sums over any number of people are exact.

Every row is clipped to a public ball and cut to a grid of 2^-18 of its radius, towards zero, before
anything is added up. Products of two such numbers are multiples of 2^-36, so a block of 2^16 rows
sums to an integer below 2^53: a float64 matrix product makes no error whatever the order of its
additions, and blocks are added as 64-bit integers. What one person can change is therefore bounded
in exact arithmetic (C20: records are rounded before the sum).
"""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray

ONE = float(1 << 18)
"""The ball's radius in grid steps."""

SQUARE = 1 / ONE**2
"""What a product of two grid steps stands for."""

BLOCK = 1 << 16
"""Most rows of one exact float64 sum: 2^16 rows of products below 2^36 stay below 2^53."""

MOST_ROWS = (1 << 27) - 1
"""Most rows of one fit: the sum of so many products of 2^36 at most stays below 2^63."""

MOST_FEATURES = 1 << 12
"""Most features: a float norm of so many squares errs by less than a row is drawn inward."""

_INWARD = 1.0 - 2.0**-40  # room for the rounding of a float norm, before cutting to the grid


def ball(rows: FloatArray, *, center: FloatArray, radius: float) -> FloatArray:
    """Whole numbers (as floats): (row - center)/radius, clipped to the unit ball, times 2^18.

    Examples:
        >>> ball(np.array([[3.0, 4.0]]), center=np.zeros(2), radius=1.0) / ONE
        array([[0.59999847, 0.79999924]])
    """
    shifted = rows - center
    norms = np.sqrt(np.einsum("ij,ij->i", shifted, shifted))
    factors = (ONE * _INWARD) / np.maximum(norms, radius)
    shifted *= factors[:, None]
    return np.trunc(shifted, out=shifted)


def kept(rows: FloatArray, *, center: FloatArray, radius: float) -> FloatArray:
    """The factor by which `ball` shortens each row: 1 inside."""
    shifted = rows - center
    return np.asarray(radius / np.maximum(np.sqrt(np.einsum("ij,ij->i", shifted, shifted)), radius))


def segment(values: FloatArray, *, center: float, radius: float) -> FloatArray:
    """Whole numbers (as floats): (value - center)/radius, clipped to [-1, 1], times 2^18."""
    scaled = np.clip((values - center) / radius, -1.0, 1.0)
    return np.trunc(scaled * ONE)


def with_constant(x: FloatArray) -> FloatArray:
    """(x, 1)/√2, cut to the grid: still in the unit ball."""
    return np.asarray(np.trunc(np.column_stack([x, np.full(len(x), ONE)]) / np.sqrt(2.0)))


def clip_to_ball(rows: FloatArray, *, center: FloatArray, radius: float) -> FloatArray:
    """row - center, shortened to length `radius` where longer: what a fitted model sees."""
    shifted = rows - center
    norms = np.sqrt(np.einsum("ij,ij->i", shifted, shifted))
    return np.asarray(shifted * (radius / np.maximum(norms, radius))[:, None])
