"""Two classes: a linear discriminant from E[(y - p) ψ], then a logistic fit in small rounds.

θ are the coefficients of (1, ψ), ψ whitened features. Reports are vectors (y - p)(w, a ψ) of
bounded length. The logistic fit is a Kalman filter: each round reports the mean gradient at the
present θ, which is F times the error of θ plus known noise. F comes from synthetic rows of the
present model, so that nobody's curve is needed for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dpfda._validate import FloatArray
from dpfda.linear.shrinkage import believed
from dpfda.linear.spread import normal_rows, passed, with_one

RADIUS = 0.8
"""Vectors are cut at this share of their root mean square length."""
CONSTANT = 0.5
"""Weight of the constant beside the strongest direction."""

_RATE_PRIOR = 0.1  # variance of 2p - 1 before anybody is asked
RATE_PRIOR_ANSWERS = 1 / _RATE_PRIOR
"""How many clean answers that is worth."""
_PUBLIC_ANSWERS = 1e6  # a public share is believed as if so many had told their label
_MOST_EXPLAINED = 0.8
_DOUBT = 0.3  # of the rounds' model: added to the noise, in units of its mean signal
_FORGET = 1.05  # each round, the past counts a little less: the gradient is not linear
_RIDGE = 1e-3


@dataclass(frozen=True)
class Rate:
    """The share of label 1 and the effective number of clean answers behind it."""

    share: float
    answers: float

    @classmethod
    def of(cls, total: float, people: int, alpha: float) -> Rate:
        """From randomized ±1 labels that add up to `total`; ½ where nobody was asked."""
        answers = people * alpha**2
        mean = total / people / alpha if people else 0.0
        kept = _RATE_PRIOR / (_RATE_PRIOR + 1 / max(answers, 1e-9))
        return cls(float((1 + np.clip(mean * kept, -0.9, 0.9)) / 2), answers)

    @classmethod
    def known(cls, share: float) -> Rate:
        """A public share."""
        return cls(share, _PUBLIC_ANSWERS)


def moment_cut(weights: FloatArray, share: float) -> tuple[float, float]:
    """Where (y - p)(1, ψ) weighted is cut, and how much of its mean the cut lets pass."""
    lengths = np.linalg.norm(with_one(normal_rows(len(weights) - 1)) * weights, axis=1)
    # Exactly a share p of the public rows has label 1.
    labels = np.where(np.arange(len(lengths)) % 1000 < share * 1000, 1 - share, share)
    limit = RADIUS * float(np.sqrt(np.mean((lengths * labels) ** 2)))
    return limit, passed(lengths * labels, limit)


@dataclass
class Belief:
    """A posterior of θ, and the discriminant's picture of the two classes.

    Attributes:
        theta: mean, shape (q + 1,).
        covariance: of θ.
        means: of ψ in each class, shape (2, q).
        within: covariance of ψ in a class.
        share: of label 1.
        fit: how much better slopes explain the first look than none, as a logarithm.
    """

    theta: FloatArray
    covariance: FloatArray
    means: FloatArray
    within: FloatArray
    share: float
    fit: float

    @property
    def at_nothing(self) -> float:
        """Logarithm of the density of the slopes at 0, but for a constant."""
        slopes, spread = self.theta[1:], self.covariance[1:, 1:]
        far = float(slopes @ np.linalg.solve(spread, slopes))
        return -0.5 * (far + float(np.linalg.slogdet(spread)[1]))


def discriminant(
    moment: FloatArray, noise: FloatArray, importance: FloatArray, rate: Rate
) -> Belief:
    """The linear discriminant behind an estimate of E[(y - p)(1, ψ)].

    Args:
        moment: shape (q + 1,).
        noise: its variances.
        importance: of each direction.
        rate: p and what is known of it.
    """
    p = rate.share
    variance = p * (1 - p)
    effect, own = moment[1:] / np.sqrt(variance), noise[1:] / variance
    kept, fit = believed(effect[None], own, importance)
    effect = kept * effect
    explained = float(effect @ effect)
    if explained > _MOST_EXPLAINED:
        effect = effect * np.sqrt(_MOST_EXPLAINED / explained)
        explained = _MOST_EXPLAINED
    difference = effect / np.sqrt(variance)
    slope = difference / (1 - explained)
    means = np.stack([-p * difference, (1 - p) * difference])
    doubt = 1 / (40 + 4 * rate.answers)
    share = float(np.clip(p + moment[0] * doubt / (doubt + noise[0]), 0.05, 0.95))
    intercept = np.log(share / (1 - share)) - 0.5 * means.sum(axis=0) @ slope
    left = min(doubt, float(noise[0])) / variance**2
    spread = kept * own / variance / (1 - explained) ** 2 + 0.1 * np.mean(slope**2) + 1e-4
    return Belief(
        theta=np.r_[intercept, slope],
        covariance=np.diag(np.r_[1 / (2 + 1 / (left + 1e-9)) + 0.05, spread]),
        means=means,
        within=np.eye(len(effect)) - np.outer(effect, effect),
        share=share,
        fit=fit,
    )


@dataclass(frozen=True)
class Round:
    """What one gradient round asks, and how to read its replies.

    Attributes:
        theta: where the gradient is taken.
        reach: weighted (1, ψ) longer than this is shortened to it.
        limit: so is the weighted gradient, to this.
        bias: mean gradient, cut as it is, if θ were the truth.
        fisher: its derivative by the true θ.
    """

    theta: FloatArray
    reach: float
    limit: float
    bias: FloatArray
    fisher: FloatArray


def prepare(belief: Belief, weights: FloatArray) -> Round:
    """The next round.

    ψ is shortened by its own length only, which moves no fixed point. The residual is cut at its
    root mean square. That would: E cut(y - p) is not 0 for y of probability p, and a fit without
    the bias would be half as sure again of itself as it should be.
    """
    rows = with_one(_synthetic(belief))
    lengths = np.linalg.norm(rows * weights, axis=1)
    reach = RADIUS * float(np.sqrt(np.mean(lengths**2)))
    p = 1 / (1 + np.exp(-np.clip(rows @ belief.theta, -40, 40)))
    limit = reach * float(np.sqrt(np.mean(p * (1 - p))))
    shortened = np.minimum(lengths, reach)
    if_one, if_zero = (np.minimum(r * shortened, limit) for r in (1 - p, p))
    along = rows / lengths[:, None]
    bias = (p * if_one - (1 - p) * if_zero) @ along / len(rows)
    reaction = p * (1 - p) * (if_one + if_zero)
    fisher = (along * reaction[:, None]).T @ rows / len(rows)
    return Round(belief.theta, reach, limit, bias, fisher + _RIDGE * np.eye(rows.shape[1]))


def update(
    belief: Belief, asked: Round, gradient: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """θ and its covariance after a round whose mean gradient was seen with this noise."""
    through = asked.fisher @ belief.covariance
    signal = through @ asked.fisher.T
    doubt = _DOUBT * np.trace(signal) / len(signal)
    gain = np.linalg.solve(signal + np.diag(noise + doubt), through).T
    covariance = belief.covariance - gain @ through
    return belief.theta + gain @ (gradient - asked.bias), _FORGET * (covariance + covariance.T) / 2


def _synthetic(belief: Belief) -> FloatArray:
    """Public rows that look like ψ of the discriminant's two classes."""
    width = belief.means.shape[1]
    factor = np.linalg.cholesky(belief.within + 1e-9 * np.eye(width))
    label = (_uniforms() < belief.share).astype(np.int64)
    return np.asarray(belief.means[label] + normal_rows(width) @ factor.T)


@cache
def _uniforms() -> FloatArray:
    return np.random.default_rng(4).random(len(normal_rows(1)))
