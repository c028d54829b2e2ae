"""Solutions that a linear system may have had before noise was added to its numbers.

Released are Ã = A + E, symmetric, and b̃ = b + e; wanted is the solution of A β = b. The law of the
noise is known: noise drawn again, E' and e', says which systems may lie behind the released one,
A' = Ã - E' and b' = b̃ - e'. Public bounds say how large A can be: an A' beyond them is brought
back, or noise would be taken for columns that vary much, hence for small solutions. Each is solved
under the belief β ~ N(0, prior²), which is wide and matters only along directions in which A' is no
larger than its noise,

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
_NARROW = 1 / 30
"""Belief about the least deviation of columns over their public bounds: values that fill a tenth of
a range deviate by a third of that. It counts where noise is so large that it says nothing about how
much columns vary: solutions then are as large as this allows."""
_LEVEL = 0.95  # probability with which noise alone makes a direction look as large as it is told
_TAKES_PART = 0.2  # least squared share of a column in a direction for the column to be named


def drawn_systems(matrix: FloatArray, errors: FloatArray, *, most: float) -> FloatArray:
    """A' = Ã - E', (S, p, p), of an Ã that public bounds allow: a larger one is made smaller.

    Args:
        matrix: Ã, mean products of columns, (p, p).
        errors: draws of E, (S, p, p).
        most: bound on the squared length of a row, hence on the trace and the norm of A.
    """
    return np.asarray(matrix * (most / max(float(np.linalg.norm(matrix)), most)) - errors)


def possible_systems(systems: FloatArray, *, most: float) -> FloatArray:
    """The nearest to A' that may be mean products of columns, (S, p, p).

    A direction that is negative in A' varies as little as can be. Taken as it is, it would say that
    solutions are small along it.

    Args:
        systems: A'.
        most: bound on the squared length of a row, hence on the trace.
    """
    values, vectors = np.linalg.eigh(systems)
    values = np.maximum(values, 0.0)
    values *= most / np.maximum(values.sum(axis=1, keepdims=True), most)
    return np.asarray((vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2))


def plausible_solutions(
    systems: FloatArray,
    vectors: FloatArray,
    *,
    vector_errors: FloatArray,
    vector_covariance: FloatArray,
    prior: FloatArray,
    generator: np.random.Generator,
) -> FloatArray:
    """Solutions (S, p, J), one for each draw of the noise.

    Args:
        systems: A', (S, p, p).
        vectors: b̃, one column for each of J systems with one matrix, (p, J).
        vector_errors: draws of e, (S, p, J).
        vector_covariance: of each column of e, (p, p).
        prior: standard deviations of the belief about β, (S, p): it may depend on A'.
        generator: where β₀ comes from.

    Examples:
        >>> found = plausible_solutions(
        ...     np.ones((2, 1, 1)), np.ones((1, 1)),
        ...     vector_errors=np.array([[[0.1]], [[-0.1]]]), vector_covariance=np.eye(1) / 100,
        ...     prior=np.full((2, 1), 1e6), generator=np.random.default_rng(0),
        ... )
        >>> found.ravel().round(3).tolist()
        [0.9, 1.1]
    """
    weighted = systems * (prior**2)[:, None, :]
    inner = weighted @ np.swapaxes(systems, 1, 2) + vector_covariance
    start = generator.standard_normal(vector_errors.shape) * prior[..., None]
    missing = vectors - vector_errors - systems @ start
    return np.asarray(start + np.swapaxes(weighted, 1, 2) @ np.linalg.solve(inner, missing))


def variances(systems: FloatArray, *, most: float, constant: bool) -> FloatArray:
    """How much columns vary in each system, (S, p); noise makes some of them negative.

    Args:
        systems: A', (S, p, p).
        most: bound on the squared length of a row; a constant column is half of it.
        constant: whether the last column is constant; the others are then taken about their mean.
    """
    found = np.diagonal(systems, axis1=1, axis2=2).copy()
    if constant:
        found[:, :-1] -= systems[:, :-1, -1] ** 2 / (most / 2)
        found[:, -1] = most / 2
    return np.minimum(found, most)


def least_variances(variance: FloatArray, *, most: float) -> FloatArray:
    """How much columns are believed to vary at least, (p,).

    Args:
        variance: of the noise on the entries of Ã, (p, p).
        most: bound on the squared length of a row.
    """
    noise = np.sqrt(np.diag(variance))
    return np.asarray(np.minimum(_LEAST * noise, _NARROW**2 * most / len(noise)))


def belief(variation: FloatArray, target_variance: float) -> FloatArray:
    """Standard deviations of coefficients before anything is released, (S, p)."""
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
