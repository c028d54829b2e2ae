"""Means, variances and correlations of features from sums of vector reports, and whitening."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from dpfda._validate import FloatArray
from dpfda.mechanisms.cap_index import CapIndex

_TYPICAL = 32  # dimension for which N_eff is stated
_SMALLEST_VARIANCE, _LARGEST_VARIANCE = 0.1, 4.0
_MOST_SCATTER = 0.25  # of means and of variances, since widths were estimated before
_FARTHEST = 1.5  # largest mean, in units of the width that was estimated before
_EDGE = 2.4
"""Pure noise of standard deviation σ has eigenvalues above (2 + 2.4 d^-2/3) σ √d with probability
1/200 (the Tracy-Widom law)."""
_NARROW = 1.2  # factor of the edge for small eigenvalues, because their directions are stretched
_FLOOR, _LEAST, _MOST = 0.08, 0.02, 0.3  # least eigenvalues of one estimate, and of the result
_SCALE_PRIOR = 0.3**2
_BULK_STEPS = 4
_ROWS = 1024
_BITS, _APART = 16, 0.01  # rounding of a matrix with public axes; breaks ties of equal variances
_LONGEST = 1 << 16  # most entries of a vector that one codeword reports
_MEAN_DISTANCE = np.sqrt(2 / np.pi)  # of a standard normal variable from 0
_DISTANCE_DEVIATION = np.sqrt(1 - 2 / np.pi)  # standard deviation of this distance


class Reply(NamedTuple):
    """The error of one codeword as an estimate of a vector in the unit ball.

    Attributes:
        noise: variance of an entry.
        longest: length of the longest estimate.
    """

    noise: float
    longest: float

    @classmethod
    @cache
    def of(cls, dimension: int, epsilon: float) -> Reply:
        """The best report of a vector of this dimension.

        Examples:
            >>> round(1 / Reply.of(8, 1.0).noise, 2)
            0.16
        """
        if dimension > _LONGEST:
            return cls(np.inf, np.inf)
        gain = CapIndex.best(epsilon=epsilon, dimension=dimension).gain
        return cls(1 / gain**2, float(np.sqrt(dimension)) / gain)


def effective_people(n_people: int, epsilon: float) -> float:
    """N_eff: the number of noiseless vectors that the reports of `n_people` equal.

    Examples:
        >>> round(effective_people(3000, 0.5))
        119
    """
    return n_people / Reply.of(_TYPICAL, epsilon).noise


@cache
def public_rows(width: int) -> FloatArray:
    """(1, ψ) of artificial public people: white normal ψ, both signs of each."""
    half = np.random.default_rng(0).normal(size=(max(_ROWS, 8 * width) // 2, width))
    both = np.concatenate([half, -half])
    both = both @ np.linalg.inv(np.linalg.cholesky(both.T @ both / len(both))).T
    found = np.insert(both, 0, 1.0, axis=1)
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class FeatureMap:
    """ψ = matrix · clip((z* - location)/width, ±clip) + offset; z* is folded if there are folds.

    Attributes:
        location: location of each feature, shape (d,).
        width: its standard deviation.
        clip: number of widths from the location at which features are clipped.
        matrix: shape (q, d).
        offset: shape (q,).
        folds: centers of features, if distances from them are features too (`folded`).
    """

    location: FloatArray
    width: FloatArray
    clip: float
    matrix: FloatArray
    offset: FloatArray
    folds: FloatArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def standard(cls, location: FloatArray, width: FloatArray, clip: float) -> FeatureMap:
        """The map that standardizes every feature separately."""
        d = len(location)
        return cls(location, width, clip, np.eye(d), np.zeros(d))

    @classmethod
    def with_distances(cls, center: FloatArray, deviation: FloatArray, clip: float) -> FeatureMap:
        """The map that standardizes normal features and their distances from the center."""
        far = np.r_[center, _MEAN_DISTANCE * deviation]
        alone = cls.standard(far, np.r_[deviation, _DISTANCE_DEVIATION * deviation], clip)
        return replace(alone, folds=center)

    def then(self, matrix: FloatArray, shift: FloatArray | float = 0.0) -> FeatureMap:
        """The map to matrix · (ψ - shift)."""
        moved = self.offset - shift
        return replace(self, matrix=matrix @ self.matrix, offset=matrix @ moved)

    def public(self) -> dict[str, Any]:
        """The fields of a task with this map."""
        return {
            "centers": self.location,
            "scales": self.width,
            "clip": self.clip,
            "matrix": self.matrix,
            "offsets": self.offset[None],
            "folds": self.folds,
        }

    def rule(self, intercept: FloatArray, slopes: FloatArray) -> dict[str, Any]:
        """The fields of a model with these scores of ψ."""
        shape = (len(intercept), len(self.location))
        return {
            "intercept": intercept + slopes @ self.offset,
            "coefficients": self.clip * slopes @ self.matrix,
            "centers": np.broadcast_to(self.location, shape),
            "scales": np.broadcast_to(self.clip * self.width, shape),
            "clipped": True,
            "folds": self.folds,
        }


def mean_and_deviation(estimate: FloatArray, noise: float) -> tuple[FloatArray, FloatArray, float]:
    """Mean and standard deviation of each feature from an estimate of E(φ, φ² - 1).

    The means are shrunk towards 0 and the variances towards each other, depending on how much their
    scatter over features exceeds the noise (empirical Bayes). The uncertainty of a mean is included
    in the uncertainty of the variance.

    Args:
        estimate: shape (2 d,).
        noise: variance of an entry.

    Returns:
        Means, standard deviations, and the posterior variance of a mean.
    """
    mean, square = np.split(np.asarray(estimate), 2)
    believed = float(np.clip(np.mean(mean**2) - noise, 1e-9, _MOST_SCATTER))
    mean = mean * believed / (believed + noise)
    left = believed * noise / (believed + noise)
    variance = 1 + square - mean**2 - left
    own = noise + 4 * mean**2 * left + 2 * left**2
    common = float(np.clip(np.average(variance, weights=1 / own), 0.2, 2.0))
    scatter = float(np.average((variance - common) ** 2 - own, weights=1 / own))
    scatter = float(np.clip(scatter, 1e-9, _MOST_SCATTER * common**2))
    variance = common + (variance - common) * scatter / (scatter + own)
    bounded = np.clip(variance, _SMALLEST_VARIANCE, _LARGEST_VARIANCE)
    return np.clip(mean, -_FARTHEST, _FARTHEST), np.sqrt(bounded), left


@dataclass(frozen=True)
class Correlations:
    """A factor B of the covariance B Bᵀ of features, and the noise of a covariance."""

    factor: FloatArray
    noise: float = np.inf

    @property
    def into(self) -> FloatArray:
        """The estimated whitening matrix."""
        return np.asarray(np.linalg.inv(self.factor))

    def updated(self, products: FloatArray, noise: float) -> Correlations:
        """The correlations after reports of products in white coordinates.

        Args:
            products: mean of the diagonal and √2 times the upper triangle of ψψᵀ, where ψ is
                shortened to |ψ|² = d, divided by d.
            noise: variance of an entry.
        """
        d = len(self.factor)
        rows, columns = np.triu_indices(d)
        second = np.zeros((d, d))
        second[rows, columns] = second[columns, rows] = products * np.where(
            rows == columns, 1.0, np.sqrt(0.5)
        )
        passed = np.mean(np.minimum((public_rows(d)[:, 1:] ** 2).sum(axis=1), d)) / d
        entry = d * float(np.sqrt(noise / 2))
        step = np.linalg.cholesky(denoised(d * second / passed, entry))
        return Correlations(np.asarray(self.factor @ step), entry)

    @property
    def covariance(self) -> FloatArray:
        """The covariance, with small eigenvalues raised to the noise level."""
        values, vectors = np.linalg.eigh(self.factor @ self.factor.T)
        seen = np.clip(0.3 * self.noise * np.sqrt(len(values)), _LEAST, _MOST)
        return np.asarray((vectors * np.maximum(values, seen * values.mean())) @ vectors.T)


def denoised(second: FloatArray, noise: float) -> FloatArray:
    """An estimate of a matrix near c·I from a noisy one, by shrinkage of its eigenvalues.

    c is the common variance of directions that do not exceed the noise.

    Args:
        second: symmetric estimate.
        noise: standard deviation of an entry off the diagonal.
    """
    size = len(second)
    # Standardized features have variance 1 on average; the trace may deviate from that.
    doubt = 2 * noise**2 / size
    average = 1 + (np.trace(second) / size - 1) * _SCALE_PRIOR / (_SCALE_PRIOR + doubt)
    common = float(np.clip(average, 0.1, 3.0))
    values, vectors = np.linalg.eigh(second)
    edge = (2 + _EDGE * size ** (-2 / 3)) * noise * np.sqrt(size)
    bulk = common
    for _ in range(_BULK_STEPS):
        # Large eigenvalues are subtracted from the trace, so that they are not counted twice.
        above = np.sqrt(np.maximum((values - bulk) ** 2 - edge**2, 0))[values > bulk].sum()
        bulk = max(common - float(above) / size, 0.1 * common)
    away = values - bulk
    beyond = np.sqrt(np.maximum(away**2 - edge**2, 0))
    short = np.sqrt(np.maximum(away**2 - (_NARROW * edge) ** 2, 0)) if edge < 0.5 * bulk else 0.0
    kept = bulk + np.where(away > 0, beyond, -short)
    return np.asarray((vectors * np.clip(kept, _FLOOR * bulk, 30.0 * size)) @ vectors.T)


def with_distances(covariance: FloatArray) -> FloatArray:
    """Covariance of normal features and of their standardized distances from the center.

    Examples:
        >>> with_distances(np.array([[1.0, 0.5], [0.5, 1.0]]))[2:, 2:].round(2)
        array([[1.  , 0.22],
               [0.22, 1.  ]])
    """
    deviation = np.sqrt(np.diag(covariance))
    r = np.clip(covariance / np.outer(deviation, deviation), -1, 1)
    product = np.sqrt(1 - r**2) + r * np.arcsin(r)  # E|x_i x_j| in units of 2/π
    return np.asarray(block_diag(covariance, (product - 1) / (np.pi / 2 - 1)))


def whitening(covariance: FloatArray) -> FloatArray:
    """The matrix that makes features white, along their principal axes."""
    _, rows = axes(covariance)
    return np.linalg.solve(np.linalg.cholesky(rows @ covariance @ rows.T), rows)


def axes(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Principal variances, largest first, and axes (rows) that are the same on every machine.

    Machines differ in the last bits of a matrix, which determine the axes if variances are equal.
    Therefore only the first bits are used, and earlier coordinates get a slightly larger weight.

    Examples:
        >>> axes(np.eye(2))[1]
        array([[1., 0.],
               [0., 1.]])
    """
    more = 1 + _APART * np.linspace(1, 0, len(covariance))
    values, vectors = np.linalg.eigh(on_grid(covariance, bits=_BITS) * np.outer(more, more))
    # The sign of each axis is that of a weighted sum, which is almost never 0.
    signs = np.where(np.sqrt(1.0 + np.arange(len(more))) @ vectors < 0, -1.0, 1.0)
    return values[::-1], (vectors * signs).T[::-1]


def on_grid(numbers: Any, *, bits: int = 20) -> FloatArray:
    """Numbers rounded to so many bits of the largest one, so that machines agree.

    Examples:
        >>> on_grid([1.0, 0.3], bits=4)
        array([1.  , 0.25])
    """
    array = np.asarray(numbers, dtype=np.float64)
    # The margin is needed if the largest number is a power of 2 up to rounding.
    scale = np.frexp(np.abs(array).max(initial=0.0) * (1 + 2.0**-bits))[1]
    return np.asarray(np.ldexp(np.rint(np.ldexp(array, bits - scale)), scale - bits))
