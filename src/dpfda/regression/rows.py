"""Rows of a problem in the unit ball, with the constant feature where an intercept is asked."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray
from dpfda.regression.fixed_point import ONE, ball, segment
from dpfda.regression.problem import Problem


def unit_rows(
    problem: Problem, rows: FloatArray, targets: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Whole numbers, 2^18 being 1: rows (x, 1)/√2 or x, and targets in [-1, 1]."""
    x = ball(rows, center=problem.center, radius=problem.radius)
    if problem.fit_intercept:
        x = with_constant(x)
    v = segment(targets, center=problem.target_center, radius=problem.target_radius)
    return x, v


def with_constant(x: FloatArray) -> FloatArray:
    """(x, 1)/√2, cut to the grid: still in the unit ball."""
    return np.asarray(np.trunc(np.column_stack([x, np.full(len(x), ONE)]) / np.sqrt(2.0)))
