"""Choosing parameters by looking at the data: for comparison with the privacy-safe choice only.

Every mechanism chooses its parameters from n, ε and the kernel (PSS) unless they are given. Private
cross-validation (PCV, 003 §4.4) weighs the known noise against the error on held-out curves. Its
choice depends on the data and is not private: no budget is spent, and guarantees say so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.linear import (
    AbsoluteRegularization,
    FiniteLaplace,
    LinearMechanism,
    QuadraticRegularization,
    ShrunkMean,
)
from dpfda.central.mean import MeanRelease
from dpfda.central.records import clip_rows
from dpfda.errors import InvalidParameter

_FOLDS = 10
_CANDIDATES = 15


def cross_validated(
    release: MeanRelease, records: FloatArray, *, not_private: bool = False
) -> MeanRelease:
    """The release with the parameter that cross-validation likes best.

    Privacy:
        None. The choice reveals something about the curves; callers must say that they know, and
        the guarantee of what is released with it says so to everybody else.

    Examples:
        >>> from dpfda.central.functions import as_grid
        >>> curves = np.random.default_rng(0).normal(size=(40, 11))
        >>> grid = as_grid(np.linspace(0, 1, 11))
        >>> release = MeanRelease(
        ...     epsilon=1.0, n=40, bound=1.0, grid=grid, mechanism=FiniteLaplace()
        ... )
        >>> print(cross_validated(release, curves, not_private=True).guarantee.assumptions[1])
        parameters were chosen by looking at the data: not private
    """
    if not not_private:
        raise InvalidParameter("not_private", "True: cross-validation looks at the data", False)
    mechanism = release.mechanism
    assert isinstance(mechanism, LinearMechanism)
    rows = clip_rows(mechanism.rows(records, release), release.bound)
    folds = np.array_split(np.random.default_rng(0).permutation(len(rows)), _FOLDS)
    held = np.stack([rows[fold].mean(axis=0) for fold in folds])
    sizes = np.array([[len(fold)] for fold in folds])
    kept = (rows.sum(axis=0) - sizes * held) / (len(rows) - sizes)
    candidates = [
        replace(release, mechanism=replace(candidate, chosen_by_data=True))
        for candidate in _candidates(mechanism, release)
    ]
    risks = [_risk(candidate, kept, held) for candidate in candidates]
    return candidates[int(np.argmin(risks))]


def _candidates(mechanism: LinearMechanism, release: MeanRelease) -> list[LinearMechanism]:
    chosen = mechanism.choices(release)
    if isinstance(mechanism, FiniteLaplace):
        most = mechanism.basis(release.grid).size
        sizes = range(1, min(most, chosen["components"] + 3) + 1)
        return [replace(mechanism, components=size) for size in sizes]
    assert isinstance(mechanism, AbsoluteRegularization | QuadraticRegularization)
    factors = np.geomspace(0.1, 10.0, _CANDIDATES)
    return [replace(mechanism, psi=float(chosen["psi"] * factor)) for factor in factors]


def privacy_error(query: ShrunkMean) -> float:
    """E‖noise‖², known before any data."""
    return float(query.noise.law.variance.sum())


def _risk(release: MeanRelease, kept: FloatArray, held: FloatArray) -> float:
    """Mean squared distance of fitted from held-out coefficients, plus the noise to come."""
    assert isinstance(release.mechanism, LinearMechanism)
    try:
        query = release.mechanism.query(release)
    except InvalidParameter:  # a threshold so high that nothing is left
        return np.inf
    fitted = np.zeros_like(held)
    fitted[:, : query.size] = query.shrink(kept[:, : query.size])
    return float(((fitted - held) ** 2).sum(axis=1).mean()) + privacy_error(query)
