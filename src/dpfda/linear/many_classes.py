"""Several classes: means by class, what varies within a class, and means again in its units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray
from dpfda.linear.shrinkage import believed

_MOST_EXPLAINED = 0.93  # of the variance in one direction, by classes
_SHARE_SCATTER = 0.05  # least variance of class shares, in units of 1/K²
_FEWEST = 0.15, 0.1  # least share of a class, in units of 1/K: after the first and second look


@dataclass
class Picture:
    """Gaussian classes with one covariance.

    Attributes:
        shares: of the classes.
        means: shape (K, q).
        doubt: posterior variance of the means.
        within: factor L of the covariance L Lᵀ within classes.
        constant: the estimate of the shares before shrinking, and
        constant_noise: its variance.
    """

    shares: FloatArray
    means: FloatArray
    doubt: FloatArray
    within: FloatArray
    constant: FloatArray
    constant_noise: float

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Intercepts (K,) and coefficients (K, q) of the linear discriminant."""
        solved = np.linalg.solve(self.within @ self.within.T, self.means.T)
        slopes = np.asarray(solved.T, dtype=np.float64)
        return np.log(self.shares) - 0.5 * (slopes * self.means).sum(axis=1), slopes


def shares_of(estimate: FloatArray, noise: float, *, fewest: float) -> FloatArray:
    """Class shares, shrunk towards equal ones by as much as noise explains, adding up to 1."""
    k = len(estimate)
    scatter = max(float(np.var(estimate)) - noise, _SHARE_SCATTER / k**2)
    shrunk = 1 / k + (estimate - 1 / k) * scatter / (scatter + noise)
    bounded = np.clip(shrunk, fewest / k, None)
    return np.asarray(bounded / bounded.sum())


def first_picture(moments: FloatArray, noise: FloatArray, importance: FloatArray) -> Picture:
    """Classes behind an estimate of E[1{y = k} (1, ψ)], ψ whitened over all classes together.

    Args:
        moments: shape (K, q + 1).
        noise: variance of an entry, shape (q + 1,).
        importance: of each direction.
    """
    k = len(moments)
    shares = shares_of(moments[:, 0], float(noise[0]), fewest=_FEWEST[0])
    centered = moments[:, 1:] - np.outer(shares, moments[:, 1:].sum(axis=0))
    effects = centered / np.sqrt(shares)[:, None]
    own = noise[1:] / shares[:, None]
    typical = own.mean(axis=0)
    kept = believed(effects, typical, importance, freedom=k - 1)
    signal = kept / (1 - kept + 1e-9) * typical
    effects = effects * signal / (signal + own)
    _, strengths, axes = np.linalg.svd(effects, full_matrices=False)
    explained = np.minimum(strengths**2, _MOST_EXPLAINED)
    within = np.eye(effects.shape[1]) - (axes.T * explained) @ axes
    return Picture(
        shares=shares,
        means=effects / np.sqrt(shares)[:, None],
        doubt=signal * own / (signal + own) / shares[:, None],
        within=np.linalg.cholesky(within),
        constant=moments[:, 0],
        constant_noise=float(noise[0]),
    )


def seen_within(picture: Picture) -> FloatArray:
    """The factor of what ψ - μ_y varies by as long as the means are not well known."""
    doubt = np.diag(picture.shares @ picture.doubt)
    both = picture.within @ picture.within.T + doubt
    return np.asarray(np.linalg.cholesky(both), dtype=np.float64)


def second_picture(picture: Picture, residuals: FloatArray, noise: float) -> Picture:
    """Means after E[1{y = k} (1, L⁻¹(ψ - μ_k))] was estimated too, each entry with this noise."""
    q = picture.means.shape[1]
    factor = picture.within
    before, now = 1 / picture.constant_noise, 1 / noise
    constant = (picture.constant * before + residuals[:, 0] * now) / (before + now)
    shares = shares_of(constant, 1 / (before + now), fewest=_FEWEST[1])
    into = np.linalg.inv(factor)
    prior = np.einsum("ij,kj,lj->kil", into, picture.doubt, into)
    own = (noise / shares**2)[:, None, None] * np.eye(q)
    gain = prior @ np.linalg.inv(prior + own)
    step = np.einsum("kij,kj->ki", gain, residuals[:, 1:] / shares[:, None])
    left = np.einsum("ij,kjl,il->ki", factor, prior - gain @ prior, factor)
    return Picture(
        shares=shares,
        means=picture.means + step @ factor.T,
        doubt=np.maximum(left, 0),
        within=factor,
        constant=constant,
        constant_noise=1 / (before + now),
    )
