"""Solutions that a linear system may have had before noise was added to its numbers.

Released are Ã = A + E, symmetric, and b̃ = b + e; wanted is the solution of A β = b. The law of the
noise is known: noise drawn again, E' and e', says which systems may lie behind the released one,
A' = Ã - E' and b' = b̃ - e'. Each is solved under the belief β ~ N(0, prior²), which is wide and
matters only along directions in which A' is no larger than its noise,

    β' = β₀ + P A'ᵀ (A' P A'ᵀ + Cov e)⁻¹ (b̃ - e' - A' β₀),   P = diag(prior²), β₀ from the belief.

Where noise is small against A, these are the solutions within the known error. Where it is not,
they spread as far as the belief does. A standard error of a regularized solution, by contrast,
leaves out what the regularization takes away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from dpfda._validate import FloatArray

_LARGE = 4.0
"""Belief about a coefficient, in standard deviations of the target over those of its column: itself
a standard deviation. One column by itself has at most 1; columns that move together, such as x and
x², can have several."""
_LEAST = 0.1  # of the noise: as much as a column varies at least, so that a belief is finite
_LEVEL = 0.95  # probability with which noise alone makes a direction look as large as it is told
_TAKES_PART = 0.2  # least squared share of a column in a direction for the column to be named


def plausible_solutions(
    matrix: FloatArray,
    vectors: FloatArray,
    *,
    matrix_errors: FloatArray,
    vector_errors: FloatArray,
    vector_covariance: FloatArray,
    prior: FloatArray,
    generator: np.random.Generator,
) -> FloatArray:
    """Solutions (S, p, J), one for each draw of the noise.

    Args:
        matrix: Ã, (p, p).
        vectors: b̃, one column for each of J systems with one matrix, (p, J).
        matrix_errors: draws of E, (S, p, p).
        vector_errors: draws of e, (S, p, J).
        vector_covariance: of each column of e, (p, p).
        prior: standard deviations of the belief about β, (S, p): it may depend on A'.
        generator: where β₀ comes from.

    Examples:
        >>> found = plausible_solutions(
        ...     np.eye(1), np.ones((1, 1)), matrix_errors=np.zeros((2, 1, 1)),
        ...     vector_errors=np.array([[[0.1]], [[-0.1]]]), vector_covariance=np.eye(1) / 100,
        ...     prior=np.full((2, 1), 1e6), generator=np.random.default_rng(0),
        ... )
        >>> found.ravel().round(3).tolist()
        [0.9, 1.1]
    """
    systems = matrix - matrix_errors
    weighted = systems * (prior**2)[:, None, :]
    inner = weighted @ np.swapaxes(systems, 1, 2) + vector_covariance
    start = generator.standard_normal(vector_errors.shape) * prior[..., None]
    missing = vectors - vector_errors - systems @ start
    return np.asarray(start + np.swapaxes(weighted, 1, 2) @ np.linalg.solve(inner, missing))


def variances(systems: FloatArray, variance: FloatArray, *, constant: bool) -> FloatArray:
    """How much columns vary in each system, (S, p).

    Args:
        systems: A', mean products of columns, (S, p, p).
        variance: of the noise on their entries: a tenth of its deviation is the least.
        constant: whether the last column is constant; the others are then taken about their mean.
    """
    found = np.diagonal(systems, axis1=1, axis2=2).copy()
    if constant:
        level = np.maximum(found[:, -1:], _LEAST * np.sqrt(variance[-1, -1]))
        found[:, :-1] -= systems[:, :-1, -1] ** 2 / level
    return np.maximum(found, _LEAST * np.sqrt(np.diag(variance)))


def belief(variation: FloatArray, target_variance: float) -> FloatArray:
    """Standard deviations of coefficients before anything is released, (S, p).

    They do not depend on how wide public ranges are.
    """
    return np.asarray(_LARGE * np.sqrt(target_variance / variation))


def symmetric_errors(variance: FloatArray, size: int, generator: np.random.Generator) -> FloatArray:
    """Normal noise (size, p, p) on a symmetric matrix whose entries have these variances."""
    drawn = generator.standard_normal((size, *variance.shape)) * np.sqrt(variance)
    return np.asarray(np.triu(drawn) + np.swapaxes(np.triu(drawn, 1), 1, 2))


def hidden_columns(
    matrix: FloatArray, variance: FloatArray, names: Sequence[str]
) -> tuple[str, ...]:
    """Columns that take part in directions of Ã which may be noise alone; empty if there are none.

    Args:
        matrix: Ã, of columns in comparable units.
        variance: of the noise on its entries.
        names: of the columns.
    """
    values, vectors = np.linalg.eigh(matrix)
    # Var wᵀEw ≤ max(Var E_jj, 2 Var E_jk) for |w| = 1.
    largest = max(float(np.diag(variance).max()), float(2 * np.triu(variance, 1).max()))
    weak = values <= ndtri((1 + _LEVEL) / 2) * np.sqrt(largest)
    largest_shares = (vectors[:, weak] ** 2).max(axis=1, initial=0.0).tolist()
    shares = zip(names, largest_shares, strict=True)
    return tuple(name for name, share in shares if share >= _TAKES_PART)
