"""Several classes: means by class, what varies within a class, and means again in its units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray
from dpfda.linear.shrinkage import believed

_MOST_EXPLAINED = 0.93  # of the variance in one direction, by classes
_SHARE_SCATTERS = np.geomspace(0.01, 1.0, 9)  # variances of class shares, in units of 1/K²
_MEAN_SCATTERS = np.geomspace(1e-3, 0.5, 10)  # and of the means of ψ over all classes
_LEAST_DOUBT = 1e-12
_FEWEST = 0.15, 0.1  # least share of a class, in units of 1/K: after the first and second look


@dataclass
class Picture:
    """Gaussian classes with one covariance.

    Attributes:
        shares: of the classes.
        means: shape (K, q).
        doubt: posterior variance of the means.
        within: factor L of the covariance L Lᵀ of ψ - μ_y: what varies within classes, and what is
            not known of their means.
        constant: the estimate of the shares before shrinking, and
        constant_noise: its variance.
        fit: how much better means that differ explain the first look than equal ones, a logarithm.
    """

    shares: FloatArray
    means: FloatArray
    doubt: FloatArray
    within: FloatArray
    constant: FloatArray
    constant_noise: float
    fit: float

    @property
    def at_nothing(self) -> float:
        """Logarithm of the density of the means where they are all equal, but for a constant."""
        apart = self.means - self.shares @ self.means
        doubt = np.maximum(self.doubt, _LEAST_DOUBT)  # very many people leave none
        return -0.5 * float((apart**2 / doubt + np.log(doubt)).sum())

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Intercepts (K,) and coefficients (K, q) of the linear discriminant."""
        solved = np.linalg.solve(self.within @ self.within.T, self.means.T)
        slopes = np.asarray(solved.T, dtype=np.float64)
        return np.log(self.shares) - 0.5 * (slopes * self.means).sum(axis=1), slopes


def shares_of(estimate: FloatArray, noise: float, *, fewest: float) -> FloatArray:
    """Class shares, shrunk towards equal ones by as much as noise explains, adding up to 1."""
    k = len(estimate)
    apart = estimate - estimate.mean()
    kept = _kept(apart, np.full(k, noise), _SHARE_SCATTERS / k**2, freedom=k - 1)
    bounded = np.clip(1 / k + kept * apart, fewest / k, None)
    return np.asarray(bounded / bounded.sum())


def _kept(
    values: FloatArray, noise: FloatArray, scatters: FloatArray, *, freedom: int
) -> FloatArray:
    """The share of each value to keep, given its noise, if values lie around 0.

    Their variance is one of `scatters`, each as likely as the others: that of a few noisy values
    themselves would often be far too large.
    """
    total = scatters[:, None] + noise
    likelihood = -0.5 * (values**2 / total + freedom / len(values) * np.log(total)).sum(axis=1)
    weights = np.exp(likelihood - likelihood.max())
    kept = weights / weights.sum() @ (scatters[:, None] / total)
    return np.asarray(kept)


def first_picture(moments: FloatArray, noise: FloatArray, importance: FloatArray) -> Picture:
    """Classes behind an estimate of E[1{y = k} (1, ψ)], ψ whitened over all classes together.

    Args:
        moments: shape (K, q + 1).
        noise: variance of an entry, shape (q + 1,).
        importance: of each direction.
    """
    k = len(moments)
    shares = shares_of(moments[:, 0], float(noise[0]), fewest=_FEWEST[0])
    middle = moments[:, 1:].sum(axis=0)
    centered = moments[:, 1:] - np.outer(shares, middle)
    effects = centered / np.sqrt(shares)[:, None]
    own = noise[1:] / shares[:, None]
    typical = own.mean(axis=0)
    kept, fit = believed(effects, typical, importance, freedom=k - 1)
    signal = kept / (1 - kept + 1e-9) * typical
    effects = effects * signal / (signal + own)
    _, strengths, axes = np.linalg.svd(effects, full_matrices=False)
    explained = np.minimum(strengths**2, _MOST_EXPLAINED)
    doubt = signal * own / (signal + own) / shares[:, None]
    known = _kept(middle, k * noise[1:], _MEAN_SCATTERS, freedom=len(middle))
    # Noise makes the strongest direction stronger; without the doubt the rule would follow it.
    within = np.diag(1 + shares @ doubt) - (axes.T * explained) @ axes
    return Picture(
        shares=shares,
        means=known * middle + effects / np.sqrt(shares)[:, None],
        doubt=doubt + known * k * noise[1:],
        within=np.linalg.cholesky(within),
        constant=moments[:, 0],
        constant_noise=float(noise[0]),
        fit=fit,
    )


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
        fit=picture.fit,
    )
