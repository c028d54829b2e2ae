"""Means, variances and correlations of standardized features, from sums of vector reports."""

from __future__ import annotations

from functools import cache

import numpy as np

from dpfda._validate import FloatArray

_SMALLEST_VARIANCE, _LARGEST_VARIANCE = 0.1, 4.0
_MOST_SCATTER = 0.25  # of means and of variances: widths were sought before
_FARTHEST = 1.5  # of a mean, in units of the spread that was sought before
_EDGE = 2.05  # noise of standard deviation σ alone has eigenvalues up to 2 σ √d
_FLOOR = 0.08
_SCALE_PRIOR = 0.3**2
_BULK_STEPS = 4
_PUBLIC_ROWS = 4000


def mean_and_deviation(estimate: FloatArray, noise: float) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each feature from an estimate of E(φ, φ² - 1).

    Both are shrunk, the means towards 0 and the variances towards each other, by as much as their
    scatter over features exceeds the noise (empirical Bayes). A mean that is not known makes the
    variance around it uncertain too.

    Args:
        estimate: shape (2 d,).
        noise: variance of an entry.
    """
    mean, square = np.split(np.asarray(estimate), 2)
    believed = float(np.clip(np.mean(mean**2) - noise, 1e-9, _MOST_SCATTER))
    mean = mean * believed / (believed + noise)
    left = believed * noise / (believed + noise)  # posterior variance of a mean
    variance = 1 + square - mean**2 - left
    own = noise + 4 * mean**2 * left + 2 * left**2
    common = float(np.clip(np.average(variance, weights=1 / own), 0.2, 2.0))
    scatter = float(np.average((variance - common) ** 2 - own, weights=1 / own))
    scatter = float(np.clip(scatter, 1e-9, _MOST_SCATTER * common**2))
    variance = common + (variance - common) * scatter / (scatter + own)
    bounded = np.clip(variance, _SMALLEST_VARIANCE, _LARGEST_VARIANCE)
    return np.clip(mean, -_FARTHEST, _FARTHEST), np.sqrt(bounded)


def as_matrix(products: FloatArray, size: int) -> FloatArray:
    """The symmetric matrix whose diagonal and √2 × upper triangle are `products`.

    Examples:
        >>> as_matrix(np.array([1.0, 2**0.5, 4.0]), 2)
        array([[1., 1.],
               [1., 4.]])
    """
    rows, columns = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = matrix[columns, rows] = products / np.where(
        rows == columns, 1.0, np.sqrt(2)
    )
    return matrix


def denoised(second: FloatArray, noise: float, *, floor: float = _FLOOR) -> FloatArray:
    """A matrix near c·I that was seen with noise, without the eigenvalues that noise explains.

    c is what directions that do not stand out have in common.

    Args:
        second: symmetric estimate.
        noise: standard deviation of an entry off the diagonal.
        floor: least eigenvalue, relative to c.
    """
    size = len(second)
    # Standardized features have variance 1 on average; the trace may say something else.
    doubt = 2 * noise**2 / size
    average = 1 + (np.trace(second) / size - 1) * _SCALE_PRIOR / (_SCALE_PRIOR + doubt)
    common = float(np.clip(average, 0.1, 3.0))
    values, vectors = np.linalg.eigh(second)
    edge = _EDGE * noise * np.sqrt(size)
    bulk = common
    for _ in range(_BULK_STEPS):
        # What stands out is not counted twice: the rest shares what is left of the trace.
        above = np.sqrt(np.maximum((values - bulk) ** 2 - edge**2, 0))[values > bulk].sum()
        bulk = max(common - float(above) / size, 0.1 * common)
    away = values - bulk
    beyond = np.sqrt(np.maximum(away**2 - edge**2, 0))
    # A direction that seems narrow is dangerous, since it is stretched: believed only if clear.
    short = np.sqrt(np.maximum(away**2 - (1.2 * edge) ** 2, 0)) if edge < 0.5 * bulk else 0.0
    kept = bulk + np.where(away > 0, beyond, -short)
    return np.asarray((vectors * np.clip(kept, floor * bulk, 30.0 * size)) @ vectors.T)


def correlated(
    products: FloatArray, *, noise: float, size: int, floor: float = _FLOOR
) -> tuple[FloatArray, float]:
    """A factor of the covariance of whitened features, and the noise of an entry of it.

    Args:
        products: estimate of the mean of the diagonal and √2 times the upper triangle of ψψᵀ, where
            ψ is cut at |ψ|² = `size`.
        noise: variance of an entry in units of that.
        size: how many features.
        floor: as in `denoised`.
    """
    second = as_matrix(products, size) / cut_square(size, size)
    off_diagonal = size * float(np.sqrt(noise / 2))
    factor = np.linalg.cholesky(denoised(second, off_diagonal, floor=floor))
    return np.asarray(factor, dtype=np.float64), off_diagonal


def settled(factor: FloatArray, noise: float) -> FloatArray:
    """The covariance B Bᵀ with its small eigenvalues raised to what the noise lets one see."""
    values, vectors = np.linalg.eigh(factor @ factor.T)
    least = np.clip(0.3 * noise * np.sqrt(len(factor)), 0.02, 0.3) * values.mean()
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def distances_correlated(covariance: FloatArray) -> FloatArray:
    """Correlations of |x_i| and |x_j| for normal x with this covariance.

    Examples:
        >>> distances_correlated(np.array([[1.0, 0.5], [0.5, 1.0]])).round(2)
        array([[1.  , 0.22],
               [0.22, 1.  ]])
    """
    deviation = np.sqrt(np.diag(covariance))
    r = np.clip(covariance / np.outer(deviation, deviation), -1, 1)
    product = np.sqrt(1 - r**2) + r * np.arcsin(r)  # E|x_i x_j| in units of 2/π
    return np.asarray((product - 1) / (np.pi / 2 - 1))


@cache
def normal_rows(width: int) -> FloatArray:
    """Public normal numbers on which cuts are computed, shape (4000, width)."""
    rows = np.random.default_rng(0).normal(size=(_PUBLIC_ROWS, width))
    rows.flags.writeable = False
    return rows


def with_one(rows: FloatArray) -> FloatArray:
    """(1, ψ)."""
    return np.column_stack([np.ones(len(rows)), rows])


def cut_square(width: int, limit: float) -> float:
    """What is left of E|t|² for normal t of `width` entries where |t|² is cut at `limit`."""
    return float(np.mean(np.minimum((normal_rows(width) ** 2).sum(axis=1), limit)) / width)


def passed(lengths: FloatArray, limit: float) -> float:
    """How much of a mean is left where vectors of these lengths are cut: E l min(l, R) / E l²."""
    return float(np.mean(lengths * np.minimum(lengths, limit)) / np.mean(lengths**2))
