"""Choosing parameters by looking at the data: for comparison with the privacy-safe choice only.

Every mechanism chooses its parameters from n, ε and the kernel (PSS) unless they are given. Private
cross-validation (PCV, 003 §4.4) weighs the known noise against the error on held-out curves. Its
choice depends on the data and is not private: no budget is spent and no guarantee covers it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.function_mechanism import Task
from dpfda.central.linear import (
    AbsoluteRegularization,
    FiniteLaplace,
    LinearMechanism,
    QuadraticRegularization,
)
from dpfda.central.quadrature import Grid
from dpfda.central.records import clip_rows
from dpfda.errors import InvalidParameter

M = TypeVar("M", bound=LinearMechanism)
_FOLDS = 10
_CANDIDATES = 15


def cross_validated(
    mechanism: M, records: FloatArray, grid: Grid, task: Task, *, not_private: bool = False
) -> M:
    """The mechanism with the parameter that cross-validation likes best.

    Privacy:
        None. The choice reveals something about the curves; callers must say that they know.

    Example:
        >>> from dpfda.central.quadrature import as_grid
        >>> curves = np.random.default_rng(0).normal(size=(40, 11))
        >>> task = Task(n=40, bound=1.0, epsilon=1.0)
        >>> grid = as_grid(np.linspace(0, 1, 11))
        >>> chosen = cross_validated(FiniteLaplace(), curves, grid, task, not_private=True)
        >>> chosen.components >= 1
        True
    """
    if not not_private:
        raise InvalidParameter("not_private", "True: cross-validation looks at the data", False)
    candidates = _candidates(mechanism, grid, task)
    basis = mechanism.basis(grid)
    rows = clip_rows(basis.project(records), task.bound)
    folds = np.array_split(np.random.default_rng(0).permutation(len(rows)), _FOLDS)
    held = np.stack([rows[fold].mean(axis=0) for fold in folds])
    sizes = np.array([[len(fold)] for fold in folds])
    kept = (rows.sum(axis=0) - sizes * held) / (len(rows) - sizes)
    risks = [_risk(candidate, kept, held, grid, task) for candidate in candidates]
    return candidates[int(np.argmin(risks))]


def _candidates(mechanism: M, grid: Grid, task: Task) -> list[M]:
    chosen = mechanism.plan(grid, task).parameters
    if isinstance(mechanism, FiniteLaplace):
        most = mechanism.basis(grid).size
        sizes = range(1, min(most, chosen["components"] + 3) + 1)
        return [replace(mechanism, components=size) for size in sizes]
    assert isinstance(mechanism, AbsoluteRegularization | QuadraticRegularization)
    factors = np.geomspace(0.1, 10.0, _CANDIDATES)
    return [replace(mechanism, psi=float(chosen["psi"] * factor)) for factor in factors]


def _risk(
    mechanism: LinearMechanism, kept: FloatArray, held: FloatArray, grid: Grid, task: Task
) -> float:
    """Mean squared distance of fitted from held-out coefficients, plus the noise to come."""
    try:
        plan = mechanism.plan(grid, task)
    except InvalidParameter:  # a threshold so high that nothing is left
        return np.inf
    fitted = np.zeros_like(held)
    fitted[:, : plan.basis.size] = plan.shrink(kept[:, : plan.basis.size])
    return float(((fitted - held) ** 2).sum(axis=1).mean()) + plan.privacy_error
