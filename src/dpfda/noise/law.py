"""The law of the added noise, and posteriors of noisy numbers and linear systems.

The law is public; bands and standard errors are computed from it. `mixed` is the posterior of noisy
numbers under a mixture of normal priors. `plausible_solutions` are the solutions that a linear
system may have had before noise was added to its numbers.

The released quantities are Ã = A + E, which is symmetric, and b̃ = b + e. The solution of A β = b
is to be estimated. The law of the noise is known, so new draws E' and e' of the noise give systems
A' = Ã - E' and b' = b̃ - e' that may underlie the released one. Public bounds limit A. An A' outside
the bounds is projected back, because noise would otherwise look like columns of large variance,
which have small solutions.
Each system is solved under the prior β ~ N(0, prior²), which is wide and matters only along
directions in which A' is no larger than its noise,

    β' = β₀ + P A'ᵀ (A' P A'ᵀ + Cov e)⁻¹ (b̃ - e' - A' β₀),   P = diag(prior²), β₀ from the prior.

If the noise is small relative to A, these solutions differ by the known error. If it is not, they
spread as widely as the prior. The standard error of a regularized solution would omit the bias of
the regularization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtri

from dpfda._validate import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseLaw:
    """Noise on coefficients: its law, and the scale (Laplace b, Gaussian σ) of each.

    ``spherical``: the coefficients of a block share a radius, density ∝ e^{-‖z/scale‖₂}; blocks are
    half-open ranges of the last axis. Otherwise all coefficients are independent. With `mixing`
    (K, J) the noise was added to K numbers of which the J coefficients are linear combinations.

    Examples:
        >>> NoiseLaw(law="laplace", scales=np.array([1.0, 2.0])).variance
        array([2., 8.])
    """

    law: Literal["laplace", "gaussian", "spherical"]
    scales: FloatArray
    blocks: tuple[tuple[int, int], ...] = ()
    mixing: FloatArray | None = None

    @property
    def variance(self) -> FloatArray:
        """Variances: 2b², σ², or (|block| + 1) times the squared scale, after the mixing."""
        factor: FloatArray | float = 2.0 if self.law == "laplace" else 1.0
        if self.law == "spherical":
            sizes = [stop - start for start, stop in self.blocks]
            factor = 1 + np.repeat(sizes, sizes)
        variance = self.scales**2 * factor
        return np.asarray(variance if self.mixing is None else variance @ self.mixing**2)

    def along(self, functions: FloatArray) -> FloatArray:
        """Variance of Σ_j noise_j f_j for each column of `functions` (J, points)."""
        if self.mixing is None:
            return np.asarray(self.variance @ functions**2)
        plain = replace(self, mixing=None)
        return np.asarray(plain.variance @ (self.mixing @ functions) ** 2)

    def widened(self, size: int) -> NoiseLaw:
        """The same law with zero noise on further coefficients, `size` in all."""
        if self.mixing is not None:
            more = [(0, 0), (0, size - self.mixing.shape[1])]
            return replace(self, mixing=np.pad(self.mixing, more))
        known = self.scales.size
        blocks = (*self.blocks, (known, size)) if self.blocks and size > known else self.blocks
        return replace(self, scales=padded(self.scales, size), blocks=blocks)

    def first(self, size: int) -> NoiseLaw:
        """The law of the first coefficients; a block that reaches beyond them stays whole."""
        if self.mixing is not None:
            return replace(self, mixing=self.mixing[:, :size])
        blocks = tuple(block for block in self.blocks if block[0] < size)
        reach = max([size, *(stop for _, stop in blocks)])
        mixing = np.eye(reach, size) if reach > size else None
        return replace(self, scales=self.scales[..., :reach], blocks=blocks, mixing=mixing)

    @classmethod
    def normal(cls, covariance: FloatArray) -> NoiseLaw:
        """Normal with a covariance (J, J) that may be singular."""
        values, vectors = np.linalg.eigh(covariance)
        return cls(law="gaussian", scales=np.sqrt(np.maximum(values, 0.0)), mixing=vectors.T)

    def times(self, weights: FloatArray) -> NoiseLaw:
        """The law after multiplying coefficients by public weights."""
        if self.mixing is not None:
            return replace(self, mixing=self.mixing * weights)
        return replace(self, scales=self.scales * weights)

    def draw(self, size: int, generator: np.random.Generator) -> FloatArray:
        """Floating-point draws that describe the noise; never used to protect data."""
        shape = (size, *self.scales.shape)
        if self.mixing is not None:
            return np.asarray(replace(self, mixing=None).draw(size, generator) @ self.mixing)
        if self.law == "laplace":
            return np.asarray(generator.laplace(size=shape) * self.scales)
        noise = generator.standard_normal(size=shape)
        for start, stop in self.blocks if self.law == "spherical" else ():
            part = noise[..., start:stop]
            length = np.sqrt((part**2).sum(axis=-1, keepdims=True))
            part *= generator.gamma(stop - start, size=length.shape) / length
        return np.asarray(noise * self.scales)


def padded(values: FloatArray, size: int, *, fill: float = 0.0) -> FloatArray:
    """Values, padded with `fill` to `size`."""
    return np.concatenate([values, np.full(size - values.size, fill)])


LEVELS = np.array([0.02, 0.1, 0.45])
"""Prior standard deviations of a level about the public center, as shares of the public bound."""
LEVEL_ODDS = np.array([0.1, 0.2, 0.7])
"""Their prior probabilities for curves."""
TARGET_LEVEL_ODDS = np.full(3, 1 / 3)
"""The same for targets: their public range is usually tighter, so their mean is near the center."""


def mixed(
    noisy: FloatArray, variance: FloatArray, prior: FloatArray, odds: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    """Posterior mean and variance under a mixture of normal priors (last axis), and log evidence.

    Args:
        noisy: noisy numbers; their last axis has length 1.
        variance: variances of their noise, in the same shape.
        prior: variances of the normal components.
        odds: log-probabilities of the components.
    """
    both = prior + variance
    logs = odds - 0.5 * (np.log(both) + noisy**2 / both)
    evidence = np.logaddexp.reduce(logs, axis=-1)  # 5 times faster than scipy's for short axes
    weights = np.exp(logs - evidence[..., None])
    shrinkage = prior / both
    mean = (weights * shrinkage).sum(-1) * noisy[..., 0]
    second = (weights * (shrinkage * variance + (shrinkage * noisy) ** 2)).sum(-1)
    return (mean, np.maximum(second - mean**2, 0.0)), evidence


def level(noisy: float, variance: float) -> tuple[float, float]:
    """Posterior mean and variance of the level of targets, in units of their bound.

    Examples:
        >>> mean, variance = level(0.5, 1e-4)
        >>> round(mean, 2), variance < 1e-4
        (0.5, True)
        >>> abs(level(0.5, 100.0)[0]) < 0.01
        True
    """
    numbers = np.array([[noisy]]), np.array([[variance]])
    (mean, remaining), _ = mixed(*numbers, LEVELS**2, np.log(TARGET_LEVEL_ODDS))
    return float(mean[0]), float(remaining[0])


_LARGE = 4.0
"""Prior standard deviation of a standardized coefficient. A single column has a coefficient of at
most 1; correlated columns, such as x and x², can have larger ones."""
_LEAST = 0.1  # least variance of a column, as a share of its noise, so that a prior is finite
_NARROW = 1 / 30
"""Smallest plausible standard deviation of a column over its public bound: values that fill a tenth
of a range have about a third of that. It matters if the noise hides how much columns vary; it then
limits the solutions."""
_LEVEL = 0.95  # level of the test whether noise alone makes a direction this large
_TAKES_PART = 0.2  # smallest squared loading of a column for the column to be named


def drawn_systems(matrix: FloatArray, errors: FloatArray, *, most: float) -> FloatArray:
    """A' = Ã - E', (S, p, p), after scaling Ã down to the public bounds.

    Args:
        matrix: Ã, mean products of columns, (p, p).
        errors: draws of E, (S, p, p).
        most: bound on the squared length of a row, hence on the trace and the norm of A.
    """
    return np.asarray(matrix * (most / max(float(np.linalg.norm(matrix)), most)) - errors)


def possible_systems(systems: FloatArray, *, most: float) -> FloatArray:
    """The matrices of mean products of columns that are nearest to A', (S, p, p).

    A direction with a negative eigenvalue of A' gets the smallest variance. A negative value would
    make solutions along it small.

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
        vector_covariance: covariance of each column of e, (p, p).
        prior: prior standard deviations of β, (S, p); they may depend on A'.
        generator: draws β₀.

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
    """Variances of columns in each system, (S, p); noise can make some of them negative.

    Args:
        systems: A', (S, p, p).
        most: bound on the squared length of a row; a constant column is half of it.
        constant: whether the last column is constant; the others are then centered.
    """
    found = np.diagonal(systems, axis1=1, axis2=2).copy()
    if constant:
        found[:, :-1] -= systems[:, :-1, -1] ** 2 / (most / 2)
        found[:, -1] = most / 2
    return np.minimum(found, most)


def least_variances(variance: FloatArray, *, most: float) -> FloatArray:
    """Smallest plausible variances of columns, (p,).

    Args:
        variance: variances of the noise on the entries of Ã, (p, p).
        most: bound on the squared length of a row.
    """
    noise = np.sqrt(np.diag(variance))
    return np.asarray(np.minimum(_LEAST * noise, _NARROW**2 * most / len(noise)))


def belief(variation: FloatArray, target_variance: float) -> FloatArray:
    """Prior standard deviations of coefficients, (S, p)."""
    return np.asarray(_LARGE * np.sqrt(target_variance / variation))


def symmetric_errors(variance: FloatArray, size: int, generator: np.random.Generator) -> FloatArray:
    """Normal noise (size, p, p) on a symmetric matrix whose entries have these variances."""
    drawn = generator.standard_normal((size, *variance.shape)) * np.sqrt(variance)
    return np.asarray(np.triu(drawn) + np.swapaxes(np.triu(drawn, 1), 1, 2))


def hidden_columns(
    matrix: FloatArray, variance: FloatArray, names: Sequence[str]
) -> tuple[str, ...]:
    """Columns with large loadings on directions of Ã that may consist of noise only.

    Args:
        matrix: Ã, for columns in comparable units.
        variance: variances of the noise on its entries.
        names: names of the columns.
    """
    values, vectors = np.linalg.eigh(matrix)
    # Var wᵀEw ≤ max(Var E_jj, 2 Var E_jk) for |w| = 1.
    largest = max(float(np.diag(variance).max()), float(2 * np.triu(variance, 1).max()))
    weak = values <= ndtri((1 + _LEVEL) / 2) * np.sqrt(largest)
    largest_shares = (vectors[:, weak] ** 2).max(axis=1, initial=0.0).tolist()
    shares = zip(names, largest_shares, strict=True)
    return tuple(name for name, share in shares if share >= _TAKES_PART)
